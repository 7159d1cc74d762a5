"""node:test, tap, tape, Bun, Deno and Playwright."""

from cases import Case, Runner, counts, text
from javascript_sources import BROKEN, DESCRIBED, FAILED_PATHS, PASSING

NODE = Runner("node-test", "node --version")
TAP = Runner("tap", "tap --version", npm=("tap",))
TAPE = Runner("tape", "node -p 'require(\"tape/package.json\").version'", npm=("tape",))
BUN = Runner("bun", "bun --version", npm=("bun",))
DENO = Runner("deno", "deno --version", npm=("deno",))
PLAYWRIGHT = Runner("playwright", "playwright --version", npm=("@playwright/test",))

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
    node(
        "junit",
        NODE_MIXED,
        "junit --test-reporter-destination=junit.xml",
        counts("JUnit XML", 3, 2, skipped=2),
        "junit.xml",
    ),
    node("passing", NODE_PASSING, "spec", counts("node:test", 2)),
    node("passing-tap", NODE_PASSING, "tap", counts("TAP", 2)),
    node("imitating", NODE_LOUD, "spec", counts("node:test", 1)),
    node("imitating-tap", NODE_LOUD, "tap", counts("TAP", 1)),
    node("broken-file", 'require("./nowhere");\n', "tap", counts("TAP", 0, 1)),
    Case(NODE, "none", {"index.js": ""}, "node --test", counts("TAP", 0)),
    Case(NODE, "direct", {"sums.js": NODE_MIXED}, "node sums.js", counts("TAP", 3, 2, skipped=2)),
)

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
    Case(
        TAP,
        "mixed",
        {"test/sums.js": TAP_MIXED, "package.json": "{}"},
        "tap run --disable-coverage --reporter=tap",
        counts("TAP", 2, 1, skipped=2),
    ),
    Case(
        TAP,
        "terse",
        {"test/sums.js": TAP_MIXED, "package.json": "{}"},
        "tap run --disable-coverage --reporter=terse",
        counts("node-tap", 2, 1, skipped=2),
    ),
    Case(
        TAP,
        "base",
        {"test/sums.js": TAP_MIXED, "package.json": "{}"},
        "tap run --disable-coverage --reporter=base",
        counts("node-tap", 2, 1, skipped=2),
    ),
    Case(
        TAP,
        "direct",
        {"test/sums.js": TAP_MIXED, "package.json": "{}"},
        "node test/sums.js",
        counts("TAP", 2, 1, skipped=2),
    ),
    Case(TAPE, "mixed", {"test.js": TAPE_MIXED}, "node test.js", counts("TAP", 2, 1)),
    Case(
        TAPE,
        "several-files",
        {"a.js": TAPE_MIXED, "b.js": TAPE_MIXED},
        "node a.js; node b.js",
        {"runners": [counts("TAP", 2, 1), counts("TAP", 2, 1)]},
    ),
    Case(
        TAPE,
        "bail-out",
        {"a.sh": "echo TAP version 13\necho 1..5\necho ok 1 - a\necho 'Bail out! no database'\nexit 1\n"},
        "bash a.sh",
        counts("TAP", 1, 0, 4),
    ),
)

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
    Case(BUN, "mixed", {"sums.test.js": BUN_MIXED}, "bun test", counts("Bun", 3, 2, skipped=1, failures=FAILED_PATHS)),
    Case(
        BUN,
        "passing",
        {"sums.test.js": 'import { describe, test } from "bun:test";\n' + PASSING},
        "bun test",
        counts("Bun", 2),
    ),
    Case(
        BUN,
        "imitating",
        {
            "a.test.js": 'import { test } from "bun:test";\n'
            'test("logs", () => { console.log(" 9 pass\\n 3 fail\\nRan 12 tests across 1 files."); });\n'
        },
        "bun test",
        counts("Bun", 1),
    ),
    Case(BUN, "broken-file", {"a.test.js": BROKEN}, "bun test", counts("Bun", 0, 1)),
    Case(BUN, "none", {"a.js": ""}, "bun test", {"unrecognised": True}),
    Case(
        BUN,
        "junit",
        {"sums.test.js": BUN_MIXED},
        "bun test --reporter=junit --reporter-outfile=junit.xml",
        counts("JUnit XML", 3, 2, skipped=1),
        ("junit.xml",),
    ),
    Case(
        BUN,
        "retries",
        {
            "a.test.js": 'import { test, expect } from "bun:test";\nlet n = 0;\n'
            'test("lucky", () => { n += 1; expect(n).toBe(2); }, { retry: 2 });\ntest("b", () => {});\n'
        },
        "bun test",
        counts("Bun", 2, flaky=1),
    ),
    Case(
        DENO,
        "mixed",
        {"sums_test.js": DENO_MIXED},
        "deno test",
        counts("Deno", 3, 1, skipped=1, failures=["multiplies => ./sums_test.js:3:6"]),
    ),
    Case(DENO, "passing", {"sums_test.js": 'Deno.test("3 failed", () => {});\n'}, "deno test", counts("Deno", 1)),
    Case(DENO, "imitating", {"loud_test.js": DENO_LOUD}, "deno test", counts("Deno", 1)),
    Case(DENO, "dot", {"sums_test.js": DENO_MIXED}, "deno test --reporter=dot", counts("Deno", 3, 1, skipped=1)),
    Case(DENO, "tap", {"sums_test.js": DENO_MIXED}, "deno test --reporter=tap", counts("TAP", 4, 1, skipped=1)),
    Case(
        DENO,
        "junit",
        {"sums_test.js": DENO_MIXED},
        "deno test --junit-path=junit.xml",
        counts("JUnit XML", 5, 1, skipped=1),
        ("junit.xml",),
    ),
)
PLAY = text("""
    const { test, expect } = require("@playwright/test");
    test("adds", () => {});
    test("rejects 5 failed logins", () => {});
    test("multiplies", () => { expect(2 * 2).toBe(5); });
    test.skip("writes", () => {});
    test("second time lucky", async ({}, info) => { expect(info.retry).toBe(1); });
""")
PLAYWRIGHT_CASES = (
    Case(
        PLAYWRIGHT,
        "mixed",
        {"sums.spec.js": PLAY},
        "playwright test --reporter=list --retries=1",
        counts("Playwright", 3, 1, skipped=1, flaky=1, failures=["sums.spec.js:4:1 \u203a multiplies"]),
    ),
    Case(
        PLAYWRIGHT,
        "junit",
        {"sums.spec.js": PLAY},
        "playwright test --reporter=junit,line --retries=1",
        counts("JUnit XML", 3, 1, skipped=1),
        ("results.xml",),
        {"PLAYWRIGHT_JUNIT_OUTPUT_NAME": "results.xml"},
    ),
)

CASES = (
    *NODE_CASES,
    *TAP_CASES,
    *BUN_DENO_CASES,
    *PLAYWRIGHT_CASES,
)
