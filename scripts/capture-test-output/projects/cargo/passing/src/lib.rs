#[test]
fn one() {}
#[test]
fn two() {}
