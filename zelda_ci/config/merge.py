"""Defaults, project and suite become one: the nearest value wins, key by key, and says where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from zelda_ci.config.messages import ConfigProblem, Position, config_problem
from zelda_ci.config.schema import Config, SuiteConfig, keys
from zelda_ci.config.source import Source
from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import ResolvedSuite

# Another way to write an empty list.
NO_COMMAND = "none"
_COMMANDS = ("setupCommand", "buildCommand", "testCommand")
Model = TypeVar("Model", bound=Config)


@dataclass(frozen=True)
class Origin:
    """Where a value came from: a line of a file, a file's name, or the default."""

    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "default"
        return f"{self.file}:{self.line}" if self.line else self.file


DEFAULT = Origin()


@dataclass(frozen=True)
class Layer(Generic[Model]):
    """What one file says; with problems, it holds the top-level keys that are right."""

    file: str
    config: Model
    source: Source = field(default_factory=lambda: Source(values={}))
    places: Mapping[str, Position] = field(default_factory=dict)
    """By dotted key where those with a value stand."""
    problems: tuple[ConfigProblem, ...] = ()

    def values(self) -> dict[str, Any]:
        """The keys that were given, at every level, and no others."""
        return self.config.model_dump(by_alias=True, exclude_unset=True)

    def origin(self, key: str) -> Origin | None:
        place = self.places.get(key)
        return Origin(self.file, place.line) if place else None

    def problem(self, key: str, message: str) -> ConfigProblem:
        """Something wrong with the value of a top-level key, or with its default."""
        return config_problem(self.file, self.source.at.get((key,)), f"{key} {message}")


@dataclass(frozen=True)
class SuiteFile:
    """A suite as its file gives it; usable only without problems."""

    name: str
    prompt: str
    prompt_origin: Origin
    layer: Layer[SuiteConfig]


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with every value settled, and by dotted key where each came from."""

    resolved: ResolvedSuite
    provenance: Mapping[str, Origin]
    skip: str | None = None
    only: bool = False
    """Whether it is to run without those that do not say so."""


def resolve(suite: SuiteFile, project: Layer[Any]) -> LoadedSuite:
    """Merge the project's file and the suite's, which is the stronger one."""
    own, layers = suite.layer, (suite.layer, project)
    settled = {"file": own.file, "name": suite.name, "prompt": suite.prompt}
    origins = {"name": own.origin("name") or Origin(own.file), "prompt": suite.prompt_origin}
    for key, value in _merged(project.values(), own.values()).items():
        if key not in settled and not (key in _COMMANDS and value in ((), NO_COMMAND)):
            settled[key] = value
    names = [key.dotted for key in keys(ResolvedSuite) if key.group is None and key.name != "file"]
    given = {name: next(filter(None, (layer.origin(name) for layer in layers)), DEFAULT) for name in names}
    provenance = {**given, **origins}
    return LoadedSuite(ResolvedSuite.model_validate(settled), provenance, own.config.skip, own.config.only)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return {**below, **above, **both}


R = TypeVar("R", bound=Record)


def with_value(record: R, path: tuple[str, ...], value: object) -> R:
    """A copy with another value in a field, which is named by its path through the groups."""
    name, *inner = path
    return record.replace(**{name: with_value(getattr(record, name), tuple(inner), value) if inner else value})
