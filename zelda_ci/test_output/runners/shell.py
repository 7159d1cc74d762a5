"""Bats' pretty output and prove."""

import re
from collections.abc import Iterable, Iterator

from zelda_ci.test_output.tally import Lines, Tally, first_names, matches, number

_BATS = re.compile(r"(\d+) tests?, (\d+) failures?(?:, (\d+) not run)?(?:, (\d+) skipped)?(?: in [\d.]+ seconds?)?$")
_BATS_NAME = re.compile(r" \u2717 (\S.*?)(?: \[\d+\])?$")
_BATS_CHECK = re.compile(r" [\u2713\u2717] ")

_FILES = re.compile(r"Files=(\d+), Tests=(\d+), ")
_VERDICT = re.compile(r"Result: (?:PASS|FAIL|NOTESTS)$")
_SCRIPT = re.compile(r"(\S+) +\(Wstat: \d+.* Tests: (\d+) Failed: (\d+)\)$")
_NUMBERS = re.compile(r"  Failed tests?: +([\d, -]+)$")
_PLAN = re.compile(r".*Bad plan\.  You planned (\d+) tests? but ran (\d+)\.")
_DOTTED = re.compile(r"\S+ \.{2,}")
_SKIPPED = re.compile(r" *ok \d+.*# (?:skip|SKIP)\b")


def read_bats(lines: Lines) -> Iterable[Tally]:
    """One tally per closing line that ticked tests stand above."""
    start = ticks = 0
    for at, line in enumerate(lines):
        ticks += line[:1] == " " and bool(_BATS_CHECK.match(line))
        found = _BATS.match(line) if " failure" in line else None
        if not found:
            continue
        failed, missing, skipped = number(found, 2), number(found, 3), number(found, 4)
        if ticks == number(found, 1) - skipped - missing:
            names = (name[1] for _, name in matches(lines[start:at], _BATS_NAME))
            yield Tally(
                "Bats", max(0, number(found, 1) - failed - missing - skipped), failed, missing, skipped,
                failures=first_names(names), first=start, last=at,
            )  # fmt: skip
            start, ticks = at + 1, 0


def read_prove(lines: Lines) -> Iterable[Tally]:
    """One tally per `Files=…, Tests=…` with its verdict; a test that was planned and never ran is an error."""
    start = 0
    for at, found in matches(lines, _FILES):
        if at + 1 < len(lines) and _VERDICT.match(lines[at + 1]):
            first = next((start + line for line, _ in matches(lines[start:at], _DOTTED)), start)
            yield _prove(lines[first:at], first, at + 1, number(found, 2))
            start = at + 2


def _prove(within: Lines, first: int, last: int, total: int) -> Tally:
    failed = sum(number(found, 3) for _, found in matches(within, _SCRIPT))
    lost = sum(max(0, number(found, 1) - number(found, 2)) for _, found in matches(within, _PLAN))
    skipped = sum(1 for _ in matches(within, _SKIPPED))
    return Tally(
        "prove", max(0, total - failed - skipped), failed, lost, skipped,
        failures=first_names(_prove_names(within)), first=first, last=last, quotes=True,
    )  # fmt: skip


def _prove_names(lines: Lines) -> Iterator[str]:
    script = ""
    for line in lines:
        if found := _SCRIPT.match(line):
            script = found[1]
        elif script and (found := _NUMBERS.match(line)):
            yield f"{script} {found[1]}"
