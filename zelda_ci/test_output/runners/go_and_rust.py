"""`go test` (JSON, verbose, packages only) and `cargo test`."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, matches, number

_RUN = re.compile(r"=== RUN   (\S+)$")
_OUTCOME = re.compile(r"--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$")
_PACKAGE = re.compile(r"(ok  |FAIL|\?   )\t(\S+)(?:\t(.*))?$|FAIL\t(\S+) \[(?:build|setup) failed\]$")
_FAILED = re.compile(r"\s*--- FAIL: (\S+) \([\d.]+s\)$")
_BUILD = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]$")


def read_json(lines: Lines) -> Iterable[Tally]:
    """All events together: a test counts by its last outcome, and as flaky when it failed before."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    packages: dict[str, str] = {}
    first = last = -1
    for at, event in _events(lines):
        first, last = (at if first < 0 else first), at
        package, action = str(event.get("Package", "")), event.get("Action")
        test = event.get("Test")
        if isinstance(test, str):
            _note(outcomes, (package, test), event)
        elif action in {"pass", "fail", "skip"} and package:
            packages[package] = str(action)
    if packages or outcomes:
        broken = {found[1] for _, found in matches(lines, _BUILD)} - packages.keys()
        yield _json_tally(outcomes, packages, broken, (first, last))


def _note(outcomes: dict[tuple[str, str], list[str]], test: tuple[str, str], event: dict[str, Any]) -> None:
    """Keep what happened to a test, if it was started: tests can print what looks like another one's outcome."""
    action = event.get("Action")
    if action == "run":
        outcomes.setdefault(test, []).append("run")
    elif action in {"pass", "fail", "skip"} and test in outcomes:
        outcomes[test].append(str(action))
    elif action == "output" and (found := _OUTCOME.search(str(event.get("Output", "")).rstrip())):
        # After a line without an end the outcome is not on a line of its own, and there is no event for it.
        said = outcomes.get((test[0], found[2]), [""])
        if said[-1] == "run":
            said.append(found[1].lower())


def _events(lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    for at, line in enumerate(lines):
        if line.startswith("{") and '"Action":' in line:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield at, event


def _json_tally(
    outcomes: dict[tuple[str, str], list[str]], packages: dict[str, str], broken: set[str], span: tuple[int, int]
) -> Tally:
    last = {test: actions[-1] for test, actions in outcomes.items()}
    unfinished = {package for (package, _), action in last.items() if action in {"run", "fail"}}
    lost = [name for name, action in packages.items() if action == "fail" and name not in unfinished]
    names = [f"{package} {test}" for (package, test), action in last.items() if action in {"fail", "run"}]
    ends = list(last.values())
    return Tally(
        "Go JSON", ends.count("pass"), ends.count("fail"), ends.count("run") + len(lost) + len(broken),
        ends.count("skip"), sum(1 for actions in outcomes.values() if actions[-1] == "pass" and "fail" in actions),
        first_names([*names, *lost, *sorted(broken)]), first=span[0], last=span[1],
    )  # fmt: skip


def read_verbose(lines: Lines) -> Iterable[Tally]:
    """All packages together; an outcome counts only for a test that was announced, and once."""
    running: dict[str, None] = {}
    ended: list[tuple[str, str]] = []
    first = last = -1
    for at, line in enumerate(lines):
        if line[:1] == "=" and (found := _RUN.match(line)):
            running[found[1]] = None
            first = at if first < 0 else first
        elif "--- " in line and (found := _OUTCOME.search(line)) and found[2] in running:
            ended.append((found[1], found[2]))
            del running[found[2]]
        elif first >= 0 and "\t" in line and (found := _PACKAGE.match(line)) and not (running and found[1] == "ok  "):
            last = at
            ended.extend(_closed(found, running))
            running.clear()
    if last >= 0:
        kinds = [kind for kind, _ in ended]
        names = [name for kind, name in ended if kind in {"FAIL", "LOST"}]
        yield Tally(
            "Go -v", kinds.count("PASS"), kinds.count("FAIL"), kinds.count("LOST"), kinds.count("SKIP"),
            failures=first_names(names), first=first, last=last,
        )  # fmt: skip


def _closed(found: re.Match[str], running: dict[str, None]) -> Iterator[tuple[str, str]]:
    """What is lost when a package ends: tests that were still running, or a package that did not build."""
    if found[4]:
        yield "LOST", found[4]
    for test in running:
        yield "LOST", test


def read_packages(lines: Lines) -> Iterable[Tally]:
    """Packages, for `go test` without `-v` counts no tests."""
    if any(line.startswith(("=== RUN", '{"')) and (_RUN.match(line) or '"Action":' in line) for line in lines):
        return
    passed, failed, errored, last = 0, 0, 0, -1
    for at, found in matches(lines, _PACKAGE):
        last = at
        passed += found[1] == "ok  " and "[no tests to run]" not in (found[3] or "")
        failed += found[1] == "FAIL"
        errored += bool(found[4])
    if last >= 0:
        names = (found[1] for _, found in matches(lines[:last], _FAILED))
        yield Tally("Go", passed, failed, errored, failures=first_names(names), unit="packages", last=last)


_RUNNING = re.compile(r"running (\d+) tests?$")
_RESULT = re.compile(
    r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; \d+ filtered out"
)
_NAME = re.compile(r" {4}(\S.*)$")

_STARTING = re.compile(r" *Starting (\d+) tests? across ")
_SUMMARY = re.compile(
    r" *Summary \[ *[\d.]+s\] +(\d+)(?:/\d+)? tests? run: (\d+) passed(?: \(([^)]*)\))?"
    r"(?:, (\d+) failed(?: \([^)]*\))?)?(?:, (\d+) exec failed)?(?:, (\d+) timed out)?(?:, (\d+) skipped)?$"
)
_LOST = re.compile(r" *(?:TRY \d+ )?(?:FAIL|TIMEOUT|XFAIL|SIG\w+|ABORT|LEAK-FAIL) \[.*?\](?: \([^)]*\))? +(\S.*)$")


def read_cargo(lines: Lines) -> Iterable[Tally]:
    """One tally per test program: of the results after its `running N tests`, the last that adds up to N."""
    starts = [*((at, number(found, 1)) for at, found in matches(lines, _RUNNING)), (len(lines), 0)]
    for (first, announced), (end, _) in pairwise(starts):
        results = [
            (first + at, found)
            for at, found in matches(lines[first:end], _RESULT)
            if sum(number(found, group) for group in (1, 2, 3, 4)) == announced
        ]
        if results:
            last, found = results[-1]
            names = _failures(lines, first, last) if number(found, 2) else ()
            yield Tally(
                "Cargo", number(found, 1) + number(found, 4), number(found, 2), skipped=number(found, 3),
                failures=first_names(names), first=first, last=last, announced=announced,
            )  # fmt: skip


def _failures(lines: Lines, first: int, last: int) -> Iterator[str]:
    """The list right above the result; an earlier one of the same heading shows what the tests printed."""
    heading = next((at for at in range(last - 1, first, -1) if lines[at] == "failures:"), last)
    for _, found in matches(lines[heading:last], _NAME):
        yield found[1]


def read_nextest(lines: Lines) -> Iterable[Tally]:
    """One tally per summary; everything that tests printed stands inside of it."""
    start, announced = 0, None
    for at, line in enumerate(lines):
        if found := _STARTING.match(line):
            start, announced = at, number(found, 1)
        elif found := _SUMMARY.match(line):
            yield _nextest(lines, (start, at), announced, found)
            start, announced = at + 1, None


def _nextest(lines: Lines, span: tuple[int, int], announced: int | None, found: re.Match[str]) -> Tally:
    flaky = re.search(r"(\d{1,9}) flaky", found[3] or "")
    failed, skipped = number(found, 4), number(found, 7)
    lost = number(found, 5) + number(found, 6)
    below = lines[span[1] + 1 : span[1] + MAX_LIST_LENGTH] if failed or lost else ()
    names = (name[1] for _, name in matches(below, _LOST))
    return Tally(
        "nextest", number(found, 2), failed, lost, skipped, int(flaky[1]) if flaky else 0,
        first_names(names), first=span[0], last=span[1],
        announced=None if announced is None else announced + skipped, quotes=True,
    )  # fmt: skip
