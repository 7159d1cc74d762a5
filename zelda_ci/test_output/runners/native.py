"""CTest, GoogleTest, Catch2 and doctest."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, following, matches, number, numbers

_PROJECT = re.compile(r"Test project \S")
_PERCENT = re.compile(r"\d+% tests passed, (\d+) tests? failed out of (\d+)$")
_NONE = re.compile(r"No tests were found!!!$")
_LIST = re.compile(r"The following tests (did not run|FAILED):$")
_LISTED = re.compile(r"\t? *\d+ - (\S+) \(([^)]*)\)")
_ENDED = re.compile(r" *(?:\d+/\d+ )?Test +#(\d+): .*?(\*\*\*|   )(\w+)")

_GTEST_START = re.compile(r"\[=+\] Running (\d+) tests? from \d+ test (?:suite|case)s?\.$")
_GTEST_END = re.compile(r"\[=+\] (\d+) tests? from \d+ test (?:suite|case)s? ran\.")
_GTEST_COUNT = re.compile(r"\[  (PASSED|SKIPPED|FAILED) \s?\] (\d+) tests?(?:\.|, listed below:)$")
_GTEST_NAME = re.compile(r"\[  FAILED  \] ([^\s,]+)(?:, where .*)?$")
_GTEST_OFF = re.compile(r"  YOU HAVE (\d+) DISABLED TESTS?$")

_CATCH_CASES = re.compile(r"(\[doctest\] )?test cases: +(\d+) \| (.*?)(?: \|)?$")
_CATCH_ALL = re.compile(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)$")
_CATCH_NONE = re.compile(r"No tests ran$")
_CATCH_WORDS = "passed|failed|skipped|failed as expected"


def read_ctest(lines: Lines) -> Iterable[Tally]:
    """One tally per `Test project`; what the tests themselves printed stands inside of it."""
    starts = [*(at for at, _ in matches(lines, _PROJECT)), len(lines)]
    for first, end in pairwise(starts):
        within = lines[first:end]
        ends = list(matches(within, _PERCENT))
        if ends:
            yield _ctest(within, first, *ends[-1])
        elif none := next((at for at, _ in matches(within, _NONE)), None):
            yield Tally("CTest", first=first, last=first + none, quotes=True)


def _ctest(within: Lines, first: int, at: int, found: re.Match[str]) -> Tally:
    listed = list(_ctest_lists(within[at:]))
    failed = [(name, why) for kind, name, why in listed if kind == "FAILED"]
    skipped = [why for kind, _, why in listed if kind == "did not run"]
    # Disabled tests are not in the total, skipped ones are, and passed.
    passed = number(found, 2) - number(found, 1) - sum(why != "Disabled" for why in skipped)
    errored = sum(why != "Failed" for _, why in failed)
    return Tally(
        "CTest", max(0, passed), number(found, 1) - errored, errored, len(skipped), _ctest_flaky(within[:at]),
        first_names(name for name, _ in failed), first=first, last=first + at, quotes=True,
    )  # fmt: skip


def _ctest_lists(lines: Lines) -> Iterator[tuple[str, str, str]]:
    kind = ""
    for line in lines:
        if found := _LIST.match(line):
            kind = found[1]
        elif kind and (entry := _LISTED.match(line)):
            yield kind, entry[1], entry[2]


def _ctest_flaky(lines: Lines) -> int:
    failed: set[str] = set()
    lucky: set[str] = set()
    for _, found in matches(lines, _ENDED):
        if found[3] == "Passed":
            lucky |= {found[1]} & failed
        else:
            failed.add(found[1])
    return len(lucky)


def read_googletest(lines: Lines) -> Iterable[Tally]:
    """One tally per `N tests … ran.` and the counts below it."""
    first, announced = 0, None
    for at, line in enumerate(lines):
        if not line.startswith("[===="):
            continue
        if found := _GTEST_START.match(line):
            first, announced = at, number(found, 1)
        elif found := _GTEST_END.match(line):
            yield _googletest(lines, (first, at), announced, number(found, 1))
            first, announced = at + 1, None


def _googletest(lines: Lines, span: tuple[int, int], announced: int | None, ran: int) -> Tally:
    counts = {"PASSED": 0, "SKIPPED": 0, "FAILED": 0}
    names: list[str] = []
    disabled = 0
    for line in islice(lines, span[1] + 1, span[1] + MAX_LIST_LENGTH):
        if line.startswith("[===="):
            break
        if found := _GTEST_COUNT.match(line):
            counts[found[1]] = number(found, 2)
        elif found := _GTEST_NAME.match(line):
            names.append(found[1])
        elif found := _GTEST_OFF.match(line):
            disabled = number(found, 1)
            break
    counts["FAILED"] = max(0, ran - counts["PASSED"] - counts["SKIPPED"])
    return Tally(
        "GoogleTest", counts["PASSED"], counts["FAILED"], skipped=counts["SKIPPED"] + disabled,
        failures=first_names(names), first=span[0], last=span[1],
        announced=None if announced is None else announced + disabled,
    )  # fmt: skip


def read_catch2(lines: Lines) -> Iterable[Tally]:
    """One tally per closing lines of a Catch2 or doctest program."""
    start = 0
    for at, line in enumerate(lines):
        tally = _catch2(lines, start, at, line) if line[:1] in "[tAN" else None
        if tally:
            yield tally
            start = at + 1


def _catch2(lines: Lines, start: int, at: int, line: str) -> Tally | None:
    if found := _CATCH_ALL.match(line):
        return Tally("Catch2", number(found, 1), first=start, last=at)
    if _CATCH_NONE.match(line) and at and lines[at - 1].startswith("====="):
        return Tally("Catch2", first=start, last=at)
    found = _CATCH_CASES.match(line)
    if not found:
        return None
    below = next((text for _, text in following(lines, at + 1, 1)), "")
    if not below.removeprefix("[doctest] ").startswith("assertions:"):
        return None
    counts = numbers(re.sub(r" {2,}", " ", found[3]), _CATCH_WORDS)
    if counts is None:
        return None
    skipped = counts.get("skipped", 0) + counts.get("failed as expected", 0)
    form = "doctest" if found[1] else "Catch2"
    return Tally(form, counts.get("passed", 0), counts.get("failed", 0), skipped=skipped, first=start, last=at)
