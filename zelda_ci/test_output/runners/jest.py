"""Jest and Vitest: closing blocks."""

from collections.abc import Iterable, Iterator
from typing import Any

import re2

from zelda_ci.test_output.tally import Lines, Tally, first_names, following, matches, numbers

_WORDS = "failed|passed|skipped|todo|pending|total|expected fail"
_SUITES = re2.compile(r"Test Suites: +(\S.*)$")
_TESTS = re2.compile(r"Tests: +(\S.*)$")
_FILE = re2.compile(r"(?:FAIL|PASS) (\S.*)$")
_NAME = re2.compile(r" {2}\x{25cf} (\S.*)$")
_BROKEN = "Test suite failed to run"
_AGAIN = "Summary of all failing tests"

_VITEST_FILES = re2.compile(r" *Test Files {1,3}(\S.*)$")
_VITEST_TESTS = re2.compile(r" *Tests {1,3}(no tests|\S.*?)(?: \((\d+)\))?$")
_VITEST_ERRORS = re2.compile(r" *Errors {1,3}(\d+) errors?$")
_VITEST_SUITES = re2.compile(r"\W*Failed Suites (\d+)\W*$")
_VITEST_FAIL = re2.compile(r" *FAIL {1,2}(\S.*)$")
_VITEST_RETRY = re2.compile(r" *[\x{2713}\x{221a}\x{2714}] .*\(retry x\d+\)$")


def read_jest(lines: Lines) -> Iterable[Tally]:
    """One tally per block of `Test Suites:` and `Tests:`; a file that could not be loaded is an error."""
    start = 0
    for index, suites in matches(lines, _SUITES):
        for end, line in following(lines, index + 1, 1):
            match = _TESTS.match(line)
            counts = numbers(match[1], _WORDS) if match else None
            if match and counts is None:
                yield Tally("Jest", first=index, last=end, doubt="Jest prints counts that there cannot be")
            if counts is not None and "total" in counts:
                lost = numbers(suites[1], _WORDS) or {}
                yield _jest(lines, start, end, counts, lost.get("failed", 0))
                start = end + 1


def _jest(lines: Lines, first: int, last: int, counts: dict[str, int], lost: int) -> Tally:
    names, broken = _failing(lines[first:last])
    listed = len({match[0] for _, match in matches(lines[first:last], _FILE) if match[0].startswith("FAIL")})
    # The listing may be cut: files that failed while no test did could not be loaded.
    unnamed = lost if not counts.get("failed") else 0
    return Tally(
        "Jest",
        passed=counts.get("passed", 0),
        failed=counts.get("failed", 0),
        errored=max(len(broken), unnamed),
        skipped=counts.get("skipped", 0) + counts.get("todo", 0) + counts.get("pending", 0),
        failures=first_names([*names, *broken]) if counts.get("failed") or broken else (),
        doubt=_doubt(counts, lost, listed),
        first=first,
        last=last,
    )


def _doubt(counts: dict[str, int], lost: int, listed: int) -> str:
    if 2 * counts["total"] != sum(counts.values()):
        return "Jest prints a total that its numbers do not give"
    # Those of an earlier Jest that never ended, say.
    return "Jest lists files that failed, and counts fewer" if listed and not lost else ""


def _failing(lines: Lines) -> tuple[list[str], list[str]]:
    names: dict[str, None] = {}
    broken: dict[str, None] = {}
    file = ""
    for line in lines:
        # From here on the failures are repeated in a summary.
        if line.startswith(_AGAIN):
            break
        if match := _FILE.match(line):
            file = match[1]
        elif (match := _NAME.match(line)) and file:
            if match[1] == _BROKEN:
                broken[file] = None
            elif match[1] != "Console":
                names[match[1]] = None
    return list(names), list(broken)


def read_vitest(lines: Lines) -> Iterable[Tally]:
    """One tally per block of `Test Files` and `Tests`; errors outside of tests count as errored."""
    start = 0
    for index, files in matches(lines, _VITEST_FILES):
        for end, line in following(lines, index + 1, 1):
            match = _VITEST_TESTS.match(line)
            counts = _vitest_counts(match) if match else None
            if counts is not None:
                lost = re2.match(r"(\d{1,9}) failed", files[1])
                yield _vitest(lines, start, end, counts, int(lost[1]) if lost else 0)
                start = end + 1


def _vitest_counts(match: Any) -> dict[str, int] | None:
    return {} if match[1] == "no tests" else numbers(match[1], _WORDS) if match[2] else None


def _vitest(lines: Lines, first: int, last: int, counts: dict[str, int], lost: int) -> Tally:
    before = lines[first:last]
    outside = sum(int(match[1]) for _, match in matches(before, _VITEST_SUITES))
    outside += sum(int(match[1]) for _, line in following(lines, last + 1, 1) if (match := _VITEST_ERRORS.match(line)))
    if not counts.get("failed"):
        outside = max(outside, lost)
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
    for _, match in matches(lines, _VITEST_FAIL):
        if " > " in match[1] or " [ " in match[1]:
            yield match[1].partition(" [ ")[0]
