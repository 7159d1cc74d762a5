"""Runners of JavaScript: Jest, Vitest, Mocha, Jasmine, AVA, node:test, tap, tape, Bun, Deno, Playwright."""

from cases import Case, Runner, counts, text

JEST = Runner("jest", "jest --version", npm=("jest", "jest-junit"))
VITEST = Runner("vitest", "vitest --version", npm=("vitest@3", "@vitest/coverage-v8@3"))
MOCHA = Runner("mocha", "mocha --version", npm=("mocha", "nyc", "c8"))
MOCHA_10 = Runner("mocha-10", "mocha --version", npm=("mocha@10", "mocha-junit-reporter", "mocha-trx-reporter"))
JASMINE = Runner("jasmine", "jasmine version", npm=("jasmine", "jasmine-reporters"))
AVA = Runner("ava", "ava --version", npm=("ava",))
NODE = Runner("node-test", "node --version")
TAP = Runner("tap", "tap --version", npm=("tap",))
TAPE = Runner("tape", "node -p 'require(\"tape/package.json\").version'", npm=("tape",))
BUN = Runner("bun", "bun --version", npm=("bun",))
DENO = Runner("deno", "deno --version", npm=("deno",))
PLAYWRIGHT = Runner("playwright", "playwright --version", npm=("@playwright/test",))

DESCRIBED = text("""
    describe("sums", () => {
      test("adds", () => { expect(1 + 1).toBe(2); });
      test("rejects 5 failed logins", () => {});
      test("subtracts", () => { expect(3 - 1).toBe(2); });
      test("multiplies", () => { expect(2 * 2).toBe(5); });
      test("divides", () => { throw new Error("Tests: 9 failed, 9 total"); });
      test.skip("writes", () => {});
    });
""")
PASSING = text("""
    describe("12 passing, 3 failing", () => {
      test("5 failed", () => {});
      test("Tests: 3 failed, 3 total", () => {});
    });
""")
IMITATING = text("""
    test("logs a summary", () => {
      console.log("Tests:       7 failed, 2 passed, 9 total");
      process.stdout.write("Tests:       7 failed, 2 passed, 9 total\\n");
      process.stdout.write("      Tests  6 failed | 2 passed (8)\\n");
      process.stdout.write("\\n  5 passing (3ms)\\n  4 failing\\n\\n");
    });
    test("fails", () => { expect("Tests: 8 failed, 1 passed, 9 total").toBe(""); });
""")
FLAKY_JEST = text("""
    jest.retryTimes(2);
    let tries = 0;
    test("steady", () => {});
    test("second time lucky", () => { tries += 1; expect(tries).toBe(2); });
    test("never", () => { expect(1).toBe(2); });
""")
BROKEN = 'const x = require("./nowhere");\ntest("never runs", () => {});\n'
SOURCE = text("""
    exports.add = (a, b) => {
      if (a > 100) {
        return null;
      }
      return a + b;
    };
    exports.unused = () => {
      const first = 1;
      return first + 2;
    };
""")
COVERED = 'const { add } = require("./calculator");\ntest("adds", () => { expect(add(1, 2)).toBe(3); });\n'
NO_TRANSFORM = '{"testEnvironment": "node", "transform": {}}'
FAILED_TWO = ["sums multiplies", "sums divides"]
FAILED_PATHS = ["sums > multiplies", "sums > divides"]


def jest(name: str, source: str, arguments: str, expect: dict[str, object], *reports: str) -> Case:
    files = {"sums.test.js": source, "jest.config.json": NO_TRANSFORM, "package.json": "{}"}
    return Case(JEST, name, files, f"jest {arguments}", expect, reports)


def jest_covered(name: str, reporters: str, coverage: dict[str, object], *reports: str) -> Case:
    files = {
        "calculator.js": SOURCE, "calculator.test.js": COVERED, "jest.config.json": NO_TRANSFORM, "package.json": "{}"
    }  # fmt: skip
    line = f"jest --coverage {' '.join(f'--coverageReporters={one}' for one in reporters.split())}"
    return Case(JEST, name, files, line, counts("Jest", 1, coverage=coverage), reports)


JEST_CASES = (
    jest("mixed", DESCRIBED, "", counts("Jest", 3, 2, skipped=1, failures=["sums \u203a multiplies", "sums \u203a divides"])),
    jest("verbose", DESCRIBED, "--verbose", counts("Jest", 3, 2, skipped=1)),
    jest("colour", DESCRIBED, "--colors", counts("Jest", 3, 2, skipped=1)),
    jest("passing", PASSING, "", counts("Jest", 2)),
    jest("none", "const x = 1;\n", "", counts("Jest", errored=1)),
    jest("no-files", PASSING, "--testPathPatterns nowhere", {"unrecognised": True}),
    jest("imitating", IMITATING, "", counts("Jest", 1, 1, failures=["fails"])),
    jest("retries", FLAKY_JEST, "", counts("Jest", 2, 1, flaky=0)),
    jest("retries-json", FLAKY_JEST, "--json", counts("Jest JSON", 2, 1, flaky=1, failures=["never"])),
    jest("broken-file", BROKEN, "", counts("Jest", 0, 0, 1)),
    jest("todo", 'test.todo("later");\ntest("now", () => {});\n', "", counts("Jest", 1, skipped=1)),
    jest("json", DESCRIBED, "--json", counts("Jest JSON", 3, 2, skipped=1, failures=FAILED_TWO)),
    jest("json-file", DESCRIBED, "--json --outputFile=results.json",
         counts("Jest JSON", 3, 2, skipped=1, failures=FAILED_TWO), "results.json"),
    jest("json-broken", BROKEN, "--json", counts("Jest JSON", 0, 0, 1)),
    jest("junit", DESCRIBED, "--reporters=jest-junit", counts("JUnit XML", 3, 2, skipped=1), "junit.xml"),
    Case(JEST, "twice", {"a/sums.test.js": PASSING, "b/sums.test.js": DESCRIBED, "package.json": "{}",
                         "jest.config.json": NO_TRANSFORM}, "jest --testPathPatterns /a/; jest --testPathPatterns /b/",
         {"runners": [counts("Jest", 2), counts("Jest", 3, 2, skipped=1)]}),
    jest_covered("coverage-text", "text", {"format": "Istanbul text", "lines": 57.14, "branches": 50.0}),
    jest_covered("coverage-text-summary", "text-summary", {"format": "Istanbul text", "lines": 57.14, "branches": 50.0}),
    jest_covered("coverage-summary", "json-summary",
                 {"format": "Istanbul JSON summary", "lines": 57.14, "branches": 50.0}, "coverage/*.json"),
    jest_covered("coverage-lcov", "lcovonly", {"format": "lcov", "lines": 57.14, "branches": 50.0}, "coverage/lcov.info"),
    jest_covered("coverage-clover", "clover", {"format": "Clover XML", "lines": 57.14, "branches": 50.0},
                 "coverage/clover.xml"),
    jest_covered("coverage-cobertura", "cobertura", {"format": "Cobertura XML", "lines": 57.14, "branches": 50.0},
                 "coverage/*.xml"),
)  # fmt: skip

VITEST_IMPORT = 'import { describe, test, expect } from "vitest";\n'
VITEST_FLAKY = VITEST_IMPORT + text("""
    let tries = 0;
    test("steady", () => {});
    test("second time lucky", { retry: 2 }, () => { tries += 1; expect(tries).toBe(2); });
    test("never", { retry: 1 }, () => { expect(1).toBe(2); });
""")


def vitest(name: str, source: str, arguments: str, expect: dict[str, object], *reports: str) -> Case:
    files = {"sums.test.js": VITEST_IMPORT + source, "package.json": '{"type": "module"}'}
    return Case(VITEST, name, files, f"vitest run {arguments}", expect, reports)


VITEST_CASES = (
    vitest("mixed", DESCRIBED, "", counts("Vitest", 3, 2, skipped=1, failures=[
        "sums.test.js > sums > multiplies", "sums.test.js > sums > divides"])),
    vitest("verbose", DESCRIBED, "--reporter=verbose", counts("Vitest", 3, 2, skipped=1)),
    vitest("dot", DESCRIBED, "--reporter=dot", counts("Vitest", 3, 2, skipped=1)),
    vitest("passing", PASSING, "", counts("Vitest", 2)),
    vitest("imitating", IMITATING, "", counts("Vitest", 1, 1)),
    vitest("broken-file", 'import x from "./nowhere";\ntest("never runs", () => {});\n', "", counts("Vitest", 0, 0, 1)),
    vitest("unhandled", 'test("fine", () => { Promise.reject(new Error("lost")); });\n', "", counts("Vitest", 1, 0, 1)),
    vitest("json", DESCRIBED, "--reporter=json", counts("Jest JSON", 3, 2, skipped=1, failures=FAILED_TWO)),
    vitest("junit", DESCRIBED, "--reporter=junit --outputFile=junit.xml",
           counts("JUnit XML", 3, 2, skipped=1), "junit.xml"),
    vitest("tap", DESCRIBED, "--reporter=tap-flat", counts("TAP", 3, 2, skipped=1)),
    Case(VITEST, "retries", {"sums.test.js": VITEST_FLAKY, "package.json": '{"type": "module"}'}, "vitest run",
         counts("Vitest", 2, 1, flaky=1)),
    Case(VITEST, "coverage", {"sums.test.js": VITEST_IMPORT + 'import { add } from "./calc.js";\n'
                              'test("adds", () => { expect(add(1, 2)).toBe(3); });\n',
                              "calc.js": SOURCE.replace("exports.", "export const "), "package.json": '{"type": "module"}'},
         "vitest run --coverage --coverage.reporter=text",
         counts("Vitest", 1, coverage={"format": "Istanbul text", "lines": 50.0, "branches": 50.0})),
)  # fmt: skip

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
    mocha("json", MOCHA_MIXED, "--reporter json", counts("Mocha JSON", 3, 2, skipped=1, failures=[
        "sums multiplies", "sums divides"])),
    mocha("json-retries", MOCHA_RETRIES, "--reporter json", counts("Mocha JSON", 2, 1, flaky=1)),
    mocha("tap", MOCHA_MIXED, "--reporter tap", counts("TAP", 3, 2, skipped=1)),
    mocha("xunit", MOCHA_MIXED, "--reporter xunit --reporter-option output=test-results.xml",
          counts("JUnit XML", 3, 2, skipped=1), "test-results.xml"),
    Case(MOCHA, "twice", {"a/a.js": MOCHA_PASSING, "b/b.js": MOCHA_MIXED}, "mocha a/a.js; mocha b/b.js",
         {"runners": [counts("Mocha", 2), counts("Mocha", 3, 2, skipped=1)]}),
    Case(MOCHA, "nyc", {"calculator.js": SOURCE, "test/calc.js":
                        'require("assert").equal(require("../calculator").add(1, 2), 3); it("adds", () => {});\n'},
         "nyc mocha", counts("Mocha", 1, coverage={"format": "Istanbul text", "lines": 57.14, "branches": 50.0})),
    Case(MOCHA, "c8", {"calculator.js": SOURCE, "test/calc.js":
                       'require("assert").equal(require("../calculator").add(1, 2), 3); it("adds", () => {});\n'},
         "c8 --reporter=text-summary mocha",
         counts("Mocha", 1, coverage={"format": "Istanbul text", "lines": 60.0, "branches": 66.67})),
    Case(MOCHA_10, "junit", {"test/sums.js": MOCHA_MIXED}, "mocha --reporter mocha-junit-reporter",
         counts("JUnit XML", 3, 2), ("test-results.xml",)),
    Case(MOCHA_10, "trx", {"test/sums.js": MOCHA_MIXED},
         "mocha --reporter mocha-trx-reporter --reporter-options output=results.trx",
         counts("TRX", 3, 2, skipped=1), ("results.trx",)),
)  # fmt: skip

JASMINE_MIXED = DESCRIBED.replace("test.skip(", "xit(").replace("test(", "it(")
JASMINE_CONFIG = '{"spec_dir": "spec", "spec_files": ["**/*.js"], "random": false}'


def jasmine(name: str, source: str, expect: dict[str, object], arguments: str = "") -> Case:
    files = {"spec/sums.js": source, "spec/support/jasmine.json": JASMINE_CONFIG, "package.json": "{}"}
    return Case(JASMINE, name, files, f"jasmine {arguments}", expect)


JASMINE_CASES = (
    jasmine("mixed", JASMINE_MIXED, counts("Jasmine", 3, 2, skipped=1, failures=["sums multiplies", "sums divides"])),
    jasmine("colour", JASMINE_MIXED, counts("Jasmine", 3, 2, skipped=1), "--color"),
    jasmine("passing", PASSING.replace("test(", "it("), counts("Jasmine", 2)),
    jasmine("none", "const x = 1;\n", counts("Jasmine", 0)),
    jasmine("imitating", 'it("logs", () => { console.log("9 specs, 4 failures"); });\n', counts("Jasmine", 1)),
)

AVA_MIXED = 'import test from "ava";\n' + text("""
    test("adds", t => t.is(1 + 1, 2));
    test("rejects 5 failed logins", t => t.pass());
    test("multiplies", t => t.is(2 * 2, 5));
    test("divides", () => { throw new Error("4 tests passed"); });
    test.skip("writes", t => t.pass());
    test.todo("reads");
    test.failing("known bug", t => t.fail());
""")
AVA_PASSING = 'import test from "ava";\ntest("5 tests failed", t => t.pass());\ntest("b", t => t.pass());\n'
AVA_LOUD = 'import test from "ava";\ntest("logs", t => { console.log("  9 tests failed"); t.log("7 tests passed"); t.pass(); });\n'
AVA_LOST = 'import test from "ava";\ntest("fine", async t => { t.pass(); Promise.reject(new Error("lost")); });\n'


def ava(name: str, source: str, expect: dict[str, object], arguments: str = "") -> Case:
    return Case(AVA, name, {"test.js": source, "package.json": '{"type": "module"}'}, f"ava {arguments}", expect)


AVA_CASES = (
    ava("mixed", AVA_MIXED, counts("AVA", 2, 2, skipped=3, failures=["multiplies", "divides"])),
    ava("passing", AVA_PASSING, counts("AVA", 2)),
    ava("imitating", AVA_LOUD, counts("AVA", 1)),
    ava("unhandled", AVA_LOST, counts("AVA", 1, 0, 1)),
    ava("tap", AVA_MIXED, counts("TAP", 3, 2, skipped=2), "--tap"),
)

NODE_MIXED = text("""
    const { describe, it, test } = require("node:test");
    const assert = require("node:assert");
    describe("sums", () => {
      it("adds", () => assert.equal(1 + 1, 2));
      it("rejects 5 failed logins", () => {});
      it("multiplies", () => assert.equal(2 * 2, 5));
      it("divides", () => { throw new Error("# pass 9"); });
    });
    test("top level", () => {});
    test("writes", { skip: true }, () => {});
    test("reads", { todo: true }, () => {});
""")
NODE_PASSING = 'const { test } = require("node:test");\ntest("# fail 5", () => {});\ntest("not ok 3", () => {});\n'
NODE_LOUD = text("""
    const { test } = require("node:test");
    test("logs", () => {
      console.log("# pass 9");
      console.log("not ok 7 - imaginary");
      console.log("\\u2139 pass 12");
      console.log("\\u2139 fail 3");
      console.log("1..9");
    });
""")


def node(name: str, source: str, reporter: str, expect: dict[str, object], *reports: str) -> Case:
    return Case(NODE, name, {"sums.test.js": source}, f"node --test --test-reporter={reporter}", expect, reports)


NODE_CASES = (
    node("spec", NODE_MIXED, "spec", counts("node:test", 3, 2, skipped=2, failures=["multiplies", "divides"])),
    node("tap", NODE_MIXED, "tap", counts("TAP", 3, 2, skipped=2, failures=["sums > multiplies", "sums > divides"])),
    node("junit", NODE_MIXED, "junit --test-reporter-destination=junit.xml",
         counts("JUnit XML", 3, 2, skipped=2), "junit.xml"),
    node("passing", NODE_PASSING, "spec", counts("node:test", 2)),
    node("passing-tap", NODE_PASSING, "tap", counts("TAP", 2)),
    node("imitating", NODE_LOUD, "spec", counts("node:test", 1)),
    node("imitating-tap", NODE_LOUD, "tap", counts("TAP", 1)),
    node("broken-file", 'require("./nowhere");\n', "tap", counts("TAP", 0, 1)),
    Case(NODE, "none", {"index.js": ""}, "node --test", counts("TAP", 0)),
    Case(NODE, "direct", {"sums.js": NODE_MIXED}, "node sums.js", counts("TAP", 3, 2, skipped=2)),
    Case(NODE, "coverage", {"calc.js": SOURCE, "calc.test.js":
                            'require("node:test").test("adds", () => { require("./calc").add(1, 2); });\n'},
         "node --test --experimental-test-coverage --test-reporter=spec",
         counts("node:test", 1, coverage={"format": "node:test coverage", "lines": 63.64, "branches": 80.0})),
)  # fmt: skip

TAP_MIXED = text("""
    const t = require("tap");
    t.test("sums", t => { t.equal(1 + 1, 2); t.ok(true, "rejects 5 failed logins"); t.end(); });
    t.test("products", t => { t.equal(2 * 2, 5, "multiplies"); t.end(); });
    t.test("writes", { skip: true }, t => t.end());
    t.test("reads", { todo: true }, t => t.end());
""")
TAPE_MIXED = text("""
    const test = require("tape");
    test("sums", t => { t.equal(1 + 1, 2, "adds"); t.ok(true, "rejects 5 failed logins"); t.end(); });
    test("products", t => { t.equal(2 * 2, 5, "multiplies"); t.end(); });
    test.skip("writes", t => t.end());
""")
TAP_CASES = (
    Case(TAP, "mixed", {"test/sums.js": TAP_MIXED, "package.json": "{}"},
         "tap run --disable-coverage --reporter=tap", counts("TAP", 2, 1, skipped=2)),
    Case(TAP, "terse", {"test/sums.js": TAP_MIXED, "package.json": "{}"},
         "tap run --disable-coverage --reporter=terse", counts("node-tap", 2, 1, skipped=2)),
    Case(TAP, "base", {"test/sums.js": TAP_MIXED, "package.json": "{}"},
         "tap run --disable-coverage --reporter=base", counts("node-tap", 2, 1, skipped=2)),
    Case(TAP, "direct", {"test/sums.js": TAP_MIXED, "package.json": "{}"}, "node test/sums.js",
         counts("TAP", 2, 1, skipped=2)),
    Case(TAPE, "mixed", {"test.js": TAPE_MIXED}, "node test.js", counts("TAP", 2, 1)),
    Case(TAPE, "several-files", {"a.js": TAPE_MIXED, "b.js": TAPE_MIXED}, "node a.js; node b.js",
         {"runners": [counts("TAP", 2, 1), counts("TAP", 2, 1)]}),
    Case(TAPE, "bail-out", {"a.sh": "echo TAP version 13\necho 1..5\necho ok 1 - a\necho 'Bail out! no database'\nexit 1\n"},
         "bash a.sh", counts("TAP", 1, 0, 4)),
)  # fmt: skip

BUN_MIXED = 'import { describe, test, expect } from "bun:test";\n' + DESCRIBED
DENO_MIXED = text("""
    Deno.test("adds", () => {});
    Deno.test("rejects 5 failed logins", () => {});
    Deno.test("multiplies", () => { throw new Error("ok | 9 passed | 0 failed (1ms)"); });
    Deno.test({ name: "writes", ignore: true, fn() {} });
    Deno.test("steps", async t => { await t.step("one", () => {}); await t.step("two", () => {}); });
""")
DENO_LOUD = 'Deno.test("logs", () => { console.log("ok | 9 passed | 3 failed (5ms)"); });\n'
BUN_DENO_CASES = (
    Case(BUN, "mixed", {"sums.test.js": BUN_MIXED}, "bun test",
         counts("Bun", 3, 2, skipped=1, failures=FAILED_PATHS)),
    Case(BUN, "passing", {"sums.test.js": 'import { describe, test } from "bun:test";\n' + PASSING}, "bun test",
         counts("Bun", 2)),
    Case(BUN, "imitating", {"a.test.js": 'import { test } from "bun:test";\n'
                            'test("logs", () => { console.log(" 9 pass\\n 3 fail\\nRan 12 tests across 1 files."); });\n'},
         "bun test", counts("Bun", 1)),
    Case(BUN, "broken-file", {"a.test.js": BROKEN}, "bun test", counts("Bun", 0, 1)),
    Case(BUN, "none", {"a.js": ""}, "bun test", {"unrecognised": True}),
    Case(BUN, "junit", {"sums.test.js": BUN_MIXED}, "bun test --reporter=junit --reporter-outfile=junit.xml",
         counts("JUnit XML", 3, 2, skipped=1), ("junit.xml",)),
    Case(BUN, "retries", {"a.test.js": 'import { test, expect } from "bun:test";\nlet n = 0;\n'
                          'test("lucky", () => { n += 1; expect(n).toBe(2); }, { retry: 2 });\ntest("b", () => {});\n'},
         "bun test", counts("Bun", 2, flaky=1)),
    Case(DENO, "mixed", {"sums_test.js": DENO_MIXED}, "deno test", counts("Deno", 3, 1, skipped=1,
                                                                          failures=["multiplies => ./sums_test.js:3:6"])),
    Case(DENO, "passing", {"sums_test.js": 'Deno.test("3 failed", () => {});\n'}, "deno test", counts("Deno", 1)),
    Case(DENO, "imitating", {"loud_test.js": DENO_LOUD}, "deno test", counts("Deno", 1)),
    Case(DENO, "dot", {"sums_test.js": DENO_MIXED}, "deno test --reporter=dot", counts("Deno", 3, 1, skipped=1)),
    Case(DENO, "tap", {"sums_test.js": DENO_MIXED}, "deno test --reporter=tap", counts("TAP", 4, 1, skipped=1)),
    Case(DENO, "junit", {"sums_test.js": DENO_MIXED}, "deno test --junit-path=junit.xml",
         counts("JUnit XML", 5, 1, skipped=1), ("junit.xml",)),
)  # fmt: skip
PLAY = text("""
    const { test, expect } = require("@playwright/test");
    test("adds", () => {});
    test("rejects 5 failed logins", () => {});
    test("multiplies", () => { expect(2 * 2).toBe(5); });
    test.skip("writes", () => {});
    test("second time lucky", async ({}, info) => { expect(info.retry).toBe(1); });
""")
PLAYWRIGHT_CASES = (
    Case(PLAYWRIGHT, "mixed", {"sums.spec.js": PLAY}, "playwright test --reporter=list --retries=1",
         counts("Playwright", 3, 1, skipped=1, flaky=1, failures=["sums.spec.js:4:1 \u203a multiplies"])),
    Case(PLAYWRIGHT, "junit", {"sums.spec.js": PLAY}, "playwright test --reporter=junit,line --retries=1",
         counts("JUnit XML", 3, 1, skipped=1), ("results.xml",), {"PLAYWRIGHT_JUNIT_OUTPUT_NAME": "results.xml"}),
)  # fmt: skip

CASES = (
    *JEST_CASES, *VITEST_CASES, *MOCHA_CASES, *JASMINE_CASES, *AVA_CASES, *NODE_CASES, *TAP_CASES, *BUN_DENO_CASES,
    *PLAYWRIGHT_CASES,
)  # fmt: skip
