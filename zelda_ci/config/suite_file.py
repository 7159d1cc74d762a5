"""One suite's file: read, checked, its prompt found and its name settled."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path

from zelda_ci.config import document
from zelda_ci.config.check import PATTERNS
from zelda_ci.config.document import ConfigDocument, lies_in, read_text
from zelda_ci.config.merge import Identity, Layer, Origin
from zelda_ci.config.messages import ConfigProblem, Position, Rejected, config_problem
from zelda_ci.config.repository import TrackedFiles
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.config.source import TOP
from zelda_ci.domain.suite import NAME
from zelda_ci.files import untrusted

Suite = ConfigDocument[SuiteConfig]


@dataclass(frozen=True)
class SuiteFile:
    """A suite as its file gives it; usable only without problems."""

    identity: Identity
    layer: Layer
    problems: tuple[ConfigProblem, ...]

    def combinations(self) -> Iterator["SuiteFile"]:
        """The suites that its matrix makes of it; itself, where it has none."""
        axes = self._axes
        for values in product(*axes.values()):
            yield self._with(dict(zip(axes, values, strict=True)))

    @property
    def _axes(self) -> Mapping[str, Sequence[str]]:
        """By key or placeholder, the values that it takes in turn."""
        matrix = self._config.matrix
        axes = {f"{{{{{name}}}}}": texts for name, texts in matrix.variables.items()}
        return axes | {key: values for key, values in (("model", matrix.model), ("effort", matrix.effort)) if values}

    @property
    def _config(self) -> SuiteConfig:
        assert isinstance(self.layer.config, SuiteConfig)  # noqa: S101 - made by `load_suite`
        return self.layer.config

    def _with(self, values: Mapping[str, str]) -> "SuiteFile":
        if not values:
            return self

        def filled(text: str) -> str:
            return re.sub(r"\{\{\w+\}\}", lambda slot: values.get(slot[0], slot[0]), text)

        given = {key: values[key] for key in ("model", "effort") if key in values}
        lists = ("acceptance_criteria", "must_pass", "answer_criteria")
        changed = {name: tuple(map(filled, getattr(self._config, name))) for name in lists}
        changed = {name: texts for name, texts in changed.items() if texts}
        config = self._config.replace(**changed, execution=self._config.execution.replace(**given))
        here = self.layer.places["matrix"]
        layer = replace(
            self.layer, config=config, places={**self.layer.places, **{f"execution.{key}": here for key in given}}
        )
        ends = [re.sub(r"[^A-Za-z0-9._-]+", "-", value).strip("-._") or "x" for value in values.values()]
        identity = replace(
            self.identity, name=".".join([self.identity.name, *ends]), prompt=filled(self.identity.prompt)
        )
        return replace(self, identity=identity, layer=layer)

    def matrix_problems(self) -> Iterator[ConfigProblem]:
        """Names that are too long or the same, and variables that stand nowhere or have no values."""
        file, place = self.layer.file, self.layer.places.get("matrix")
        if place is None:
            return
        if (count := prod(map(len, self._axes.values()))) > MAX_COMBINATIONS:
            yield config_problem(file, place, f"matrix makes {count} suites, and at most {MAX_COMBINATIONS} may be")
            return
        names = [each.identity.name for each in self.combinations()]
        if bad := next((name for name in names if not re.fullmatch(NAME, name) or names.count(name) > 1), None):
            why = "is too long" if len(bad) > MAX_NAME else "would be that of several suites"
            yield config_problem(file, place, f"matrix: the name {bad} {why}")
        lists = (self._config.acceptance_criteria, self._config.must_pass, self._config.answer_criteria)
        texts = "\n".join([self.identity.prompt, *(text for each in lists for text in each)])
        for name, values in self._config.matrix.variables.items():
            if not values or f"{{{{{name}}}}}" not in texts:
                why = "has no values" if not values else f"stands nowhere: write {{{{{name}}}}} in prompt or criteria"
                yield config_problem(file, self.layer.places.get(f"matrix.variables.{name}") or place, f"{name} {why}")


MAX_COMBINATIONS = 50
MAX_NAME = 60


def load_suite(path: Path, root: Path, tracked: TrackedFiles) -> SuiteFile:
    """Read one suite of the project.

    Args:
        path: Where it is.
        root: The project.
        tracked: What git tracks of the project.

    Raises:
        Rejected: nothing in the file can be used.
    """
    file = path.relative_to(root).as_posix()
    suite = document.load_document(path, file, SuiteConfig)
    if not suite.source.values:
        raise Rejected(*suite.problems, config_problem(file, TOP, f"the suite is empty: {_NEEDS}"))
    try:
        prompt, origin = _prompt(suite, path, root, tracked)
        trouble: tuple[ConfigProblem, ...] = ()
    except Rejected as exc:
        prompt, origin, trouble = "", Origin(file), exc.problems
    name, name_origin = _name(suite, path)
    identity = Identity(file, name, name_origin, prompt, origin)
    found = SuiteFile(identity, suite.layer, (*suite.problems, *trouble, *_name_problems(suite, name)))
    return found if found.problems else replace(found, problems=tuple(found.matrix_problems()))


_NEEDS = "it needs a prompt (or a promptFile), and acceptanceCriteria to be judged by"


def _name(suite: Suite, path: Path) -> tuple[str, Origin]:
    given = suite.config.name
    if given is not None:
        return given, suite.layer.origin("name") or Origin(suite.layer.file)
    return path.stem.removeprefix("test-"), Origin(suite.layer.file)


def _name_problems(suite: Suite, name: str) -> Iterator[ConfigProblem]:
    file = suite.layer.file
    if not file.isprintable():
        yield config_problem(file, None, "the file's name holds characters that cannot be printed: rename it")
    if "name" not in suite.layer.places and not re.fullmatch(NAME, name):
        message = f"the suite's name, taken from the file's, must be {PATTERNS[NAME]}: set name, or rename the file"
        yield config_problem(file, None, message)


def _prompt(suite: Suite, path: Path, root: Path, tracked: TrackedFiles) -> tuple[str, Origin]:
    """The prompt, from the file itself or the one it names."""
    file, places = suite.layer.file, suite.layer.places
    if "prompt" in places and "promptFile" in places:
        message = f"prompt (line {places['prompt'].line}) and promptFile are both given: keep one"
        raise Rejected(config_problem(file, places["promptFile"], message))
    if "promptFile" in places:
        position = suite.source.at["promptFile",]
        given = suite.config.prompt_file
        if not given:
            return "", Origin(file)
        target = _inside_project(given, file, position, path.parent, root)
        return _prompt_from(target, file, position, root, tracked)
    if "prompt" in places:
        return suite.config.prompt or "", Origin(file, places["prompt"].line)
    raise Rejected(config_problem(file, TOP, f"the suite has no prompt: {_NEEDS}"))


def _inside_project(given: str, file: str, position: Position, folder: Path, root: Path) -> Path:
    target = Path(os.path.normpath(folder / given))
    if not (given.isprintable() and target.is_relative_to(root) and lies_in(target.parent, root)):
        raise Rejected(config_problem(file, position, "promptFile must be a file inside the project"))
    return target


def _prompt_from(target: Path, file: str, position: Position, root: Path, tracked: TrackedFiles) -> tuple[str, Origin]:
    name = target.relative_to(root).as_posix()
    refusal = tracked.refusal(target) if untrusted.kind_of(target) == untrusted.FILE else None
    if refusal:
        raise Rejected(config_problem(file, position, f"promptFile: {name} {refusal}"))
    try:
        text = read_text(target, name)
    except Rejected as exc:
        raise Rejected(*(_as_seen_from(file, position, it) for it in exc.problems)) from None
    leaked = tuple(document.shaped(text, name))
    if leaked:
        raise Rejected(*leaked)
    if not text.strip():
        raise Rejected(config_problem(file, position, f"promptFile: {name} is empty"))
    return text, Origin(name, 1)


def _as_seen_from(file: str, position: Position, problem: ConfigProblem) -> ConfigProblem:
    """A problem without a line is one of the reference, not of the text."""
    return problem if problem.line else config_problem(file, position, f"promptFile: {problem.file} {problem.message}")
