"""`go test`: events of `-json`, the lines of `-v`, and packages where neither was asked for."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import re2

from zelda_ci.test_output.tally import Lines, Tally, first_names, matches

_RUN = re2.compile(r"=== RUN   (\S+)$")
_OUTCOME = re2.compile(r"--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$")
_PACKAGE = re2.compile(r"(ok  |FAIL|\?   )\t(\S+)(?:\t(.*))?$|FAIL\t(\S+) \[(?:build|setup) failed\]$")
_BAD_ACTION = re2.compile(r"^\{(?:[^{}]*,)?\s*\"Action\":\s*[^\"\s]")
_FAILED = re2.compile(r"\s*--- FAIL: (\S+) \([\d.]+s\)$")
_KINDS = {"pass": "passed", "fail": "failed", "skip": "skipped", "run": "errored"}


def read_json(lines: Lines) -> Iterator[Tally]:
    """All events together: a test counts by its last outcome, and as flaky when it failed before."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    packages: dict[str, str] = {}
    events = [(index, event) for index, line in enumerate(lines) if (event := _event(line))]
    for _, event in events:
        package, action, test = str(event.get("Package", "")), event["Action"], event.get("Test")
        if isinstance(test, str):
            _note(outcomes, package, test, event)
        elif action in _KINDS and package:
            packages[package] = action
    if not packages and not outcomes:
        return
    first, last = events[0][0], events[-1][0]
    if any(line.startswith("{") and _BAD_ACTION.search(line) for line in lines):
        yield Tally("Go JSON", first=first, last=last, doubt="an event of go test is none that there can be")
    ended = {test: actions[-1] for test, actions in outcomes.items()}
    told = {package for (package, _), action in ended.items() if action in {"run", "fail"}}
    # Packages that do not build have no events of their own before Go 1.24.
    broken = sorted({match[4] for _, match in matches(lines, _PACKAGE) if match[4]} - packages.keys())
    lost = [*(name for name, action in packages.items() if action == "fail" and name not in told), *broken]
    tests = [(_KINDS[action], f"{package} {test}") for (package, test), action in ended.items()]
    flaky = sum(actions[-1] == "pass" and "fail" in actions for actions in outcomes.values())
    yield Tally.of("Go JSON", [*tests, *(("errored", name) for name in lost)], flaky=flaky, first=first, last=last)


def _event(line: str) -> dict[str, Any]:
    """The event that a line is; empty for any other line."""
    try:
        event = json.loads(line) if line.startswith("{") and '"Action":' in line else None
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) and isinstance(event.get("Action"), str) else {}


def _note(outcomes: dict[tuple[str, str], list[str]], package: str, test: str, event: dict[str, Any]) -> None:
    """Keep what happened to a test, if it was started: tests can print what looks like another one's outcome."""
    action = event["Action"]
    if action == "run":
        outcomes.setdefault((package, test), []).append("run")
    elif action in _KINDS and (package, test) in outcomes:
        outcomes[package, test].append(action)
    elif action == "output" and (match := _OUTCOME.search(str(event.get("Output", "")).rstrip())):
        # After a line without an end the outcome is not on a line of its own, and there is no event for it.
        actions = outcomes.get((package, match[2]), [""])
        if actions[-1] == "run":
            actions.append(match[1].lower())


def read_verbose(lines: Lines) -> Iterator[Tally]:
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
            ended.append((_KINDS[match[1].lower()], match[2]))
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
    found = list(matches(lines, _PACKAGE))
    if found and not any(_RUN.match(line) or _event(line) for line in lines if line.startswith(("=== RUN", '{"'))):
        passed = sum(match[1] == "ok  " and "[no tests to run]" not in (match[3] or "") for _, match in found)
        failed, errored = sum(match[1] == "FAIL" for _, match in found), sum(bool(match[4]) for _, match in found)
        last = found[-1][0]
        names = first_names(match[1] for _, match in matches(lines[:last], _FAILED))
        yield Tally("Go", passed, failed, errored, failures=names, unit="packages", last=last)
