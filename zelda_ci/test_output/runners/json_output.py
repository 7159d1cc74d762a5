"""JSON that Jest, Vitest, Mocha and RSpec print or write instead of a summary."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from zelda_ci.test_output.tally import Lines, Tally, first_names

_ONE_LINE = ('{"num', '{"version":', '{"testResults"', '{"coverageMap"', '{"success"')


def read(lines: Lines) -> Iterable[Tally]:
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
    for form in (_jest, _mocha, _rspec):
        try:
            tally = form(document, first, last)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        if tally:
            yield tally
            return


def _jest(document: dict[str, Any], first: int, last: int) -> Tally | None:
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
