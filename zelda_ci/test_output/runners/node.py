"""node:test, Mocha, Bun, Deno and Playwright."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise

import re2

from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, following, matches, number

_NODE_TESTS = re2.compile(r"\x{2139} tests (\d+)$")
_NODE_COUNT = re2.compile(r"\x{2139} (suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$")
_NODE_FAILED = re2.compile(r"\s*\x{2716} (\S.*?)(?: \([\d.]+ms\))?$")

_BUN_RAN = re2.compile(r"Ran (\d+) tests? across (\d+) files?\. .*\[[\d.]+m?s\]$")
_BUN_COUNT = re2.compile(r" (\d+) (pass|fail|skip|todo|error|errors|filtered out|snapshots?.*|expect\(\) calls)$")
_BUN_FAIL = re2.compile(r"(?:\(fail\)|\x{2717}) (\S.*?)(?: \[[\d.]+m?s\])?$")
_BUN_RETRY = re2.compile(r"(?:\(pass\)|\x{2713}) .*\(attempt \d+\)")

_DENO = re2.compile(
    r"(?:ok|FAILED) \| (\d+) passed(?: \(\d+ steps?\))? \| (\d+) failed(?: \(\d+ steps?\))?"
    r"(?: \| (\d+) ignored(?: \(\d+ steps?\))?)?(?: \| \d+ measured)?(?: \| \d+ filtered out)? \(\d\w*\)$"
)
_DENO_NAME = re2.compile(r"(\S.* => (?:\./|file:|https?:)\S+)$")

_PLAY_START = re2.compile(r"Running (\d+) tests? using \d+ workers?")
_PLAY_COUNT = re2.compile(r" {2}(\d+) (passed|failed|flaky|skipped|did not run|interrupted)(?: \([^)]*\))?$")
_PLAY_NAME = re2.compile(r" {4}(\S.*)$")


def read_node(lines: Lines) -> Iterable[Tally]:
    """One tally per block of counts that begins with `tests` and ends with `duration_ms`."""
    start = 0
    for index, _ in matches(lines, _NODE_TESTS):
        entries = [_NODE_COUNT.match(line) for _, line in following(lines, index + 1, 7)]
        counts = {entry[1]: entry[2] for entry in entries if entry}
        if len(counts) == 7 and all(value.isdecimal() for word, value in counts.items() if word != "duration_ms"):
            totals = {word: int(value) for word, value in counts.items() if word != "duration_ms"}
            names = _node_names(lines, index + 8, totals["fail"] + totals["cancelled"])
            yield Tally(
                "node:test", totals["pass"], totals["fail"], totals["cancelled"], totals["skipped"] + totals["todo"],
                failures=first_names(names), first=start, last=index + 7,
            )  # fmt: skip
            start = index + 8


def _node_names(lines: Lines, start: int, count: int) -> Iterator[str]:
    if not count:
        return
    listing = False
    for line in islice(lines, start, start + MAX_LIST_LENGTH):
        if line.startswith("\u2139 tests "):
            return
        listing = listing or line.startswith("\u2716 failing tests:")
        match = _NODE_FAILED.match(line)
        if listing and match and match[1] != "failing tests:":
            yield match[1]


def read_bun(lines: Lines) -> Iterable[Tally]:
    """One tally per `Ran N tests` with its duration and the counts above it."""
    start = 0
    for index, match in matches(lines, _BUN_RAN):
        counts: dict[str, int] = {}
        above = index - 1
        while above >= start and (count := _BUN_COUNT.match(lines[above])):
            counts[count[2]] = number(count, 1)
            above -= 1
        if counts and sum(counts.get(word, 0) for word in ("pass", "fail", "skip", "todo")) == number(match, 1):
            yield _bun(lines[start:index], start, index, counts)
            start = index + 1


def _bun(before: Lines, first: int, last: int, counts: dict[str, int]) -> Tally:
    errors = counts.get("error", counts.get("errors", 0))
    return Tally(
        "Bun", counts.get("pass", 0), counts.get("fail", 0), 0 if counts.get("fail") else errors,
        counts.get("skip", 0) + counts.get("todo", 0), sum(1 for _ in matches(before, _BUN_RETRY)),
        first_names(match[1] for _, match in matches(before, _BUN_FAIL)), first=first, last=last,
    )  # fmt: skip


def read_deno(lines: Lines) -> Iterable[Tally]:
    """One tally per closing line outside of what tests printed."""
    start, printed = 0, False
    for index, line in enumerate(lines):
        if line.startswith("----"):
            # Deno puts rules around what a test has printed.
            printed = line.startswith("------- ") or (printed and not line.startswith("----- "))
        elif not printed and (match := _DENO.match(line)):
            names = (name[1] for _, name in matches(lines[start:index], _DENO_NAME))
            failed = number(match, 2)
            yield Tally(
                "Deno", number(match, 1), failed, skipped=number(match, 3),
                failures=first_names(names) if failed else (), first=start, last=index,
            )  # fmt: skip
            start = index + 1


def read_playwright(lines: Lines) -> Iterable[Tally]:
    """One tally per `Running N tests`; of counts that stand there twice, the last."""
    starts = [*((index, number(match, 1)) for index, match in matches(lines, _PLAY_START)), (len(lines), 0)]
    for (first, announced), (end, _) in pairwise(starts):
        counts = {
            match[2]: (first + index, number(match, 1)) for index, match in matches(lines[first:end], _PLAY_COUNT)
        }
        totals = {word: count for word, (_, count) in counts.items()}
        if totals:
            passed, flaky = totals.get("passed", 0), totals.get("flaky", 0)
            yield Tally(
                "Playwright", passed + flaky, totals.get("failed", 0), totals.get("interrupted", 0),
                totals.get("skipped", 0) + totals.get("did not run", 0), flaky,
                first_names(_play_names(lines, counts)), first=first, last=max(index for index, _ in counts.values()),
                announced=announced,
            )  # fmt: skip


def _play_names(lines: Lines, counts: dict[str, tuple[int, int]]) -> Iterator[str]:
    index, count = counts.get("failed", (0, 0))
    for _, line in following(lines, index + 1, count):
        if match := _PLAY_NAME.match(line):
            yield match[1].rstrip(" \u2500")


_PASSING = re2.compile(r" +(\d+) passing \(\d+[a-z]+\)$")
_PENDING = re2.compile(r" *(\d+) pending$")
_FAILING = re2.compile(r" *(\d+) failing$")
_CHECK = re2.compile(r" +[\x{2714}\x{2713}\x{221a}] ")
_DOTS = re2.compile(r" {2}([.\x{2024}!,\x{204e}]+)$")
_TITLE = re2.compile(r" {2}\d+\) (\S.*)$")


def read_mocha(lines: Lines) -> Iterable[Tally]:
    """One tally per `N passing` that the tests listed above and the failures listed below it bear out."""
    start = checks = dots = 0
    listed = False
    for index, line in enumerate(lines):
        if line[:1] != " ":
            continue
        if _CHECK.match(line):
            checks += 1
        elif marks := _DOTS.match(line):
            dots, listed = dots + sum(marks[1].count(dot) for dot in ".\u2024"), True
        # A test may print "3 passing": it counts where as many ticks or dots stand above it.
        elif (match := _PASSING.match(line)) and (not (checks or listed) or number(match, 1) == (checks or dots)):
            tally = _mocha(lines, start, index, number(match, 1))
            if tally:
                yield replace(tally, certain=bool(checks or listed or tally.failed))
                start, checks, dots, listed = index + 1, 0, 0, False


def _mocha(lines: Lines, first: int, index: int, passed: int) -> Tally | None:
    pending, failing, last = 0, 0, index
    for end, line in following(lines, index + 1, 2):
        if match := _PENDING.match(line):
            pending, last = number(match, 1), end
        elif match := _FAILING.match(line):
            failing, last = number(match, 1), end
        else:
            break
    if failing and not any(_TITLE.match(line) for _, line in following(lines, last + 1, 1)):
        return None
    names = _mocha_names(lines, last + 1, failing) if failing else ()
    return Tally("Mocha", passed, failing, skipped=pending, failures=first_names(names), first=first, last=last)


def _mocha_names(lines: Lines, start: int, count: int) -> Iterator[str]:
    """Titles of suites and test stand one under the other, each deeper, the last one with a colon."""
    title: list[str] = []
    for line in islice(lines, start, start + MAX_LIST_LENGTH):
        if match := _TITLE.match(line):
            if count == 0:
                return
            title, count = [match[1]], count - 1
        elif title and line.startswith("     "):
            title.append(line.strip())
        elif title:
            title = []
        if title and title[-1].endswith(":"):
            yield " ".join(title)[:-1]
            title = []
