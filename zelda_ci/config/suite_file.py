"""One suite's file: read, checked, its prompt found and its name settled."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
    return SuiteFile(identity, suite.layer, (*suite.problems, *trouble, *_name_problems(suite, name)))


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
