"""Readers of runners whose output no row of a table describes: `go test`, pytest and TAP; lines in, tallies out."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import re2

from zelda_ci.test_output.tally import GAP, Lines, Tally, first_names, matches

# --- go test: events of `-json`, the lines of `-v`, and packages where neither was asked for --------------------------

_RUN = re2.compile(r"=== RUN   (\S+)$")
_OUTCOME = re2.compile(r"--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$")
_PACKAGE = re2.compile(r"(ok  |FAIL|\?   )\t(\S+)(?:\t(.*))?$|FAIL\t(\S+) \[(?:build|setup) failed\]$")
_BAD_ACTION = re2.compile(r"^\{(?:[^{}]*,)?\s*\"Action\":\s*[^\"\s]")
_FAILED = re2.compile(r"\s*--- FAIL: (\S+) \([\d.]+s\)$")
_ACTIONS = {"pass": "passed", "fail": "failed", "skip": "skipped", "run": "errored"}


def read_go_json(lines: Lines) -> Iterator[Tally]:
    """All events together: a test counts by its last outcome, and as flaky when it failed before."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    packages: dict[str, str] = {}
    events = [(index, event) for index, line in enumerate(lines) if (event := _event(line))]
    for _, event in events:
        package, action, test = str(event.get("Package", "")), event["Action"], event.get("Test")
        if isinstance(test, str):
            _note(outcomes, package, test, event)
        elif action in _ACTIONS and package:
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
    tests = [(_ACTIONS[action], f"{package} {test}") for (package, test), action in ended.items()]
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
    elif action in _ACTIONS and (package, test) in outcomes:
        outcomes[package, test].append(action)
    elif action == "output" and (match := _OUTCOME.search(str(event.get("Output", "")).rstrip())):
        # After a line without an end the outcome is not on a line of its own, and there is no event for it.
        actions = outcomes.get((package, match[2]), [""])
        if actions[-1] == "run":
            actions.append(match[1].lower())


def read_go_verbose(lines: Lines) -> Iterator[Tally]:
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
            ended.append((_ACTIONS[match[1].lower()], match[2]))
            del running[match[2]]
        elif first >= 0 and "\t" in line and (match := _PACKAGE.match(line)) and not (running and match[1] == "ok  "):
            last = index
            # What is lost when a package ends: tests that were still running, or a package that did not build.
            ended.extend(("errored", lost) for lost in (match[4], *running) if lost)
            running.clear()
    if last >= 0:
        yield Tally.of("Go -v", ended, first=first, last=last)


def read_go_packages(lines: Lines) -> Iterable[Tally]:
    """Packages, for `go test` without `-v` counts no tests."""
    found = list(matches(lines, _PACKAGE))
    if found and not any(_RUN.match(line) or _event(line) for line in lines if line.startswith(("=== RUN", '{"'))):
        passed = sum(match[1] == "ok  " and "[no tests to run]" not in (match[3] or "") for _, match in found)
        failed, errored = sum(match[1] == "FAIL" for _, match in found), sum(bool(match[4]) for _, match in found)
        last = found[-1][0]
        names = first_names(match[1] for _, match in matches(lines[:last], _FAILED))
        yield Tally("Go", passed, failed, errored, failures=names, unit="packages", last=last)


# --- pytest: a closing line counts where a session was under way that it can close ------------------------------------

# Of sessions and of lines that may close them.
MAX_PAIRS = 1_000_000
_START = re2.compile(r"(.*?)=+ test session starts(?: \(.*\))? =+$")
# Where pytester runs the sessions that a test of a plugin starts.
_INNER_ROOT = re2.compile(r"rootdir: \S*[/\\]pytest-of-")
_COLLECTED = re2.compile(
    r"(?:collecting \.\.\. )?collected (\d+) items?(?: / (\d+) errors?)?(?: / (\d+) deselected)?"
    r"(?: / \d+ skipped)?(?: / (\d+) selected)?$|\d+ workers? \[(\d+) items?\]"
)
_CLOSE = re2.compile(r"(?:=+ )?(no tests ran|\d[^=]*?|no tests collected) in [\d.]+s(?: \([\d:, dayswek]+\))?(?: =+)?$")
_KINDS = {"passed": 0, "xpassed": 0, "failed": 1, "errors": 2, "error": 2, "skipped": 3, "xfailed": 3}
_ELSE = {"deselected", "warning", "warnings", "rerun", "subtests passed", "subtests failed", "subtests skipped"}
_CAPTURED = re2.compile(r"-+ Captured (?:stdout|stderr|log)")
_SECTION = re2.compile(r"=+ (?:FAILURES|ERRORS|(short test summary info)|warnings summary.*) =+$")
_NAMED = re2.compile(r"(?m)^(?:FAILED|ERROR) (\S.*)$")
# Tests that passed after a rerun: by their lines, or by the order of the progress marks.
_AGAIN = re2.compile(r"\bRERUN\b.*\n.*\bPASSED\b")
_MARKS = re2.compile(r"(?m)^(?:\S+\.py )?([.FEsxXR]+)(?: +\[ *\d+%\])?$")


@dataclass
class _Close:
    line: int
    tally: Tally
    headed: bool
    """Whether a section of a report stands above it, which nobody prints by chance."""
    taken: bool = False


@dataclass
class _Session:
    line: int
    announced: int | None = None
    """How many tests it has; -1 where that may have stood in a gap."""
    full: bool = False
    must_end: bool = True
    """Whether it has said that it begins, or failed; very quiet sessions that pass end without a word."""
    end: _Close | None = None

    def ends_with(self, close: _Close) -> bool:
        return close.line > self.line and (self.announced is None or close.tally.fits(self.announced))


def read_pytest(lines: Lines) -> Iterator[Tally]:
    """One tally per session; output of tests that looks like a session's is left out where that can be told."""
    sessions, closes = _scan(lines)
    if len(sessions) * len(closes) > MAX_PAIRS:
        doubt = "there are too many pytest sessions to tell apart"
        yield Tally("pytest", last=len(lines) - 1, proven=True, doubt=doubt)
        return
    gap = max((index for index, line in enumerate(lines) if line == GAP), default=-1)
    bounds = [*(session.line for session in sessions[1:]), len(lines)]
    # Tests can print closing lines too: the real one adds up to what was announced, and comes last.
    for fitting in (True, False):
        for session, following in reversed(list(zip(sessions, bounds, strict=False))):
            free = [close for close in closes if close.line > session.line and not close.taken]
            near = [close for close in free if close.line < following]
            if fitting:
                near = [close for close in (*free, *near) if close.tally.fits(session.announced)]
            if near and not session.end:
                session.end = near[-1]
                session.end.taken = True
    spans: list[tuple[int, int]] = []
    for session in sessions:
        if session.end:
            spans.append((session.line, session.end.line))
            yield _finished(lines, session.line, session.end, session)
        elif session.must_end and session.line > gap:
            doubt = "a pytest session began and did not end"
            yield Tally("pytest", first=session.line, last=session.line, proven=True, doubt=doubt)
    # Of the closing lines before, between and after the sessions the last ones count.
    strays: dict[int, _Close] = {}
    for close in closes:
        if not any(first < close.line <= last for first, last in spans):
            strays[max((last for _, last in spans if last < close.line), default=-1)] = close
    yield from (_finished(lines, before + 1, close, None) for before, close in strays.items())


def _scan(lines: Lines) -> tuple[list[_Session], list[_Close]]:
    sessions: list[_Session] = []
    closes: list[_Close] = []
    captured = headed = False
    inner: int | None = None
    """The first line of a session that a test of the open one has started."""
    quoted: int | None = None
    """The first line of such a session before its outer one has shown itself."""
    for index, line in enumerate(lines):
        if line == GAP:
            for session in sessions:
                session.announced = -1 if session.announced is None else session.announced
        elif line.endswith("[100%]") and inner is None:
            if not sessions or (sessions[-1].full and any(map(sessions[-1].ends_with, closes[-100:]))):
                progress = takewhile(_MARKS.match, reversed(lines[max(0, index - 1_000) : index + 1]))
                failed = any(mark in marks for marks in progress for mark in "FE")
                sessions.append(_Session(index if quoted is None else quoted, must_end=failed))
                quoted = None
            next((session for session in sessions[-100:] if not session.full), sessions[-1]).full = True
        # Cheap checks first: the expressions would otherwise be tried on every line of the output.
        elif not (line[:1] in "=-" or " in " in line or "collected " in line or " [" in line):
            continue
        elif _CAPTURED.match(line):
            captured = True
        elif match := _START.match(line):
            if captured or match[1] or any(map(_INNER_ROOT.match, lines[index + 1 : index + 6])):
                inner = index if sessions or not match[1] else None
                quoted = inner if quoted is None and not sessions else quoted
            else:
                sessions.append(_Session(index))
        elif match := _COLLECTED.match(line):
            # What is selected, else what remains of the collected, else (with xdist) the number of items.
            selected = match[4] or (match[3] and int(match[1]) - int(match[3])) or match[1] or match[5]
            waiting = next((session for session in reversed(sessions) if session.announced is None), None)
            if inner is None and waiting:
                waiting.announced = int(selected or 0)
        elif (match := _CLOSE.match(line)) and (tally := _counted(match[1])):
            closes.append(_Close(index, tally, headed))
            captured, inner, headed = captured and inner is not None, None, False
        elif (match := _SECTION.match(line)) and inner is None:
            headed, captured = True, captured and not match[1]
    return sessions, closes


def _counted(text: str) -> Tally | None:
    """What a closing line counts; its reruns stand for the flaky tests."""
    counts = [0, 0, 0, 0]
    reruns = 0
    for part in text.split(", ") if text[0] != "n" else ():
        entry = re.fullmatch(r"(\d{1,9}) ([a-z ]+)", part)
        if not entry or entry[2] not in _KINDS.keys() | _ELSE:
            return None
        if entry[2] in _KINDS:
            counts[_KINDS[entry[2]]] += int(entry[1])
        reruns += int(entry[1]) if entry[2] == "rerun" else 0
    passed, failed, errored, skipped = counts
    return Tally("pytest", passed, failed, errored, skipped, reruns)


def _finished(lines: Lines, first: int, close: _Close, session: _Session | None) -> Tally:
    tally, text = close.tally, "\n".join(lines[first : close.line])
    _, heading, listed = text.rpartition("short test summary info")
    names = [match[1] for match in _NAMED.finditer(listed if heading else "") if not match[1].startswith("collecting ")]
    announced = session.announced if session else None
    fits = announced is None or tally.fits(announced)
    lucky = (len(_AGAIN.findall(text)) or "".join(_MARKS.findall(text)).count("R.")) if tally.flaky else 0
    return replace(
        tally,
        flaky=min(tally.passed, lucky or int(tally.flaky and not tally.red)),
        failures=first_names(map(_test_id, names)) if tally.red else (),
        first=first,
        last=close.line,
        certain=session is not None or close.headed,
        proven=session is not None and (session.announced is not None or session.full),
        complete=announced is not None and fits,
        doubt="" if fits or tally.red else "other tests ended than were announced",
    )  # fmt: skip


def _test_id(text: str) -> str:
    """Without the message after it; a dash inside of a parameter's brackets belongs to the name."""
    head, bracket, rest = text.partition("[")
    if bracket and " - " not in head and "]" in rest:
        return head + bracket + rest.partition("] - ")[0].removesuffix("]") + "]"
    return text.partition(" - ")[0]


# --- the Test Anything Protocol, versions 12 to 14, with subtests -----------------------------------------------------

# A test, or what Testem writes for a skipped one.
_TEST = re2.compile(r"( *)(not )?ok(?: (\d{1,9}))?(?: -)?( .*)?$|skip (\d{1,9}) .*$")
# What ends a test's name: a directive or a time.
_MARK = re2.compile(r"(?i)(?:^|[^\\])(# *(?:(todo|skip)|time=))")
_PLAN = re2.compile(r"1\.\.(\d{1,9})(?: *#.*)?$")
_VERSION = re2.compile(r"TAP version 1[234]$")
_SUBTEST = re2.compile(r"( *)# Subtest: (.*)$")
_COUNT = re2.compile(r"# (tests|pass|fail|cancelled|skipped|skip|todo) +(\d{1,9})$")
_MAX_DEPTH = 40


@dataclass
class _Level:
    """One depth of subtests: its last number, whether a test failed, and its title."""

    last: int = 0
    failed: bool = False
    title: str = ""


@dataclass
class _Document:
    first: int
    last: int
    plan: int | None = None
    plan_line: int = -1
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    comments: Counter[str] = field(default_factory=Counter[str])
    gap: int | None = None
    version: bool = False
    bailed: bool = False

    def ends_before(self, line: str) -> bool:
        """Whether a line can only belong to the next document."""
        if _VERSION.match(line):
            return bool(self.outcomes or self.plan is not None)
        if self.plan is None or self.levels[0].last < self.plan:
            return False
        match = _TEST.match(line)
        return line.startswith("1..") or bool(match and not match[1] and match[3] == "1" and self.levels[0].last)

    def feed(self, index: int, line: str) -> None:
        """Take in a line, if it says something."""
        if line == GAP or self.bailed:
            self.gap = index if line == GAP else self.gap
        elif match := _TEST.match(line):
            # Four blanks per level of subtests; anything else is printed by a test.
            depth, odd = divmod(len(match[1] or ""), 4)
            if not odd and depth <= _MAX_DEPTH:
                self._test(index, depth, match)
        elif match := _PLAN.match(line):
            if self.plan is None:
                self.plan, self.plan_line, self.last = int(match[1]), index, index
        elif match := _COUNT.match(line):
            self.comments[match[1]] = int(match[2])
            self.last = index
        elif match := _SUBTEST.match(line):
            self._level(min(len(match[1]) // 4 + 1, _MAX_DEPTH)).title = match[2]
        elif line.startswith("Bail out!"):
            self.last, self.bailed = index, True

    def _level(self, depth: int) -> _Level:
        self.levels += [_Level() for _ in range(depth + 1 - len(self.levels))]
        return self.levels[depth]

    def _test(self, index: int, depth: int, match: Any) -> None:
        level, rest, number = self._level(depth), match[4] or "", match[3] or match[5]
        if number and int(number) != level.last + 1:
            return  # out of sequence: something that a test printed
        level.last, self.last = level.last + 1, index
        marks = list(_MARK.finditer(rest))
        skipped = match[5] or any(mark[2] for mark in marks)
        failed = bool(match[2]) and not skipped
        deeper = self._level(depth + 1)
        # Subtests count themselves, and their parent only where it failed on its own.
        if not deeper.last or (failed and not deeper.failed):
            name = (rest[: marks[0].start(1)] if marks else rest).strip() or number or ""
            titles = [one.title for one in self.levels[1 : depth + 1] if one.title]
            kind = "skipped" if skipped else "failed" if failed else "passed"
            self.outcomes.append((kind, " > ".join([*titles, name])))
        level.failed = level.failed or failed
        del self.levels[depth + 1 :]

    def tally(self) -> Tally | None:
        if not (self.plan == 0 or (self.outcomes and (self.version or self.plan is not None))):
            return None
        missing = max(int(self.bailed), (self.plan or 0) - self.levels[0].last)
        doubt = "" if self.plan is not None or self.bailed else "a TAP stream ends without its plan"
        known = Tally.of("TAP", self.outcomes, first=self.first, last=self.last, proven=True, doubt=doubt)
        whole = replace(known, errored=missing)
        if self.gap is None or self.gap > self.last:
            return whole
        # Test lines are missing, so only the closing comments can tell, and only if the plan says the same.
        counts = self.comments
        skipped = (counts["skipped"] or counts["skip"]) + counts["todo"]
        total = counts["pass"] + counts["fail"] + counts["cancelled"] + skipped
        return Tally(
            "TAP", counts["pass"], counts["fail"], counts["cancelled"], skipped,
            failures=whole.failures, first=self.first, last=self.last,
            complete=self.plan_line < self.gap and self.plan == total and "tests" in counts,
        )  # fmt: skip


def read_tap(lines: Lines) -> Iterator[Tally]:
    """One tally per document; subtests count themselves, and their parent only where it failed on its own."""
    document: _Document | None = None
    yaml: int | None = None
    for index, line in enumerate(lines):
        stripped = line.strip(" ")
        indent = len(line) - len(line.lstrip(" "))
        if yaml is not None:
            # A block of details, which stands right under its test.
            ended = stripped == "..."
            yaml = None if ended or (stripped and indent < yaml) else yaml
            if yaml is not None or ended:
                continue
        if stripped == "---" and document and indent % 4 == 2 and document.last == index - 1:
            yaml = indent
        elif stripped and stripped[0] in "onT1#Bs\0":
            if document and document.ends_before(line):
                yield from filter(None, [document.tally()])
                document = None
            if document is None and (_TEST.match(line) or _PLAN.match(line) or _VERSION.match(line)):
                document = _Document(index, index, version=line.startswith("TAP"))
            if document:
                document.feed(index, line)
    yield from filter(None, [document.tally()] if document else [])
