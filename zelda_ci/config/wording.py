"""What a key may hold, in words: one wording for error messages and for the reference."""

from typing import Any

from zelda_ci.config import json_schema
from zelda_ci.config.schemas import Config
from zelda_ci.domain import suite

_NUMBERS = {"integer": "a whole number", "number": "a number"}
_PATTERNS = {
    suite.NOT_BLANK: "text",
    suite.NAME: "at most 60 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
    suite.MODEL_ID: "the full id of a model, such as claude-sonnet-5-5, not an alias",
    suite.NO_BLANKS: "the id of a model, without blanks",
    suite.VARIABLE: "the name of an environment variable, without a value",
    suite.SHELL: "bash, sh, or a program with options to which the line is added, such as bash -c,",
    suite.WEB_ADDRESS: "an http:// or https:// address without user name, query and fragment",
}
_PLURALS = {suite.NOT_BLANK: "texts", suite.VARIABLE: "names of environment variables, without values"}


def fragment(model: type[Config], path: tuple[int | str, ...]) -> dict[str, Any]:
    """The part of the schema that speaks about a value."""
    schema = json_schema.raw(model)
    for step in path:
        schema = _inside(schema, step, model)
    return _resolved(schema, model)


def expected(schema: dict[str, Any]) -> str:
    """What a value must be, to be read after "must be"."""
    words = [_one(alternative) for alternative in json_schema.alternatives_of(schema)]
    return " or ".join(dict.fromkeys(words))


def choices(schema: dict[str, Any]) -> list[str]:
    """The words among which a value must be, none where it is free."""
    alternatives = json_schema.alternatives_of(schema)
    return [str(choice) for one in alternatives for choice in one.get("enum", [one["const"]] if "const" in one else [])]


def types(schema: dict[str, Any]) -> set[str]:
    """The JSON types a value may have."""
    return {str(alternative.get("type", "object")) for alternative in json_schema.alternatives_of(schema)}


def _one(schema: dict[str, Any]) -> str:
    named = choices(schema)
    if named:
        return f"one of {', '.join(named)}" if len(named) > 2 else " or ".join(named)
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return f"{_NUMBERS[kind]}{_range(schema)}"
        case "array":
            return f"a list of {_items(schema['items'])}"
        case "string":
            return _PATTERNS[schema.get("pattern", suite.NOT_BLANK)]
        case _:
            return "a group of keys"


def _items(schema: dict[str, Any]) -> str:
    plural = _PLURALS.get(schema.get("pattern", suite.NOT_BLANK))
    return plural if plural and not choices(schema) else f"items, each {expected(schema)}"


def _range(schema: dict[str, Any]) -> str:
    low, above, high = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if above is not None:
        return f" above {above:g}" + (f", at most {high:g}" if high is not None else "")
    if low is not None:
        return f" from {low:g} to {high:g}" if high is not None else f", at least {low:g}"
    return ""


def _inside(schema: dict[str, Any], step: int | str, model: type[Config]) -> dict[str, Any]:
    schema = _resolved(schema, model)
    if isinstance(step, str):
        found: dict[str, Any] = schema["properties"][step]
        return found
    lists = (one["items"] for one in json_schema.alternatives_of(schema) if one.get("type") == "array")
    return next(lists)


def _resolved(schema: dict[str, Any], model: type[Config]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    target: dict[str, Any] = json_schema.raw(model)["$defs"][schema["$ref"].rpartition("/")[2]]
    return target
