"""Defaults, project and suite become one: the nearest value wins, key by key, and says where it came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from zelda_ci.config import schema
from zelda_ci.config.messages import Position
from zelda_ci.config.schema import Config
from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import ResolvedSuite

# Another way to write an empty list.
NO_COMMAND = "none"
_COMMANDS = ("setupCommand", "buildCommand", "testCommand")


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
class Layer:
    """What one file gives: its values and, by dotted key, where they stand."""

    file: str
    config: Config
    places: Mapping[str, Position]

    def values(self) -> dict[str, Any]:
        """The keys that were given, at every level, and no others."""
        return self.config.model_dump(by_alias=True, exclude_unset=True)

    def origin(self, key: str) -> Origin | None:
        """Where a key stands in the file."""
        place = self.places.get(key)
        return Origin(self.file, place.line) if place else None


@dataclass(frozen=True)
class Identity:
    """Name and prompt of a suite, with the file and line they come from."""

    file: str
    name: str
    name_origin: Origin
    prompt: str
    prompt_origin: Origin


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with every value settled, and by dotted key where each came from."""

    resolved: ResolvedSuite
    provenance: Mapping[str, Origin]
    skip: str | None = None
    """Why it is not run."""
    only: bool = False
    """Whether it is to run without those that do not say so."""


def resolve(identity: Identity, *layers: Layer) -> LoadedSuite:
    """Merge the layers, the strongest first."""
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        values = _merged(values, layer.values())
    settled = {key: value for key, value in values.items() if key in _RESOLVED and not _no_command(key, value)}
    settled |= {"file": identity.file, "name": identity.name, "prompt": identity.prompt}
    own = layers[0].config
    skip, only = getattr(own, "skip", None), getattr(own, "only", False)
    return LoadedSuite(ResolvedSuite.model_validate(settled), dict(_origins(identity, layers)), skip, only)


_RESOLVED = frozenset(field.alias for field in ResolvedSuite.model_fields.values())


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return {**below, **above, **both}


def _no_command(key: str, value: Any) -> bool:
    return key in _COMMANDS and value in ((), NO_COMMAND)


def _origins(identity: Identity, layers: tuple[Layer, ...]) -> Iterator[tuple[str, Origin]]:
    settled = {"name": identity.name_origin, "prompt": identity.prompt_origin}
    for key in schema.keys(ResolvedSuite):
        if key.group is None and key.name != "file":
            given = (layer.origin(key.dotted) for layer in layers)
            yield key.dotted, settled.get(key.dotted) or next(filter(None, given), DEFAULT)


R = TypeVar("R", bound=Record)


def with_value(record: R, path: tuple[str, ...], value: object) -> R:
    """A copy with another value in a field, which is named by its path through the groups."""
    field, *inner = path
    return record.replace(**{field: with_value(getattr(record, field), tuple(inner), value) if inner else value})
