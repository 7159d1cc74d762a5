"""A tree against its model: all problems in sentences, each where it stands."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from zelda_ci.config import keys, sentences
from zelda_ci.config.nodes import Grouping, Node, at_path, child, key_places, value_of
from zelda_ci.config.problems import Problem, problem
from zelda_ci.config.schemas import Config

Model = TypeVar("Model", bound=Config)
Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Checked(Generic[Model]):
    """A file's content. With problems, `config` holds the top-level keys that are right."""

    config: Model
    problems: tuple[Problem, ...]


def check(model: type[Model], node: Grouping, file: str, told: Collection[Problem] = ()) -> Checked[Model]:
    """Validate a file's tree. An unknown key about which a problem is told already is not reported again."""
    values: Any = value_of(node)
    config, errors = _validate(model, values)
    places = {(it.line, it.column) for it in told}
    found = (*_problems(model, node, file, errors, places), *_two_judges(node, file))
    if config is None:
        faulty = {_path_to(model, node, error["loc"])[:1] for error in errors}
        config, _ = _validate(model, {key: value for key, value in values.items() if (key,) not in faulty})
    return Checked(config or model(), found)


def _validate(model: type[Model], values: Any) -> tuple[Model | None, list[Any]]:
    try:
        return model.model_validate(values, strict=True, by_alias=True, by_name=False), []
    except ValidationError as exc:
        return None, [*exc.errors(include_url=False, include_context=False, include_input=False)]


def _problems(
    model: type[Config], node: Grouping, file: str, errors: list[Any], told: Collection[object]
) -> Iterator[Problem]:
    for path, error in _deepest({_path_to(model, node, error["loc"]): error for error in errors}):
        if error["type"] == "extra_forbidden":
            at = _key_place(node, path)
            if (at.line, at.column) not in told:
                yield problem(file, at, keys.unknown(str(path[-1]), _level(path), model))
        else:
            culprit = at_path(node, path)
            yield problem(file, culprit.at, sentences.about(path, culprit, model, error))


def _path_to(model: type[Config], node: Node, location: Path) -> Path:
    """The part of a location that stands in the file: pydantic also names the alternatives of a type."""
    groups = {(), *(key.path for key in keys.keys(model) if key.group)}
    path: Path = ()
    for step in location:
        following = child(node, step) if isinstance(step, int) or path in groups else None
        if following is not None:
            path, node = (*path, step), following
    return path


def _two_judges(node: Grouping, file: str) -> Iterator[Problem]:
    """`judgeModel` and `judge.model` mean the same."""
    places = dict(key_places(node))
    if {"judgeModel", "judge.model"} <= places.keys():
        values: Any = value_of(node)
        if values["judgeModel"] != values["judge"]["model"]:
            lines = places["judgeModel"].line, places["judge.model"].line
            message = "judgeModel (line {}) and judge.model (line {}) name different models: keep one".format(*lines)
            yield problem(file, max(places["judgeModel"], places["judge.model"]), message)


def _deepest(errors: dict[Path, Any]) -> Iterable[tuple[Path, Any]]:
    """Of the alternatives of a type, the one that came furthest is what the user meant."""
    passed = {path[:length] for path in errors for length in range(len(path))}
    return ((path, error) for path, error in errors.items() if path not in passed)


def _key_place(node: Node, path: Path) -> Any:
    group = at_path(node, path[:-1])
    assert isinstance(group, Grouping)  # noqa: S101
    return group.entries[str(path[-1])].key_at


def _level(path: Path) -> tuple[str, ...]:
    return tuple(str(step) for step in path[:-1])
