"""The two files a user writes: their keys."""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from zelda_ci import __version__
from zelda_ci.config.source import folded, is_alike, nearest, shown
from zelda_ci.domain import suite
from zelda_ci.domain.base import HEAD, UNDECIDED, KeyDecision, KeySources, Record, Setting, base

CONFIG_FILE = "zelda.config.yaml"
MAX_PROMPTS = 500


class ProjectKeys(Setting):
    """Keys that only the project's configuration has."""

    test_dir: Annotated[suite.SourcePath, HEAD] = "zelda"
    """Folder of the suites: every file test-*.yaml in it or below is a suite."""
    results_dir: Annotated[suite.ProjectPath, base("would have said where Zelda writes")] = ".zelda"
    """Folder for results, with a .gitignore for all in it."""
    gateway_url: Annotated[
        suite.WebAddress | None,
        base("would have sent the gateway's key and all that is judged to another address"),
        KeySources(input="gateway-url", variable="PORTKEY_GATEWAY_URL"),
    ] = Field(None, examples=["https://api.portkey.ai"])
    """Portkey gateway to the judge's model; the key comes from PORTKEY_API_KEY."""


class UserKeys(Setting):
    """What no file of a project may say: it is about the user's machine."""

    accept_isolation: Annotated[
        Literal["landlock"] | None, KeySources("--accept-isolation", "accept-isolation", "ZELDA_ACCEPT_ISOLATION")
    ] = None
    """Accept this level, at which runs are your own user's, where there is no better; an option is remembered."""


class ProjectConfig(suite.SharedSettings, ProjectKeys):
    """Zelda CI: settings of a project, which each suite may override."""


class Matrix(Setting):
    """What a suite is made of several times with."""

    model: Annotated[tuple[suite.ModelId, ...], HEAD] = ()
    """Models, each in place of execution.model."""
    effort: Annotated[tuple[suite.Effort, ...], HEAD] = ()
    """Levels, each in place of execution.effort."""
    variables: Annotated[dict[suite.RequestKey, tuple[suite.Text, ...]], HEAD] = Field(
        {}, examples=[{"greeting": ["hello", "good evening"]}]
    )
    """Texts by name: each takes the place of {{name}} in prompt and criteria."""


class SuiteKeys(Setting):
    """Keys that only a suite has."""

    name: Annotated[suite.Name | None, HEAD] = Field(None, examples=["rest-endpoint"])
    """Name of the suite, unique in the project. The default is the file's name without test- and its ending."""
    kind: Annotated[suite.SuiteKind, HEAD] = "task"
    """A task with criteria; or routing: many prompts, and what Claude Code calls first for each."""
    prompts: Annotated[tuple[suite.RoutedPrompt, ...], Field(max_length=MAX_PROMPTS), HEAD] = Field(
        (), examples=[[{"prompt": "What changed in 1.4?", "expect": "skill changelog"}]]
    )
    """Of a routing suite, the prompts: a session each, which ends with its first call of a skill, sub-agent or
    command."""
    description: Annotated[suite.Text | None, HEAD] = Field(None, examples=["Adding an endpoint follows our rules."])
    """What the suite is about, for people."""
    prompt: Annotated[suite.Text | None, HEAD] = Field(None, examples=["Add a GET /health endpoint."])
    """The task that Claude Code gets."""
    prompt_file: Annotated[suite.Text | None, HEAD] = Field(None, examples=["prompts/health-endpoint.md"])
    """File that holds the prompt, relative to the suite's file, in the project; instead of prompt."""
    acceptance_criteria: Annotated[tuple[suite.Text, ...], HEAD] = Field((), examples=[["GET /health answers 200."]])
    """What must be true of the result: one checkable sentence each."""
    must_pass: Annotated[tuple[suite.Text, ...], HEAD] = Field((), examples=[["All tests pass."]])
    """Criteria like acceptanceCriteria, and the check is red where one fails, whatever the base does."""
    answer_criteria: Annotated[tuple[suite.Text, ...], HEAD] = Field((), examples=[["It says what is left."]])
    """What must be true of what the session says. Only for these are its own words evidence."""
    checks: Annotated[tuple[suite.SuiteCheck, ...], HEAD] = Field(
        (), examples=[[{"called": "Skill(changelog)"}, {"changedOnly": ["src/**"]}]]
    )
    """Criteria that need no judge: calls, hooks, changes and words of the session, and commands."""
    tags: Annotated[tuple[suite.Text, ...], HEAD] = Field((), examples=[["backend"]])
    """Words by which suites can be chosen."""
    matrix: Matrix = Matrix()
    """Makes a suite of each combination: their names have the values behind the suite's own."""
    skip: Annotated[suite.Text | None, base("would have kept a suite from being run")] = Field(
        None, examples=["Waits for the new API."]
    )
    """Why the suite is not run for now. On a pull request that of the base counts."""
    only: Annotated[bool, HEAD] = False
    """Run this suite alone, with others that say so, while you work on it; zelda ci refuses it."""


PROMPT_KEYS = ("prompt", "promptFile", "prompts")


class SuiteConfig(suite.SharedSettings, SuiteKeys):
    """Zelda CI: one suite. Keys that the project's configuration has too override it, key by key.

    Only keys in `model_fields_set`, at every level, were given: the defaults here mean nothing.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in PROMPT_KEYS]})


Config = suite.SharedSettings  # either of the two
FILES: dict[str, type[Config]] = {"zelda.config.schema.json": ProjectConfig, "zelda.suite.schema.json": SuiteConfig}
REPOSITORY = "zelda-ci/zelda-ci"


def address(file: str) -> str:
    """Where an editor finds a schema: the one of this version."""
    return f"https://raw.githubusercontent.com/{REPOSITORY}/v{__version__}/schemas/{file}"


@dataclass(frozen=True)
class ConfigKey:
    """A key that a file can have; `group` is the model of its value where that holds keys itself."""

    path: tuple[str, ...]
    attributes: tuple[str, ...]
    """The path in Python's spelling."""
    field: FieldInfo
    owner: type[BaseModel]
    group: type[BaseModel] | None
    decisions: tuple[KeyDecision, ...]

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    @property
    def decision(self) -> KeyDecision:
        """Who decides about it on a pull request."""
        return self.decisions[-1] if self.decisions else UNDECIDED

    @property
    def description(self) -> str:
        """The text below it in the source; of a group, what its class says."""
        groups = (group for group in self.owner.__mro__ if issubclass(group, Record))
        texts = (_texts(group.__module__).get((group.__name__, self.attributes[-1])) for group in groups)
        return " ".join((self.field.description or next(filter(None, texts), "")).split())

    @property
    def sources(self) -> KeySources | None:
        return next((each for each in self.field.metadata if isinstance(each, KeySources)), None)


@cache
def _texts(module: str) -> Mapping[tuple[str, str], str]:
    """The text below each field of a module's classes: pydantic, which can read it too, would do so at every start."""
    found = {}
    for group in (it for it in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(it, ast.ClassDef)):
        for field, text in pairwise(group.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found[group.name, field.target.id] = str(ast.literal_eval(text.value))
    return found


@cache
def keys(model: type[BaseModel]) -> tuple[ConfigKey, ...]:
    """Every key of a model at every level, in the order of declaration, a group before its members."""
    return tuple(_walk(model))


def _walk(model: type[BaseModel], above: ConfigKey | None = None) -> Iterator[ConfigKey]:
    path, attributes, decisions = (above.path, above.attributes, above.decisions) if above else ((), (), ())
    for name, field in model.model_fields.items():
        kind = field.annotation
        group = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        own = tuple(each for each in field.metadata if isinstance(each, KeyDecision))
        key = ConfigKey((*path, field.alias or name), (*attributes, name), field, model, group, (*decisions, *own))
        yield key
        if group:
            yield from _walk(group, key)


def entries(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Every value of a model by its dotted key, groups taken apart, in the order of declaration."""
    for key in keys(type(model)):
        if key.group is None:
            yield key.dotted, attrgetter(".".join(key.attributes))(model)


def kinds(annotation: Any) -> list[Any]:
    """The types that a value may have, those of lists as they are, choices as their `Literal`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return kinds(get_args(annotation)[0])
    if origin in {Union, UnionType}:
        return [kind for member in get_args(annotation) for kind in kinds(member)]
    return [] if annotation is NoneType else [annotation]


def choices(annotation: Any) -> list[Any]:
    """The values among which one must be; none where it is free."""
    return [value for kind in kinds(annotation) if get_origin(kind) is Literal for value in get_args(kind)]


def group_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a group of keys that a value, or an item of a list, may be."""
    every = [inner for kind in kinds(annotation) for inner in (kind, *get_args(kind))]
    return next((kind for kind in every if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def unknown(name: str, level: tuple[str, ...], model: type[BaseModel]) -> str:
    """A sentence about a key that does not exist at this level, with the best guess at what was meant."""
    every, group = keys(model), model
    for step in level:
        named = (group_of(field.annotation) for field in group.model_fields.values() if field.alias == step)
        group = next(filter(None, named), Setting)
    here = [str(field.alias) for field in group.model_fields.values()]
    joined = [key.name for key in every if folded(key.dotted) == folded("".join((*level, name)))]
    # Whoever writes `model` means the one of every run before those of a matrix.
    groups = sorted((".".join(key.path[:-1]) for key in every if key.name == name), key=lambda group: group == "matrix")
    mistyped = next((key for key in here if is_alike(name, key)), None) if groups else None
    if groups and not joined and not mistyped:
        where = "at the top level" if "" in groups else f"under {' or '.join(groups)}"
        return f"{shown(name)} is not a known key here: it belongs {where}"
    for other, file in ((SuiteConfig, "a suite (test-*.yaml)"), (ProjectConfig, CONFIG_FILE)):
        if not level and issubclass(model, Config) and any(key.path == (name,) for key in keys(other)):
            return f"{name} is not a known key here: it belongs in {file}"
    names = {**{key.name: key.dotted for key in reversed(every)}, **{name: name for name in here}}
    if near := next(iter(joined), mistyped) or nearest(name, here) or nearest(name, [key.name for key in every]):
        return f"{shown(name)} is not a known key (did you mean {names[near]}?)"
    choice = f" of {'.'.join(level)}; it has {', '.join(here)}" if 0 < len(here) <= 8 else ""
    return f"{shown(name) or 'an empty word'} is not a known key{choice}"
