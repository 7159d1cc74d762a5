"""The YAML at the head of a Markdown file: the only module beside the configuration's loader that knows PyYAML.

Claude Code forgives broken YAML and takes each line's value as it is written; so does this module.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

try:
    LOADER: Any = yaml.CSafeLoader
except AttributeError:  # PyYAML built without libyaml
    LOADER = yaml.SafeLoader

LONGEST = 32_000
MOST_EVENTS = 2_000
DEEPEST = 20

_HEAD = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A Markdown file: what its head says, and its text."""

    fields: dict[str, Any] = field(default_factory=dict)
    body: str = ""

    def text(self, key: str) -> str | None:
        """A field that holds words; anything else there counts as not given."""
        value = self.fields.get(key)
        return value.strip() or None if isinstance(value, str) else None

    def says(self, key: str, *, default: bool) -> bool:
        """A field that says yes or no, also where broken YAML made a word of it."""
        value = str(self.fields.get(key, default)).strip().lower()
        return value == "true" if value in ("true", "false") else default

    def globs(self, key: str) -> tuple[str, ...]:
        """A field that lists globs, or has them in one text with commas between, but not those inside of braces."""
        value = self.fields.get(key)
        listed = value if isinstance(value, list) else _pieces(value) if isinstance(value, str) else []
        return tuple(glob.strip() for glob in listed if isinstance(glob, str) and glob.strip())

    @property
    def first_line(self) -> str | None:
        """What stands for a description where none is given: the first line with words, a heading without its marks."""
        lines = (line.strip().lstrip("#").strip() for line in self.body[:LONGEST].splitlines())
        return next((line for line in lines if line), None)


def parse(text: str) -> Document:
    """Head and text of a file; the head must begin on the first line and end."""
    head = _HEAD.match(text)
    if head is None or len(head[1]) > LONGEST:
        return Document({}, text)
    return Document(_fields(head[1]), text[head.end() :])


def _fields(head: str) -> dict[str, Any]:
    try:
        _refuse_bombs(head)
        found = yaml.load(head, Loader=LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        return dict(_LINE.findall(head))
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(key, str)}


def _refuse_bombs(head: str) -> None:
    """Repeated and deeply nested values cost little to write and much to build."""
    depth = 0
    for count, event in enumerate(yaml.parse(head, Loader=LOADER)):
        opens = isinstance(event, yaml.CollectionStartEvent)
        depth += opens - isinstance(event, yaml.CollectionEndEvent)
        if count > MOST_EVENTS or depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            raise ValueError("too much for the head of a Markdown file")


def _pieces(value: str) -> list[str]:
    return re.findall(r"(?:[^,{]|\{[^}]*\}?)+", value)
