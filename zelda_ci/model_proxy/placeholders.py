"""Paths of one machine, taken out of a text as `{{name}}` and put back on another machine."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

LITERAL = "literal:"
"""Marks a `{{name}}` that was in the text itself."""


def _json(value: str) -> str:
    return json.dumps(value)[1:-1]


def _wide_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _escaped_json(value: str) -> str:
    return _json(value).replace("/", "\\/")


def _slug(value: str) -> str:
    """As Claude Code names its folders after the working directory."""
    return "/" + re.sub(r"[^A-Za-z0-9]", "-", value)


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "json": _json,
    "wide": _wide_json,
    "slashes": _escaped_json,
    "url": quote,
    "slug": _slug,
}
"""How a path may be spelled otherwise: in JSON inside a text (three ways), in a URL, as a folder's name."""


class Placeholders:
    """A reversible mapping between values and their names.

    Args:
        values: Text by name (letters, digits, underscores). Where two overlap, the longer wins, then the earlier.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        self._know({name: value for name, value in values.items() if len(value) > 1})

    def learn(self, values: Mapping[str, str]) -> None:
        """Add values that have turned up; a name keeps its first value."""
        if new := {name: value for name, value in values.items() if name not in self._values}:
            self._know(new)

    def _know(self, new: Mapping[str, str]) -> None:
        self._values.update(new)
        self._marks: dict[str, str] = {}
        for name, value in self._values.items():
            for spelling, mark in _spelled(name, value):
                self._marks.setdefault(spelling, mark)
        names = "|".join(sorted(map(re.escape, self._values), reverse=True)) or "(?!)"
        kinds = "|".join(SPELLINGS)
        # In the text before: a mark that was already there, or a value that ends where a word ends.
        longest_first = sorted(self._marks, key=len, reverse=True)
        known = "|".join(map(re.escape, longest_first)) or "(?!)"
        own = rf"\{{\{{(?:{LITERAL})*(?:{names})(?::(?:{kinds}))?\}}\}}"
        self._spelled = re.compile(rf"({own})|(?:{known})(?![A-Za-z0-9_])")
        self._marked = re.compile(rf"\{{\{{({LITERAL})?((?:{LITERAL})*)({names})(?::({kinds}))?\}}\}}")

    def blank(self, text: str) -> str:
        """Take the values out."""
        return self._spelled.sub(self._mark, text)

    def fill(self, text: str) -> str:
        """Put the values back."""
        return self._marked.sub(self._value, text) if "{{" in text else text

    def blank_tree(self, value: Any) -> Any:
        """Take the values out of every string of a JSON value, keys included."""
        return _map(self.blank, value)

    def fill_tree(self, value: Any) -> Any:
        """Put the values back into every string of a JSON value."""
        return _map(self.fill, value)

    def _mark(self, match: re.Match[str]) -> str:
        if match[1]:
            return "{{" + LITERAL + match[1][2:]
        return self._marks[match[0]]

    def _value(self, match: re.Match[str]) -> str:
        literal, more, name, kind = match.groups()
        if literal:
            return "{{" + more + name + (f":{kind}" if kind else "") + "}}"
        value = self._values[name]
        return SPELLINGS[kind](value) if kind else value


def plain(text: str) -> str:
    """Marks without their spelling, which depends on the path's characters."""
    return re.sub(rf"\{{\{{(\w+):(?:{'|'.join(SPELLINGS)})\}}\}}", r"{{\1}}", text)


def _spelled(name: str, value: str) -> Iterator[tuple[str, str]]:
    yield value, f"{{{{{name}}}}}"
    if value.startswith("/"):
        for kind, spell in SPELLINGS.items():
            if (spelling := spell(value)) != value:
                yield spelling, f"{{{{{name}:{kind}}}}}"


def _map(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map(change, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map(change, item) for item in value]
    return value
