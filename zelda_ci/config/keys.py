"""Which keys a file can have, and what an unknown one was meant to be."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from zelda_ci.config.problems import LONGEST_SHOWN, shown
from zelda_ci.config.schemas import CONFIG_FILE, Config, ProjectConfig, SuiteConfig

_FEW = 8
_TELLING_START = 4


@dataclass(frozen=True)
class Key:
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
def keys(model: type[BaseModel]) -> tuple[Key, ...]:
    """Every key of a model at every level, in the order of declaration, a group before its members."""
    return tuple(_walk(model, (), ()))


def entries(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Every value of a model by its dotted key, groups taken apart, in the order of declaration."""
    for key in keys(type(model)):
        if key.group is None:
            yield key.dotted, attrgetter(".".join(key.attributes))(model)


def _walk(model: type[BaseModel], path: tuple[str, ...], attributes: tuple[str, ...]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        group = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        key = Key((*path, field.alias or name), (*attributes, name), field, group)
        yield key
        if group:
            yield from _walk(group, key.path, key.attributes)


def unknown(name: str, level: tuple[str, ...], model: type[Config]) -> str:
    """A sentence about a key that does not exist at this level, with the best guess at what was meant."""
    here = [key for key in keys(model) if key.path[:-1] == level]
    same = [key for key in keys(model) if key.name == name]
    if same:
        return f"{shown(name)} is not a known key here: it belongs {_places(same)}"
    if any(key.path == (name,) for key in keys(_other(model))):
        return f"{name} is not a known key here: it belongs in {_FILES[_other(model)]}"
    near = nearest(name, [key.name for key in here]) or _nearest_anywhere(name, model)
    if near:
        return f"{shown(name)} is not a known key (did you mean {near}?)"
    return f"{shown(name) or 'an empty word'} is not a known key{_choice(here, level)}"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most like a word, absent when none is."""
    folded = {_folded(choice): choice for choice in choices}
    sought = _folded(word[:LONGEST_SHOWN])
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


def _places(same: list[Key]) -> str:
    groups = [".".join(key.path[:-1]) for key in same]
    named = " or ".join(group for group in groups if group)
    return f"under {named}" if "" not in groups else "at the top level"


def _nearest_anywhere(name: str, model: type[Config]) -> str | None:
    near = nearest(name, [key.name for key in keys(model)])
    return next((key.dotted for key in keys(model) if key.name == near), None)


def _choice(here: list[Key], level: tuple[str, ...]) -> str:
    return f" of {'.'.join(level)}; it has {', '.join(key.name for key in here)}" if len(here) <= _FEW else ""


def _folded(word: str) -> str:
    return "".join(char for char in word.lower() if char.isalnum())
