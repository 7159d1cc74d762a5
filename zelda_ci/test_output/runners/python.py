"""pytest and unittest: a closing line counts only where a session was under way that it can close."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import re2

from zelda_ci.test_output.tally import GAP, Lines, Tally, first_names, following, matches, number, numbers, preceding

WORDS = (
    "passed|failed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun"
    "|subtests passed|subtests failed|subtests skipped"
)
_START = re2.compile(r"(.*?)=+ test session starts(?: \(.*\))? =+$")
# Where pytester runs the sessions that a test of a plugin starts.
_INNER_ROOT = re2.compile(r"rootdir: \S*[/\\]pytest-of-")
_COLLECTED = re2.compile(
    r"(?:collecting \.\.\. )?collected (\d+) items?(?: / (\d+) errors?)?(?: / (\d+) deselected)?"
    r"(?: / \d+ skipped)?(?: / (\d+) selected)?$|\d+ workers? \[(\d+) items?\]"
)
_FULL = re2.compile(r".*\[100%\]$")
_CLOSE = re2.compile(r"(?:=+ )?(no tests ran|\d[^=]*?|no tests collected) in [\d.]+s(?: \([\d:, dayswek]+\))?(?: =+)?$")
_CAPTURED = re2.compile(r"-+ Captured (?:stdout|stderr|log)")
_SECTION = re2.compile(r"=+ (?:FAILURES|ERRORS|short test summary info|warnings summary.*) =+$")
_SHORT = re2.compile(r"=+ short test summary info =+$")
_NAMED = re2.compile(r"(?:FAILED|ERROR) (\S.*)$")
_RERUN = re2.compile(r"(.*\S) (RERUN|PASSED)(?: +\[ *\d+%\])?$|\[gw\d+\] \[ *\d+%\] (RERUN|PASSED) (\S.*)$")
_DOTS = re2.compile(r"(?:\S+\.py )?([.FEsxXR]+)(?: +\[ *\d+%\])?$")


@dataclass
class _Session:
    line: int
    announced: int | None = None
    full: bool = False
    sealed: bool = False
    """Whether output is missing after it, so that what follows may be another session's."""


@dataclass(frozen=True)
class _Close:
    line: int
    counts: dict[str, int]
    headed: bool
    """Whether a section of a report stands above it, which nobody prints by chance."""

    @property
    def total(self) -> int:
        return sum(self.counts.get(word, 0) for word in ("passed", "failed", "skipped", "xfailed", "xpassed"))

    def fits(self, announced: int | None) -> bool:
        """Whether it ends a session of so many tests; an error may stand for a test or come on top of one."""
        return announced is not None and announced - self.counts.get("errors", 0) <= self.total <= announced


@dataclass
class _Scan:
    """Sessions that are open, and the lines that may have closed them."""

    lines: Lines
    open: list[_Session] = field(default_factory=list)
    closes: list[_Close] = field(default_factory=list)
    captured: bool = False
    inner: bool = False
    """Whether a session is under way that a test of the open one has started."""
    quoted: int | None = None
    """The first line of such a session before its outer one has shown itself."""
    headed: bool = False
    unended: list[_Session] = field(default_factory=list)

    def resolve(self) -> Iterator[tuple[_Session | None, _Close]]:
        """Pair sessions with the closing lines that fit best: by announced total, else the last ones."""
        self.unended += self.open[: max(0, len(self.open) - len(self.closes))]
        sessions: list[_Session | None] = list(self.open) or [None]
        # Tests can print closing lines too; the real ones add up to what was announced, and come last.
        wanted = {session.announced for session in self.open}
        ranked = sorted(
            self.closes, key=lambda close: (close.total in wanted or any(map(close.fits, wanted)), close.line)
        )
        chosen = sorted(ranked[-len(sessions) :], key=lambda close: close.line)
        for session in sessions[-len(chosen) :] if chosen else []:
            announced = session.announced if session else None
            close = next((close for close in chosen if close.fits(announced)), chosen[0])
            chosen.remove(close)
            yield session, close
        self.open, self.closes, self.inner = [], [], False


def read_pytest(lines: Lines) -> Iterable[Tally]:
    """One tally per session; output of tests that looks like a session's is left out where that can be told."""
    scan = _Scan(lines)
    previous = 0
    for session, close in _sessions(scan):
        start = session.line if session else previous
        yield _tally(lines, start, close, session)
        previous = close.line
    for session in scan.unended:
        if not session.sealed:
            yield Tally("pytest", first=session.line, last=session.line, doubt="a pytest session began and did not end")


def _sessions(scan: _Scan) -> Iterator[tuple[_Session | None, _Close]]:
    for position, line in enumerate(scan.lines):
        if line == GAP:
            for session in scan.open:
                session.sealed = True
        # Cheap checks first: the expressions would otherwise be tried on every line of the output.
        elif line.endswith("[100%]"):
            yield from _progressed(scan, position)
        elif line[:1] in "=-" or " in " in line or "collected " in line or " [" in line:
            yield from _event(scan, position, line)
    yield from scan.resolve()


def _progressed(scan: _Scan, number: int) -> Iterator[tuple[_Session | None, _Close]]:
    if scan.inner:
        return
    waiting = next((session for session in scan.open if not session.full), None)
    if waiting:
        waiting.full = True
        if len(scan.open) == 1:
            scan.closes.clear()  # a session closes after its last test, so a test printed these
    elif not scan.open or _over(scan):
        if scan.open:
            yield from scan.resolve()
        scan.closes.clear()
        scan.open.append(_Session(number if scan.quoted is None else scan.quoted, full=True))
        scan.quoted = None


def _over(scan: _Scan) -> bool:
    """Whether all open sessions are closed, each that announced its tests by a line that fits."""
    told = [session.announced for session in scan.open if session.announced is not None]
    return len(scan.closes) >= len(scan.open) and all(any(close.fits(n) for close in scan.closes) for n in told)


def _event(scan: _Scan, number: int, line: str) -> Iterator[tuple[_Session | None, _Close]]:
    if _CAPTURED.match(line):
        scan.captured = True
    elif match := _START.match(line):
        yield from _started(scan, number, match[1])
    elif match := _COLLECTED.match(line):
        _announce(scan, match)
    elif match := _CLOSE.match(line):
        counts = {} if match[1].startswith("no tests") else numbers(match[1], WORDS)
        if counts is not None:
            _closed(scan, _Close(number, _singular(counts), scan.headed))
    elif _SECTION.match(line) and not scan.inner:
        scan.headed = True
        scan.captured = scan.captured and not _SHORT.match(line)


def _started(scan: _Scan, number: int, before: str) -> Iterator[tuple[_Session | None, _Close]]:
    if scan.captured or before or any(map(_INNER_ROOT.match, scan.lines[number + 1 : number + 6])):
        scan.inner = bool(scan.open or not before)
        if scan.inner and not scan.open and scan.quoted is None:
            scan.quoted = number
        return
    if scan.closes and len(scan.closes) >= len(scan.open):
        yield from scan.resolve()
    scan.open.append(_Session(number))


def _announce(scan: _Scan, match: Any) -> None:
    session = next((session for session in scan.open if session.announced is None and not session.sealed), None)
    if scan.inner or not session:
        return
    # What is selected, else what remains of the collected, else (with xdist) the number of items.
    selected = match[4] or (match[3] and int(match[1]) - int(match[3])) or match[1] or match[5]
    session.announced = int(selected or 0)


def _closed(scan: _Scan, close: _Close) -> None:
    # That of an inner session stays a candidate: if it was killed, this is the outer one's.
    scan.captured = scan.captured and scan.inner
    scan.inner = scan.headed = False
    scan.closes.append(close)


def _singular(counts: dict[str, int]) -> dict[str, int]:
    return {{"error": "errors", "warning": "warnings"}.get(word, word): count for word, count in counts.items()}


def _tally(lines: Lines, start: int, close: _Close, session: _Session | None) -> Tally:
    counts = close.counts
    failed, errored = counts.get("failed", 0), counts.get("errors", 0)
    return Tally(
        "pytest",
        passed=counts.get("passed", 0) + counts.get("xpassed", 0),
        failed=failed,
        errored=errored,
        skipped=counts.get("skipped", 0) + counts.get("xfailed", 0),
        flaky=_flaky(lines, start, close.line, counts) if counts.get("rerun") else 0,
        failures=_names(lines, start, close.line) if failed or errored else (),
        first=start,
        last=close.line,
        certain=session is not None or close.headed,
        announced=_announced(session, close, errored),
        proven=session is not None and (session.announced is not None or session.full),
    )


def _announced(session: _Session | None, close: _Close, errored: int) -> int | None:
    """The announced total in terms of the closing line, where an error may stand for a test or come on top of one."""
    if session is None or session.announced is None:
        return None
    return close.total + errored if close.fits(session.announced) else -1


def _names(lines: Lines, start: int, end: int) -> tuple[str, ...]:
    section = next((index for index in range(end - 1, start - 1, -1) if _SHORT.match(lines[index])), None)
    if section is None:
        return ()
    entries = (_NAMED.match(line) for line in lines[section:end])
    return first_names(_test_id(entry[1]) for entry in entries if entry and not entry[1].startswith("collecting "))


def _test_id(text: str) -> str:
    """Without the message after it; a dash inside of a parameter's brackets belongs to the name."""
    head, bracket, rest = text.partition("[")
    if bracket and " - " not in head and "]" in rest:
        return head + bracket + rest.partition("] - ")[0].removesuffix("]") + "]"
    return text.partition(" - ")[0]


def _flaky(lines: Lines, start: int, end: int, counts: dict[str, int]) -> int:
    """Tests that passed after a rerun: by name where names are listed, else by the order of the progress marks."""
    again: set[str] = set()
    lucky: set[str] = set()
    marks: list[str] = []
    for line in lines[start:end]:
        if match := _RERUN.match(line):
            name, outcome = (match[1], match[2]) if match[1] else (match[4], match[3])
            (again if outcome == "RERUN" else lucky).add(name.strip())
        elif match := _DOTS.match(line):
            marks.append(match[1])
    if again:
        return len(again & lucky)
    # A rerun that passed: R and the dot follow each other, whatever stands around them.
    by_marks = len(re2.findall(r"R\.", "".join(marks)))
    return by_marks or int(not counts.get("failed") and not counts.get("errors"))


_RAN = re2.compile(r"Ran (\d+) tests? in [\d.]+s")
_RESULT = re2.compile(r"(?:OK|FAILED|PASSED|NO TESTS RAN)(?: \((.*)\))?$")
_HEADING = re2.compile(r"(FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$")
_OUTSIDE = re2.compile(r"(?:setUp|tearDown)(?:Class|Module) ")
_WHOLE_TEST = re2.compile(r"\S+ \([^)]*\)")
_DJANGO = re2.compile(r"Found \d+ test\(s\)\.$|Destroying test database for alias")
_RULE = "-" * 50


def read_unittest(lines: Lines) -> Iterable[Tally]:
    """One tally per `Ran … tests` that stands under a rule, as runners print it and tests seldom do."""
    start = 0
    for index, ran in matches(lines, _RAN):
        if any(line.startswith(_RULE) for line in preceding(lines, index, 2)):
            result = next(
                ((end, match) for end, line in following(lines, index + 1, 3) if (match := _RESULT.match(line))), None
            )
            if result:
                yield _unittest_tally(lines, (start, index), result[0], (number(ran, 1), _reasons(result[1])))
                start = result[0] + 1


_REASONS = {
    "SKIP": "skipped", "skips": "skipped", "TODO": "skipped", "todos": "skipped", "DEPRECATED": "skipped",
    "KNOWNFAIL": "expected failures", "expectedFailures": "expected failures",
    "unexpectedSuccesses": "unexpected successes",
}  # fmt: skip
_KNOWN = {"failures", "errors", "skipped", "expected failures", "unexpected successes", "successes", "passes"}


def _reasons(match: Any) -> dict[str, int]:
    pairs = (part.rpartition("=") for part in (match[1] or "").split(", "))
    counts: Counter[str] = Counter()
    for word, _, count in pairs:
        if count.isdecimal() and len(count) < 10:
            counts[_REASONS.get(word, word)] += int(count)
    return counts


def _unittest_tally(lines: Lines, span: tuple[int, int], last: int, counts: tuple[int, dict[str, int]]) -> Tally:
    ran, reasons = counts
    # A subtest that fails makes its test fail once, but is counted for itself in the closing line.
    failing, outside, names = _headings(lines[span[0] : span[1]])
    errored = {test for kind, test in failing if kind == "ERROR"}
    failed = {test for kind, test in failing if kind == "FAIL"} - errored
    listed = reasons.get("failures", 0) + reasons.get("errors", 0)
    # The headings are incomplete, because of a gap or of a test that closed the stream: the closing line counts.
    if len(names) < listed:
        failures, errors, outside = reasons.get("failures", 0), reasons.get("errors", 0), 0
    else:
        failures, errors = len(failed), len(errored)
    unexpected = reasons.get("unexpected successes", 0)
    skipped = reasons.get("skipped", 0) + reasons.get("expected failures", 0)
    return Tally(
        "Django" if _is_django(lines, span[0], last) else "unittest",
        passed=max(0, ran - failures - errors - unexpected - skipped),
        failed=failures + unexpected,
        errored=errors + outside,
        skipped=skipped,
        failures=first_names(names),
        first=span[0],
        last=last,
        doubt="" if reasons.keys() <= _KNOWN else "unittest counts what is not known",
    )


def _headings(lines: Lines) -> tuple[set[tuple[str, str]], int, list[str]]:
    """Failing tests without their subtests, the number of failures outside of tests, and all names."""
    failing: set[tuple[str, str]] = set()
    outside = 0
    names: list[str] = []
    for index, match in matches(lines, _HEADING):
        if not any(line.startswith("=" * 50) for line in preceding(lines, index, 1)):
            continue
        names.append(match[2])
        if _OUTSIDE.match(match[2]):
            outside += 1
        elif match[1] != "UNEXPECTED SUCCESS":
            failing.add((match[1], _test(match[2])))
    return failing, outside, names


def _test(name: str) -> str:
    """`test (module.Class.test) (number=1)` is a subtest of `test (module.Class.test)`."""
    match = _WHOLE_TEST.match(name)
    return match[0] if match else name


def _is_django(lines: Lines, first: int, last: int) -> bool:
    return any(_DJANGO.match(line) for line in lines[max(0, first - 20) : last + 30])
