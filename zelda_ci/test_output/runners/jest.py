"""Jest's and Vitest's closing blocks."""

import re
from collections.abc import Iterable, Iterator

from zelda_ci.test_output.tally import Lines, Tally, first_names, following, matches, numbers

_WORDS = "failed|passed|skipped|todo|pending|total|expected fail"
_SUITES = re.compile(r"Test Suites: +(\S.*)$")
_TESTS = re.compile(r"Tests: +(\S.*)$")
_FILE = re.compile(r"(?:FAIL|PASS) (\S.*)$")
_NAME = re.compile(r" {2}\u25cf (\S.*)$")
_BROKEN = "Test suite failed to run"
_AGAIN = "Summary of all failing tests"

_VITEST_FILES = re.compile(r" *Test Files {1,3}(\S.*)$")
_VITEST_TESTS = re.compile(r" *Tests {1,3}(no tests|\S.*?)(?: \((\d+)\))?$")
_VITEST_ERRORS = re.compile(r" *Errors {1,3}(\d+) errors?$")
_VITEST_SUITES = re.compile(r"\W*Failed Suites (\d+)\W*$")
_VITEST_FAIL = re.compile(r" *FAIL {1,2}(\S.*)$")
_VITEST_RETRY = re.compile(r" *[\u2713\u221a\u2714] .*\(retry x\d+\)$")


def read_jest(lines: Lines) -> Iterable[Tally]:
    """One tally per block of `Test Suites:` and `Tests:`; a file that could not be loaded is an error."""
    start = 0
    for at, _ in matches(lines, _SUITES):
        for end, line in following(lines, at + 1, 1):
            found = _TESTS.match(line)
            counts = numbers(found[1], _WORDS) if found else None
            if counts is not None and "total" in counts:
                yield _jest(lines, start, end, counts)
                start = end + 1


def _jest(lines: Lines, first: int, last: int, counts: dict[str, int]) -> Tally:
    names, broken = _failing(lines[first:last])
    return Tally(
        "Jest",
        passed=counts.get("passed", 0),
        failed=counts.get("failed", 0),
        errored=len(broken),
        skipped=counts.get("skipped", 0) + counts.get("todo", 0) + counts.get("pending", 0),
        failures=first_names([*names, *broken]) if counts.get("failed") or broken else (),
        first=first,
        last=last,
    )


def _failing(lines: Lines) -> tuple[list[str], list[str]]:
    names: dict[str, None] = {}
    broken: dict[str, None] = {}
    file = ""
    for line in lines:
        if line.startswith(_AGAIN):
            break
        if found := _FILE.match(line):
            file = found[1]
        elif (found := _NAME.match(line)) and file:
            if found[1] == _BROKEN:
                broken[file] = None
            elif found[1] != "Console":
                names[found[1]] = None
    return list(names), list(broken)


def read_vitest(lines: Lines) -> Iterable[Tally]:
    """One tally per block of `Test Files` and `Tests`; errors outside of tests count as errored."""
    start = 0
    for at, _ in matches(lines, _VITEST_FILES):
        for end, line in following(lines, at + 1, 1):
            found = _VITEST_TESTS.match(line)
            counts = _vitest_counts(found) if found else None
            if counts is not None:
                yield _vitest(lines, start, end, counts)
                start = end + 1


def _vitest_counts(found: re.Match[str]) -> dict[str, int] | None:
    return {} if found[1] == "no tests" else numbers(found[1], _WORDS) if found[2] else None


def _vitest(lines: Lines, first: int, last: int, counts: dict[str, int]) -> Tally:
    before = lines[first:last]
    outside = sum(int(found[1]) for _, found in matches(before, _VITEST_SUITES))
    outside += sum(int(found[1]) for _, line in following(lines, last + 1, 1) if (found := _VITEST_ERRORS.match(line)))
    return Tally(
        "Vitest",
        passed=counts.get("passed", 0) + counts.get("expected fail", 0),
        failed=counts.get("failed", 0),
        errored=outside,
        skipped=counts.get("skipped", 0) + counts.get("todo", 0),
        flaky=sum(1 for _ in matches(before, _VITEST_RETRY)),
        failures=first_names(_vitest_names(before)),
        first=first,
        last=last,
    )


def _vitest_names(lines: Lines) -> Iterator[str]:
    for _, found in matches(lines, _VITEST_FAIL):
        if " > " in found[1] or " [ " in found[1]:
            yield found[1].partition(" [ ")[0]
