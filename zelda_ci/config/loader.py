"""YAML text to a tree of nodes with positions: the only module of the configuration that knows PyYAML.

The tree is built from parser events on a stack of our own, so that depth, size and aliases are bounded while reading.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from zelda_ci.config import messages
from zelda_ci.config.messages import ConfigProblem, Position, Rejected, config_problem, shown

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_SWITCH = frozenset({"y", "n", "yes", "no", "on", "off"})

# Eighteen digits fit into 64 bits.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")

_MAX_NUMBER_LENGTH = 64
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \t]+)[0-9][0-9:. \tZz+-]*)?")
_ODD_NUMBER = re.compile(
    r"""[-+]?(
        [0-9][0-9_]*                          # leading zero (octal), underscores, or too long
      | 0[xob][0-9a-fA-F_]+
      | [0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?  # sexagesimal
      | ([0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)([eE][-+]?[0-9]+)?
      | \.(inf|Inf|INF)
    )|\.(nan|NaN|NAN)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Surprise:
    """A word that YAML readers understand in different ways."""

    text: str


def plain_value(text: str) -> str | int | float | bool | Surprise | None:
    """The value of an unquoted word."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return Surprise(text) if _surprises(text) else text


def _surprises(text: str) -> bool:
    if text.lower() in _SWITCH or text in {"=", "<<"}:
        return True
    if len(text) > _MAX_NUMBER_LENGTH:
        return text.lstrip("+-").isdecimal()
    return bool(_DATE.fullmatch(text) or _ODD_NUMBER.fullmatch(text))


# What a node stands for: lists are tuples, so that values stay frozen.
Value = str | int | float | bool | Surprise | tuple[Any, ...] | dict[str, Any] | None


@dataclass(frozen=True)
class ScalarNode:
    """A single value; `plain` where it is written without quotes and not as a block."""

    at: Position
    text: str
    plain: bool


@dataclass(frozen=True)
class SequenceNode:
    at: Position
    items: "tuple[Node, ...]"


@dataclass(frozen=True)
class MappingNode:
    """Keys and their values, in the order of the file."""

    at: Position
    entries: "Mapping[str, MappingEntry]"


@dataclass(frozen=True)
class MappingEntry:
    """A key with its value."""

    key_at: Position
    node: "Node"


Node = ScalarNode | SequenceNode | MappingNode


def value_of(node: Node) -> Value:
    """The tree as plain Python values."""
    match node:
        case ScalarNode():
            return plain_value(node.text) if node.plain else node.text
        case SequenceNode():
            return tuple(value_of(item) for item in node.items)
        case MappingNode():
            return {key: value_of(entry.node) for key, entry in node.entries.items()}


def at_path(node: Node, path: tuple[int | str, ...]) -> Node:
    """The node that an existing path leads to."""
    for step in path:
        following = child(node, step)
        assert following is not None, path  # noqa: S101
        node = following
    return node


def key_places(node: Node, prefix: str = "") -> Iterator[tuple[str, Position]]:
    """Every dotted key with a value, and where the key stands."""
    if not isinstance(node, MappingNode):
        return
    for key, entry in node.entries.items():
        if value_of(entry.node) is not None:
            yield f"{prefix}{key}", entry.key_at
            yield from key_places(entry.node, f"{prefix}{key}.")


def child(node: Node, step: int | str) -> Node | None:
    """The value of a key or the item of a list, where there is one."""
    match node, step:
        case MappingNode(), str() if step in node.entries:
            return node.entries[step].node
        case SequenceNode(), int() if step < len(node.items):
            return node.items[step]
    return None


try:
    PARSER: Any = yaml.CSafeLoader
except AttributeError:  # PyYAML built without libyaml
    PARSER = yaml.SafeLoader

MAX_NODES = 10_000
MAX_DEPTH = 32

_UNFIT = re.compile("[\x00\ud800-\udfff]")


def parse(text: str, file: str, parser: Any = PARSER) -> tuple[Node | None, tuple[ConfigProblem, ...]]:
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
        raise Rejected(*builder.problems, config_problem(file, Position(1, 1), message)) from None
    return builder.root, tuple(builder.problems)


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> ConfigProblem:
    mark = _position(error.problem_mark) if error.problem_mark else Position(1, 1)
    began = _position(error.context_mark) if error.context_mark else mark
    trouble = messages.SyntaxTrouble(error.problem or error.context or "", mark, began)
    return config_problem(file, *messages.explain_syntax(trouble, text.split("\n")))


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


@dataclass
class _OpenNode:
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
        self.problems: list[ConfigProblem] = []
        self._file = file
        self._open: list[_OpenNode] = []
        self._anchored: dict[str, tuple[Node, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        mark = _position(event.start_mark)
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._rejected(mark, "a second document begins here: a file holds one")
            case yaml.AliasEvent():
                self._repeat(event.anchor, mark)
            case yaml.ScalarEvent():
                self._refuse_tag(event, mark)
                self._add(self._scalar(event, mark), 1, event.anchor)
            case yaml.CollectionStartEvent():
                self._begin(event, mark)
            case yaml.CollectionEndEvent():
                self._close()
            case _:
                pass

    def _begin(self, event: yaml.CollectionStartEvent, mark: Position) -> None:
        self._refuse_tag(event, mark)
        if len(self._open) == MAX_DEPTH:
            raise self._rejected(mark, f"this is nested more than {MAX_DEPTH} levels deep")
        self._open.append(_OpenNode(mark, event.anchor, isinstance(event, yaml.MappingStartEvent)))

    def _close(self) -> None:
        done = self._open.pop()
        entries = self._entries(done.children) if done.is_group else {}
        node = MappingNode(done.at, entries) if done.is_group else SequenceNode(done.at, tuple(done.children))
        self._add(node, done.size, done.anchor)

    def _add(self, node: Node, size: int, anchor: str | None) -> None:
        if anchor:
            self._anchored[anchor] = (node, size)
        self._place(node, size, node.at)

    def _repeat(self, anchor: str | None, mark: Position) -> None:
        if not anchor or anchor not in self._anchored:
            name = shown(anchor or "")
            raise self._rejected(mark, f"*{name} repeats a value, but no finished value above is marked &{name}")
        self._place(*self._anchored[anchor], mark)

    def _place(self, node: Node, size: int, mark: Position) -> None:
        if not self._open:
            self.root = node
            return
        self._open[-1].children.append(node)
        self._open[-1].size += size
        if sum(level.size for level in self._open) > MAX_NODES:
            raise self._rejected(mark, f"the file holds more than {MAX_NODES} values, repeated ones included")

    def _entries(self, children: list[Node]) -> dict[str, MappingEntry]:
        entries: dict[str, MappingEntry] = {}
        for key, node in _pairs(children):
            if not isinstance(key, ScalarNode):
                self._note(key.at, "a key must be a single word, not a list or a group")
            elif key.text in entries:
                first = entries[key.text].key_at
                self._note(key.at, f"{shown(key.text)} is given twice; the first time at {first}")
            else:
                entries[key.text] = MappingEntry(key.at, node)
        return entries

    def _scalar(self, event: yaml.ScalarEvent, mark: Position) -> ScalarNode:
        if _UNFIT.search(event.value):
            self._note(mark, "an escape sequence stands for a character that no text can hold")
        return ScalarNode(mark, event.value, plain=not event.style)

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, mark: Position) -> None:
        if event.tag is not None:
            # libyaml ends a tag of one's own at the marks of lists and groups, the parser in Python does not.
            tag = re.split(r"[,\[\]{}]", event.tag)[0] if event.tag.startswith("!") else event.tag
            self._note(mark, f"the tag {shown(tag)} is not supported: write the value without it, or in quotes")

    def _note(self, mark: Position, message: str) -> None:
        self.problems.append(config_problem(self._file, mark, message))

    def _rejected(self, mark: Position, message: str) -> Rejected:
        return Rejected(*self.problems, config_problem(self._file, mark, message))


def _pairs(children: list[Node]) -> Iterator[tuple[Node, Node]]:
    return zip(children[::2], children[1::2], strict=True)
