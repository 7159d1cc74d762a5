"""YAML text to a tree of nodes with places: the only module that knows PyYAML.

The tree is built from parser events on a stack of our own, so that depth, size and aliases are bounded while reading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from zelda_ci.config import syntax
from zelda_ci.config.nodes import Entry, Grouping, Node, Scalar, Sequence
from zelda_ci.config.problems import Position, Problem, Rejected, problem, shown

try:
    PARSER: Any = yaml.CSafeLoader
except AttributeError:  # PyYAML built without libyaml
    PARSER = yaml.SafeLoader

MOST_NODES = 10_000
DEEPEST = 32

_UNFIT = re.compile("[\x00\ud800-\udfff]")


def parse(text: str, file: str, parser: Any = PARSER) -> tuple[Node | None, tuple[Problem, ...]]:
    """The tree of a file, absent when it is empty, with the problems that leave a usable tree.

    Raises:
        Rejected: there is no usable tree.
    """
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=parser):
            builder.take(event)
    except yaml.MarkedYAMLError as exc:
        raise Rejected(*builder.problems, _syntax_problem(exc, text, file)) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # Absurd numbers in escapes and directives end the pure Python parser without a place.
        message = "this is not valid YAML: an escape sequence or a % line holds an impossible number"
        raise Rejected(*builder.problems, problem(file, Position(1, 1), message)) from None
    return builder.root, tuple(builder.problems)


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    at = _position(error.problem_mark) if error.problem_mark else Position(1, 1)
    began = _position(error.context_mark) if error.context_mark else at
    trouble = syntax.SyntaxTrouble(error.problem or error.context or "", at, began)
    return problem(file, *syntax.explain(trouble, text.split("\n")))


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


@dataclass
class _Open:
    """A list or group whose end has not been read yet."""

    at: Position
    anchor: str | None
    is_group: bool
    children: list[Node] = field(default_factory=list)
    size: int = 1


class _Builder:
    """Turns events into nodes."""

    def __init__(self, file: str) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._file = file
        self._open: list[_Open] = []
        self._anchored: dict[str, tuple[Node, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        at = _position(event.start_mark)
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._rejected(at, "a second document begins here: a file holds one")
            case yaml.AliasEvent():
                self._repeat(event.anchor, at)
            case yaml.ScalarEvent():
                self._refuse_tag(event, at)
                self._add(self._scalar(event, at), 1, event.anchor)
            case yaml.CollectionStartEvent():
                self._begin(event, at)
            case yaml.CollectionEndEvent():
                self._close()
            case _:
                pass

    def _begin(self, event: yaml.CollectionStartEvent, at: Position) -> None:
        self._refuse_tag(event, at)
        if len(self._open) == DEEPEST:
            raise self._rejected(at, f"this is nested more than {DEEPEST} levels deep")
        self._open.append(_Open(at, event.anchor, isinstance(event, yaml.MappingStartEvent)))

    def _close(self) -> None:
        done = self._open.pop()
        entries = self._entries(done.children) if done.is_group else {}
        node = Grouping(done.at, entries) if done.is_group else Sequence(done.at, tuple(done.children))
        self._add(node, done.size, done.anchor)

    def _add(self, node: Node, size: int, anchor: str | None) -> None:
        if anchor:
            self._anchored[anchor] = (node, size)
        self._place(node, size, node.at)

    def _repeat(self, anchor: str | None, at: Position) -> None:
        if not anchor or anchor not in self._anchored:
            name = shown(anchor or "")
            raise self._rejected(at, f"*{name} repeats a value, but no finished value above is marked &{name}")
        self._place(*self._anchored[anchor], at)

    def _place(self, node: Node, size: int, at: Position) -> None:
        if not self._open:
            self.root = node
            return
        self._open[-1].children.append(node)
        self._open[-1].size += size
        if sum(level.size for level in self._open) > MOST_NODES:
            raise self._rejected(at, f"the file holds more than {MOST_NODES} values, repeated ones included")

    def _entries(self, children: list[Node]) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key, node in _pairs(children):
            if not isinstance(key, Scalar):
                self._note(key.at, "a key must be a single word, not a list or a group")
            elif key.text in entries:
                first = entries[key.text].key_at
                self._note(key.at, f"{shown(key.text)} is given twice; the first time at {first}")
            else:
                entries[key.text] = Entry(key.at, node)
        return entries

    def _scalar(self, event: yaml.ScalarEvent, at: Position) -> Scalar:
        if _UNFIT.search(event.value):
            self._note(at, "an escape sequence stands for a character that no text can hold")
        return Scalar(at, event.value, plain=not event.style)

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, at: Position) -> None:
        if event.tag is not None:
            self._note(at, f"the tag {shown(event.tag)} is not supported: write the value without it, or in quotes")

    def _note(self, at: Position, message: str) -> None:
        self.problems.append(problem(self._file, at, message))

    def _rejected(self, at: Position, message: str) -> Rejected:
        return Rejected(*self.problems, problem(self._file, at, message))


def _pairs(children: list[Node]) -> Iterator[tuple[Node, Node]]:
    return zip(children[::2], children[1::2], strict=True)
