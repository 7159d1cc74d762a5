"""Problems in the user's files: the position, one sentence each, and the word that was probably meant."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from itertools import combinations, groupby
from operator import attrgetter

from zelda_ci.redact import Redactor

MAX_SHOWN_LENGTH = 60
MAX_PER_FILE = 100
_ALIKE = 0.74
_MISTYPED = 0.85
_TELLING_LENGTH = 4


@dataclass(frozen=True, order=True)
class Position:
    """A place in a file, counted from 1 in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True)
class ConfigProblem:
    """One thing to correct. Line and column are absent where the file as a whole, or a folder, is meant."""

    file: str
    line: int | None
    column: int | None
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.message}"


_redactor = cache(Redactor)


class Rejected(Exception):  # noqa: N818 - what happened to a file; never leaves this package
    """The file cannot be used; carries all problems found in it."""

    def __init__(self, *problems: ConfigProblem) -> None:
        super().__init__(*problems)
        self.problems = problems


def config_problem(file: str, position: Position | None, message: str) -> ConfigProblem:
    """A problem whose texts are fit to be printed: one line each, no control characters, no credentials."""
    clean = _redactor()
    line, column = (position.line, position.column) if position else (None, None)
    return ConfigProblem(printable(clean(file)), line, column, printable(clean(message)))


def ordered(problems: Iterable[ConfigProblem]) -> tuple[ConfigProblem, ...]:
    """By file, then by place; each once, and no file takes the whole screen."""
    ranked = sorted(set(problems), key=lambda it: (it.file, it.line or 0, it.column or 0, it.message))
    kept: list[ConfigProblem] = []
    for file, group in groupby(ranked, attrgetter("file")):
        of_file = list(group)
        kept += of_file[:MAX_PER_FILE]
        if len(of_file) > MAX_PER_FILE:
            kept.append(ConfigProblem(file, None, None, f"has {len(of_file) - MAX_PER_FILE} more problems"))
    return tuple(kept)


def shown(text: str) -> str:
    """A key, name or path from a file, short enough for a sentence."""
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[: MAX_SHOWN_LENGTH - 3]}..."


def printable(text: str) -> str:
    """Text on one line that cannot move the cursor: control characters as escape sequences."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def folded(word: str) -> str:
    """Letters and digits alone, small."""
    return "".join(char for char in word.lower() if char.isalnum())


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that is most like a word, or a part of which is: `timeout` means `timeoutSeconds`."""
    sought, meant = folded(word[:MAX_SHOWN_LENGTH]), dict[str, str]()
    for choice in choices:
        words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", choice)
        parts = ("".join(words[first:last]).lower() for first, last in combinations(range(len(words) + 1), 2))
        for part in (it for it in parts if min(len(it), len(sought)) >= _TELLING_LENGTH):
            meant.setdefault(part, choice)
        meant[folded(choice)] = choice
    return next((meant[form] for form in get_close_matches(sought, meant, 1, _ALIKE)), None)


def is_alike(word: str, choice: str) -> bool:
    """Whether one is the other but for a letter or so."""
    return SequenceMatcher(None, folded(word), folded(choice), autojunk=False).ratio() > _MISTYPED
