"""JSON that runners write and print: recognised by content, whatever the file is called."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import re2

from zelda_ci.test_output.tally import Lines, Tally, first_names
from zelda_ci.test_output.words import MAX_COUNT

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
    failed = [str(test.get("fullName") or test.get("title")).strip() for test in tests if test["status"] == "failed"]
    flaky = sum(1 for test in tests if test["status"] == "passed" and _retried(test))
    passed, lost = _count(document["numPassedTests"]), _count(document["numFailedTests"])
    # Files that could not be loaded may stand for no test, or for one.
    if not total <= passed + lost + pending + unloaded or passed + lost > total:
        return None
    suites_failed = _count(document.get("numFailedTestSuites", 0))
    errored = unloaded if tests or lost else max(unloaded, suites_failed)
    return Tally("Jest JSON", passed, lost, errored, pending, flaky, first_names([*failed, *broken]))


def _tests(suite: Document) -> Any:
    return suite.get("assertionResults") or suite.get("testResults")


def _retried(test: Document) -> bool:
    return _count(test.get("invocations") or 1) > 1 or bool(test.get("retryReasons"))


def _mocha(document: Document) -> Tally | None:
    stats = document["stats"]
    tests = document.get("passes", ())
    flaky = sum(1 for test in tests if _count(test.get("currentRetry") or 0) > 0)
    names = first_names(str(test["fullTitle"]) for test in document.get("failures", ()))
    return Tally(
        "Mocha JSON", _count(stats["passes"]), _count(stats["failures"]),
        skipped=_count(stats["pending"]) + _count(stats.get("skipped", 0) if "results" in document else 0), flaky=flaky,
        failures=names,
    )  # fmt: skip


def _rspec(document: Document) -> Tally | None:
    summary = document["summary"]
    total, failed, pending = (_count(summary[f"{part}_count"]) for part in ("example", "failure", "pending"))
    names = (str(test.get("full_description")) for test in document["examples"] if test["status"] == "failed")
    return Tally(
        "RSpec JSON", _count(total - failed - pending), failed,
        _count(summary.get("errors_outside_of_examples_count", 0)), pending,
        failures=first_names(names),
    )  # fmt: skip


def _playwright(document: Document) -> Tally | None:
    stats = document["stats"]
    flaky = _count(stats["flaky"])
    return Tally(
        "Playwright JSON", _count(stats["expected"]) + flaky, _count(stats["unexpected"]),
        len(document.get("errors", ())), _count(stats["skipped"]), flaky,
    )  # fmt: skip


def _pytest(document: Document) -> Tally | None:
    summary = document["summary"]
    counts = Counter({word: _count(count) for word, count in summary.items() if word not in {"total", "collected"}})
    if not {"total", "collected"} <= summary.keys():
        return None
    names = (str(test["nodeid"]) for test in document.get("tests", ()) if test["outcome"] in {"failed", "error"})
    return Tally(
        "pytest JSON", counts["passed"] + counts["xpassed"], counts["failed"], counts["error"],
        counts["skipped"] + counts["xfailed"], failures=first_names(names),
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
    )  # fmt: skip


def _newman(document: Document) -> Tally | None:
    stats = document["run"]["stats"]["assertions"]
    total, failed, pending = (_count(stats[part]) for part in ("total", "failed", "pending"))
    return Tally("Newman JSON", _count(total - failed - pending), failed, skipped=pending)


def _testcafe(document: Document) -> Tally | None:
    if "fixtures" not in document:
        return None
    total, passed, skipped = (_count(document[part]) for part in ("total", "passed", "skipped"))
    return Tally("TestCafe JSON", passed, _count(total - passed), skipped=skipped)


# Worst first: a scenario is what the worst of its steps is.
_STEPS = (
    ("failed", "failed"),
    ("ambiguous", "errored"),
    ("undefined", "errored"),
    ("pending", "skipped"),
    ("skipped", "skipped"),
)


def _cucumber(document: Any) -> Tally | None:
    """A list of features with scenarios with steps; the background counts with the scenario that follows it."""
    scenarios: list[tuple[str, str]] = []
    for feature in document:
        for scenario in feature["elements"]:
            if scenario.get("type") == "background":
                continue
            steps = [*scenario.get("before", ()), *scenario["steps"], *scenario.get("after", ())]
            results = {str(step["result"]["status"]).lower() for step in steps}
            if results - {"passed"} - {word for word, _ in _STEPS}:
                return None
            kind = next((kind for word, kind in _STEPS if word in results), "passed")
            scenarios.append((kind, str(scenario.get("name"))))
    if not isinstance(document, list) or not scenarios:
        return None
    return Tally.of("Cucumber JSON", scenarios)


def read_events(lines: Lines) -> Iterator[Tally]:
    """Streams with an event on each line: libtest's and Dart's JSON, and the messages for TeamCity."""
    for form, read in (("libtest JSON", _libtest), ("Dart JSON", _dart), ("TeamCity", _teamcity)):
        # The last outcome of a test, and the line of it.
        outcomes: dict[str, str] = {}
        first = last = -1
        for index, line in enumerate(lines):
            event = read(line)
            if event and (event[1] != "passed" or outcomes.get(event[0], "errored") == "errored"):
                first, last = (index if first < 0 else first), index
                outcomes[event[0]] = event[1]
        if any(kind != "errored" for kind in outcomes.values()):
            ended = ((kind, name) for name, kind in outcomes.items())
            yield Tally.of(form, ended, first=first, last=last, proven=True)


Event = tuple[str, str] | None


def read_event(line: str) -> Document:
    """The object that a line is; empty for any other line."""
    try:
        event = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


_LIBTEST = {"started": "errored", "ok": "passed", "failed": "failed", "ignored": "skipped", "timeout": "errored"}
_DART = {"success": "passed", "failure": "failed", "error": "errored"}


def _libtest(line: str) -> Event:
    event = read_event(line) if '"type"' in line and '"event"' in line else {}
    kind = _LIBTEST.get(str(event.get("event")))
    return (str(event.get("name")), kind) if event.get("type") == "test" and kind else None


def _dart(line: str) -> Event:
    event = read_event(line) if '"testStart"' in line or '"testDone"' in line else {}
    test = event.get("test")
    if event.get("type") == "testStart" and isinstance(test, dict) and not str(test.get("name")).startswith("loading "):
        return str(test.get("id")), "errored"
    if event.get("type") != "testDone" or event.get("hidden"):
        return None
    kind = "skipped" if event.get("skipped") else _DART.get(str(event.get("result")), "errored")
    return str(event.get("testID")), kind


_TEAMCITY = re2.compile(r"^\s*##teamcity\[test(Started|Finished|Failed|Ignored) .*?name='((?:[^'|]|\|.)*)'")
_MESSAGES = {"Started": "errored", "Finished": "passed", "Failed": "failed", "Ignored": "skipped"}


def _teamcity(line: str) -> Event:
    match = _TEAMCITY.match(line) if "##teamcity[" in line else None
    return (match[2], _MESSAGES[match[1]]) if match else None


_FORMS: tuple[Callable[[Any], Tally | None], ...] = (
    _jest, _mocha, _rspec, _playwright, _pytest, _ctrf, _newman, _testcafe, _cucumber,
)  # fmt: skip
