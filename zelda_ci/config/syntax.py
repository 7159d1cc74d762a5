"""YAML syntax errors in words a person can act on; both of PyYAML's parsers are understood."""

import re
from dataclasses import dataclass

from zelda_ci.config.problems import Position


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


def explain(trouble: SyntaxTrouble, lines: list[str]) -> tuple[Position, str]:
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


def _second_colon(at: Position, line: str) -> tuple[Position, str]:
    """A colon where no key can be: in a text without quotes, or on a line that is indented too far."""
    before = line[: at.column - 1]
    if re.search(r":\s", before):
        return at, "a colon followed by a blank cannot stand in a text without quotes: put the value in quotes"
    return Position(at.line, len(before) - len(before.lstrip()) + 1), _INDENTATION
