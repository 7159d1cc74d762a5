"""What a recogniser finds, before it is redacted, and the loops that recognisers share."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from zelda_ci.domain.test_run import Unit

Lines = Sequence[str]

NAMES_KEPT = 10
"""Names of failed tests that are kept."""

LONGEST_LIST = 1_000
"""Lines of a list of failures that are read."""


@dataclass(frozen=True)
class Tally:
    """One run of one runner. `first` and `last` are the lines it spans, as far as they can be told."""

    format: str
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    flaky: int = 0
    failures: tuple[str, ...] = ()
    unit: Unit = "tests"
    first: int = 0
    last: int = 0
    announced: int | None = None
    """How many tests the runner said it would run; a proof of completeness where the output has a gap."""
    quotes: bool = False
    """Whether everything between `first` and `last` is this runner's, other runners' output included."""
    label: str = ""
    certain: bool = True
    """Whether nothing else can look like this; else it counts only where nothing certain was found."""

    @property
    def total(self) -> int:
        """Tests that are known, run or not."""
        return self.passed + self.failed + self.errored + self.skipped


Recogniser = Callable[[Lines], Iterable[Tally]]


def matches(lines: Lines, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Line number and match of every line that begins as the pattern says."""
    return ((number, found) for number, found in enumerate(map(pattern.match, lines)) if found)


def numbers(text: str, words: str) -> dict[str, int] | None:
    """The counts of a list like `2 failed, 3 passed`; None when it says anything else.

    Args:
        text: The list; commas, bars or blanks separate its entries.
        words: Alternatives of a regular expression for what may be counted.
    """
    found: dict[str, int] = {}
    for part in re.split(r"\s*[,|]\s*", text.strip()):
        entry = re.fullmatch(rf"(\d{{1,9}}) ({words})", part)
        if not entry:
            return None
        found[entry[2]] = found.get(entry[2], 0) + int(entry[1])
    return found


def number(found: re.Match[str], group: int | str) -> int:
    """A group's number, zero where the group is absent."""
    return int(found[group] or 0)


def first_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, the first ones only."""
    return tuple(dict.fromkeys(names))[:NAMES_KEPT]


def following(lines: Lines, start: int, count: int) -> Iterator[tuple[int, str]]:
    """The next lines that are not blank, up to a count; blank lines without end are not waited for."""
    for index in range(start, min(len(lines), start + 4 * count + 4)):
        if count <= 0:
            return
        if lines[index].strip():
            count -= 1
            yield index, lines[index]


def preceding(lines: Lines, end: int, count: int) -> list[str]:
    """The last lines before `end` that are not blank, nearest first, up to a count."""
    found: list[str] = []
    for index in range(end - 1, max(-1, end - 1 - 4 * count), -1):
        if lines[index].strip():
            found.append(lines[index])
        if len(found) == count:
            break
    return found
