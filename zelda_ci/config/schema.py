"""The two files a user writes: their keys, and their tables in the docs."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from zelda_ci import __version__
from zelda_ci.config.messages import MAX_SHOWN_LENGTH, shown
from zelda_ci.domain import suite
from zelda_ci.domain.base import Setting
from zelda_ci.domain.suite import (
    Effort,
    ModelId,
    Name,
    ProjectPath,
    RequestKey,
    SharedSettings,
    SourcePath,
    Text,
    WebAddress,
)

CONFIG_FILE = "zelda.config.yaml"


class ProjectKeys(Setting):
    """Keys that only the project's configuration has."""

    test_dir: SourcePath = Field(
        "zelda", description="Folder of the suites: every file test-*.yaml in it or below is a suite."
    )
    results_dir: ProjectPath = Field(
        ".zelda", description="Folder for results and running workspaces; git must ignore it."
    )
    gateway_url: WebAddress | None = Field(
        None,
        description="Portkey gateway to the judge's model; the key comes from PORTKEY_API_KEY.",
        examples=["https://api.portkey.ai"],
    )


class ProjectConfig(SharedSettings, ProjectKeys):
    """Zelda CI: settings of a project, which each suite may override."""

    model_config = ConfigDict(extra="forbid")


class Matrix(Setting):
    """What a suite is made of several times with."""

    model: tuple[ModelId, ...] = Field((), description="Models, each in place of execution.model.")
    effort: tuple[Effort, ...] = Field((), description="Levels, each in place of execution.effort.")
    variables: dict[RequestKey, tuple[Text, ...]] = Field(
        {},
        description="Texts by name: each takes the place of {{name}} in prompt and criteria.",
        examples=[{"greeting": ["hello", "good evening"]}],
    )


class SuiteKeys(Setting):
    """Keys that only a suite has."""

    name: Name | None = Field(
        None,
        description="Name of the suite, unique in the project. The default is the file's name without test- and "
        "its ending.",
        examples=["rest-endpoint"],
    )
    description: Text | None = Field(
        None, description="What the suite is about, for people.", examples=["Adding an endpoint follows our rules."]
    )
    prompt: Text | None = Field(
        None, description="The task that Claude Code gets.", examples=["Add a GET /health endpoint."]
    )
    prompt_file: Text | None = Field(
        None,
        description="File that holds the prompt, relative to the suite's file, in the project; instead of prompt.",
        examples=["prompts/health-endpoint.md"],
    )
    acceptance_criteria: tuple[Text, ...] = Field(
        (),
        description="What must be true of the result: one checkable sentence each.",
        examples=[["GET /health answers 200."]],
    )
    must_pass: tuple[Text, ...] = Field((), description=suite.ALWAYS_RED, examples=[["All tests pass."]])
    answer_criteria: tuple[Text, ...] = Field((), description=suite.ABOUT_ANSWER, examples=[["It says what is left."]])
    tags: tuple[Text, ...] = Field((), description="Words by which suites can be chosen.", examples=[["backend"]])
    matrix: Matrix = Field(
        Matrix(),
        description="Makes a suite of each combination: their names have the values behind the suite's own.",
    )
    skip: Text | None = Field(
        None,
        description="Why the suite is not run for now. On a pull request that of the base counts.",
        examples=["Waits for the new API."],
    )
    only: bool = Field(
        default=False,
        description="Run this suite alone, with others that say so, while you work on it; zelda ci refuses it.",
    )


class SuiteConfig(SharedSettings, SuiteKeys):
    """Zelda CI: one suite. Keys that the project's configuration has too override it, key by key.

    Only keys in `model_fields_set`, at every level, were given: the defaults here mean nothing.
    """

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["prompt"]}, {"required": ["promptFile"]}]}
    )


Config = SharedSettings  # either of the two

FILES: dict[str, type[Config]] = {
    "zelda.config.schema.json": ProjectConfig,
    "zelda.suite.schema.json": SuiteConfig,
}
REPOSITORY = "zelda-ci/zelda-ci"


def address(file: str) -> str:
    """Where an editor finds a schema: the one of this version."""
    return f"https://raw.githubusercontent.com/{REPOSITORY}/v{__version__}/schemas/{file}"


@cache
def raw(model: type[BaseModel]) -> dict[str, Any]:
    """The schema as pydantic derives it."""
    return model.model_json_schema(by_alias=True, mode="validation")


def alternatives_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The types a value can have, "no value" left out."""
    return [alternative for alternative in schema.get("anyOf", [schema]) if alternative.get("type") != "null"]


_FEW = 8
_TELLING_START = 4


@dataclass(frozen=True)
class ConfigKey:
    """A key that a file can have; `group` is the model of its value where that holds keys itself."""

    path: tuple[str, ...]
    attributes: tuple[str, ...]
    """The path in Python's spelling."""
    field: FieldInfo
    group: type[BaseModel] | None

    @property
    def name(self) -> str:
        """Without the groups it is in."""
        return self.path[-1]

    @property
    def dotted(self) -> str:
        """With the groups it is in."""
        return ".".join(self.path)


@cache
def keys(model: type[BaseModel]) -> tuple[ConfigKey, ...]:
    """Every key of a model at every level, in the order of declaration, a group before its members."""
    return tuple(_walk(model, (), ()))


def groups(model: type[BaseModel]) -> frozenset[tuple[str, ...]]:
    """Paths of the keys that hold keys, also where they may be something else instead."""
    return frozenset(key.path for key in keys(model) if key.group or _alternative_group(key.field))


def _alternative_group(field: FieldInfo) -> type[BaseModel] | None:
    kinds = (kind for kind in get_args(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel))
    return next(kinds, None)


def _keys_at(level: tuple[str, ...], model: type[BaseModel]) -> list[ConfigKey]:
    above = (_alternative_group(key.field) for key in keys(model) if key.path == level)
    found = keys(model) if (group := next(above, None)) is None else _walk(group, level, ())
    return [key for key in found if key.path[:-1] == level]


def entries(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Every value of a model by its dotted key, groups taken apart, in the order of declaration."""
    for key in keys(type(model)):
        if key.group is None:
            yield key.dotted, attrgetter(".".join(key.attributes))(model)


def _walk(model: type[BaseModel], path: tuple[str, ...], attributes: tuple[str, ...]) -> Iterator[ConfigKey]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        group = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        key = ConfigKey((*path, field.alias or name), (*attributes, name), field, group)
        yield key
        if group:
            yield from _walk(group, key.path, key.attributes)


def unknown(name: str, level: tuple[str, ...], model: type[Config]) -> str:
    """A sentence about a key that does not exist at this level, with the best guess at what was meant."""
    here = _keys_at(level, model)
    same = [key for key in keys(model) if key.name == name]
    if same:
        return f"{shown(name)} is not a known key here: it belongs {_places(same)}"
    if any(key.path == (name,) for key in keys(_other(model))):
        return f"{name} is not a known key here: it belongs in {_FILES[_other(model)]}"
    if near := nearest(name, [key.name for key in here]) or _nearest_anywhere(name, model):
        return f"{shown(name)} is not a known key (did you mean {near}?)"
    return f"{shown(name) or 'an empty word'} is not a known key{_choice(here, level)}"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most like a word, absent when none is."""
    folded = {_folded(choice): choice for choice in choices}
    sought = _folded(word[:MAX_SHOWN_LENGTH])
    if sought in folded:
        return folded[sought]
    if len(sought) >= _TELLING_START:
        starting = [choice for choice in folded if choice.startswith(sought) or sought.startswith(choice)]
        if len(starting) == 1:
            return folded[starting[0]]
    close = get_close_matches(sought, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


_FILES: dict[type[Config], str] = {ProjectConfig: CONFIG_FILE, SuiteConfig: "a suite (test-*.yaml)"}


def _other(model: type[Config]) -> type[Config]:
    return SuiteConfig if model is ProjectConfig else ProjectConfig


def _places(same: list[ConfigKey]) -> str:
    groups = [".".join(key.path[:-1]) for key in same]
    named = " or ".join(group for group in groups if group)
    return f"under {named}" if "" not in groups else "at the top level"


def _nearest_anywhere(name: str, model: type[Config]) -> str | None:
    near = nearest(name, [key.name for key in keys(model)])
    return next((key.dotted for key in keys(model) if key.name == near), None)


def _choice(here: list[ConfigKey], level: tuple[str, ...]) -> str:
    return f" of {'.'.join(level)}; it has {', '.join(key.name for key in here)}" if len(here) <= _FEW else ""


def _folded(word: str) -> str:
    return "".join(char for char in word.lower() if char.isalnum())


_NUMBERS = {"integer": "a whole number", "number": "a number"}
_PATTERNS = {
    suite.NOT_BLANK: "text",
    suite.NAME: "at most 60 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
    suite.REQUEST_KEY: "the name of a key: small letters, digits and underscores",
    suite.MODEL_ID: "the full id of a model, such as claude-sonnet-5-5, not an alias",
    suite.NO_BLANKS: "the id of a model, without blanks",
    suite.VARIABLE: "the name of an environment variable, without a value",
    suite.SHELL: "bash, sh, or a program with options to which the line is added, such as bash -c,",
    suite.VALUE: "text",
    suite.WEB_ADDRESS: "an http:// or https:// address without user name, query and fragment",
}
_PLURALS = {suite.NOT_BLANK: "texts", suite.VARIABLE: "names of environment variables, without values"}


def fragment(model: type[BaseModel], path: tuple[int | str, ...]) -> dict[str, Any]:
    """The part of the schema that speaks about a value."""
    schema = raw(model)
    for step in path:
        schema = _inside(schema, step, model)
    return _resolved(schema, model)


def expected(schema: dict[str, Any]) -> str:
    """What a value must be, to be read after "must be"."""
    words = [_one(alternative) for alternative in alternatives_of(schema)]
    if has_free_names(schema):
        return ", or ".join(dict.fromkeys(words))
    groups = (str(each) for each in schema.get("examples", ()) if isinstance(each, dict))
    return " such as ".join([" or ".join(dict.fromkeys(words)), *groups]).replace("'", "")


def choices(schema: dict[str, Any]) -> list[str]:
    """The words among which a value must be, none where it is free."""
    alternatives = alternatives_of(schema)
    return [str(choice) for alternative in alternatives for choice in _enumerated(alternative)]


def _enumerated(schema: dict[str, Any]) -> list[Any]:
    return list(schema.get("enum", [schema["const"]] if "const" in schema else []))


def type_names(schema: dict[str, Any]) -> set[str]:
    """The JSON types a value may have."""
    return {str(alternative.get("type", "object")) for alternative in alternatives_of(schema)}


def _one(schema: dict[str, Any]) -> str:
    if named := choices(schema):
        return f"one of {', '.join(named)}" if len(named) > 2 else " or ".join(named)
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return f"{_NUMBERS[kind]}{_range(schema)}"
        case "array":
            count = f"{schema.get('minItems', 0)} to {schema['maxItems']} " if "maxItems" in schema else ""
            return f"a list of {count}{_items(schema['items'])}"
        case "string":
            return _PATTERNS[schema.get("pattern", suite.NOT_BLANK)]
        case _:
            return "names with texts as their values" if has_free_names(schema) else "a group of keys"


def _items(schema: dict[str, Any]) -> str:
    if schema.get("type") in _NUMBERS:
        return f"{_NUMBERS[schema['type']].removeprefix('a ')}s{_range(schema)}"
    plural = _PLURALS.get(schema.get("pattern", suite.NOT_BLANK))
    return plural if plural and not choices(schema) else f"items, each {expected(schema)}"


def _range(schema: dict[str, Any]) -> str:
    low, above, high = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if above is not None:
        return f" above {above:g}" + (f", at most {high:g}" if high is not None else "")
    return "" if low is None else f", at least {low:g}" if high is None else f" from {low:g} to {high:g}"


def _inside(schema: dict[str, Any], step: int | str, model: type[BaseModel]) -> dict[str, Any]:
    schema = _resolved(schema, model)
    if isinstance(step, str):
        found = (it for it in (_resolved(it, model) for it in alternatives_of(schema)) if "properties" in it)
        member: dict[str, Any] = _members(next(found, schema), step)
        return member
    lists = (alternative["items"] for alternative in alternatives_of(schema) if alternative.get("type") == "array")
    return next(lists)


def _members(schema: dict[str, Any], name: str) -> Any:
    return schema.get("properties", {}).get(name) or _of_free_names(schema)


def _of_free_names(schema: dict[str, Any]) -> dict[str, Any] | None:
    """What the values of a group must be whose keys are names of the user's own; nothing where there is none."""
    for alternative in alternatives_of(schema):
        for value in alternative.get("patternProperties", {}).values():
            return dict(value)
    return None


def free_names(schema: dict[str, Any]) -> str:
    """What the keys of such a group must be."""
    return next(_PATTERNS[pattern] for each in alternatives_of(schema) for pattern in each.get("patternProperties", ()))


def has_free_names(schema: dict[str, Any]) -> bool:
    """Whether a value may be a group whose keys are names of the user's own."""
    return _of_free_names(schema) is not None


def _resolved(schema: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    target: dict[str, Any] = raw(model)["$defs"][schema["$ref"].rpartition("/")[2]]
    return target


def tables() -> dict[str, str]:
    """A Markdown table by the mark between whose comments it stands."""
    return {
        "project": _table(ProjectConfig, set(ProjectKeys.model_fields)),
        "suite": _table(SuiteConfig, set(SuiteKeys.model_fields)),
        "shared": _table(ProjectConfig, set(SharedSettings.model_fields)),
    }


def _table(model: type[Config], fields: set[str]) -> str:
    rows = [_row(key, model) for key in keys(model) if key.attributes[0] in fields]
    return "\n".join(["| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows])


def _row(key: ConfigKey, model: type[Config]) -> str:
    value = expected(fragment(model, key.path))
    cells = [f"`{key.dotted}`", value, _default(key), key.field.description or ""]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(key: ConfigKey) -> str:
    default = None if key.group else key.field.get_default()
    return "" if default is None else f"`{json.dumps(default)}`"
