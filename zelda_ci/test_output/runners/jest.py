"""Jest and Vitest: closing blocks and JSON."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

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


_ONE_LINE = ('{"num', '{"version":', '{"testResults"', '{"coverageMap"', '{"success"')


def read_json_output(lines: Lines) -> Iterable[Tally]:
    """One tally per document: on a line of its own, or from a `{` to the `}` that both begin a line."""
    opened: int | None = None
    for at, line in enumerate(lines):
        if line.startswith(_ONE_LINE):
            yield from read_document(line, at, at)
        elif line.rstrip() == "{":
            opened = at
        elif line.startswith("}") and opened is not None:
            yield from read_document("\n".join([*lines[opened:at], "}"]), opened, at)
            opened = None


def read_document(text: str, first: int = 0, last: int = 0) -> Iterator[Tally]:
    """The tally of a document, if it is one of these."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    for form in (_json_output_jest, _mocha, _rspec):
        try:
            tally = form(document, first, last)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        if tally:
            yield tally
            return


def _json_output_jest(document: dict[str, Any], first: int, last: int) -> Tally | None:
    if not isinstance(document.get("numTotalTests"), int):
        return None
    suites = list(document["testResults"])
    tests = [test for suite in suites for test in suite.get("assertionResults") or suite.get("testResults") or ()]
    # Vitest does not count files that failed to load: such a file failed and has no tests.
    broken = [str(suite.get("name")) for suite in suites if suite.get("status") == "failed" and not _tests(suite)]
    pending = int(document.get("numPendingTests", 0)) + int(document.get("numTodoTests", 0))
    failed = [str(test.get("fullName") or test.get("title")).strip() for test in tests if test["status"] == "failed"]
    flaky = sum(1 for test in tests if test["status"] == "passed" and _retried(test))
    return Tally(
        "Jest JSON", int(document["numPassedTests"]), int(document["numFailedTests"]), len(broken), pending, flaky,
        first_names([*failed, *broken]), first=first, last=last,
    )  # fmt: skip


def _tests(suite: dict[str, Any]) -> Any:
    return suite.get("assertionResults") or suite.get("testResults")


def _retried(test: dict[str, Any]) -> bool:
    return int(test.get("invocations") or 1) > 1 or bool(test.get("retryReasons"))


def _mocha(document: dict[str, Any], first: int, last: int) -> Tally | None:
    stats = document.get("stats")
    if not isinstance(stats, dict) or "passes" not in stats:
        return None
    flaky = sum(1 for test in document.get("passes", ()) if int(test.get("currentRetry") or 0) > 0)
    names = first_names(str(test["fullTitle"]) for test in document.get("failures", ()))
    return Tally(
        "Mocha JSON", int(stats["passes"]), int(stats["failures"]), skipped=int(stats["pending"]), flaky=flaky,
        failures=names, first=first, last=last,
    )  # fmt: skip


def _rspec(document: dict[str, Any], first: int, last: int) -> Tally | None:
    summary = document.get("summary")
    if not isinstance(summary, dict) or "example_count" not in summary:
        return None
    failed, pending = int(summary["failure_count"]), int(summary["pending_count"])
    names = (str(test["full_description"]) for test in document["examples"] if test["status"] == "failed")
    return Tally(
        "RSpec JSON", int(summary["example_count"]) - failed - pending, failed,
        int(summary.get("errors_outside_of_examples_count", 0)), pending,
        failures=first_names(names), first=first, last=last,
    )  # fmt: skip
