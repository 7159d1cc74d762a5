"""A tree against its model: every problem in a sentence, at its position."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from zelda_ci.config import schema
from zelda_ci.config.loader import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Surprise,
    at_path,
    child,
    key_places,
    plain_value,
    value_of,
)
from zelda_ci.config.merge import NO_COMMAND, Layer
from zelda_ci.config.messages import ConfigProblem, config_problem, shown
from zelda_ci.config.schema import Config, choices, expected, fragment, free_names, has_free_names, nearest, type_names
from zelda_ci.domain import variables
from zelda_ci.domain.suite import MetricSwitches

# What is measured or written while the tests run.
OF_TESTS = ("coverageThreshold", "testReport", "coverageReport")


def untested(project: Layer, suites: Sequence[Layer], *, complete: bool) -> Iterator[ConfigProblem]:
    """Such keys without a testCommand; in the project's file they may be meant for those suites that have one.

    Args:
        project: The project's file.
        suites: The suites' files.
        complete: Whether these are all of them, or some could not be used.
    """
    for suite in suites:
        if not (_tests(suite) if "testCommand" in suite.places else _tests(project)):
            yield from _without_tests(suite, "the suite has no testCommand")
    if complete and suites and not _tests(project) and not any(map(_tests, suites)):
        yield from _without_tests(project, "no suite has a testCommand")


def switched_off(project: Layer, suites: Sequence[Layer]) -> Iterator[ConfigProblem]:
    """Suites of which nothing would be computed: what they cost would show nothing."""
    everything = {field.alias for field in MetricSwitches.model_fields.values()}
    for suite in suites:
        switches = {**_group(project, "metrics"), **_group(suite, "metrics")}
        if {name for name, on in switches.items() if on is False} == everything:
            layer = suite if "metrics" in suite.places else project
            yield config_problem(
                layer.file, layer.places["metrics"], "metrics are all off: leave at least one of them on"
            )


def _group(layer: Layer, key: str) -> dict[str, Any]:
    return layer.values().get(key) or {}


def _tests(layer: Layer) -> bool:
    """Whether the file gives a command; one that is wrong is told about elsewhere."""
    return "testCommand" in layer.places and layer.values().get("testCommand") not in ((), NO_COMMAND)


def _without_tests(layer: Layer, why: str) -> Iterator[ConfigProblem]:
    for key in OF_TESTS:
        if key in layer.places and layer.values().get(key) not in {None, ()}:
            yield config_problem(layer.file, layer.places[key], f"{key} has no effect: {why}")


def refused_variables(layers: Iterable[Layer]) -> Iterator[ConfigProblem]:
    """Variables that no session gets, whatever a file says."""
    for layer in layers:
        execution = layer.config.execution
        for name in execution.env:
            if why := variables.refusal(name, has_value=name in execution.variables):
                place = layer.places.get(f"execution.env.{name}") or layer.places.get("execution.env")
                yield config_problem(layer.file, place, f"execution.env: {name} {why}")


# Errors of our own validators: their message is a sentence already.
OUR_OWN = (
    "model_credential",
    "outside",
    "git",
    "not_absolute",
    "no_program",
    "no_port",
    "credential",
    "program_folder",
    "not_rising",
    "no_look",
)


def explain_value(path: tuple[int | str, ...], node: Node, model: type[Config], error: Any) -> str:
    """What is wrong with the value at a path."""
    if error["type"] in OUR_OWN:
        return f"{_name(path)} {error['msg']}"
    if error["loc"][-1:] == ("[key]",):
        group = fragment(model, path[:-1])
        return f"{_name(path[:-1])}: {shown(str(path[-1]))} must be {free_names(group)}"
    schema = fragment(model, path)
    return f"{_name(path)} {requirement(schema, error)}{_but(node, schema)}"


def requirement(schema: dict[str, Any], error: Any) -> str:
    """What a value must be."""
    return str(error["msg"]) if error["type"] in OUR_OWN else f"must be {expected(schema)}"


def _name(path: tuple[int | str, ...]) -> str:
    dotted = ".".join(step for step in path if isinstance(step, str))
    item = next((step for step in path if isinstance(step, int)), None)
    return dotted if item is None else f"item {item + 1} of {dotted}"


def _but(node: Node, schema: dict[str, Any]) -> str:
    """What it is instead, and how to mend it."""
    types = type_names(schema)
    match node:
        case SequenceNode() if "array" in types:
            return f", not {len(node.items)}"
        case SequenceNode():
            return ", not a list"
        case MappingNode() if "string" in types:
            return ", not a group of keys: a colon followed by a blank makes a key, so put the whole text in quotes"
        case MappingNode():
            return ", not a group of keys"
        case ScalarNode():
            return _but_word(node, schema, types)


def _but_word(node: ScalarNode, schema: dict[str, Any], types: set[str]) -> str:
    value = value_of(node)
    if value is None or value == "":
        return ", not empty"
    if not isinstance(value, str) and "string" in types and not choices(schema):
        return f": put {shown(node.text)} in quotes"
    if isinstance(value, Surprise) and types & {"integer", "number"}:
        return f", not {shown(node.text)}: write it in plain digits"
    if not isinstance(value, str):
        return f", not {shown(node.text)}"
    return _but_text(node, schema, types)


def _but_text(node: ScalarNode, schema: dict[str, Any], types: set[str]) -> str:
    near = nearest(node.text, choices(schema))
    if near:
        return f" (did you mean {near}?)"
    if not types & {"integer", "number", "boolean"}:
        return ""
    unquoted = plain_value(node.text)
    return ", not text" + (": remove the quotes" if isinstance(unquoted, bool | int | float) else "")


Model = TypeVar("Model", bound=Config)
Path = tuple[int | str, ...]


@dataclass(frozen=True)
class ValidatedTree(Generic[Model]):
    """A file's content. With problems, `config` holds the top-level keys that are right."""

    config: Model
    problems: tuple[ConfigProblem, ...]


def validate_tree(
    model: type[Model], node: MappingNode, file: str, reported: Collection[ConfigProblem] = ()
) -> ValidatedTree[Model]:
    """Validate a file's tree. An unknown key about which a problem is reported already is not reported again."""
    values: Any = value_of(node)
    config, errors = _validate(model, values)
    places = {(it.line, it.column) for it in reported}
    problems = (*_problems(model, node, file, errors, places), *_two_judges(node, file))
    if config is None:
        faulty = {_path_to(model, node, error["loc"])[:1] for error in errors}
        config, _ = _validate(model, {key: value for key, value in values.items() if (key,) not in faulty})
    return ValidatedTree(config or model(), problems)


def _validate(model: type[Model], values: Any) -> tuple[Model | None, list[Any]]:
    try:
        return model.model_validate(values, strict=True, by_alias=True, by_name=False), []
    except ValidationError as exc:
        return None, [*exc.errors(include_url=False, include_context=False, include_input=False)]


def _problems(
    model: type[Config], node: MappingNode, file: str, errors: list[Any], reported: Collection[object]
) -> Iterator[ConfigProblem]:
    for path, error in _deepest({_path_to(model, node, error["loc"]): error for error in errors}):
        if error["type"] == "extra_forbidden":
            position = _key_place(node, path)
            if (position.line, position.column) not in reported:
                yield config_problem(file, position, schema.unknown(str(path[-1]), _level(path), model))
        else:
            culprit = at_path(node, path)
            yield config_problem(file, culprit.at, explain_value(path, culprit, model, error))


def _path_to(model: type[Config], node: Node, location: Path) -> Path:
    """The part of a location that stands in the file: pydantic also names the alternatives of a type."""
    free = {key.path for key in schema.keys(model) if has_free_names(fragment(model, key.path))}
    groups = {(), *schema.groups(model), *free}
    path: Path = ()
    for step in location:
        following = child(node, step) if isinstance(step, int) or path in groups else None
        if following is not None:
            path, node = (*path, step), following
    return path


def _two_judges(node: MappingNode, file: str) -> Iterator[ConfigProblem]:
    """`judgeModel` and `judge.model` mean the same."""
    places = dict(key_places(node))
    if {"judgeModel", "judge.model"} <= places.keys():
        values: Any = value_of(node)
        if values["judgeModel"] != values["judge"]["model"]:
            lines = places["judgeModel"].line, places["judge.model"].line
            message = "judgeModel (line {}) and judge.model (line {}) name different models: keep one".format(*lines)
            yield config_problem(file, max(places["judgeModel"], places["judge.model"]), message)


def _deepest(errors: dict[Path, Any]) -> Iterable[tuple[Path, Any]]:
    """Of the alternatives of a type, the one that came furthest is what the user meant."""
    passed = {path[:length] for path in errors for length in range(len(path))}
    return ((path, error) for path, error in errors.items() if path not in passed)


def _key_place(node: Node, path: Path) -> Any:
    group = at_path(node, path[:-1])
    assert isinstance(group, MappingNode)  # noqa: S101
    return group.entries[str(path[-1])].key_at


def _level(path: Path) -> tuple[str, ...]:
    return tuple(str(step) for step in path[:-1])
