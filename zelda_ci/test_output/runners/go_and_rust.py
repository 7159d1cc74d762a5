"""`go test` (JSON, verbose, packages only) and `cargo test`."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import re2

from zelda_ci.test_output.documents import read_event
from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, matches, number

_RUN = re2.compile(r"=== RUN   (\S+)$")
_OUTCOME = re2.compile(r"--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$")
_PACKAGE = re2.compile(r"(ok  |FAIL|\?   )\t(\S+)(?:\t(.*))?$|FAIL\t(\S+) \[(?:build|setup) failed\]$")
_BAD_ACTION = re2.compile(r"^\{(?:[^{}]*,)?\s*\"Action\":\s*[^\"\s]")
_FAILED = re2.compile(r"\s*--- FAIL: (\S+) \([\d.]+s\)$")
_KINDS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped", "RUN": "errored"}
_BUILD = re2.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]$")


def read_json(lines: Lines) -> Iterable[Tally]:
    """All events together: a test counts by its last outcome, and as flaky when it failed before."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    packages: dict[str, str] = {}
    first = last = -1
    for index, event in _events(lines):
        first, last = (index if first < 0 else first), index
        package, action = str(event.get("Package", "")), event.get("Action")
        test = event.get("Test")
        if isinstance(test, str):
            _note(outcomes, (package, test), event)
        elif action in {"pass", "fail", "skip"} and package:
            packages[package] = str(action)
    if packages or outcomes:
        # Packages that do not build have no events of their own before Go 1.24.
        broken = {match[1] for _, match in matches(lines, _BUILD)} - packages.keys()
        if any(line.startswith("{") and _BAD_ACTION.search(line) for line in lines):
            yield Tally("Go JSON", first=first, last=last, doubt="an event of go test is none that there can be")
        yield _json_tally(outcomes, packages, broken, (first, last))


def _note(outcomes: dict[tuple[str, str], list[str]], test: tuple[str, str], event: dict[str, Any]) -> None:
    """Keep what happened to a test, if it was started: tests can print what looks like another one's outcome."""
    action = event.get("Action")
    if action == "run":
        outcomes.setdefault(test, []).append("run")
    elif action in {"pass", "fail", "skip"} and test in outcomes:
        outcomes[test].append(str(action))
    elif action == "output" and (match := _OUTCOME.search(str(event.get("Output", "")).rstrip())):
        # After a line without an end the outcome is not on a line of its own, and there is no event for it.
        actions = outcomes.get((test[0], match[2]), [""])
        if actions[-1] == "run":
            actions.append(match[1].lower())


def _events(lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, line in enumerate(lines):
        event = read_event(line) if '"Action":' in line else {}
        if isinstance(event.get("Action"), str):
            yield index, event


def _json_tally(
    outcomes: dict[tuple[str, str], list[str]], packages: dict[str, str], broken: set[str], span: tuple[int, int]
) -> Tally:
    last = {test: actions[-1] for test, actions in outcomes.items()}
    unfinished = {package for (package, _), action in last.items() if action in {"run", "fail"}}
    aborted = [name for name, action in packages.items() if action == "fail" and name not in unfinished]
    tests = [(_KINDS[action.upper()], f"{package} {test}") for (package, test), action in last.items()]
    lost = [("errored", package) for package in (*aborted, *sorted(broken))]
    flaky = sum(1 for actions in outcomes.values() if actions[-1] == "pass" and "fail" in actions)
    return Tally.of("Go JSON", [*tests, *lost], flaky=flaky, first=span[0], last=span[1])


def read_verbose(lines: Lines) -> Iterable[Tally]:
    """All packages together; an outcome counts only for a test that was announced, and once."""
    # A dictionary, because a set would not keep the order in which the tests were started.
    running: dict[str, None] = {}
    ended: list[tuple[str, str]] = []
    first = last = -1
    for index, line in enumerate(lines):
        if line[:1] == "=" and (match := _RUN.match(line)):
            running[match[1]] = None
            first = index if first < 0 else first
        elif "--- " in line and (match := _OUTCOME.search(line)) and match[2] in running:
            ended.append((_KINDS[match[1]], match[2]))
            del running[match[2]]
        elif first >= 0 and "\t" in line and (match := _PACKAGE.match(line)) and not (running and match[1] == "ok  "):
            last = index
            # What is lost when a package ends: tests that were still running, or a package that did not build.
            ended.extend(("errored", lost) for lost in (match[4], *running) if lost)
            running.clear()
    if last >= 0:
        yield Tally.of("Go -v", ended, first=first, last=last)


def read_packages(lines: Lines) -> Iterable[Tally]:
    """Packages, for `go test` without `-v` counts no tests."""
    if any(line.startswith(("=== RUN", '{"')) and (_RUN.match(line) or '"Action":' in line) for line in lines):
        return
    passed, failed, errored, last = 0, 0, 0, -1
    for index, match in matches(lines, _PACKAGE):
        last = index
        passed += match[1] == "ok  " and "[no tests to run]" not in (match[3] or "")
        failed += match[1] == "FAIL"
        errored += bool(match[4])
    if last >= 0:
        names = (match[1] for _, match in matches(lines[:last], _FAILED))
        yield Tally("Go", passed, failed, errored, failures=first_names(names), unit="packages", last=last)


_RUNNING = re2.compile(r"running (\d+) tests?$")
_RESULT = re2.compile(
    r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; \d+ filtered out"
)
_NAME = re2.compile(r" {4}(\S.*)$")

_STARTING = re2.compile(r" *Starting (\d+) tests? across ")
_SUMMARY = re2.compile(
    r" *Summary \[ *[\d.]+s\] +(\d+)(?:/\d+)? tests? run: (\d+) passed(?: \(([^)]*)\))?"
    r"(?:, (\d+) failed(?: \([^)]*\))?)?(?:, (\d+) exec failed)?(?:, (\d+) timed out)?(?:, (\d+) skipped)?$"
)
_LOST = re2.compile(r" *(?:TRY \d+ )?(?:FAIL|TIMEOUT|XFAIL|SIG\w+|ABORT|LEAK-FAIL) \[.*?\](?: \([^)]*\))? +(\S.*)$")


def read_cargo(lines: Lines) -> Iterable[Tally]:
    """One tally per test program: of the results after its `running N tests`, the last that adds up to N."""
    # The end of the output counts as the start of another program, so that the last one is bounded too.
    starts = [*((index, number(match, 1)) for index, match in matches(lines, _RUNNING)), (len(lines), 0)]
    for (first, announced), (end, _) in pairwise(starts):
        results = [
            (first + index, match)
            for index, match in matches(lines[first:end], _RESULT)
            if sum(number(match, group) for group in (1, 2, 3, 4)) == announced
        ]
        if results:
            last, match = results[-1]
            names = _failures(lines, first, last) if number(match, 2) else ()
            yield Tally(
                "Cargo", number(match, 1) + number(match, 4), number(match, 2), skipped=number(match, 3),
                failures=first_names(names), first=first, last=last, announced=announced,
            )  # fmt: skip


def _failures(lines: Lines, first: int, last: int) -> Iterator[str]:
    """The list right above the result; an earlier one of the same heading shows what the tests printed."""
    heading = next((index for index in range(last - 1, first, -1) if lines[index] == "failures:"), last)
    for _, match in matches(lines[heading:last], _NAME):
        yield match[1]


def read_nextest(lines: Lines) -> Iterable[Tally]:
    """One tally per summary; everything that tests printed stands inside of it."""
    start, announced = 0, None
    for index, line in enumerate(lines):
        if match := _STARTING.match(line):
            start, announced = index, number(match, 1)
        elif match := _SUMMARY.match(line):
            yield _nextest(lines, (start, index), announced, match)
            start, announced = index + 1, None


def _nextest(lines: Lines, span: tuple[int, int], announced: int | None, match: Any) -> Tally:
    flaky = re2.search(r"(\d{1,9}) flaky", match[3] or "")
    failed, skipped = number(match, 4), number(match, 7)
    broken = number(match, 5) + number(match, 6)
    below = lines[span[1] + 1 : span[1] + MAX_LIST_LENGTH] if failed or broken else ()
    names = (name[1] for _, name in matches(below, _LOST))
    return Tally(
        "nextest", number(match, 2), failed, broken, skipped, int(flaky[1]) if flaky else 0,
        first_names(names), first=span[0], last=span[1],
        announced=None if announced is None else announced + skipped, quotes=True,
    )  # fmt: skip
