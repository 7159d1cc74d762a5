"""Jest and Vitest."""

from cases import Case, Runner, counts, text
from javascript_sources import (
    BROKEN,
    COVERED,
    DESCRIBED,
    FAILED_TWO,
    FLAKY_JEST,
    IMITATING,
    NO_TRANSFORM,
    PASSING,
    SOURCE,
)

JEST = Runner("jest", "jest --version", npm=("jest", "jest-junit"))
VITEST = Runner("vitest", "vitest --version", npm=("vitest@3", "@vitest/coverage-v8@3"))
TAP = Runner("tap", "tap --version", npm=("tap",))


def jest(name: str, source: str, arguments: str, expect: dict[str, object], *reports: str) -> Case:
    files = {"sums.test.js": source, "jest.config.json": NO_TRANSFORM, "package.json": "{}"}
    return Case(JEST, name, files, f"jest {arguments}", expect, reports)


def jest_covered(name: str, reporters: str, coverage: dict[str, object], *reports: str) -> Case:
    files = {
        "calculator.js": SOURCE,
        "calculator.test.js": COVERED,
        "jest.config.json": NO_TRANSFORM,
        "package.json": "{}",
    }
    line = f"jest --coverage {' '.join(f'--coverageReporters={one}' for one in reporters.split())}"
    return Case(JEST, name, files, line, counts("Jest", 1, coverage=coverage), reports)


JEST_CASES = (
    jest(
        "mixed",
        DESCRIBED,
        "",
        counts("Jest", 3, 2, skipped=1, failures=["sums \u203a multiplies", "sums \u203a divides"]),
    ),
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
    jest(
        "json-file",
        DESCRIBED,
        "--json --outputFile=results.json",
        counts("Jest JSON", 3, 2, skipped=1, failures=FAILED_TWO),
        "results.json",
    ),
    jest("json-broken", BROKEN, "--json", counts("Jest JSON", 0, 0, 1)),
    jest("junit", DESCRIBED, "--reporters=jest-junit", counts("JUnit XML", 3, 2, skipped=1), "junit.xml"),
    Case(
        JEST,
        "twice",
        {
            "a/sums.test.js": PASSING,
            "b/sums.test.js": DESCRIBED,
            "package.json": "{}",
            "jest.config.json": NO_TRANSFORM,
        },
        "jest --testPathPatterns /a/; jest --testPathPatterns /b/",
        {"runners": [counts("Jest", 2), counts("Jest", 3, 2, skipped=1)]},
    ),
    jest_covered("coverage-text", "text", {"format": "Istanbul text", "lines": 57.14, "branches": 50.0}),
    jest_covered(
        "coverage-text-summary", "text-summary", {"format": "Istanbul text", "lines": 57.14, "branches": 50.0}
    ),
    jest_covered(
        "coverage-summary",
        "json-summary",
        {"format": "Istanbul JSON summary", "lines": 57.14, "branches": 50.0},
        "coverage/*.json",
    ),
    jest_covered(
        "coverage-lcov", "lcovonly", {"format": "lcov", "lines": 57.14, "branches": 50.0}, "coverage/lcov.info"
    ),
    jest_covered(
        "coverage-cobertura",
        "cobertura",
        {"format": "Cobertura XML", "lines": 57.14, "branches": 50.0},
        "coverage/*.xml",
    ),
)

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
    vitest(
        "mixed",
        DESCRIBED,
        "",
        counts(
            "Vitest", 3, 2, skipped=1, failures=["sums.test.js > sums > multiplies", "sums.test.js > sums > divides"]
        ),
    ),
    vitest("verbose", DESCRIBED, "--reporter=verbose", counts("Vitest", 3, 2, skipped=1)),
    vitest("dot", DESCRIBED, "--reporter=dot", counts("Vitest", 3, 2, skipped=1)),
    vitest("passing", PASSING, "", counts("Vitest", 2)),
    vitest("imitating", IMITATING, "", counts("Vitest", 1, 1)),
    vitest("broken-file", 'import x from "./nowhere";\ntest("never runs", () => {});\n', "", counts("Vitest", 0, 0, 1)),
    vitest("unhandled", 'test("fine", () => { Promise.reject(new Error("lost")); });\n', "", counts("Vitest", 1, 0, 1)),
    vitest("json", DESCRIBED, "--reporter=json", counts("Jest JSON", 3, 2, skipped=1, failures=FAILED_TWO)),
    vitest(
        "junit", DESCRIBED, "--reporter=junit --outputFile=junit.xml", counts("JUnit XML", 3, 2, skipped=1), "junit.xml"
    ),
    vitest("tap", DESCRIBED, "--reporter=tap-flat", counts("TAP", 3, 2, skipped=1)),
    Case(
        VITEST,
        "retries",
        {"sums.test.js": VITEST_FLAKY, "package.json": '{"type": "module"}'},
        "vitest run",
        counts("Vitest", 2, 1, flaky=1),
    ),
    Case(
        VITEST,
        "coverage",
        {
            "sums.test.js": VITEST_IMPORT + 'import { add } from "./calc.js";\n'
            'test("adds", () => { expect(add(1, 2)).toBe(3); });\n',
            "calc.js": SOURCE.replace("exports.", "export const "),
            "package.json": '{"type": "module"}',
        },
        "vitest run --coverage --coverage.reporter=text",
        counts("Vitest", 1, coverage={"format": "Istanbul text", "lines": 50.0, "branches": 50.0}),
    ),
)

CASES = (
    *JEST_CASES,
    *VITEST_CASES,
)
