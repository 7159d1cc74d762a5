"""What is wrong with a value, in a sentence that says how to write it right. Only harmless values are quoted."""

from typing import Any

from zelda_ci.config import keys, wording
from zelda_ci.config.nodes import Grouping, Node, Scalar, Sequence, value_of
from zelda_ci.config.problems import shown
from zelda_ci.config.scalars import Surprise, plain_value
from zelda_ci.config.schemas import Config

_OUR_OWN = ("model_credential", "outside", "no_program")
"""Errors of our own validators: their message is a sentence already."""


def about(path: tuple[int | str, ...], node: Node, model: type[Config], error: Any) -> str:
    """What is wrong with the value at a path."""
    if error["type"] in _OUR_OWN:
        return f"{_name(path)} {error['msg']}"
    schema = wording.fragment(model, path)
    return f"{_name(path)} must be {wording.expected(schema)}{_but(node, schema)}"


def _name(path: tuple[int | str, ...]) -> str:
    dotted = ".".join(step for step in path if isinstance(step, str))
    item = next((step for step in path if isinstance(step, int)), None)
    return dotted if item is None else f"item {item + 1} of {dotted}"


def _but(node: Node, schema: dict[str, Any]) -> str:
    """What it is instead, and how to mend it."""
    types = wording.types(schema)
    match node:
        case Sequence():
            return ", not a list"
        case Grouping() if "string" in types:
            return ", not a group of keys: a colon followed by a blank makes a key, so put the whole text in quotes"
        case Grouping():
            return ", not a group of keys"
        case Scalar():
            return _but_word(node, schema, types)


def _but_word(node: Scalar, schema: dict[str, Any], types: set[str]) -> str:
    value = value_of(node)
    if value is None or value == "":
        return ", not empty"
    if not isinstance(value, str) and "string" in types and not wording.choices(schema):
        return f": put {shown(node.text)} in quotes"
    if isinstance(value, Surprise) and types & {"integer", "number"}:
        return f", not {shown(node.text)}: write it in plain digits"
    if not isinstance(value, str):
        return f", not {shown(node.text)}"
    return _but_text(node, schema, types)


def _but_text(node: Scalar, schema: dict[str, Any], types: set[str]) -> str:
    near = keys.nearest(node.text, wording.choices(schema))
    if near:
        return f" (did you mean {near}?)"
    if not types & {"integer", "number", "boolean"}:
        return ""
    unquoted = plain_value(node.text)
    return ", not text" + (": remove the quotes" if isinstance(unquoted, bool | int | float) else "")
