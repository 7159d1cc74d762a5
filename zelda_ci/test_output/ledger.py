"""Every candidate for a summary ends counted, quoted or a duplicate; else the output is unclear."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

import re2

from zelda_ci.test_output.tally import Lines, Tally, matches, same_run, without_label

# Runners that print what other runners said inside of their own output.
_QUOTING = frozenset({"CTest", "nextest", "prove"})
# Summaries of the runners that may have printed a stream; XML comes from any.
_BESIDE = {
    "Jest JSON": ("Jest", "Vitest"),
    "Mocha JSON": ("Mocha",),
    "RSpec JSON": ("RSpec",),
    "Go JSON": ("Go -v", "Go"),
    "Playwright JSON": ("Playwright",),
    "TAP": ("node-tap", "node:test", "Vitest"),
}
# Summaries that add up those of others.
_HOLDS = {"sbt": ("ScalaTest", "JUnit 4", "TestNG"), "Cypress": ("Mocha",), "gotestsum": ("Go", "Go -v", "Go JSON")}
MAX_DOUBTS = 5
_UNCOUNTED = "a failure was printed that no summary counts"
# What runners print about a failure; behind green numbers it tells of something that was not counted.
_ALARM = re2.compile(
    r"(?:FAILED \((?:failures|errors)=.*\)|FAILURES!+|ERRORS!|Bail out!.*"
    r"|!{3,} (?:Interrupted|_pytest|KeyboardInterrupt).*!{3,}"
    r"|=+ (?:.* )?[1-9]\d{0,8} (?:failed|errors?)\b.* =+|Test Suites: +[1-9]\d* failed.*|Tests: +[1-9]\d* failed.*"
    r"| *Test Files +[1-9]\d* failed.*|test result: FAILED\..*|\*{3} \d+ TESTS? FAILED \*{3}"
    r"|TEST RUN (?:FAILED|INCOMPLETE).*"
    r"|\[ +[1-9]\d* (?:tests|containers) failed +\]|Test Run Failed\.|Test run summary: Failed.*"
    r"|\[  FAILED  \] \d+ tests?,.*|Result: FAIL|FAIL\t\S+.*"
    r"|(?:\[(?:INFO|ERROR)\] +)?BUILD FAILURE|BUILD FAILED(?: in .*)?|INTERNALERROR>.*"
    r"|[1-9]\d* examples?, [1-9]\d* failures?.*"
    r"|(?:.*[:\]] +)?Segmentation fault|.*: line \d+: +\d+ +Segmentation fault\b.*|.*\(core dumped\).*"
    r"|Fatal Python error: .*|FATAL ERROR: .* heap out of memory"
    r"|Tests failed\.|error: (?:doc)?test failed, to rerun pass .*|Some tests failed\.?|.*\bevaluation failed :\()\s*$"
)

# What runners say, often with exit code 0, where they had no test to run.
_IDLE = re2.compile(
    r"(?:\[INFO\] )?(?:No test matches the given testcase filter .*|No scenarios|No tests to run\."
    r"|No test(?: file)?s found, exiting with code 0|(?:Incomplete: )?No specs found)\s*$"
)
# Counts of any runner, of tests and of failures among them, and failing tests: no verdict beside what is counted.
_FAILING = re2.compile(
    r"(?:\W*(?:Ran )?"
    r"(?:\d+ (?:tests?|specs?|examples?|scenarios?|runs|assertions|passed|passing|skipped|pending)(?:\W+|$))+"
    r"[1-9]\d* (?:failed|failures?|failing)\b(?:[\W\d].*)?|\W*[1-9]\d* (?:failed|failing)\W+\d+ (?:passed|passing)\b.*"
    r"|##teamcity\[testFailed .*|# of unexpected failures\s+[1-9]\d*|not ok [1-9]\d*\b.*|--- FAIL: \S+ \(.*)$"
)


class Ledger(NamedTuple):
    """What counts, and what could not be accounted for."""

    counted: tuple[Tally, ...] = ()
    doubts: tuple[str, ...] = ()
    """Of each what it is, with the line."""


def account(lines: Lines, tallied: Iterable[Tally]) -> Ledger:
    """Settle every candidate of lines that belong to one process, or to several that share them."""
    entered = list(tallied)
    quoting = _Spans(tally for tally in entered if tally.proven and tally.format in _QUOTING)
    proven = _Spans(tally for tally in entered if tally.proven and tally.format not in _QUOTING)
    kept: list[Tally] = []
    # Not counted: it matters where everything that counts is green.
    hidden: list[Tally] = []
    for tally in entered:
        inside = tally.last in quoting
        if tally.format in _QUOTING or not (inside or (not tally.proven and tally.last in proven)):
            kept.append(tally)
        # Between the lines of a runner that quotes nobody may stand those of another that ran beside it.
        elif tally.certain and not tally.doubt and not inside:
            hidden.append(tally)
    kept = _once(kept)
    doubts = [(tally.doubt, tally.last) for tally in kept if tally.doubt]
    for whole in [tally for tally in kept if tally.format in _HOLDS]:
        parts = [tally for tally in kept if tally.format in _HOLDS[whole.format] and tally.last < whole.last]
        passed, lost = sum(part.passed for part in parts), sum(part.failed + part.errored for part in parts)
        if lost > whole.failed + whole.errored:
            doubts.append((f"{whole.format} tells of fewer failures than its parts", whole.last))
        # Parts that give the same are kept: they tell of skipped tests and names as well.
        left_out = [whole] if (passed, lost) == (whole.passed, whole.failed + whole.errored) else parts
        kept = [tally for tally in kept if tally not in left_out]
    # What may be a log line counts only where nothing certain does.
    certain = {tally.format for tally in kept if tally.certain and not tally.doubt}
    hidden += [tally for tally in kept if not tally.certain and tally.format not in certain]
    kept = [tally for tally in kept if not tally.doubt and (tally.certain or not certain)]
    if kept and not any(tally.red for tally in kept):
        what = "what looks like a summary with failures was not counted"
        doubts += [(what, tally.last) for tally in hidden if tally.red]
    return Ledger(tuple(sorted(kept, key=lambda tally: tally.last)), _told(lines, doubts))


def alarms(lines: Lines, counted: Iterable[Tally]) -> tuple[str, ...]:
    """Doubts about words of failure outside of every run that is accounted for."""
    owners = _Spans(tally for tally in counted if tally.proven)
    outside = [index for index, own in _printed(lines, _ALARM) if not own or index not in owners]
    return _told(lines, [(_UNCOUNTED, index) for index in outside])


def uncounted(lines: Lines) -> tuple[str, ...]:
    """Doubts about lines that say that no test ran, or that one failed; they matter where nothing at all is counted."""
    printed = ((what, _printed(lines, pattern)) for what, pattern in (("no test ran", _IDLE), (_UNCOUNTED, _FAILING)))
    return _told(lines, ((what, index) for what, found in printed for index, _ in found))


def _printed(lines: Lines, pattern: "re2._Regexp[str]") -> Iterator[tuple[int, bool]]:
    """Lines that say something, and whether they say it without a label before it."""
    yield from ((index, True) for index, _ in matches(lines, pattern))
    yield from ((index, False) for index, _ in matches([without_label(line) for line in lines], pattern))


def _told(lines: Lines, doubts: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    told = dict.fromkeys(f"{what} (`{lines[line].strip()[:120]}`)" for what, line in islice(doubts, 10 * MAX_DOUBTS))
    return tuple(told)[:MAX_DOUBTS]


class _Spans:
    """Stretches of the output that belong to one runner, other runners' summaries included."""

    def __init__(self, tallies: Iterable[Tally]) -> None:
        spans = sorted((tally.first, tally.last) for tally in tallies)
        self._firsts = [first for first, _ in spans]
        self._lasts = list(accumulate((last for _, last in spans), max, initial=-1))

    def __contains__(self, line: int) -> bool:
        # By bisection: an output can hold thousands of runs, and each would be compared with each.
        return line <= self._lasts[bisect_right(self._firsts, line)]


def _once(tallied: Sequence[Tally]) -> list[Tally]:
    """Each run once, where a runner prints it in several formats, or a summary beside a stream of the same numbers."""
    # By numbers and format, so that thousands of documents are not compared with each other.
    streams: defaultdict[tuple[int, int], defaultdict[str, list[Tally]]] = defaultdict(lambda: defaultdict(list))
    told = Counter[tuple[str, int, int, int]]()
    kept: list[Tally] = []
    for tally in tallied:
        numbers = tally.passed, tally.failed + tally.errored, tally.skipped
        if tally.source == "stream":
            alike = streams[numbers[:2]]
            others = (other for form in alike if form != tally.format for other in alike[form])
            if not (tally.ends and any(same_run([tally], [other]) for other in others)):
                alike[tally.format].append(tally)
                told[tally.format, *numbers] += 1
                kept.append(tally)
            continue
        beside = ["JUnit XML", *(stream for stream, formats in _BESIDE.items() if tally.format in formats)]
        # Equal numbers as well: another run of the same runner, with its summary alone, counts for itself.
        same = next((key for stream in beside if told[key := (stream, *numbers)]), None)
        if same:
            told[same] -= 1
        # What Vitest began may end with JSON.
        elif not (tally.doubt and tally.format == "Vitest" and any(one.format == "Jest JSON" for one in kept)):
            kept.append(tally)
    return kept
