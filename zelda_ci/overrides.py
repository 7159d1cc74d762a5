"""Settings that are given above the suites: on the command line, as inputs of a workflow, in the environment.

The `KeySources` of a key say where it can be given: options, inputs and variables are made from them, and `apply` alone
changes a suite by what was given.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_origin

from pydantic.fields import FieldInfo

from zelda_ci.config.document import problem_of
from zelda_ci.config.schema import ConfigKey, ProjectConfig, UserKeys, group_of, keys, kinds
from zelda_ci.config.source import Rejected, plain_value, printable
from zelda_ci.config.source import read as read_yaml
from zelda_ci.config.suites import with_value
from zelda_ci.domain.base import KeySources, SourceKind
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import why_withheld
from zelda_ci.errors import ConfigError

NAMES: dict[SourceKind, str] = {"option": "option", "input": "input", "variable": "environment variable"}
# Key → where it can be given.
SOURCES: Mapping[str, tuple[ConfigKey, KeySources]] = {
    key.dotted: (key, key.sources) for model in (ProjectConfig, UserKeys) for key in keys(model) if key.sources
}
JUDGE_MODEL, ENVIRONMENT = "judgeModel", "execution.env"


def about(key: ConfigKey) -> str:
    """What an option or input of a key is for, in sentences."""
    sources = key.sources or KeySources()
    text = (sources.help or key.description) + (f" Or {sources.none}." if sources.none else "")
    return text if key in keys(UserKeys) else f"{text} Overrides the suites."


@dataclass(frozen=True)
class Given:
    """A value, and where it was given."""

    value: Any
    kind: SourceKind
    name: str

    def __str__(self) -> str:
        return f"The {NAMES[self.kind]} {self.name}"


@dataclass(frozen=True)
class Overrides:
    """What was given, by key; the suites decide about the others."""

    given: Mapping[str, Given] = field(default_factory=dict)

    def get(self, key: str) -> Given | None:
        """What was given for a key."""
        return self.given.get(key)

    def above(self, other: "Overrides") -> "Overrides":
        """Both; where both give a value, this one's."""
        return Overrides({**other.given, **self.given})

    def problems(self) -> list[str]:
        """A sentence about each value that the files would not allow either."""
        found = []
        for name, given in self.given.items():
            key, sources = SOURCES[name]
            model = ProjectConfig if key in keys(ProjectConfig) else UserKeys
            if problem := problem_of(model, key.path, given.value):
                alone = f", or {sources.none} alone" if sources.none else ""
                found.append(printable(f"{given} cannot be used: {problem}{alone}."))
            elif name == ENVIRONMENT:
                values = given.value if isinstance(given.value, dict) else dict.fromkeys(given.value)
                refused = {each: why_withheld(each, has_value=it is not None) for each, it in values.items()}
                found += [f"{given} cannot be used: {each} {why}." for each, why in refused.items() if why]
        return found


def read(kind: SourceKind, text: Callable[[str], str | None]) -> Overrides:
    """What was given as inputs or variables; the text under a name is empty or absent where nothing was."""
    names = {key: name for key, (_, sources) in SOURCES.items() if (name := getattr(sources, kind))}
    texts = {key: it for key, name in names.items() if (it := text(name))}
    return Overrides({key: Given(value_of(SOURCES[key][0].field, it), kind, names[key]) for key, it in texts.items()})


def apply(suite: ResolvedSuite, overrides: Overrides) -> ResolvedSuite:
    """The suite with what was given in place of its own settings; raises for all values at once that cannot be used."""
    if problems := overrides.problems():
        raise ConfigError("\n".join(problems), hint="Nothing was run.", code="OVERRIDE_INVALID")
    for name, given in overrides.given.items():
        key, value = SOURCES[name][0], given.value
        if key not in keys(ProjectConfig):
            continue
        if isinstance(value, dict) and (group := group_of(key.field.annotation)):
            value = group.model_validate(value)  # its keys are spelled as in the files
        if name == ENVIRONMENT:
            # What is passed on is one thing, a value that the suite gives itself another.
            own = suite.execution.variables
            value = {**dict.fromkeys(value), **own} if own else value
        suite = with_value(suite, key.attributes, value)
    if JUDGE_MODEL in overrides.given:
        # Who names one model wants that one asked.
        suite = with_value(suite, ("judge", "models"), ())
    return suite


def value_of(field: FieldInfo, text: str) -> Any:
    """The value that a text stands for: a list with commas, blanks or breaks, `12k`; else the text, then a problem."""
    types = kinds(field.annotation)
    if any(get_origin(kind) is tuple for kind in types):
        items = tuple(dict.fromkeys(filter(None, re.split(r"[\s,]+", text))))
        return () if items in [(each.none,) for each in field.metadata if isinstance(each, KeySources)] else items
    if group_of(field.annotation) and text.lstrip().startswith("{"):
        with suppress(Rejected):
            source = read_yaml(text, "")
            return text if source.problems else source.values
    if int in types and (thousands := re.fullmatch(r"([0-9]{1,6})k", text)):
        return 1000 * int(thousands[1])
    value, numbers = plain_value(text), {bool, int, float}
    return value if type(value) in numbers and numbers & set(types) else text
