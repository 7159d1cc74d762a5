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
    for index, _ in matches(lines, _SUITES):
        for end, line in following(lines, index + 1, 1):
            match = _TESTS.match(line)
            counts = numbers(match[1], _WORDS) if match else None
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
    for index, _ in matches(lines, _VITEST_FILES):
        for end, line in following(lines, index + 1, 1):
            match = _VITEST_TESTS.match(line)
            counts = _vitest_counts(match) if match else None
            if counts is not None:
                yield _vitest(lines, start, end, counts)
                start = end + 1


def _vitest_counts(match: re.Match[str]) -> dict[str, int] | None:
    return {} if match[1] == "no tests" else numbers(match[1], _WORDS) if match[2] else None


def _vitest(lines: Lines, first: int, last: int, counts: dict[str, int]) -> Tally:
    before = lines[first:last]
    outside = sum(int(match[1]) for _, match in matches(before, _VITEST_SUITES))
    outside += sum(int(match[1]) for _, line in following(lines, last + 1, 1) if (match := _VITEST_ERRORS.match(line)))
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


_ONE_LINE = ('{"num', '{"version":', '{"testResults"', '{"coverageMap"', '{"success"')


def read_json_output(lines: Lines) -> Iterable[Tally]:
    """One tally per document: on a line of its own, or from a `{` to the `}` that both begin a line."""
    opened: int | None = None
    for index, line in enumerate(lines):
        if line.startswith(_ONE_LINE):
            yield from read_document(line, index, index)
        elif line.rstrip() == "{":
            opened = index
        # Other output may follow on the line of the last brace.
        elif line.startswith("}") and opened is not None:
            yield from read_document("\n".join([*lines[opened:index], "}"]), opened, index)
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
