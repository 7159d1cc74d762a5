"""Cargo's libtest and nextest."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from zelda_ci.test_output.tally import LONGEST_LIST, Lines, Tally, first_names, matches, number

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
    below = lines[span[1] + 1 : span[1] + LONGEST_LIST] if failed or lost else ()
    names = (name[1] for _, name in matches(below, _LOST))
    return Tally(
        "nextest", number(found, 2), failed, lost, skipped, int(flaky[1]) if flaky else 0,
        first_names(names), first=span[0], last=span[1],
        announced=None if announced is None else announced + skipped, quotes=True,
    )  # fmt: skip
