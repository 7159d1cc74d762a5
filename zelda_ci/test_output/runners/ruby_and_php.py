"""Minitest, PHPUnit and Pest."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import re2

from zelda_ci.test_output.tally import Lines, Tally, first_names, matches, number, numbers

_TOOK = re2.compile(r"Finished in [\d.]+")
_RUNS = re2.compile(r"(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips$")
_MINITEST_HEAD = re2.compile(r" *\d+\) (?:Failure|Error):$")
_MINITEST_NAME = re2.compile(r"(\S+#[^\s:\[]+)")
_PHPUNIT = re2.compile(r"PHPUnit \d+\.\d+")
_PHP_OK = re2.compile(r"OK \((\d+) tests?, \d+ assertions?\)$")
_PHP_TESTS = re2.compile(r"Tests: (\d+), Assertions: \d+((?:, [\w ]+: \d+)*)\.$")
_PHP_HEADER = re2.compile(r"(?:FAILURES!|ERRORS!|WARNINGS!|OK, but .*!|There (?:was|were) .*|.* by .*)$")
_PHP_NONE = re2.compile(r"No tests executed!$")
_PHP_SECTION = re2.compile(r"There (?:was|were) \d+ (\w+)")
_PHP_NAME = re2.compile(r"\d+\) (\S+::\S.*)$")
_PEST = re2.compile(r"  Tests: {2,}(\d.*?) \(\d+ assertions?\)$")
_PEST_WORDS = "failed|passed|skipped|todos?|incomplete|risky|deprecated|warnings?|notices?"


def read_minitest(lines: Lines) -> Iterable[Tally]:
    """One tally per `N runs, …` somewhere after how long it took: failures stand between the two."""
    start, timed = 0, False
    for index, line in enumerate(lines):
        timed = timed or (line[:1] == "F" and bool(_TOOK.match(line)))
        match = _RUNS.match(line) if timed and line[:1].isdecimal() else None
        if match:
            total, failed, errored, skipped = (number(match, group) for group in (1, 2, 3, 4))
            names = _minitest_names(lines[start:index]) if failed or errored else ()
            yield Tally(
                "Minitest", max(0, total - failed - errored - skipped), failed, errored, skipped,
                failures=first_names(names), first=start, last=index,
            )  # fmt: skip
            start, timed = index + 1, False


def _minitest_names(lines: Lines) -> Iterator[str]:
    for index, _ in matches(lines, _MINITEST_HEAD):
        if index + 1 < len(lines) and (match := _MINITEST_NAME.match(lines[index + 1])):
            yield match[1]


def read_phpunit(lines: Lines) -> Iterable[Tally]:
    """One tally per PHPUnit that announced itself: the last counts before the next one does."""
    starts = [*(index for index, _ in matches(lines, _PHPUNIT)), len(lines)]
    for first, end in pairwise(starts):
        likely = (index for index in range(first, end) if lines[index][:1] in "ONT")
        tallies = [tally for index in likely if (tally := _phpunit(lines, first, index))]
        yield from tallies[-1:]


def _phpunit(lines: Lines, first: int, index: int) -> Tally | None:
    line = lines[index]
    if match := _PHP_OK.match(line):
        return Tally("PHPUnit", number(match, 1), first=first, last=index)
    if _PHP_NONE.match(line):
        return Tally("PHPUnit", first=first, last=index)
    match = _PHP_TESTS.match(line)
    header = _PHP_HEADER.match(lines[index - 1]) if match and index else None
    if not match or not header:
        return None
    counts = {word: int(count) for word, count in re2.findall(r", ([\w ]+): (\d{1,9})", match[2])}
    # Up to PHPUnit 9 a warning is an outcome of a test of its own; later it is a remark about one.
    errored = counts.get("Errors", 0) + (counts.get("Warnings", 0) if header[0] == "WARNINGS!" else 0)
    failed, skipped = counts.get("Failures", 0), counts.get("Skipped", 0) + counts.get("Incomplete", 0)
    names = _php_names(lines[first:index]) if failed or errored else ()
    return Tally(
        "PHPUnit", max(0, number(match, 1) - failed - errored - skipped), failed, errored, skipped,
        failures=first_names(names), first=first, last=index,
    )  # fmt: skip


def _php_names(lines: Lines) -> Iterator[str]:
    section = ""
    for line in lines:
        if match := _PHP_SECTION.match(line):
            section = match[1]
        elif section.startswith(("error", "failure", "warning")) and (match := _PHP_NAME.match(line)):
            yield match[1]


def read_pest(lines: Lines) -> Iterable[Tally]:
    """One tally per `Tests:` line with its assertions, as Pest and Laravel print it."""
    start = 0
    for index, match in matches(lines, _PEST):
        counts = numbers(match[1], _PEST_WORDS)
        if counts is not None:
            skipped = sum(counts.get(word, 0) for word in ("skipped", "todo", "todos", "incomplete"))
            remarked = sum(
                counts.get(word, 0) for word in ("risky", "deprecated", "warning", "warnings", "notice", "notices")
            )
            passed = counts.get("passed", 0) + remarked
            yield Tally("Pest", passed, counts.get("failed", 0), skipped=skipped, first=start, last=index)
            start = index + 1
