"""JSON that runners write and print: recognised by content, whatever the file is called."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
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
        document = json.loads(text, parse_constant=_count)
    except (ValueError, RecursionError):
        return
    for form in _FORMS:
        with suppress(*_WRONG):
            if tally := form(document):
                yield replace(tally, first=first, last=last)
                return


def _count(value: Any) -> int:
    """A count of tests; raises ValueError where it cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise ValueError("no count")
    return value


def _tally(form: str, counts: Iterable[int], tests: Iterable[tuple[str, Any]], flaky: int = 0) -> Tally:
    """A tally of counts, and of tests by outcome and name as far as they are listed."""
    passed, failed, errored, skipped = counts
    listed = [(kind, str(name).strip()) for kind, name in tests]
    names = first_names(name for kind, name in listed if kind == "failed")
    ran = ends(name for kind, name in listed if kind in {"passed", "failed", "other"})
    return Tally(form, passed, failed, errored, skipped, flaky, names, ends=ran)


def _jest(document: Document) -> Tally | None:
    tests: list[tuple[str, Any]] = []
    broken: list[tuple[str, Any]] = []
    flaky = 0
    for suite in document["testResults"]:
        listed = suite.get("assertionResults") or suite.get("testResults") or ()
        tests += [(test["status"], test.get("fullName") or test.get("title")) for test in listed]
        green = [test for test in listed if test["status"] == "passed"]
        flaky += sum(_count(test.get("invocations") or 1) > 1 or bool(test.get("retryReasons")) for test in green)
        # Vitest does not count files that failed to load: such a file failed and has no tests.
        broken += [("failed", suite.get("name"))] if suite.get("status") == "failed" and not listed else []
    total, passed, failed = (_count(document[f"num{kind}Tests"]) for kind in ("Total", "Passed", "Failed"))
    pending = _count(document.get("numPendingTests", 0)) + _count(document.get("numTodoTests", 0))
    unloaded = max(len(broken), _count(document.get("numRuntimeErrorTestSuites", 0)))
    # Files that could not be loaded may stand for no test, or for one.
    if not total <= passed + failed + pending + unloaded or passed + failed > total:
        return None
    lost = 0 if tests or failed else _count(document.get("numFailedTestSuites", 0))
    return _tally("Jest JSON", (passed, failed, max(unloaded, lost), pending), [*tests, *broken], flaky)


def _mocha(document: Document) -> Tally | None:
    stats = document["stats"]
    kinds = (("passed", "passes"), ("failed", "failures"))
    tests = [(kind, test) for kind, part in kinds for test in document.get(part, ())]
    skipped = _count(stats["pending"]) + _count(stats.get("skipped", 0) if "results" in document else 0)
    counts = _count(stats["passes"]), _count(stats["failures"]), 0, skipped
    flaky = sum(kind == "passed" and _count(test.get("currentRetry") or 0) > 0 for kind, test in tests)
    return _tally("Mocha JSON", counts, [(kind, test["fullTitle"]) for kind, test in tests], flaky)


def _rspec(document: Document) -> Tally | None:
    summary = document["summary"]
    total, failed, pending = (_count(summary[f"{part}_count"]) for part in ("example", "failure", "pending"))
    outside = _count(summary.get("errors_outside_of_examples_count", 0))
    tests = [(test["status"], test.get("full_description")) for test in document["examples"]]
    return _tally("RSpec JSON", (_count(total - failed - pending), failed, outside, pending), tests)


def _playwright(document: Document) -> Tally | None:
    parts = ("expected", "unexpected", "skipped", "flaky")
    expected, failed, skipped, flaky = (_count(document["stats"][part]) for part in parts)
    return _tally("Playwright JSON", (expected + flaky, failed, len(document.get("errors", ())), skipped), (), flaky)


def _ctrf(document: Document) -> Tally | None:
    summary, tests = document["results"]["summary"], document["results"].get("tests", ())
    counts = [_count(summary.get(part, 0)) for part in ("passed", "failed", "other", "skipped", "pending")]
    if sum(counts) != _count(summary["tests"]):
        return None
    flaky = sum(test.get("flaky") is True for test in tests)
    return _tally("CTRF", (*counts[:3], sum(counts[3:])), [(test["status"], test["name"]) for test in tests], flaky)


_FORMS: tuple[Callable[[Any], Tally | None], ...] = (_jest, _mocha, _rspec, _playwright, _ctrf)
