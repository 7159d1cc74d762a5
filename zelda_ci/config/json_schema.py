"""JSON Schemas of the two files, for editors, for the reference and for the words of error messages."""

from functools import cache
from typing import Any

from zelda_ci import __version__
from zelda_ci.config.schemas import Config, ProjectConfig, SuiteConfig

FILES: dict[str, type[Config]] = {
    "zelda.config.schema.json": ProjectConfig,
    "zelda.suite.schema.json": SuiteConfig,
}
_ANNOTATIONS = ("description", "default", "examples")
REPOSITORY = "zelda-ci/zelda-ci"


def address(file: str) -> str:
    """Where an editor finds a schema: the one of this version."""
    return f"https://raw.githubusercontent.com/{REPOSITORY}/v{__version__}/schemas/{file}"


@cache
def raw(model: type[Config]) -> dict[str, Any]:
    """The schema as pydantic derives it."""
    return model.model_json_schema(by_alias=True, mode="validation")


def editor_schema(model: type[Config]) -> dict[str, Any]:
    """The schema as it is published: a key without a value is allowed everywhere and means "not given"."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", **raw(model)}
    groups = {name: _published(group, model) for name, group in schema.pop("$defs").items()}
    return {**_published(schema, model), "description": _first_line(schema), "$defs": groups}


def _published(group: dict[str, Any], model: type[Config]) -> dict[str, Any]:
    properties = {key: _property(value, model) for key, value in group["properties"].items()}
    kept = {key: value for key, value in group.items() if key != "title"}
    return {**kept, "description": _first_line(group), "properties": properties}


def _property(schema: dict[str, Any], model: type[Config]) -> dict[str, Any]:
    # What a suite leaves out falls back to the project, so a default shown there would be wrong.
    unwanted = {"title"} if model is ProjectConfig else {"title", "default"}
    kept = {key: value for key, value in schema.items() if key not in unwanted}
    if kept.get("default", "") is None:
        del kept["default"]
    return _nullable(kept)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    about = {key: value for key, value in schema.items() if key in _ANNOTATIONS}
    kind = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    return {**about, "anyOf": [*alternatives_of(kind), {"type": "null"}]}


def alternatives_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The types a value can have, "no value" left out."""
    return [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]


def _first_line(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).split("\n", maxsplit=1)[0]
