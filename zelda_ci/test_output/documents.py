"""JSON that runners write and print: recognised by content, whatever the file is called."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from zelda_ci.test_output.tally import MAX_COUNT, Lines, Tally, ends, first_names

Document = dict[str, Any]

_ONE_LINE = (
    '{"num', '{"version":', '{"testResults"', '{"coverageMap"', '{"success"', '{"stats"', '{"results"', '{"config"',
    '{"created"', '{"summary"', '{"run"', "[{",
)  # fmt: skip
_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


def read_json_output(lines: Lines) -> Iterable[Tally]:
    """One tally per document: on a line of its own, or from a bracket to its end that both begin a line."""
    opened: int | None = None
    for index, line in enumerate(lines):
        bare = line.rstrip()
        if line.startswith(_ONE_LINE):
            yield from read_document(line, index, index)
        elif bare == "{" or (bare == "[" and opened is None):
            opened = index
        # Other output may follow on the line of the last brace.
        elif opened is not None and line[:1] == {"{": "}", "[": "]"}[lines[opened].rstrip()]:
            yield from read_document("\n".join([*lines[opened:index], line[:1]]), opened, index)
            opened = None


def read_document(text: str, first: int = 0, last: int = 0) -> Iterator[Tally]:
    """The tally of a document, if it is one of these."""
    try:
        # Infinity and NaN are no numbers of JSON, and no counts.
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return
    for form in _FORMS:
        try:
            tally = form(document)
        except _WRONG:
            continue
        if tally:
            yield replace(tally, first=first, last=last)
            return


def _refuse(_name: str) -> None:
    raise ValueError("not a number of JSON")


def _count(value: Any) -> int:
    """A count of tests.

    Raises:
        ValueError: It cannot be one.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise ValueError("no count")
    return value


def _jest(document: Document) -> Tally | None:
    total = _count(document["numTotalTests"])
    suites = list(document["testResults"])
    tests = [test for suite in suites for test in _tests(suite) or ()]
    # Vitest does not count files that failed to load: such a file failed and has no tests.
    broken = [str(suite.get("name")) for suite in suites if suite.get("status") == "failed" and not _tests(suite)]
    unloaded = max(len(broken), _count(document.get("numRuntimeErrorTestSuites", 0)))
    pending = _count(document.get("numPendingTests", 0)) + _count(document.get("numTodoTests", 0))
    ran = [(test["status"], str(test.get("fullName") or test.get("title")).strip()) for test in tests]
    failed = [name for status, name in ran if status == "failed"]
    flaky = sum(1 for test in tests if test["status"] == "passed" and _retried(test))
    passed, lost = _count(document["numPassedTests"]), _count(document["numFailedTests"])
    # Files that could not be loaded may stand for no test, or for one.
    if not total <= passed + lost + pending + unloaded or passed + lost > total:
        return None
    suites_failed = _count(document.get("numFailedTestSuites", 0))
    errored = unloaded if tests or lost else max(unloaded, suites_failed)
    named = ends([*(name for status, name in ran if status in {"passed", "failed"}), *broken])
    return Tally("Jest JSON", passed, lost, errored, pending, flaky, first_names([*failed, *broken]), ends=named)


def _tests(suite: Document) -> Any:
    return suite.get("assertionResults") or suite.get("testResults")


def _retried(test: Document) -> bool:
    return _count(test.get("invocations") or 1) > 1 or bool(test.get("retryReasons"))


def _mocha(document: Document) -> Tally | None:
    stats = document["stats"]
    tests = document.get("passes", ())
    flaky = sum(1 for test in tests if _count(test.get("currentRetry") or 0) > 0)
    names = [str(test["fullTitle"]) for test in document.get("failures", ())]
    return Tally(
        "Mocha JSON", _count(stats["passes"]), _count(stats["failures"]),
        skipped=_count(stats["pending"]) + _count(stats.get("skipped", 0) if "results" in document else 0), flaky=flaky,
        failures=first_names(names), ends=ends([*names, *(str(test["fullTitle"]) for test in tests)]),
    )  # fmt: skip


def _rspec(document: Document) -> Tally | None:
    summary = document["summary"]
    total, failed, pending = (_count(summary[f"{part}_count"]) for part in ("example", "failure", "pending"))
    ran = [(test["status"], str(test.get("full_description"))) for test in document["examples"]]
    return Tally(
        "RSpec JSON", _count(total - failed - pending), failed,
        _count(summary.get("errors_outside_of_examples_count", 0)), pending,
        failures=first_names(name for status, name in ran if status == "failed"),
        ends=ends(name for status, name in ran if status != "pending"),
    )  # fmt: skip


def _playwright(document: Document) -> Tally | None:
    stats = document["stats"]
    flaky = _count(stats["flaky"])
    return Tally(
        "Playwright JSON", _count(stats["expected"]) + flaky, _count(stats["unexpected"]),
        len(document.get("errors", ())), _count(stats["skipped"]), flaky,
    )  # fmt: skip


def _ctrf(document: Document) -> Tally | None:
    summary = document["results"]["summary"]
    tests = document["results"].get("tests", ())
    parts = {part: _count(summary.get(part, 0)) for part in ("passed", "failed", "skipped", "pending", "other")}
    if sum(parts.values()) != _count(summary["tests"]):
        return None
    return Tally(
        "CTRF", parts["passed"], parts["failed"], parts["other"], parts["skipped"] + parts["pending"],
        sum(1 for test in tests if test.get("flaky") is True),
        first_names(str(test["name"]) for test in tests if test["status"] == "failed"),
        ends=ends(str(test["name"]) for test in tests if test["status"] not in {"skipped", "pending"}),
    )  # fmt: skip


_FORMS: tuple[Callable[[Any], Tally | None], ...] = (_jest, _mocha, _rspec, _playwright, _ctrf)
