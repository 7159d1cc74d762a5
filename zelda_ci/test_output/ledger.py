"""Every candidate for a summary is entered, and ends counted, quoted or a duplicate; else the output is unclear."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import re2

from zelda_ci.domain.test_run import Source
from zelda_ci.test_output.tally import GAP, Lines, Tally, matches, same_run

SourcedTally = tuple[Source, Tally]

# Summaries of the runners that may have printed a stream.
_SUMMARY_BESIDE = {
    "Jest JSON": ("Jest", "Vitest"),
    "Mocha JSON": ("Mocha",),
    "RSpec JSON": ("RSpec",),
    "Go JSON": ("Go -v", "Go"),
    "Playwright JSON": ("Playwright",),
    "TAP": ("node-tap", "node:test", "Vitest"),
}
# Lines between two readings of one summary.
_NEAR = 15
MAX_DOUBTS = 5

# Runners that announce themselves, and end with a summary or not at all.
_STARTS = (
    (("Vitest", "Jest JSON"), re2.compile(r" RUN  v\d\S* .*$")),
    (("Bun",), re2.compile(r"bun test v\d\S* .*$")),
    (("GoogleTest",), re2.compile(r"\[=+\] Running \d+ tests? from \d+ test (?:suite|case)s?\.$")),
    (("Playwright",), re2.compile(r"Running \d+ tests? using \d+ workers?.*$")),
    (("PHPUnit",), re2.compile(r"PHPUnit \d+\.\d+\S* by .*$")),
    (("CTest",), re2.compile(r"Test project \S.*$")),
    (("Cargo",), re2.compile(r"running \d+ tests?$")),
    (("nextest",), re2.compile(r" *Starting \d+ tests? across .*$")),
)
# Lines that runners print first, and perhaps nothing after them.
_SIGNS = (
    (("Jasmine", "test-unit"), re2.compile(r"(?:Started|Loaded suite .*)$")),
    (("Deno",), re2.compile(r"running \d+ tests? from \S+$")),
    (("Jest",), re2.compile(r"(?:PASS|FAIL) .*$")),
    (("Minitest",), re2.compile(r"# Running:$")),
    (("Maven Surefire",), re2.compile(r"(?:\[INFO\])? *T E S T S$")),
)
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


@dataclass
class _Book:
    lines: Lines
    open: list[SourcedTally]
    doubts: list[str] = field(default_factory=list)

    def doubt(self, what: str, line: int) -> None:
        if len(self.doubts) < MAX_DOUBTS:
            self.doubts.append(f"{what} (`{self.lines[line].strip()[:120]}`)")


def account(lines: Lines, tallied: Iterable[SourcedTally]) -> Ledger:
    """Settle every candidate of lines that belong to one process, or to several that share them."""
    entered = [(source, _begun(lines, tally)) for source, tally in tallied]
    book = _Book(lines, _unquoted(entered))
    kept = set(map(id, book.open))
    # Between the lines of a runner that quotes nobody may stand those of another that ran beside it.
    quoting = [tally for tally in _spans(entered) if tally.quotes]
    beside = [
        tally for item in entered if id(item) not in kept
        for tally in item[1:] if tally.certain and tally.failed + tally.errored and not _inside(quoting, tally)
    ]  # fmt: skip
    ended = _unrepeated(book.open)
    book.open = _once(ended)
    _hold(book)
    likely = _believe(book)
    _closed(book, ended)
    if book.open and not any(tally.failed + tally.errored for _, tally in book.open):
        for tally in (*likely, *beside):
            book.doubt("what looks like a summary with failures was not counted", tally.last)
        _alarms(book)
    return Ledger(tuple(sorted(book.open, key=lambda item: item[1].last)), tuple(dict.fromkeys(book.doubts)))


def _begun(lines: Lines, tally: Tally) -> Tally:
    """With the line where its runner announced itself as its first."""
    pattern = next((pattern for formats, pattern in (*_STARTS, *_SIGNS) if tally.format in formats), None)
    if pattern is None or tally.proven:
        return tally
    # The last announcement: an earlier one is that of a run without an end. Some announce each file, and close once.
    before = (
        range(tally.first, tally.last)
        if tally.format in {"Jest", "Deno"}
        else range(tally.last - 1, tally.first - 1, -1)
    )
    first = next((line for line in before if pattern.match(lines[line])), None)
    return tally if first is None else replace(tally, first=first, proven=True)


def _spans(tallied: Iterable[SourcedTally]) -> list[Tally]:
    """Stretches of the output that belong to one runner, other runners' summaries included."""
    return sorted((tally for _, tally in tallied if tally.quotes or tally.proven), key=lambda tally: tally.first)


def _unquoted(tallied: Sequence[SourcedTally]) -> list[SourcedTally]:
    """Without runs that another runner quotes, or whose summary a test printed."""
    spans = _spans(tallied)
    quoting, proven = ([tally for tally in spans if tally.quotes is quotes] for quotes in (True, False))
    return [
        (source, tally) for source, tally in tallied
        if tally.quotes or not (_inside(quoting, tally) or (not tally.proven and _inside(proven, tally)))
    ]  # fmt: skip


def _inside(spans: Sequence[Tally], tally: Tally) -> bool:
    # By bisection: an output can hold thousands of runs, and each would be compared with each.
    nearest = bisect_right(spans, tally.last if tally.head < 0 else tally.head, key=lambda span: span.first) - 1
    return nearest >= 0 and tally.last <= spans[nearest].last


def _unrepeated(tallied: Sequence[SourcedTally]) -> list[SourcedTally]:
    """Without what the table reads where a runner's own reader reads it too, or where it closes a stream."""
    own = sorted(((source, tally) for source, tally in tallied if tally.head < 0), key=lambda item: item[1].last)
    lasts = [tally.last for _, tally in own]

    def repeated(tally: Tally) -> bool:
        near = own[bisect_right(lasts, tally.head - _NEAR - 1) : bisect_right(lasts, tally.last + _NEAR)]
        return any(
            # Of two runners that are told apart by their summaries, both may have the same numbers.
            (_outcome(other) == _outcome(tally) and (source == "stream" or not tally.certain))
            or tally.head <= other.last <= tally.last
            for source, other in near
        )

    return [(source, tally) for source, tally in tallied if tally.head < 0 or tally.doubt or not repeated(tally)]


def _outcome(tally: Tally) -> tuple[int, int]:
    return tally.passed, tally.failed + tally.errored


def _once(tallied: Sequence[SourcedTally]) -> list[SourcedTally]:
    """Each run once, where a runner prints it in several formats, or a summary beside a stream of the same numbers."""
    streams: list[Tally] = []
    kept: list[SourcedTally] = []
    told = Counter[tuple[str, int, int, int]]()
    for source, tally in tallied:
        if source == "summary":
            beside = [(stream, *_numbers(tally)) for stream in _beside(tally.format)]
            # Equal numbers as well: another run of the same runner, with its summary alone, counts for itself.
            same = next((key for key in beside if told[key]), None)
            if same:
                told[same] -= 1
                continue
        elif any(tally.format != other.format and tally.ends and same_run([tally], [other]) for other in streams):
            continue
        else:
            streams.append(tally)
            told[tally.format, *_numbers(tally)] += 1
        kept.append((source, tally))
    return kept


def _beside(summary: str) -> list[str]:
    """Streams that the runner of a summary may have printed; XML comes from any."""
    return ["JUnit XML", *(stream for stream, formats in _SUMMARY_BESIDE.items() if summary in formats)]


def _numbers(tally: Tally) -> tuple[int, int, int]:
    return tally.passed, tally.failed + tally.errored, tally.skipped


def _hold(book: _Book) -> None:
    """Leave out the parts that another summary adds up; it cannot tell of fewer failures than they do."""
    for _, whole in [item for item in book.open if item[1].holds]:
        after = max((tally.last for _, tally in book.open if tally.format == whole.format and tally.last < whole.last
                     and tally.holds), default=-1)  # fmt: skip
        parts = [
            tally
            for _, tally in book.open
            if tally.format in whole.holds and after < tally.last < whole.last and tally is not whole
        ]
        sums = sum(tally.passed for tally in parts), sum(tally.failed + tally.errored for tally in parts)
        if sums[1] > whole.failed + whole.errored:
            book.doubt(f"{whole.format} tells of fewer failures than its parts", whole.last)
        # Parts that give the same are kept: they tell of skipped tests and names as well.
        left_out = [whole] if sums == _outcome(whole) else parts
        book.open = [item for item in book.open if item[1] not in left_out]


def _believe(book: _Book) -> list[Tally]:
    """Leave out what may be a log line beside certain summaries; those of them that tell of failures."""
    likely: list[Tally] = []
    certain = {tally.format for _, tally in book.open if tally.certain and not tally.doubt}
    kept: list[SourcedTally] = []
    for source, tally in book.open:
        if tally.doubt:
            book.doubt(tally.doubt, tally.last)
        elif tally.certain or not certain:
            kept.append((source, tally))
        elif tally.format not in certain and tally.failed + tally.errored:
            likely.append(tally)
        if (
            not tally.doubt
            and tally.announced is not None
            and tally.announced != tally.total
            and not tally.failed + tally.errored
        ):
            book.doubt("other tests ended than were announced", tally.last)
    book.open = kept
    return likely


def _closed(book: _Book, ended: Sequence[SourcedTally]) -> None:
    """What began has ended."""
    owners = _spans(book.open)
    for formats, pattern in _STARTS:
        starts = [index for index, _ in matches(book.lines, pattern)]
        ends = sorted(tally.last for _, tally in ended if tally.format in formats)
        gap = GAP in book.lines
        for start, following in pairwise([*starts, len(book.lines)]):
            position = bisect_right(ends, start)
            closed = position < len(ends) and ends[position] < following
            inside = any(owner.first < start < owner.last for owner in owners)
            if not (closed or inside or gap):
                book.doubt(f"a run of {formats[0]} began and did not end", start)


def uncounted(lines: Lines) -> tuple[str, ...]:
    """Doubts about lines that say that no test ran, or that one failed; they matter where nothing at all is counted."""
    book = _Book(lines, [])
    for what, pattern in (("no test ran", _IDLE), ("a failure was printed that no summary counts", _FAILING)):
        for index, _ in matches(lines, pattern):
            book.doubt(what, index)
    return tuple(dict.fromkeys(book.doubts))


def alarms(lines: Lines) -> tuple[str, ...]:
    """Doubts about lines in which a failure was printed and nothing is counted."""
    book = _Book(lines, [])
    _alarms(book)
    return tuple(dict.fromkeys(book.doubts))


def _alarms(book: _Book) -> None:
    """Words of failure outside of every run that is accounted for."""
    owners = _spans(book.open)
    for index, _ in matches(book.lines, _ALARM):
        if not any(owner.first < index < owner.last for owner in owners):
            book.doubt("a failure was printed that no summary counts", index)
