"""Settings that are given above the suites: on the command line, as inputs of a workflow, in the environment.

A row of `Overrides` names a key and where it can be given. The options of the commands are made from the rows, `read`
reads inputs and variables by them, and `apply` is the only way in which they change a suite.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from zelda_ci.config import loader
from zelda_ci.config.loader import MappingNode, plain_value, value_of
from zelda_ci.config.messages import Rejected, shown
from zelda_ci.config.schema import ConfigKey, ProjectConfig, fragment, keys, type_names, unknown
from zelda_ci.config.validation import OUR_OWN, requirement
from zelda_ci.domain.base import Record, Setting
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import TrialSetting
from zelda_ci.errors import ConfigError
from zelda_ci.redact import Redactor

T = TypeVar("T")
Kind = Literal["option", "input", "variable"]
NAMES: dict[Kind, str] = {"option": "option", "input": "input", "variable": "environment variable"}


@dataclass(frozen=True)
class Given(Generic[T]):
    """A value, and where it was given."""

    value: T
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"The {NAMES[self.kind]} {self.name}"


class UserKeys(Setting):
    """What no file of a project may say: it is about the user's machine."""

    accept_isolation: Literal["landlock"] | None = Field(
        None, description="Accept this isolation level, at which runs are your own user's, where there is no better."
    )


@dataclass(frozen=True)
class Override:
    """A key that can be given above the suites: the names under which, as far as there are any, and the commands."""

    key: str
    option: str | None = None
    input: str | None = None
    variable: str | None = None
    commands: tuple[str, ...] = ("run", "check")
    help: str | None = None
    """Of the option, where the description of the key does not fit."""
    none: str | None = None
    """The word for an empty list."""
    model: type[ProjectConfig | UserKeys] = ProjectConfig
    """Where the key is declared."""

    def name(self, kind: Kind) -> str | None:
        return {"option": self.option, "input": self.input, "variable": self.variable}[kind]

    @property
    def place(self) -> ConfigKey:
        """The key where it is declared."""
        return next(key for key in keys(self.model) if key.dotted == self.key)

    @property
    def schema(self) -> dict[str, Any]:
        """What the files allow as its value."""
        return fragment(self.model, self.place.path)


def _network(phase: str, whose: str) -> Override:
    return Override(
        f"isolation.network.{phase}",
        option=f"--network-{phase}",
        input=f"network-{phase}",
        variable=f"ZELDA_NETWORK_{phase.upper()}",
        help=f"Network of {whose}, overrides the suites.",
    )


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """What was given; a field is absent where the suites decide."""

    trials: Annotated[
        Given[TrialSetting] | None,
        Override(
            "trials",
            option="--trials",
            input="trials",
            commands=("run",),
            help="Trials of each suite: a number, adaptive, or a plan such as '{first: 3, looks: [6, 10, 16]}'; "
            "overrides the suite. Without --against, adaptive and plans are one trial.",
        ),
    ] = None
    model: Annotated[
        Given[str] | None,
        Override(
            "execution.model",
            option="--model",
            help="Model of the sessions: its full id; overrides the suites.",
        ),
    ] = None
    max_cost_usd: Annotated[Given[float] | None, Override("execution.maxCostUsd", input="max-cost-usd")] = None
    effort: Annotated[Given[str] | None, Override("execution.effort", option="--effort", input="effort")] = None
    max_thinking_tokens: Annotated[
        Given[int] | None, Override("execution.maxThinkingTokens", option="--max-thinking-tokens")
    ] = None
    request_keys: Annotated[
        Given[tuple[str, ...]] | None, Override("execution.requestKeys", variable="ZELDA_REQUEST_KEYS")
    ] = None
    fail_on: Annotated[Given[tuple[str, ...]] | None, Override("gate.failOn", input="fail-on", none="never")] = None
    isolation: Annotated[
        Given[str] | None,
        Override(
            "isolation.level",
            option="--isolation",
            input="isolation-level",
            variable="ZELDA_ISOLATION",
            help="Isolation level, overrides the suites.",
        ),
    ] = None
    require_isolation: Annotated[
        Given[str] | None,
        Override(
            "isolation.require",
            option="--require-isolation",
            input="isolation-require",
            variable="ZELDA_REQUIRE_ISOLATION",
        ),
    ] = None
    network_setup: Annotated[Given[str] | None, _network("setup", "the setup command")] = None
    network_session: Annotated[Given[str] | None, _network("session", "the session's own tools")] = None
    network_build: Annotated[Given[str] | None, _network("build", "the build command")] = None
    network_test: Annotated[Given[str] | None, _network("test", "the test command")] = None
    read_paths: Annotated[
        Given[tuple[str, ...]] | None,
        Override(
            "isolation.readPaths",
            option="--read-paths",
            input="read-paths",
            variable="ZELDA_READ_PATHS",
            help="The folders besides system and toolchains that may be read, or none; overrides the suites.",
            none="none",
        ),
    ] = None
    pass_env: Annotated[
        Given[tuple[str, ...]] | None,
        Override(
            "execution.env",
            option="--pass-env",
            input="pass-env",
            variable="ZELDA_PASS_ENV",
            help="The variables that are passed on, by name, or none; overrides the suites.",
            none="none",
        ),
    ] = None
    accept_isolation: Annotated[
        Given[str] | None,
        Override(
            "acceptIsolation",
            option="--accept-isolation",
            input="accept-isolation",
            variable="ZELDA_ACCEPT_ISOLATION",
            model=UserKeys,
        ),
    ] = None
    gateway_url: Annotated[
        Given[str] | None, Override("gatewayUrl", input="gateway-url", variable="PORTKEY_GATEWAY_URL")
    ] = None
    judge_model: Annotated[
        Given[str] | None,
        Override(
            "judgeModel",
            option="--judge-model",
            commands=("run", "check", "rejudge"),
            help="Judge with this model: its full id; overrides the suites, or what the run was configured with.",
        ),
    ] = None

    def above(self, other: "Overrides") -> "Overrides":
        """Both; where both give a value, this one's."""
        return replace(other, **{field: given for field, _, given in self.entries()})

    def entries(self) -> Iterator[tuple[str, Override, Given[Any]]]:
        """Field, row and value of what was given."""
        for field, row in ROWS.items():
            if given := getattr(self, field):
                yield field, row, given

    def problems(self) -> list[str]:
        """A sentence about each value that the files would not allow either."""
        return [problem for _, row, given in self.entries() if (problem := _problem(row, given))]


# Field of `Overrides` → its row.
ROWS: dict[str, Override] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Overrides, include_extras=True).items()
}


def read(kind: Kind, text: Callable[[str], str | None]) -> Overrides:
    """What was given as inputs or variables.

    Args:
        kind: Which of them.
        text: The text under a name; empty or absent where nothing was given.
    """
    names = [(field, row, name) for field, row in ROWS.items() if (name := row.name(kind))]
    texts = [(field, row, name, text(name)) for field, row, name in names]
    return Overrides(**{field: Given(parsed(row, raw), kind, name) for field, row, name, raw in texts if raw})


def apply(suite: ResolvedSuite, overrides: Overrides) -> ResolvedSuite:
    """The suite with what was given in place of its own settings.

    Raises:
        ConfigError: Values that cannot be used, all of them at once.
    """
    problems = overrides.problems()
    if problems:
        raise ConfigError("\n".join(problems), hint="Nothing was run.", code="OVERRIDE_INVALID")
    for row, given in ((row, given) for _, row, given in overrides.entries() if row.model is ProjectConfig):
        # What is passed on is one thing, a value that the suite gives itself another.
        value = suite.execution.passing_on(given.value) if given is overrides.pass_env else given.value
        if isinstance(value, dict):  # spelled as in the files
            kind: Any = row.place.field.annotation
            value = TypeAdapter(kind).validate_python(value)
        suite = _with(suite, row.place.attributes, value)
    # In a suite whose values are settled, both spellings of the judge's model say the same.
    judge = suite.judge.replace(model=suite.judge_model)
    # Who names one model wants that one asked.
    return suite.replace(judge=judge.replace(models=()) if overrides.judge_model else judge)


R = TypeVar("R", bound=Record)


def _with(record: R, path: tuple[str, ...], value: object) -> R:
    field, *inner = path
    return record.replace(**{field: _with(getattr(record, field), tuple(inner), value) if inner else value})


def words(text: str) -> tuple[str, ...]:
    """A list, separated by commas, blanks or line breaks."""
    return tuple(dict.fromkeys(filter(None, re.split(r"[\s,]+", text))))


def parsed(row: Override, text: str) -> Any:
    """The value that a text stands for; the text itself where it is none, which is then a problem."""
    types = type_names(row.schema)
    if "object" in types and text.lstrip().startswith("{"):
        return _group(text)
    if "array" in types:
        items = words(text)
        return () if items == (row.none,) else items
    value = plain_value(text)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and types & {"integer", "number"} else text


def _group(text: str) -> Any:
    """A group of keys, spelled as in the files; the text itself where it is none."""
    try:
        node, problems = loader.parse(text, "")
    except Rejected:
        return text
    return value_of(node) if isinstance(node, MappingNode) and not problems else text


def _problem(row: Override, given: Given[Any]) -> str | None:
    values: Any = given.value
    for step in reversed(row.place.path):
        values = {step: values}
    try:
        row.model.model_validate(values, strict=True, by_alias=True, by_name=False)
    except ValidationError as exc:
        # Of the alternatives of a type, the one that came furthest is what the user meant.
        deepest = max(exc.errors(), key=lambda error: (len(error["loc"]), error["type"] in OUR_OWN))
        wanted = _wanted(row, given.value, deepest) + (f", or {row.none} alone" if row.none else "")
        # A variable may hold a secret that was meant for another.
        value = "" if given.kind == "variable" else f" is {_shown(given.value)}, which"
        return f"{given}{value} cannot be used: {wanted}."
    return None


def _wanted(row: Override, value: Any, error: Any) -> str:
    """What is wanted of the value, or of the key in it that is wrong."""
    path = row.place.path
    for step in error["loc"][len(path) :] if isinstance(value, dict) else ():
        inside = value.get(step) if isinstance(value, dict) else None
        if inside is not None:
            path, value = (*path, step), inside
    if error["type"] == "extra_forbidden":
        return unknown(path[-1], path[:-1], ProjectConfig)
    inner = ".".join(path[len(row.place.path) :])
    return f"{inner or 'it'} {requirement(fragment(row.model, path), error)}"


def _shown(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    if isinstance(value, dict):  # as one would write it
        text = json.dumps(value, default=str).replace('"', "")
    return ascii(shown(Redactor()(text)))
