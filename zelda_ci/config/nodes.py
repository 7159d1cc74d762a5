"""A YAML file as a tree in which everything knows its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zelda_ci.config.problems import Position
from zelda_ci.config.scalars import Surprise, plain_value

Value = str | int | float | bool | Surprise | tuple[Any, ...] | dict[str, Any] | None
"""What a node stands for: lists are tuples, so that values stay frozen."""


@dataclass(frozen=True)
class Scalar:
    """A single value; `plain` where it is written without quotes and not as a block."""

    at: Position
    text: str
    plain: bool


@dataclass(frozen=True)
class Sequence:
    """A list."""

    at: Position
    items: "tuple[Node, ...]"


@dataclass(frozen=True)
class Grouping:
    """Keys and their values, in the order of the file."""

    at: Position
    entries: "Mapping[str, Entry]"


@dataclass(frozen=True)
class Entry:
    """A key with its value."""

    key_at: Position
    node: "Node"


Node = Scalar | Sequence | Grouping


def value_of(node: Node) -> Value:
    """The tree as plain Python values."""
    match node:
        case Scalar():
            return plain_value(node.text) if node.plain else node.text
        case Sequence():
            return tuple(value_of(item) for item in node.items)
        case Grouping():
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
    if not isinstance(node, Grouping):
        return
    for key, entry in node.entries.items():
        if value_of(entry.node) is not None:
            yield f"{prefix}{key}", entry.key_at
            yield from key_places(entry.node, f"{prefix}{key}.")


def child(node: Node, step: int | str) -> Node | None:
    """The value of a key or the item of a list, where there is one."""
    match node, step:
        case Grouping(), str() if step in node.entries:
            return node.entries[step].node
        case Sequence(), int() if step < len(node.items):
            return node.items[step]
    return None
