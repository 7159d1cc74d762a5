#[test]
fn one() { missing() }
