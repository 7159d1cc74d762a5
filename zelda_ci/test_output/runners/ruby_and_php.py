"""RSpec, Minitest, test-unit, PHPUnit and Pest."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import re2

from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, matches, number, numbers, preceding

_EXAMPLES = re2.compile(
    r"(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$"
)
_TOOK = re2.compile(r"Finished in [\d.]+")
_RSPEC_FAILED = re2.compile(r"rspec \S+ # (\S.*)$")

_RUNS = re2.compile(r"(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips$")
_MINITEST_HEAD = re2.compile(r" *\d+\) (?:Failure|Error):$")
_MINITEST_NAME = re2.compile(r"(\S+#[^\s:\[]+)")
_UNIT = re2.compile(
    r"(\d+) tests, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) pendings, (\d+) omissions, \d+ notifications$"
)
_UNIT_NAME = re2.compile(r"(?:Failure|Error): ([\w?!]+\([\w:]+\))")

_PHPUNIT = re2.compile(r"PHPUnit \d+\.\d+")
_PHP_OK = re2.compile(r"OK \((\d+) tests?, \d+ assertions?\)$")
_PHP_TESTS = re2.compile(r"Tests: (\d+), Assertions: \d+((?:, [\w ]+: \d+)*)\.$")
_PHP_HEADER = re2.compile(r"(?:FAILURES!|ERRORS!|WARNINGS!|OK, but .*!|There (?:was|were) .*|.* by .*)$")
_PHP_NONE = re2.compile(r"No tests executed!$")
_PHP_SECTION = re2.compile(r"There (?:was|were) \d+ (\w+)")
_PHP_NAME = re2.compile(r"\d+\) (\S+::\S.*)$")
_PEST = re2.compile(r"  Tests: {2,}(\d.*?) \(\d+ assertions?\)$")
_PEST_WORDS = "failed|passed|skipped|todos?|incomplete|risky|deprecated|warnings?|notices?"


def read_rspec(lines: Lines) -> Iterable[Tally]:
    """One tally per `N examples, M failures` right under how long it took."""
    for first, index, match in _timed(lines, _EXAMPLES, 1):
        failed, pending, errored = (number(match, group) for group in (2, 3, 4))
        names = (
            (name[1] for _, name in matches(lines[index : index + MAX_LIST_LENGTH], _RSPEC_FAILED)) if failed else ()
        )
        passed = max(0, number(match, 1) - failed - pending)
        yield Tally("RSpec", passed, failed, errored, pending, failures=first_names(names), first=first, last=index)


def _timed(lines: Lines, pattern: Any, above: int | None) -> Iterator[tuple[int, int, Any]]:
    """Start, line and match of counts that stand under a `Finished in`; tests may print the counts alone.

    Args:
        lines: The output.
        pattern: Of the counts.
        above: How many lines above them it may stand; any number where it is None.
    """
    start, took = 0, -1
    for index, line in enumerate(lines):
        if line[:1] == "F" and _TOOK.match(line):
            took = index
        elif line[:1].isdecimal() and (match := pattern.match(line)) and _took(lines, index, took - start, above):
            yield start, index, match
            start = index + 1


def _took(lines: Lines, index: int, since: int, above: int | None) -> bool:
    return since >= 0 if above is None else any(_TOOK.match(line) for line in preceding(lines, index, above))


def read_minitest(lines: Lines) -> Iterable[Tally]:
    """One tally per `N runs, …` somewhere after how long it took: failures stand between the two."""
    for first, index, match in _timed(lines, _RUNS, None):
        total, failed, errored, skipped = (number(match, group) for group in (1, 2, 3, 4))
        names = _minitest_names(lines[first:index]) if failed or errored else ()
        yield Tally(
            "Minitest", max(0, total - failed - errored - skipped), failed, errored, skipped,
            failures=first_names(names), first=first, last=index,
        )  # fmt: skip


def _minitest_names(lines: Lines) -> Iterator[str]:
    for index, _ in matches(lines, _MINITEST_HEAD):
        if index + 1 < len(lines) and (match := _MINITEST_NAME.match(lines[index + 1])):
            yield match[1]


def read_test_unit(lines: Lines) -> Iterable[Tally]:
    """One tally per `N tests, …, notifications` under how long it took."""
    for first, index, match in _timed(lines, _UNIT, 2):
        total, failed, errored, pending, omitted = (number(match, group) for group in (1, 2, 3, 4, 5))
        names = (name[1] for _, name in matches(lines[first:index], _UNIT_NAME))
        yield Tally(
            "test-unit", max(0, total - failed - errored - pending - omitted), failed, errored, pending + omitted,
            failures=first_names(names), first=first, last=index,
        )  # fmt: skip


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
