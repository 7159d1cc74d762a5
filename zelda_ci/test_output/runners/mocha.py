"""Mocha, Jasmine and AVA."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from zelda_ci.test_output.tally import LONGEST_LIST, Lines, Tally, first_names, following, matches, number

_PASSING = re.compile(r" +(\d+) passing \(\d+[a-z]+\)$")
_PENDING = re.compile(r" *(\d+) pending$")
_FAILING = re.compile(r" *(\d+) failing$")
_CHECK = re.compile(r" +[\u2714\u2713\u221a] ")
_DOTS = re.compile(r" {2}([.\u2024!,\u204e]+)$")
_TITLE = re.compile(r" {2}\d+\) (\S.*)$")

_SPECS = re.compile(r"(?:(\d+) specs?, (\d+) failures?(?:, (\d+) pending specs?)?|No specs found)$")
_FINISHED = re.compile(r"Finished in [\d.]+ seconds?$")
_NUMBERED = re.compile(r"\d+\) (\S.*)$")

_AVA_RULE = re.compile(r" {2}\u2500+$")
_AVA_COUNT = re.compile(
    r" {2}(\d+) (tests? passed|tests? failed|known failures?|tests? skipped|tests? todo"
    r"|unhandled rejections?|uncaught exceptions?|tests? timed out|hooks? failed)$"
)
_AVA_PASSED = re.compile(r" {2,}[\u2714\u2713\u221a] (?!\[expected fail\])")
_AVA_FAILED = re.compile(r" {2,}[\u2718\u2716\u00d7] \[fail\]: (\S.*)$")
_AVA_REASON = re.compile(r" (?:Error thrown in test|Rejected promise returned by test)$")


def read_mocha(lines: Lines) -> Iterable[Tally]:
    """One tally per `N passing` that the tests listed above and the failures listed below it bear out."""
    start = checks = dots = 0
    listed = False
    for at, line in enumerate(lines):
        if line[:1] != " ":
            continue
        if _CHECK.match(line):
            checks += 1
        elif marks := _DOTS.match(line):
            dots, listed = dots + sum(marks[1].count(dot) for dot in ".\u2024"), True
        elif (found := _PASSING.match(line)) and (not (checks or listed) or number(found, 1) == (checks or dots)):
            tally = _mocha(lines, start, at, number(found, 1))
            if tally:
                yield replace(tally, certain=bool(checks or listed or tally.failed))
                start, checks, dots, listed = at + 1, 0, 0, False


def _mocha(lines: Lines, first: int, at: int, passed: int) -> Tally | None:
    pending, failing, last = 0, 0, at
    for end, line in following(lines, at + 1, 2):
        if found := _PENDING.match(line):
            pending, last = number(found, 1), end
        elif found := _FAILING.match(line):
            failing, last = number(found, 1), end
        else:
            break
    if failing and not any(_TITLE.match(line) for _, line in following(lines, last + 1, 1)):
        return None
    names = _mocha_names(lines, last + 1, failing) if failing else ()
    return Tally("Mocha", passed, failing, skipped=pending, failures=first_names(names), first=first, last=last)


def _mocha_names(lines: Lines, start: int, count: int) -> Iterator[str]:
    """Titles of suites and test stand one under the other, each deeper, the last one with a colon."""
    title: list[str] = []
    for line in islice(lines, start, start + LONGEST_LIST):
        if found := _TITLE.match(line):
            if count == 0:
                return
            title, count = [found[1]], count - 1
        elif title and line.startswith("     "):
            title.append(line.strip())
        elif title:
            title = []
        if title and title[-1].endswith(":"):
            yield " ".join(title)[:-1]
            title = []


def read_jasmine(lines: Lines) -> Iterable[Tally]:
    """One tally per `N specs, M failures` that is followed by how long it took."""
    start = 0
    for at, found in matches(lines, _SPECS):
        if any(_FINISHED.match(line) for _, line in following(lines, at + 1, 1)):
            failed, pending = number(found, 2), number(found, 3)
            names = _jasmine_names(lines[start:at]) if failed else ()
            yield Tally(
                "Jasmine", max(0, number(found, 1) - failed - pending), failed, skipped=pending,
                failures=first_names(names), first=start, last=at,
            )  # fmt: skip
            start = at + 1


def _jasmine_names(lines: Lines) -> Iterator[str]:
    listing = False
    for line in lines:
        if line.startswith(("Failures:", "Pending:")):
            listing = line.startswith("Failures:")
        elif listing and (found := _NUMBERED.match(line)):
            yield found[1]


def read_ava(lines: Lines) -> Iterable[Tally]:
    """One tally per list of counts under a rule; AVA leaves out how many passed when any failed."""
    start = 0
    for at, _ in matches(lines, _AVA_RULE):
        counts = _ava_counts(lines, at + 1)
        if counts:
            yield _ava(lines, start, at, counts)
            start = at + 1


def _ava_counts(lines: Lines, start: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, line in following(lines, start, 9):
        found = _AVA_COUNT.match(line)
        if not found:
            break
        counts[re.sub(r"\b(test|failure|rejection|exception|hook)s\b", r"\1", found[2])] = number(found, 1)
    return counts


def _ava(lines: Lines, first: int, last: int, counts: dict[str, int]) -> Tally:
    before = lines[first:last]
    names = (_AVA_REASON.sub("", found[1]) for _, found in matches(before, _AVA_FAILED))
    errors = ("unhandled rejection", "uncaught exception", "test timed out", "hook failed")
    return Tally(
        "AVA",
        passed=counts.get("test passed", sum(1 for _ in matches(before, _AVA_PASSED))),
        failed=counts.get("test failed", 0),
        errored=sum(counts.get(word, 0) for word in errors),
        skipped=counts.get("test skipped", 0) + counts.get("test todo", 0) + counts.get("known failure", 0),
        failures=first_names(names),
        first=first,
        last=last,
    )
