"""A configuration file from disk to its keys, with every problem that is in it: a sentence, and its place."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import re2
from pydantic import BaseModel, ValidationError

from zelda_ci.config.schema import Config, unknown
from zelda_ci.config.source import (
    MAX_PER_FILE,
    Ambiguous,
    ConfigProblem,
    Position,
    Rejected,
    Source,
    Steps,
    config_problem,
    nearest,
    plain_value,
    read,
    shown,
)
from zelda_ci.domain.suite import PATTERNS, MetricSwitches
from zelda_ci.domain.workspace import why_withheld
from zelda_ci.files import untrusted
from zelda_ci.named_secrets import is_secret_name
from zelda_ci.redact import KEY_SHAPES

MAX_FILE_BYTES = 1_000_000
# Another way to write an empty list.
NO_COMMAND = "none"
Model = TypeVar("Model", bound=Config)
# What YAML itself does not allow in a file; nobody types these.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/=]{32}")
KEPT_ELSEWHERE = (
    "which does not belong in a file: keep it in an environment variable (Zelda itself reads ANTHROPIC_API_KEY, and "
    "PORTKEY_API_KEY for the gateway)"
)
# pydantic's kinds of errors in our words; what is in braces is the error's context.
_WANTED = {
    "int_type": "a whole number", "float_type": "a number", "finite_number": "a number", "bool_type": "true or false",
    "string_type": "text", "tuple_type": "a list", "model_type": "a group of keys", "dict_type": "a group of keys",
    "literal_error": "{expected}", "greater_than": "above {gt:g}", "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}", "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}", "string_pattern_mismatch": "{pattern}",
}  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """Where a value came from: a line of a file, a file's name, or the default."""

    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file or "default"


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


def read_text(path: Path, file: str) -> str:
    """The text of a file, every line break a newline, without a byte order mark; raises Rejected where it has none.

    Links are not followed, nothing is opened that could block; `file` names it in messages.
    """
    place = None
    try:
        data = untrusted.read(path, MAX_FILE_BYTES).removeprefix(b"\xef\xbb\xbf")
        text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
        if (character := _UNPRINTABLE.search(text)) is None:
            return text
        place = position(text, character.start())
        message = f"a text file cannot hold the character U+{ord(character[0]):04X}"
    except untrusted.NotRegularError:
        message = f"is {untrusted.kind_of(path) or 'something unknown'}; it must be a regular file"
    except untrusted.TooLargeError as error:
        message = f"is {error.size / MAX_FILE_BYTES:.1f} MB large; at most 1 MB is read"
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        place = position(before, len(before))
        message = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x}); save it as UTF-8"
    raise Rejected(config_problem(file, place, message))


def position(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def shaped(text: str, file: str) -> Iterator[ConfigProblem]:
    """Anything in a file, comments and prompts included, that has the shape of a well-known credential."""
    for match in islice(_shapes().finditer(text), MAX_PER_FILE):
        credential = match.group()
        if "-----BEGIN" in credential and not _BASE64_RUN.search(credential):
            continue  # the header alone is no key
        place = position(text, match.start() + len(credential) - len(credential.lstrip()))
        message = f"this has the shape of a credential, {KEPT_ELSEWHERE}"
        yield config_problem(file, place, f"{message}, and revoke the credential if the file was ever committed")


@cache
def _shapes() -> Any:
    return re2.compile("|".join(KEY_SHAPES))


def load_document(path: Path, file: str, model: type[Model]) -> Layer[Model]:
    """Read and check a file; where nothing in it can be used, there are its problems and no keys."""
    try:
        return parse_document(read_text(path, file), file, model)
    except Rejected as exc:
        return Layer(file, model(), problems=exc.problems)


def parse_document(text: str, file: str, model: type[Model]) -> Layer[Model]:
    """Check what a file says, whose path in the project is `file`; raises Rejected where nothing in it can be used."""
    leaked = tuple(shaped(text, file))
    try:
        source = read(text, file)
    except Rejected as exc:
        raise Rejected(*leaked, *exc.problems) from None
    source.values = {} if source.values is None else source.values
    if not isinstance(source.values, dict):
        what = "a list" if isinstance(source.values, tuple) else "a single text"
        message = f"the file holds {what}; it must hold keys, each followed by a colon and its value"
        raise Rejected(*leaked, *source.problems, config_problem(file, source.at[()], message))
    config, problems = check(model, source)
    places = {".".join(map(str, path)): it for path, it in source.keys.items() if source.value(path) is not None}
    return Layer(file, config, source, places, (*leaked, *source.problems, *problems))


def is_sound(text: str, model: type[Model]) -> bool:
    try:
        return not _UNPRINTABLE.search(text) and not parse_document(text, "", model).problems
    except Rejected:
        return False


def check(model: type[Model], source: Source) -> tuple[Model, Iterator[ConfigProblem]]:
    """The top-level keys of a file that are right, and what is wrong with the others."""
    values = source.values
    try:
        return _validated(model, values), iter(())
    except ValidationError as error:
        found = _by_place(values, error)
    wrong = {path[0] for path in found}
    right = _validated(model, {key: value for key, value in values.items() if key not in wrong})
    return right, _problems(model, source, found)


def _problems(model: type[Model], source: Source, found: dict[Steps, list[Any]]) -> Iterator[ConfigProblem]:
    for at, (path, errors) in enumerate(found.items()):
        is_key = any(error["type"] == "extra_forbidden" or error["loc"][-1] == "[key]" for error in errors)
        place = source.keys[path] if is_key else source.at[path]
        # To guess what was meant takes a while, and nobody reads thousands of guesses.
        yield config_problem(source.file, place, _sentence(model, source, path, errors, guesses=at < MAX_PER_FILE))


def problem_of(model: type[BaseModel], path: tuple[str, ...], value: Any) -> str | None:
    """What the files would say about the value of a key that was given elsewhere, if it is wrong."""
    value = reduce(lambda inner, step: {step: inner}, reversed(path), value)
    try:
        _validated(model, value)
    except ValidationError as error:
        place, errors = max(_by_place(value, error).items(), key=lambda item: len(item[0]))
        return _sentence(model, Source(values=value), place, errors)
    return None


def _validated(model: type[Any], values: Any) -> Any:
    return model.model_validate(values, strict=True, extra="forbid", by_alias=True, by_name=False)


def _by_place(values: Any, error: ValidationError) -> dict[Steps, list[Any]]:
    """Errors by the path in the file that they are about; of a union, the member that came furthest."""
    found: dict[Steps, list[Any]] = {}
    for each in error.errors(include_url=False):
        found.setdefault(_place(values, each["loc"], each["input"]), []).append(each)
    passed = {path[:length] for path in found for length in range(len(path))}
    return {path: errors for path, errors in found.items() if path not in passed}


def _place(values: Any, location: Steps, culprit: Any) -> Steps:
    """The path of a location in the file; pydantic's also name the members of unions, as a key of the file may."""
    trail: list[tuple[Steps, Any]] = [((), values)]
    for step in location:
        path, value = trail[-1]
        if step in value if isinstance(value, dict) else isinstance(value, tuple) and isinstance(step, int):
            trail.append(((*path, step), value[step]))
    if location[-1] == "[key]":
        return trail[-1][0]
    return next((path for path, value in reversed(trail) if value == culprit), trail[-1][0])


def _sentence(model: type[BaseModel], source: Source, path: Steps, errors: list[Any], *, guesses: bool = True) -> str:
    level, last, name = [step for step in path[:-1] if isinstance(step, str)], str(path[-1]), ""
    for step in path:
        if isinstance(step, int):
            name = f"item {step + 1} of {name}"
        else:
            name = f"{step} of {name}" if name.startswith("item ") else f"{name}.{step}".lstrip(".")
    if errors[0]["type"] == "missing":
        return f"{name} has no {errors[0]['loc'][-1]}"
    if errors[0]["loc"][-1] == "[key]":
        name = f"{'.'.join(level)}: {shown(last)}"
    if errors[0]["type"] == "extra_forbidden":
        if is_secret_name(last) and isinstance(source.value(path), str):
            return f"{shown(last)} looks like a credential, {KEPT_ELSEWHERE}"
        return unknown(last, tuple(level), model) if guesses else f"{shown(last)} is not a known key"
    # Of a union, the member that takes values of this kind says what is wrong with this one.
    exact = [error for error in errors if not error["type"].endswith("_type") and error["type"] != "literal_error"]
    if own := [error["msg"] for error in exact if error["type"] not in _WANTED]:
        return f"{name} {own[-1]}"
    errors = exact or errors
    contexts = [{key: PATTERNS.get(it, it) for key, it in error.get("ctx", {}).items()} for error in errors]
    pairs = zip(errors, contexts, strict=True)
    *others, wanted = dict.fromkeys(_WANTED[it["type"]].format(**context).replace("'", "") for it, context in pairs)
    wanted = f"{', '.join(others)} or {wanted}" if others else wanted
    words = [word for context in contexts for word in re.findall("'([^']*)'", context.get("expected", ""))]
    value = source.value(path)
    written = source.texts.get(path, value.text if isinstance(value, Ambiguous) else str(value))
    instead = _instead(value, shown(written), {error["type"] for error in errors}, words)
    return f"{name} must be {wanted.removesuffix(',')}{instead}"


def _instead(value: Any, written: str, kinds: set[str], words: list[str]) -> str:
    """What is there instead, and how to mend it."""
    # A text is not shown: it may be a credential in the wrong place.
    names: dict[type, str] = {dict: "a group of keys", tuple: "a list", str: "text"}
    what, advice = names.get(type(value), written), ""
    match value:
        case None | "":
            return ", not empty"
        case tuple() if {"too_short", "too_long"} & kinds:
            return f", not {len(value)}"
        case str() if near := nearest(value, words):
            return f" (did you mean {near}?)"
        case str() if not any(kind.endswith("_type") or (kind == "literal_error" and not words) for kind in kinds):
            return ""
        case bool() | int() | float() | Ambiguous() if "string_type" in kinds:
            return f": put {written} in quotes"
        case dict() if "string_type" in kinds:
            advice = ": a colon followed by a space makes a key, so put the whole text in quotes"
        case _ if "tuple_type" in kinds:
            advice = ": write each item on a line of its own, after a dash"
        case _ if kinds <= {"model_type", "dict_type"}:
            advice = ": write its keys on lines below it, indented"
        case str() if isinstance(plain_value(value), bool | int | float):
            return ", not text: remove the quotes"
        case _ if kinds & {"int_type", "float_type"} and type(value) not in {int, float}:
            advice = ": write it in plain digits, such as 10"
    return f", not {what}{advice}"


def across(project: Layer[Any], suites: Sequence[Layer[Any]], *, complete: bool) -> Iterator[ConfigProblem]:
    """Keys that mean nothing beside others, of this file or of the other one; `suites` may lack some that are wrong."""
    everything = {field.alias for field in MetricSwitches.model_fields.values()}
    for suite in suites:
        # A key of the project that concerns tests may be meant for those suites that have a command.
        if not (_tests(suite) if "testCommand" in suite.places else _tests(project)):
            yield from _without_tests(suite, "the suite has no testCommand")
        switches = {**(project.values().get("metrics") or {}), **(suite.values().get("metrics") or {})}
        if {name for name, on in switches.items() if on is False} == everything:
            layer = suite if "metrics" in suite.places else project
            message = "metrics are all off: leave at least one of them on"
            yield config_problem(layer.file, layer.places["metrics"], message)
    if complete and suites and not _tests(project) and not any(map(_tests, suites)):
        yield from _without_tests(project, "no suite has a testCommand")
    for layer in (project, *suites):
        for name in layer.config.execution.env:
            has_value = name in layer.config.execution.variables
            why = why_withheld(name, has_value=has_value)
            if why is None and has_value and is_secret_name(name):
                why = f"looks like a credential: set {name} where Zelda is started, and leave the value out here"
            if why:
                place = layer.places.get(f"execution.env.{name}") or layer.places.get("execution.env")
                yield config_problem(layer.file, place, f"execution.env: {name} {why}")


def _tests(layer: Layer[Any]) -> bool:
    """Whether the file gives a command; one that is wrong is told about elsewhere."""
    return "testCommand" in layer.places and layer.values().get("testCommand") not in ((), NO_COMMAND)


def _without_tests(layer: Layer[Any], why: str) -> Iterator[ConfigProblem]:
    for key in ("coverageThreshold", "testReport", "coverageReport"):
        if key in layer.places and layer.values().get(key) not in {None, ()}:
            yield config_problem(layer.file, layer.places[key], f"{key} has no effect: {why}")
