"""pytest: a closing line counts where a session was under way that it can close."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import re2

from zelda_ci.test_output.tally import GAP, Lines, Tally, first_names

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
        yield Tally(
            "pytest", last=len(lines) - 1, proven=True, doubt="there are too many pytest sessions to tell apart"
        )
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
