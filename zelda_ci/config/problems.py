"""What is wrong with the user's files: where, and in one sentence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter

from zelda_ci.redact import Redactor

LONGEST_SHOWN = 60
MOST_PER_FILE = 100


@dataclass(frozen=True, order=True)
class Position:
    """A place in a file, counted from 1 in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """One thing to correct. Line and column are absent where the file as a whole, or a folder, is meant."""

    file: str
    line: int | None
    column: int | None
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.message}"


class Rejected(Exception):  # noqa: N818 - what happened to a file; never leaves this package
    """A file cannot be used, for every reason found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems


def problem(file: str, at: Position | None, message: str) -> Problem:
    """A problem whose texts are fit to be printed: one line each, no control characters, no credentials."""
    clean = _redactor()
    line, column = (at.line, at.column) if at else (None, None)
    return Problem(printable(clean(file)), line, column, printable(clean(message)))


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """By file, then by place; each once, and no file takes the whole screen."""
    ranked = sorted(set(problems), key=lambda it: (it.file, it.line or 0, it.column or 0, it.message))
    return tuple(it for file, found in groupby(ranked, attrgetter("file")) for it in _first(file, list(found)))


def _first(file: str, found: list[Problem]) -> Iterator[Problem]:
    yield from found[:MOST_PER_FILE]
    if len(found) > MOST_PER_FILE:
        yield Problem(file, None, None, f"has {len(found) - MOST_PER_FILE} more problems")


def shown(text: str) -> str:
    """A key, name or path from a file, short enough for a sentence."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


@cache
def _redactor() -> Redactor:
    return Redactor()


def printable(text: str) -> str:
    """Text on one line that cannot move the cursor: control characters as escape sequences."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
