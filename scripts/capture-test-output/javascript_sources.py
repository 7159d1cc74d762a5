"""Tests that several runners of JavaScript can run, for they all know `describe`, `test` and `expect`."""

from cases import text

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
