/// Adds.
///
/// ```
/// assert_eq!(sums::add(1, 2), 3);
/// ```
pub fn add(a: i32, b: i32) -> i32 { a + b }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() { assert_eq!(add(1, 1), 2); }

    #[test]
    fn rejects_5_failed_logins() {}

    #[test]
    fn multiplies() {
        println!("test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        assert_eq!(2 * 2, 5);
    }

    #[test]
    #[ignore]
    fn writes() {}

    #[test]
    #[should_panic]
    fn panics() { panic!("as it should"); }
}
