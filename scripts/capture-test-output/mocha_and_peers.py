"""Mocha and Jasmine."""

from cases import Case, Runner, counts, text
from javascript_sources import DESCRIBED, PASSING, SOURCE

MOCHA = Runner("mocha", "mocha --version", npm=("mocha", "nyc", "c8"))
MOCHA_10 = Runner("mocha-10", "mocha --version", npm=("mocha@10", "mocha-junit-reporter", "mocha-trx-reporter"))
JASMINE = Runner("jasmine", "jasmine version", npm=("jasmine", "jasmine-reporters"))
TAP = Runner("tap", "tap --version", npm=("tap",))

MOCHA_MIXED = 'const assert = require("assert");\n' + text("""
    describe("sums", () => {
      it("adds", () => assert.equal(1 + 1, 2));
      it("rejects 5 failed logins", () => {});
      it("subtracts", () => assert.equal(3 - 1, 2));
      it("multiplies", () => assert.equal(2 * 2, 5));
      it("divides", () => { throw new Error("3 failing"); });
      it("writes");
    });
""")
MOCHA_PASSING = 'describe("sums", () => { it("3 failing", () => {}); it("9 passing (2ms)", () => {}); });\n'
MOCHA_IMITATING = text("""
    describe("loud", () => {
      it("logs", () => { console.log("\\n  9 passing (3ms)\\n  4 failing\\n"); });
      it("fails", () => { console.log("  8 passing (1ms)"); throw new Error("no"); });
    });
""")
MOCHA_HOOK = text("""
    describe("hooked", () => {
      it("runs", () => {});
      describe("inner", () => {
        before(() => { throw new Error("no database"); });
        it("never runs", () => {});
      });
    });
""")
MOCHA_RETRIES = text("""
    describe("flaky", function () {
      this.retries(2);
      let tries = 0;
      it("second time lucky", () => { tries += 1; if (tries < 2) throw new Error("first try"); });
      it("never", () => { throw new Error("always"); });
      it("steady", () => {});
    });
""")


def mocha(name: str, source: str, arguments: str, expect: dict[str, object], *reports: str) -> Case:
    files = {"test/sums.js": source, "package.json": "{}"}
    return Case(MOCHA, name, files, f"mocha {arguments}", expect, reports)


MOCHA_CASES = (
    mocha("mixed", MOCHA_MIXED, "", counts("Mocha", 3, 2, skipped=1, failures=["sums multiplies", "sums divides"])),
    mocha("dot", MOCHA_MIXED, "--reporter dot", counts("Mocha", 3, 2, skipped=1)),
    mocha("min", MOCHA_MIXED, "--reporter min", counts("Mocha", 3, 2, skipped=1)),
    mocha("colour", MOCHA_MIXED, "--color", counts("Mocha", 3, 2, skipped=1)),
    mocha("passing", MOCHA_PASSING, "", counts("Mocha", 2)),
    mocha("none", "const x = 1;\n", "", counts("Mocha", 0)),
    mocha("imitating", MOCHA_IMITATING, "", counts("Mocha", 1, 1)),
    mocha("hook", MOCHA_HOOK, "", counts("Mocha", 1, 1)),
    mocha("retries", MOCHA_RETRIES, "", counts("Mocha", 2, 1)),
    mocha(
        "json",
        MOCHA_MIXED,
        "--reporter json",
        counts("Mocha JSON", 3, 2, skipped=1, failures=["sums multiplies", "sums divides"]),
    ),
    mocha("json-retries", MOCHA_RETRIES, "--reporter json", counts("Mocha JSON", 2, 1, flaky=1)),
    mocha("tap", MOCHA_MIXED, "--reporter tap", counts("TAP", 3, 2, skipped=1)),
    mocha(
        "xunit",
        MOCHA_MIXED,
        "--reporter xunit --reporter-option output=test-results.xml",
        counts("JUnit XML", 3, 2, skipped=1),
        "test-results.xml",
    ),
    Case(
        MOCHA,
        "twice",
        {"a/a.js": MOCHA_PASSING, "b/b.js": MOCHA_MIXED},
        "mocha a/a.js; mocha b/b.js",
        {"runners": [counts("Mocha", 2), counts("Mocha", 3, 2, skipped=1)]},
    ),
    Case(
        MOCHA,
        "nyc",
        {
            "calculator.js": SOURCE,
            "test/calc.js": 'require("assert").equal(require("../calculator").add(1, 2), 3); it("adds", () => {});\n',
        },
        "nyc mocha",
        counts("Mocha", 1, coverage={"format": "Istanbul text", "lines": 57.14, "branches": 50.0}),
    ),
    Case(
        MOCHA,
        "c8",
        {
            "calculator.js": SOURCE,
            "test/calc.js": 'require("assert").equal(require("../calculator").add(1, 2), 3); it("adds", () => {});\n',
        },
        "c8 --reporter=text-summary mocha",
        counts("Mocha", 1, coverage={"format": "Istanbul text", "lines": 60.0, "branches": 66.67}),
    ),
    Case(
        MOCHA_10,
        "junit",
        {"test/sums.js": MOCHA_MIXED},
        "mocha --reporter mocha-junit-reporter",
        counts("JUnit XML", 3, 2),
        ("test-results.xml",),
    ),
    Case(
        MOCHA_10,
        "trx",
        {"test/sums.js": MOCHA_MIXED},
        "mocha --reporter mocha-trx-reporter --reporter-options output=results.trx",
        counts("TRX", 3, 2, skipped=1),
        ("results.trx",),
    ),
)

JASMINE_MIXED = DESCRIBED.replace("test.skip(", "xit(").replace("test(", "it(")
JASMINE_CONFIG = '{"spec_dir": "spec", "spec_files": ["**/*.js"]}'


def jasmine(name: str, source: str, expect: dict[str, object], arguments: str = "") -> Case:
    files = {"spec/sums.js": source, "spec/support/jasmine.json": JASMINE_CONFIG, "package.json": "{}"}
    return Case(JASMINE, name, files, f"jasmine --random=false {arguments}", expect)


JASMINE_CASES = (
    jasmine("mixed", JASMINE_MIXED, counts("Jasmine", 3, 2, skipped=1, failures=["sums multiplies", "sums divides"])),
    jasmine("colour", JASMINE_MIXED, counts("Jasmine", 3, 2, skipped=1), "--color"),
    jasmine("passing", PASSING.replace("test(", "it("), counts("Jasmine", 2)),
    jasmine("none", "const x = 1;\n", counts("Jasmine", 0)),
    jasmine("imitating", 'it("logs", () => { console.log("9 specs, 4 failures"); });\n', counts("Jasmine", 1)),
)

CASES = (
    *MOCHA_CASES,
    *JASMINE_CASES,
)
