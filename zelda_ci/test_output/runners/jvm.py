"""Maven Surefire."""

from collections.abc import Iterable, Iterator
from typing import Any

import re2

from zelda_ci.test_output.tally import Lines, Tally, first_names, matches, number

_RESULTS = re2.compile(r"(?:\[\w+\] )?Results ?:$")
_COUNTS = re2.compile(
    r"(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?:, Flakes: (\d+))?$"
)
_SECTION = re2.compile(r"(?:\[\w+\] )?(Failures|Errors|Flakes|Failed tests|Tests in error): *(\S.*)?$")
_ENTRY = re2.compile(r"(?:\[\w+\] )?  ?(?:Run \d+: )?([\w.$]+(?:\[.*?\])?)[:>» ]")


def read_surefire(lines: Lines) -> Iterable[Tally]:
    """One tally per module: the counts under `Results`, not those of the classes above it."""
    for first, _ in matches(lines, _RESULTS):
        for index in range(first + 1, min(len(lines), first + 5_000)):
            if match := _COUNTS.match(lines[index]):
                yield _surefire(lines, first, index, match)
                break
            if _RESULTS.match(lines[index]):
                break


def _surefire(lines: Lines, first: int, index: int, match: Any) -> Tally:
    total, failed, errored, skipped, flaky = (number(match, group) for group in (1, 2, 3, 4, 5))
    return Tally(
        "Maven Surefire", max(0, total - failed - errored - skipped), failed, errored, skipped, flaky,
        first_names(_surefire_names(lines[first:index])), first=first, last=index,
    )  # fmt: skip


def _surefire_names(lines: Lines) -> Iterator[str]:
    section = ""
    for line in lines:
        if match := _SECTION.match(line):
            section = match[1]
        elif section and section != "Flakes" and (match := _ENTRY.match(line)):
            yield match[1]
