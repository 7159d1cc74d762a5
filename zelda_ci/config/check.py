"""The values of a file against its model: every problem at its place, in a sentence."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from zelda_ci.config.merge import NO_COMMAND, Layer, Model
from zelda_ci.config.messages import MAX_PER_FILE, ConfigProblem, config_problem, nearest, shown
from zelda_ci.config.schema import unknown
from zelda_ci.config.source import Ambiguous, Path, Source, plain_value
from zelda_ci.domain import variables
from zelda_ci.domain.suite import (
    MODEL_ID,
    NAME,
    NO_BLANKS,
    NOT_BLANK,
    REQUEST_KEY,
    SHELL,
    VALUE,
    VARIABLE,
    WEB_ADDRESS,
    MetricSwitches,
)
from zelda_ci.named_secrets import is_secret_name

KEPT_ELSEWHERE = (
    "which does not belong in a file: keep it in an environment variable (Zelda itself reads ANTHROPIC_API_KEY, and "
    "PORTKEY_API_KEY for the gateway)"
)
LOOKS_SECRET = f"looks like a credential, {KEPT_ELSEWHERE}"

# pydantic's kinds of errors in our words; what is in braces is the error's context.
_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "model_type": "a group of keys",
    "dict_type": "a group of keys",
    "literal_error": "{expected}",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "string_pattern_mismatch": "{pattern}",
}
PATTERNS = {
    NOT_BLANK: "text",
    NAME: "at most 60 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
    REQUEST_KEY: "the name of a key: small letters, digits and underscores",
    MODEL_ID: "the full id of a model, such as claude-sonnet-5-5, not an alias",
    NO_BLANKS: "the id of a model, without spaces",
    VARIABLE: "the name of an environment variable, without a value",
    SHELL: "bash, sh, or a program with options to which the line is added, such as bash -c,",
    VALUE: "text",
    WEB_ADDRESS: "an http:// or https:// address without user name, query and fragment",
}


def check(model: type[Model], source: Source) -> tuple[Model, Iterator[ConfigProblem]]:
    """The top-level keys of a file that are right, and what is wrong with the others."""
    values = source.values
    try:
        return _validated(model, values), iter(())
    except ValidationError as error:
        found = _by_place(values, error)
    wrong = {path[0] for path in found}
    places = {path: source.keys[path] if _is_about_key(errors) else source.at[path] for path, errors in found.items()}
    # To guess what was meant takes a while, and nobody reads thousands of guesses.
    problems = (
        config_problem(source.file, places[path], _sentence(model, source, path, errors, guesses=at < MAX_PER_FILE))
        for at, (path, errors) in enumerate(found.items())
    )
    return _validated(model, {key: value for key, value in values.items() if key not in wrong}), problems


def problem_of(model: type[BaseModel], path: tuple[str, ...], value: Any) -> str | None:
    """What the files would say about the value of a key that was given elsewhere, if it is wrong."""
    values = value
    for step in reversed(path):
        values = {step: values}
    try:
        _validated(model, values)
    except ValidationError as error:
        found = _by_place(values, error)
        place, errors = max(found.items(), key=lambda item: len(item[0]))
        return _sentence(model, Source(values=values), place, errors)
    return None


def _validated(model: type[Any], values: Any) -> Any:
    return model.model_validate(values, strict=True, extra="forbid", by_alias=True, by_name=False)


def _by_place(values: Any, error: ValidationError) -> dict[Path, list[Any]]:
    """Errors by the path in the file that they are about; of a union, the member that came furthest."""
    found: dict[Path, list[Any]] = {}
    for each in error.errors(include_url=False):
        found.setdefault(_place(values, each["loc"], each["input"]), []).append(each)
    passed = {path[:length] for path in found for length in range(len(path))}
    return {path: errors for path, errors in found.items() if path not in passed}


def _place(values: Any, location: Path, culprit: Any) -> Path:
    """The path of a location in the file; pydantic's also name the members of unions, as a key of the file may."""
    trail: list[tuple[Path, Any]] = [((), values)]
    for step in location:
        path, value = trail[-1]
        if step in value if isinstance(value, dict) else isinstance(value, tuple) and isinstance(step, int):
            trail.append(((*path, step), value[step]))
    if location[-1] == "[key]":
        return trail[-1][0]
    return next((path for path, value in reversed(trail) if value == culprit), trail[-1][0])


def _is_about_key(errors: list[Any]) -> bool:
    return any(error["type"] == "extra_forbidden" or error["loc"][-1] == "[key]" for error in errors)


def _sentence(model: type[BaseModel], source: Source, path: Path, errors: list[Any], *, guesses: bool = True) -> str:
    *level, last = map(str, path)
    name = ".".join(step for step in path if isinstance(step, str))
    for step in path:
        name = f"item {step + 1} of {name}" if isinstance(step, int) else name
    if errors[0]["loc"][-1] == "[key]":
        name = f"{'.'.join(level)}: {shown(last)}"
    if errors[0]["type"] == "extra_forbidden":
        is_secret = is_secret_name(last) and isinstance(source.value(path), str)
        if is_secret:
            return f"{shown(last)} {LOOKS_SECRET}"
        return unknown(last, tuple(level), model) if guesses else f"{shown(last)} is not a known key"
    # Of a union, the member that takes values of this kind says what is wrong with this one.
    exact = [error for error in errors if not error["type"].endswith("_type") and error["type"] != "literal_error"]
    if own := [error["msg"] for error in exact if error["type"] not in _WANTED]:
        return f"{name} {own[-1]}"
    errors = exact or errors
    *others, wanted = dict.fromkeys(map(_wanted, errors))
    wanted = f"{', '.join(others)} or {wanted}" if others else wanted
    words = [word for error in errors for word in re.findall("'([^']*)'", error.get("ctx", {}).get("expected", ""))]
    value = source.value(path)
    written = source.texts.get(path, value.text if isinstance(value, Ambiguous) else str(value))
    return f"{name} must be {wanted}{_instead(value, shown(written), {error['type'] for error in errors}, words)}"


def _wanted(error: Any) -> str:
    context = {**error.get("ctx", {})}
    if pattern := context.get("pattern"):
        context["pattern"] = PATTERNS[pattern]
    return _WANTED[error["type"]].format(**context).replace("'", "")


def _instead(value: Any, written: str, kinds: set[str], words: list[str]) -> str:
    """What is there instead, and how to mend it."""
    match value:
        case None | "":
            return ", not empty"
        case dict():
            advice = ": a colon followed by a space makes a key, so put the whole text in quotes"
            return ", not a group of keys" + (advice if "string_type" in kinds else "")
        case tuple():
            return f", not {len(value)}" if {"too_short", "too_long"} & kinds else ", not a list"
        case str() if near := nearest(value, words):
            return f" (did you mean {near}?)"
        case str() if isinstance(plain_value(value), bool | int | float):
            return ", not text: remove the quotes"
        case str():
            return ", not text" if any(kind.endswith("_type") for kind in kinds) else ""
        case _ if "string_type" in kinds:
            return f": put {written} in quotes"
        case Ambiguous() if kinds & {"int_type", "float_type"}:
            return f", not {written}: write it in plain digits"
        case _:
            return f", not {written}"


# What is measured or written while the tests run.
OF_TESTS = ("coverageThreshold", "testReport", "coverageReport")


def across(project: Layer[Any], suites: Sequence[Layer[Any]], *, complete: bool) -> Iterator[ConfigProblem]:
    """Keys that mean nothing beside others, of this file or of the other one.

    Args:
        project: The project's file.
        suites: The suites' files.
        complete: Whether these are all of them, or some could not be used.
    """
    everything = {field.alias for field in MetricSwitches.model_fields.values()}
    for suite in suites:
        # A key of the project that concerns tests may be meant for those suites that have a command.
        if not (_tests(suite) if "testCommand" in suite.places else _tests(project)):
            yield from _without_tests(suite, "the suite has no testCommand")
        switches = {**(project.values().get("metrics") or {}), **(suite.values().get("metrics") or {})}
        if {name for name, on in switches.items() if on is False} == everything:
            layer = suite if "metrics" in suite.places else project
            yield config_problem(
                layer.file, layer.places["metrics"], "metrics are all off: leave at least one of them on"
            )
    if complete and suites and not _tests(project) and not any(map(_tests, suites)):
        yield from _without_tests(project, "no suite has a testCommand")
    for layer in (project, *suites):
        execution = layer.config.execution
        for name in execution.env:
            has_value = name in execution.variables
            why = variables.refusal(name, has_value=has_value)
            if why is None and has_value and is_secret_name(name):
                why = f"looks like a credential: set {name} where Zelda is started, and leave the value out here"
            if why:
                place = layer.places.get(f"execution.env.{name}") or layer.places.get("execution.env")
                yield config_problem(layer.file, place, f"execution.env: {name} {why}")


def _tests(layer: Layer[Any]) -> bool:
    """Whether the file gives a command; one that is wrong is told about elsewhere."""
    return "testCommand" in layer.places and layer.values().get("testCommand") not in ((), NO_COMMAND)


def _without_tests(layer: Layer[Any], why: str) -> Iterator[ConfigProblem]:
    for key in OF_TESTS:
        if key in layer.places and layer.values().get(key) not in {None, ()}:
            yield config_problem(layer.file, layer.places[key], f"{key} has no effect: {why}")
