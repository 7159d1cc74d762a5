"""CTest and GoogleTest."""

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import Any

import re2

from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, matches, number

_PROJECT = re2.compile(r"Test project \S")
_PERCENT = re2.compile(r"(\d+)% tests passed, (\d+) tests? failed out of (\d+)$")
_NONE = re2.compile(r"No tests were found!!!$")
_LIST = re2.compile(r"The following tests (did not run|FAILED):$")
_LISTED = re2.compile(r"\t? *\d+ - (\S+) \(([^)]*)\)")
_ENDED = re2.compile(r" *(?:\d+/\d+ )?Test +#(\d+): .*?(\*\*\*|   )(\w+)")

_GTEST_START = re2.compile(r"\[=+\] Running (\d+) tests? from \d+ test (?:suite|case)s?\.$")
_GTEST_END = re2.compile(r"\[=+\] (\d+) tests? from \d+ test (?:suite|case)s? ran\.")
_GTEST_COUNT = re2.compile(r"\[  (PASSED|SKIPPED|FAILED) \s?\] (\d+) tests?(?:\.|, listed below:)$")
_GTEST_NAME = re2.compile(r"\[  FAILED  \] ([^\s,]+)(?:, where .*)?$")
_GTEST_OFF = re2.compile(r"  YOU HAVE (\d+) DISABLED TESTS?$")


def read_ctest(lines: Lines) -> Iterable[Tally]:
    """One tally per `Test project`; what the tests themselves printed stands inside of it."""
    starts = [*(index for index, _ in matches(lines, _PROJECT)), len(lines)]
    for first, end in pairwise(starts):
        within = lines[first:end]
        ends = list(matches(within, _PERCENT))
        if ends:
            yield _ctest(within, first, *ends[-1])
        elif none := next((index for index, _ in matches(within, _NONE)), None):
            yield Tally("CTest", first=first, last=first + none, quotes=True)


def _ctest(within: Lines, first: int, index: int, match: Any) -> Tally:
    listed = list(_ctest_lists(within[index:]))
    failed = [(name, why) for kind, name, why in listed if kind == "FAILED"]
    skipped = [why for kind, _, why in listed if kind == "did not run"]
    # Disabled tests are not in the total, skipped ones are, and passed.
    share, lost, total = (number(match, group) for group in (1, 2, 3))
    fits = not total or abs(share - 100 * (total - lost) / total) <= 1
    passed = total - lost - sum(why != "Disabled" for why in skipped)
    errored = sum(why != "Failed" for _, why in failed)
    return Tally(
        "CTest", max(0, passed), lost - errored, errored, len(skipped), _ctest_flaky(within[:index]),
        first_names(name for name, _ in failed), first=first, last=first + index, quotes=True,
        doubt="" if fits else "CTest prints a share that does not fit its numbers",
    )  # fmt: skip


def _ctest_lists(lines: Lines) -> Iterator[tuple[str, str, str]]:
    kind = ""
    for line in lines:
        if match := _LIST.match(line):
            kind = match[1]
        elif kind and (entry := _LISTED.match(line)):
            yield kind, entry[1], entry[2]


def _ctest_flaky(lines: Lines) -> int:
    failed: set[str] = set()
    lucky: set[str] = set()
    for _, match in matches(lines, _ENDED):
        if match[3] == "Passed":
            lucky |= {match[1]} & failed
        else:
            failed.add(match[1])
    return len(lucky)


def read_googletest(lines: Lines) -> Iterable[Tally]:
    """One tally per `N tests … ran.` and the counts below it."""
    first, announced = 0, None
    for index, line in enumerate(lines):
        if not line.startswith("[===="):
            continue
        if match := _GTEST_START.match(line):
            first, announced = index, number(match, 1)
        elif match := _GTEST_END.match(line):
            yield _googletest(lines, (first, index), announced, number(match, 1))
            first, announced = index + 1, None


def _googletest(lines: Lines, span: tuple[int, int], announced: int | None, ran: int) -> Tally:
    counts = {"PASSED": 0, "SKIPPED": 0, "FAILED": 0}
    names: list[str] = []
    disabled = 0
    for line in islice(lines, span[1] + 1, span[1] + MAX_LIST_LENGTH):
        if line.startswith("[===="):
            break
        if match := _GTEST_COUNT.match(line):
            counts[match[1]] = number(match, 2)
        elif match := _GTEST_NAME.match(line):
            names.append(match[1])
        elif match := _GTEST_OFF.match(line):
            disabled = number(match, 1)
            break
    counts["FAILED"] = max(0, ran - counts["PASSED"] - counts["SKIPPED"])
    return Tally(
        "GoogleTest", counts["PASSED"], counts["FAILED"], skipped=counts["SKIPPED"] + disabled,
        failures=first_names(names), first=span[0], last=span[1],
        announced=None if announced is None else announced + disabled,
    )  # fmt: skip
