"""Problems in the user's files: the position, and one sentence each, for YAML errors too."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter

from zelda_ci.redact import Redactor

MAX_SHOWN_LENGTH = 60
MAX_PER_FILE = 100


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


class Rejected(Exception):  # noqa: N818 - what happened to a file; never leaves this package
    """A file cannot be used, for every reason found."""

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
    return tuple(it for file, problems in groupby(ranked, attrgetter("file")) for it in _first(file, list(problems)))


def _first(file: str, problems: list[ConfigProblem]) -> Iterator[ConfigProblem]:
    yield from problems[:MAX_PER_FILE]
    if len(problems) > MAX_PER_FILE:
        yield ConfigProblem(file, None, None, f"has {len(problems) - MAX_PER_FILE} more problems")


def shown(text: str) -> str:
    """A key, name or path from a file, short enough for a sentence."""
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[: MAX_SHOWN_LENGTH - 3]}..."


@cache
def _redactor() -> Redactor:
    return Redactor()


def printable(text: str) -> str:
    """Text on one line that cannot move the cursor: control characters as escape sequences."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


@dataclass(frozen=True)
class SyntaxTrouble:
    """What the parser says: its sentence, the place, and where the construct began in which it happened."""

    said: str
    at: Position
    began: Position


_UNCLOSED = "is opened here and never closed"
_NO_ESCAPE = (
    "inside double quotes a backslash begins an escape sequence, and this is none: write it twice, or use single quotes"
)
_INDENTATION = "the indentation does not fit the lines above"

# What the parser says, whether the construct's beginning is the place to show, and what it means.
_MEANINGS = (
    (r"end of stream|document (separator|indicator)", True, f"a quote {_UNCLOSED}"),
    (r"expected ',' or '\]'", True, f"a list in square brackets {_UNCLOSED}, or a comma is missing in it"),
    (r"expected ',' or '\}'", True, f"a group in curly brackets {_UNCLOSED}, or a comma is missing in it"),
    (r"sequence entries are not allowed", False, "a list item must begin on a line of its own"),
    (r"could not find expected ':'", True, "this line is no key: a colon is missing, or it must be indented"),
    (r"block end|expected key|'-' indicator|document start", False, _INDENTATION),
    (r"unknown escape character|invalid Unicode|hexa?decimal", False, _NO_ESCAPE),
    (r"cannot start any token", False, "a value cannot begin with this character: put the value in quotes"),
    (r"alphabetic or numeric character", False, "a value cannot begin with & or *: put the value in quotes"),
    (r"chomping or indentation|comment or line break", False, "after | or > the text begins on the next line"),
    (r"node content", False, "a value is missing here, or must be put in quotes"),
    (r"tag handle", False, "a value cannot begin with an exclamation mark: put the value in quotes"),
    (r"directive|YAML document", False, "lines that begin with % are not supported"),
)


def explain_syntax(trouble: SyntaxTrouble, lines: list[str]) -> tuple[Position, str]:
    """Where and what to correct."""
    line = lines[trouble.at.line - 1] if trouble.at.line <= len(lines) else ""
    indentation = line[: len(line) - len(line.lstrip())]
    if "\t" in indentation:
        return Position(trouble.at.line, indentation.index("\t") + 1), "a tab is used to indent: use blanks"
    if "mapping values are not allowed" in trouble.said:
        return _second_colon(trouble.at, line)
    for pattern, at_beginning, meaning in _MEANINGS:
        if re.search(pattern, trouble.said):
            return (trouble.began if at_beginning else trouble.at), meaning
    return trouble.at, f"this is not valid YAML ({trouble.said})"


def _second_colon(position: Position, line: str) -> tuple[Position, str]:
    """A colon where no key can be: in a text without quotes, or on a line that is indented too far."""
    before = line[: position.column - 1]
    if re.search(r":\s", before):
        return position, "a colon followed by a blank cannot stand in a text without quotes: put the value in quotes"
    return Position(position.line, len(before) - len(before.lstrip()) + 1), _INDENTATION
