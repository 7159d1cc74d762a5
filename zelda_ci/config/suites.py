"""Suites: read, checked, merged with project and defaults; a matrix makes several of one; which of them are meant."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import re2

from zelda_ci.config import document
from zelda_ci.config.document import DEFAULT, NO_COMMAND, Layer, Origin, read_text
from zelda_ci.config.files import lies_in
from zelda_ci.config.schema import SuiteConfig, keys
from zelda_ci.config.source import SENTENCES, TOP, ConfigProblem, Rejected, config_problem, shown
from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import NAME, PATTERNS, ResolvedSuite
from zelda_ci.errors import ConfigError
from zelda_ci.files import globs, untrusted

# What a file makes: combinations of its matrix, and suites with a prompt of each.
MAX_COMBINATIONS, MAX_SUITES = 50, 1_000
MAX_NAME = 60
# What a session needs that ends with its first call, where the file does not say otherwise.
_ROUTING: Mapping[str, Any] = {
    **dict.fromkeys(("setupCommand", "buildCommand", "testCommand"), NO_COMMAND),
    "execution": {"maxTurns": 2},
    "metrics": {"efficiency": False, "functionalCorrectness": False},
}
Tracked = Callable[[], frozenset[Path] | None]
_NEEDS = "it needs a prompt (or a promptFile), and acceptanceCriteria or checks to be judged by"
_UNTRACKED = "is not tracked by git, and what a session gets must be: commit it, or write the text under prompt"


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
    """Merge the project's file, what is usual for a suite of its kind, and its own file, which is the strongest."""
    own, layers = suite.layer, (suite.layer, _usual(suite.layer), project)
    merged = reduce(_merged, (layer.values() for layer in reversed(layers))).items()
    settled = {key: it for key, it in merged if not (key.endswith("Command") and it in ((), NO_COMMAND))}
    settled |= {"file": own.file, "name": suite.name, "prompt": suite.prompt}
    origins = {"name": own.origin("name") or Origin(own.file), "prompt": suite.prompt_origin}
    names = [key.dotted for key in keys(ResolvedSuite) if key.group is None and key.name != "file"]
    given = {name: next(filter(None, (layer.origin(name) for layer in layers)), DEFAULT) for name in names}
    return LoadedSuite(ResolvedSuite.model_validate(settled), {**given, **origins}, own.config.skip, own.config.only)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    groups = (key for key, value in above.items() if isinstance(value, dict) and isinstance(below.get(key), dict))
    return {**below, **above, **{key: _merged(below[key], above[key]) for key in groups}}


R = TypeVar("R", bound=Record)


def with_value(record: R, path: tuple[str, ...], value: object) -> R:
    """A copy with another value in a field, which is named by its path through the groups."""
    name, *inner = path
    return record.replace(**{name: with_value(getattr(record, name), tuple(inner), value) if inner else value})


def combinations(suite: SuiteFile) -> Iterator[SuiteFile]:
    """The suites that a matrix makes of one, and the prompts of a routing suite of each; itself without either."""
    axes = _axes(suite)
    for each in product(*axes.values()):
        made = _with(suite, dict(zip(axes, each, strict=True))) if each else suite
        yield from _routed(made) if made.layer.config.prompts else (made,)


def _usual(layer: Layer[SuiteConfig]) -> Layer[SuiteConfig]:
    """What is usual for a suite of this kind, as if it stood where the kind does."""
    if layer.config.kind != "routing":
        return Layer(layer.file, SuiteConfig())
    inner = (f"{key}.{name}" for key, group in _ROUTING.items() if isinstance(group, dict) for name in group)
    places = dict.fromkeys(("checks", *_ROUTING, *inner), layer.places["kind"])
    return Layer(layer.file, SuiteConfig.model_validate(_ROUTING), places=places)


def _routed(suite: SuiteFile) -> Iterator[SuiteFile]:
    """A small suite for each prompt of a routing suite."""
    layer = suite.layer
    for number, each in enumerate(layer.config.prompts):
        config = layer.config.replace(checks=(*layer.config.checks, each.check), prompts=())
        origin = Origin(layer.file, layer.source.at["prompts", number, "prompt"].line)
        yield SuiteFile(f"{suite.name}.{number + 1}", each.prompt, origin, replace(layer, config=config))


def _routing_problems(suite: Layer[SuiteConfig], name: str) -> Iterator[ConfigProblem]:
    """What does not go together: a routing suite has prompts and no criteria, others have neither kind nor prompts."""
    if suite.config.kind == "routing":
        for key in ("prompt", "promptFile", "acceptanceCriteria", "mustPass", "answerCriteria"):
            if key in suite.places:
                yield suite.problem(key, "does not go with kind: routing: put each prompt and its purpose in prompts")
        if not suite.source.values.get("prompts"):
            place = suite.places.get("prompts") or suite.places["kind"]
            yield config_problem(suite.file, place, "a routing suite needs prompts: a list of prompt and expect")
        elif len(longest := f"{name}.{len(suite.config.prompts)}") > MAX_NAME:
            yield config_problem(suite.file, suite.places["kind"], f"{longest} is too long: set a shorter name")
    elif "prompts" in suite.places and suite.source.values.get("kind", "task") == "task":
        yield suite.problem("prompts", "goes with kind: routing only: add that line, or write one prompt")


def _axes(suite: SuiteFile) -> Mapping[str, tuple[str, ...]]:
    """By key or placeholder, the values that the matrix takes in turn."""
    matrix = suite.layer.config.matrix
    axes = {f"{{{{{name}}}}}": texts for name, texts in matrix.variables.items()}
    return axes | {key: values for key, values in (("model", matrix.model), ("effort", matrix.effort)) if values}


def _with(suite: SuiteFile, values: Mapping[str, str]) -> SuiteFile:
    given, here = {key: values[key] for key in ("model", "effort") if key in values}, suite.layer.places["matrix"]
    dumped = suite.layer.values()
    dumped |= {key: _filled(dumped[key], values) for key in (*SENTENCES, "checks", "prompts") if key in dumped}
    dumped["execution"] = {**dumped.get("execution", {}), **given}
    places = {**suite.layer.places, **{f"execution.{key}": here for key in given}}
    layer = replace(suite.layer, config=SuiteConfig.model_validate(dumped), places=places)
    ends = [re.sub(r"[^A-Za-z0-9._-]+", "-", value).strip("-._") or "x" for value in values.values()]
    return replace(suite, name=".".join([suite.name, *ends]), prompt=_filled(suite.prompt, values), layer=layer)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return re.sub(r"\{\{\w+\}\}", lambda slot: values.get(slot[0], slot[0]), value)
        case tuple():
            return tuple(_filled(item, values) for item in value)
        case dict():
            return {key: _filled(item, values) for key, item in value.items()}
        case _:
            return value


def _matrix_problems(suite: SuiteFile) -> Iterator[ConfigProblem]:
    """Names too long or the same, variables that stand nowhere or have no values, and values that make no check."""
    layer, config, place = suite.layer, suite.layer.config, suite.layer.places["matrix"]
    count = prod(map(len, _axes(suite).values()))
    for made, most in ((count, MAX_COMBINATIONS), (count * len(config.prompts), MAX_SUITES)):
        if made > most:
            yield config_problem(layer.file, place, f"matrix makes {made} suites, and at most {most} may be")
            return
    axes, given = _axes(suite), layer.values().get("checks", ())
    for each in product(*axes.values()):
        if why := document.problem_of(SuiteConfig, ("checks",), _filled(given, dict(zip(axes, each, strict=True)))):
            yield config_problem(layer.file, layer.places["checks"], f"with {', '.join(each)} of the matrix, {why}")
            return
    names = Counter(each.name for each in combinations(suite))
    if bad := next((name for name, times in names.items() if not re.fullmatch(NAME, name) or times > 1), None):
        why = "is too long" if len(bad) > MAX_NAME else "would be that of several suites"
        yield config_problem(layer.file, place, f"matrix: the name {bad} {why}")
    others = json.dumps([it.model_dump(mode="json") for it in (*config.checks, *config.prompts)], ensure_ascii=False)
    texts = (suite.prompt, *config.acceptance_criteria, *config.must_pass, *config.answer_criteria, others)
    for name, values in config.matrix.variables.items():
        slot = f"{{{{{name}}}}}"
        if not values or not any(slot in text for text in texts):
            why = f"stands nowhere: write {slot} in prompt or criteria" if values else "has no values"
            yield config_problem(layer.file, layer.places.get(f"matrix.variables.{name}") or place, f"{name} {why}")


def load_suite(path: Path, root: Path, tracked: Tracked) -> SuiteFile:
    """Read one suite of a project as a document; what git tracks is asked only where it has to be."""
    file = path.relative_to(root).as_posix()
    suite = document.parse_document(read_text(path, file), file, SuiteConfig)
    if not suite.source.values:
        raise Rejected(*suite.problems, config_problem(file, TOP, f"the suite is empty: {_NEEDS}"))
    problems = list(suite.problems)
    try:
        prompt, origin = _prompt(suite, path, root, tracked)
    except Rejected as exc:
        prompt, origin = "", Origin(file)
        problems += exc.problems
    name = suite.config.name or path.stem.removeprefix("test-")
    if not file.isprintable():
        problems.append(config_problem(file, None, "its name holds characters that cannot be printed: rename it"))
    if "name" not in suite.places and not re.fullmatch(NAME, name):
        message = f"the suite's name, taken from the file's, must be {PATTERNS[NAME]}: set name, or rename the file"
        problems.append(config_problem(file, None, message))
    problems += _routing_problems(suite, name)
    found = SuiteFile(name, prompt, origin, replace(suite, problems=tuple(problems)))
    if problems or "matrix" not in suite.places:
        return found
    return replace(found, layer=replace(suite, problems=tuple(_matrix_problems(found))))


def _prompt(suite: Layer[SuiteConfig], path: Path, root: Path, tracked: Tracked) -> tuple[str, Origin]:
    file, places, given = suite.file, suite.places, suite.config.prompt_file
    if "prompt" in places:
        if "promptFile" in places:
            message = f"prompt (line {places['prompt'].line}) and promptFile are both given: keep one"
            raise Rejected(config_problem(file, places["promptFile"], message))
        return suite.config.prompt or "", Origin(file, places["prompt"].line)
    is_routing = "prompts" in places or suite.config.kind == "routing"
    if not (is_routing or "promptFile" in places):
        raise Rejected(config_problem(file, TOP, f"the suite has no prompt: {_NEEDS}"))
    if is_routing or not given:
        return "", Origin(file)  # what is wrong is told already
    target = Path(os.path.normpath(path.parent / given))
    if not (given.isprintable() and target.is_relative_to(root) and lies_in(target.parent, root)):
        raise Rejected(suite.problem("promptFile", "must be a file inside the project"))
    name = target.relative_to(root).as_posix()
    known = tracked() if untrusted.kind_of(target) == untrusted.FILE else None
    if known is not None and Path(os.path.realpath(target.parent)) / target.name not in known:
        raise Rejected(suite.problem("promptFile", f"{name} {_UNTRACKED}"))
    try:
        text = read_text(target, name)
    except Rejected as exc:
        # A problem without a line is one of the reference, not of the text.
        raise Rejected(
            *(it if it.line else suite.problem("promptFile", f"{name} {it.message}") for it in exc.problems)
        ) from None
    if leaked := tuple(document.shaped(text, name)):
        raise Rejected(*leaked)
    if not text.strip():
        raise Rejected(suite.problem("promptFile", f"{name} is empty"))
    return text, Origin(name, 1)


GLOB = re.compile(r"[*?\[{]")


def containing(suites: Sequence[LoadedSuite], pattern: str) -> tuple[LoadedSuite, ...]:
    """The suites of which name, description, tags, prompt or criteria hold what a regular expression matches."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        expression = re2.compile(pattern, options)
    except re2.error as problem:
        message = f"--grep {shown(pattern)} is no regular expression: {problem.args[0].decode()}."
        raise ConfigError(message, hint="Put a backslash before signs meant as they are.", code="USAGE") from None
    pairs = ((suite, suite.resolved) for suite in suites)
    texts = ((suite, (it.name, it.description or "", *it.tags, it.prompt, *it.criteria)) for suite, it in pairs)
    chosen = tuple(suite for suite, searched in texts if any(map(expression.search, searched)))
    if not chosen:
        message = f"No suite contains {shown(pattern)}: names, descriptions, tags, prompts and criteria were searched."
        raise ConfigError(message, code="NO_SUITE_SELECTED")
    return chosen


def last_failed(suites: Sequence[LoadedSuite], passed: Mapping[str, bool]) -> tuple[LoadedSuite, ...]:
    """The suites that did not pass when they were run last; raises where there is none: zero suites is never green."""
    chosen = tuple(suite for suite in suites if passed.get(suite.resolved.name) is False)
    if not chosen:
        known = any(suite.resolved.name in passed for suite in suites)
        why = "Every suite passed when it was last run" if known else "No suite has been run yet"
        hint = "Leave --last-failed out to run all of them."
        raise ConfigError(f"{why}: nothing to run.", hint=hint, code="NO_SUITE_SELECTED")
    return chosen


def is_meant(name: str, suite: str, file: str) -> bool:
    """Whether a name that was given means the suite of this name, in this file: by name, path, folder or glob."""
    path = PurePosixPath(file)
    # `api/list` for `zelda/api/test-list.yaml`, wherever the folder of suites lies.
    files = (path, path.parent / usual_name(file))
    given = "/".join(part for part in PurePosixPath(name).parts if part not in {".", "..", "/"})
    folders = path.parents[:-1]
    is_path = given in _tails(*files, *folders) - {usual_name(file)}
    is_longer = any(f"/{given}".endswith(f"/{place}") for place in (path, *folders))
    # A matrix puts its values behind the suite's name.
    if name == suite or suite.startswith(f"{name}.") or is_path or is_longer:
        return True
    spelled = [suite, *(each for each in _tails(*files) if "/" in name or "/" not in each)]
    return bool(GLOB.search(name)) and any(globs.matches([name.removeprefix("./")], each) for each in spelled)


def _tails(*paths: PurePosixPath) -> set[str]:
    """Paths as they are called from each folder on the way to them."""
    return {"/".join(path.parts[start:]) for path in paths for start in range(len(path.parts))}


def usual_name(file: str) -> str:
    """A suite's name where its file gives none."""
    return PurePosixPath(file).stem.removeprefix("test-")
