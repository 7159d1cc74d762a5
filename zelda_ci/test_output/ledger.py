"""Every candidate for a summary ends counted, quoted or a duplicate; else the output is unclear."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import re2

from zelda_ci.domain.test_run import Source
from zelda_ci.test_output.labels import bare
from zelda_ci.test_output.tally import Lines, Tally, matches, same_run

SourcedTally = tuple[Source, Tally]

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

# What runners print about a failure; behind green numbers it tells of something that was not counted.
_ALARM = re2.compile(
    r"(?:FAILED \((?:failures|errors)=.*\)|FAILURES!+|ERRORS!|Bail out!.*"
    r"|!{3,} (?:Interrupted|_pytest|KeyboardInterrupt).*!{3,}"
    r"|=+ (?:.* )?[1-9]\d{0,8} (?:failed|errors?)\b.* =+|Test Suites: +[1-9]\d* failed.*|Tests: +[1-9]\d* failed.*"
    r"| *Test Files +[1-9]\d* failed.*|test result: FAILED\..*|\*{3} \d+ TESTS? FAILED \*{3}"
    r"|TEST RUN (?:FAILED|INCOMPLETE).*"
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


@dataclass(frozen=True)
class Ledger:
    """What counts, and what could not be accounted for."""

    counted: tuple[SourcedTally, ...] = ()
    doubts: tuple[str, ...] = ()
    """Of each what it is, with the line."""

    @property
    def red(self) -> bool:
        return any(tally.red for _, tally in self.counted)


def account(lines: Lines, tallied: Iterable[SourcedTally]) -> Ledger:
    """Settle every candidate of lines that belong to one process, or to several that share them."""
    entered = list(tallied)
    quoting = _Spans(tally for _, tally in entered if tally.format in _QUOTING)
    proven = _Spans(tally for _, tally in entered if tally.proven and tally.format not in _QUOTING)
    doubts: list[tuple[str, int]] = []
    # Red, and not counted: it matters where everything that counts is green.
    hidden: list[Tally] = []
    kept: list[SourcedTally] = []
    for source, tally in entered:
        if tally.format in _QUOTING or not (tally in quoting or (not tally.proven and tally in proven)):
            kept.append((source, tally))
        # Between the lines of a runner nobody quotes may stand those of another that ran beside it.
        elif tally.certain and tally not in quoting:
            hidden.append(tally)
    kept = _once(kept)
    for _, whole in [item for item in kept if item[1].format in _HOLDS]:
        parts = [tally for _, tally in kept if tally.format in _HOLDS[whole.format] and tally.last < whole.last]
        sums = sum(tally.passed for tally in parts), sum(tally.failed + tally.errored for tally in parts)
        if sums[1] > whole.failed + whole.errored:
            doubts.append((f"{whole.format} tells of fewer failures than its parts", whole.last))
        # Parts that give the same are kept: they tell of skipped tests and names as well.
        left_out = [whole] if sums == (whole.passed, whole.failed + whole.errored) else parts
        kept = [item for item in kept if item[1] not in left_out]
    certain = {tally.format for _, tally in kept if tally.certain and not tally.doubt}
    doubts += [(tally.doubt, tally.last) for _, tally in kept if tally.doubt]
    # What may be a log line counts only where nothing certain does.
    hidden += [tally for _, tally in kept if not tally.certain and tally.format not in certain]
    kept = [item for item in kept if not item[1].doubt and (item[1].certain or not certain)]
    ledger = Ledger(tuple(sorted(kept, key=lambda item: item[1].last)))
    if kept and not ledger.red:
        doubts += [
            ("what looks like a summary with failures was not counted", tally.last) for tally in hidden if tally.red
        ]
    return Ledger(ledger.counted, tuple(_told(lines, doubts)))


def alarms(lines: Lines, counted: Iterable[SourcedTally]) -> tuple[str, ...]:
    """Doubts about words of failure outside of every run that is accounted for."""
    owners = [tally for _, tally in counted if tally.proven or tally.format in _QUOTING]
    found = _printed(lines, _ALARM)
    outside = (index for index, own in found if not own or not any(one.first < index < one.last for one in owners))
    return tuple(_told(lines, (("a failure was printed that no summary counts", index) for index in outside)))


def uncounted(lines: Lines) -> tuple[str, ...]:
    """Doubts about lines that say that no test ran, or that one failed; they matter where nothing at all is counted."""
    idle = [("no test ran", index) for index, _ in _printed(lines, _IDLE)]
    return tuple(
        _told(
            lines,
            [
                *idle,
                *(("a failure was printed that no summary counts", index) for index, _ in _printed(lines, _FAILING)),
            ],
        )
    )


def _printed(lines: Lines, pattern: "re2._Regexp[str]") -> Iterator[tuple[int, bool]]:
    """Lines that say something, and whether they say it without a label before it."""
    yield from ((index, True) for index, _ in matches(lines, pattern))
    yield from ((index, False) for index, _ in matches([bare(line) for line in lines], pattern))


def _told(lines: Lines, doubts: Iterable[tuple[str, int]]) -> Collection[str]:
    told: dict[str, None] = {}
    for what, line in doubts:
        if len(told) < MAX_DOUBTS:
            told[f"{what} (`{lines[line].strip()[:120]}`)"] = None
    return told


class _Spans:
    """Stretches of the output that belong to one runner, other runners' summaries included."""

    def __init__(self, tallies: Iterable[Tally]) -> None:
        self._spans = sorted(tallies, key=lambda tally: tally.first)

    def __contains__(self, tally: Tally) -> bool:
        # By bisection: an output can hold thousands of runs, and each would be compared with each.
        nearest = bisect_right(self._spans, tally.last, key=lambda span: span.first) - 1
        return nearest >= 0 and tally.last <= self._spans[nearest].last


def _once(tallied: Sequence[SourcedTally]) -> list[SourcedTally]:
    """Each run once, where a runner prints it in several formats, or a summary beside a stream of the same numbers."""
    streams = [tally for source, tally in tallied if source == "stream"]
    told = Counter((tally.format, *_numbers(tally)) for tally in streams)
    kept: list[SourcedTally] = []
    for source, tally in tallied:
        if source == "summary":
            beside = ["JUnit XML", *(stream for stream, formats in _BESIDE.items() if tally.format in formats)]
            # Equal numbers as well: another run of the same runner, with its summary alone, counts for itself.
            same = next((key for stream in beside if told[key := (stream, *_numbers(tally))]), None)
            ended = (
                tally.doubt
                and tally.first == tally.last
                and any(stream.format in beside and stream.last > tally.last for stream in streams)
            )
            if same:
                told[same] -= 1
            elif not ended:
                kept.append((source, tally))
        elif not any(
            tally.format != other.format and tally.ends and same_run([tally], [other])
            for kind, other in kept if kind == "stream"
        ):  # fmt: skip
            kept.append((source, tally))
    return kept


def _numbers(tally: Tally) -> tuple[int, int, int]:
    return tally.passed, tally.failed + tally.errored, tally.skipped
