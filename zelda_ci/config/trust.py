"""Which settings a pull request decides for itself, and which stay those of the commit that it is merged into.

A pull request is written by anybody. What it tests is its own; what gives rights, or says where credentials, prompts
and results go, is not. Every key carries its `KeyDecision`; one without any is the base's.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from zelda_ci.config import document
from zelda_ci.config.check import Model
from zelda_ci.config.document import ConfigDocument
from zelda_ci.config.files import find_root, suite_files
from zelda_ci.config.merge import DEFAULT, Identity, Layer, LoadedSuite, Origin, resolve, with_value
from zelda_ci.config.messages import ConfigProblem, Rejected, ordered
from zelda_ci.config.project import Examination, LoadedProject, folder_problems
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig, SuiteConfig, keys
from zelda_ci.config.source import Source
from zelda_ci.domain.keys import HEAD, Decider, KeyDecision
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ConfigError

NOT_TAKEN = "it was not taken from the pull request"
# Key → whose value counts.
DECISIONS: Mapping[str, KeyDecision] = {
    key.dotted: key.decision for model in (ProjectConfig, SuiteConfig) for key in keys(model) if key.group is None
}


@dataclass(frozen=True)
class BaseSettings:
    """The settings of the base, whatever else is wrong with its files."""

    commit: str
    config: ProjectConfig
    layer: Layer
    """Of the project's file."""
    suites: Mapping[str, Layer]
    """By path in the repository."""
    problems: tuple[ConfigProblem, ...] = ()
    """What cannot be read of the settings that count."""
    gone: tuple[str, ...] = ()
    """Suites that only the base has, by path in the repository."""


@dataclass(frozen=True)
class KeyChange:
    """A key that the pull request changes, and that stayed what it was."""

    key: str
    origin: Origin
    """Where the pull request gives it, or the base did where the pull request left it out."""
    loosens: bool = False
    """Of a key that says how results are judged, whether less would be red."""

    @property
    def effect(self) -> str:
        return f"It {DECISIONS[self.key].effect}; {NOT_TAKEN}."


@dataclass(frozen=True)
class SettledSuite:
    """A suite of the pull request with the rights that the base gives."""

    suite: LoadedSuite
    is_new: bool
    changes: tuple[KeyChange, ...]
    judging_changes: tuple[KeyChange, ...] = ()
    """Of keys that say how it is judged: they count once the pull request is merged."""


@dataclass(frozen=True)
class SettledProject:
    """A pull request's project with the rights that its base gives."""

    project: LoadedProject
    suites: tuple[SettledSuite, ...]
    """In the order of the project's."""
    changes: tuple[KeyChange, ...]
    """Of keys that belong to no suite."""
    gone: tuple[str, ...] = ()
    """Files of suites that only the base has."""


def places(loaded: LoadedProject, top: Path) -> Mapping[str, str]:
    """Suite → where its file is in the repository, links followed."""
    real = os.path.realpath(top)
    files = {it.resolved.name: os.path.realpath(loaded.root / it.resolved.file) for it in loaded.suites}
    return {name: Path(os.path.relpath(file, real)).as_posix() for name, file in files.items()}


def base_settings(folder: Path, top: Path, commit: str, wanted: Iterable[str]) -> BaseSettings:
    """What counts of the files of a base commit.

    Args:
        folder: Where the search for the project begins, among the base's files.
        top: Of the repository there.
        commit: The base.
        wanted: Suites of the pull request, by path in the repository; the base may lack them.
    """
    root = find_root(folder)
    project, problems = _base_document(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig)
    suites, wanted = {}, frozenset(wanted)
    for path in filter(lambda path: (top / path).exists(), wanted):
        suite, more = _base_document(top / path, path, SuiteConfig)
        suites[path] = suite.layer
        problems += more
    held = (os.path.relpath(file, top) for file in suite_files(root, str(project.config.test_dir)))
    gone = sorted({Path(file).as_posix() for file in held} - wanted)
    # Names need not be text.
    shown = (os.fsencode(file).decode("utf-8", "backslashreplace") for file in gone)
    return BaseSettings(commit, project.config, project.layer, suites, problems, tuple(shown))


def _base_document(
    path: Path, file: str, model: type[Model]
) -> tuple[ConfigDocument[Model], tuple[ConfigProblem, ...]]:
    """What a file gives, and what is wrong with the part of it that counts."""
    if not os.path.lexists(path):
        return document.empty(file, model), ()
    try:
        read = document.load_document(path, file, model)
    except Rejected as exc:
        return document.empty(file, model), exc.problems
    return read, tuple(it for it in read.problems if _concerns_what_counts(it, read.source))


def _concerns_what_counts(problem: ConfigProblem, source: Source) -> bool:
    """Whether it is one of a key that counts, or of the file as a whole."""
    line = problem.line or 0
    above = [(at.line, str(path[0])) for path, at in source.keys.items() if len(path) == 1 and at.line <= line]
    counting = {name.partition(".")[0] for name, decision in DECISIONS.items() if decision.by is not Decider.HEAD}
    return not above or max(above)[1] in counting


def settle(head: LoadedProject, top: Path, base: BaseSettings) -> SettledProject:
    """The project with the base's settings where these count.

    Raises:
        ConfigError: The base's cannot be read, or do not fit the files of the pull request.
    """
    if base.problems:
        raise ConfigError(
            f"On a pull request, security settings are taken from the base commit {base.commit[:7]}. Its configuration "
            "is invalid:\n" + "\n".join(map(str, ordered(base.problems))),
            hint="Nothing was run. Correct it on the base branch first.",
            code="BASE_CONFIGURATION_INVALID",
        )
    paths = places(head, top)
    suites = tuple(_settled(it, paths[it.resolved.name], base) for it in head.suites)
    wanted = head.config.results_dir
    config = head.config.replace(results_dir=base.config.results_dir)
    if problems := tuple(
        folder_problems(replace(document.empty(CONFIG_FILE, ProjectConfig), config=config), head.root)
    ):
        raise Examination(None, ordered(problems)).error()
    settled = replace(
        head, results_dir=head.root / config.results_dir, config=config, suites=tuple(it.suite for it in suites)
    )
    place = head.layer.origin("resultsDir") or base.layer.origin("resultsDir") or DEFAULT
    changes = (KeyChange("resultsDir", place),) if config.results_dir != wanted else ()
    return SettledProject(settled, suites, changes, base.gone)


def _settled(head: LoadedSuite, path: str, base: BaseSettings) -> SettledSuite:
    """The suite with the base's settings where these count.

    Args:
        head: As the pull request has it.
        path: Of its file in the repository.
        base: The settings of the base.
    """
    own = base.suites.get(path)
    layers = [layer for layer in (own, base.layer) if layer]
    suite = head.resolved
    identity = Identity(suite.file, suite.name, DEFAULT, suite.prompt, DEFAULT)
    trusted = resolve(identity, *layers)
    changes: list[KeyChange] = []
    judging: list[KeyChange] = []
    origins = dict(head.provenance)
    for key in keys(ResolvedSuite):
        if key.group or (decision := DECISIONS.get(key.dotted, HEAD)).by is Decider.HEAD:
            continue
        is_judging = decision.by is Decider.JUDGING
        if is_judging and _is_its_own(key.dotted, head, is_new=own is None):
            continue
        wanted, counting = (attrgetter(".".join(key.attributes))(each.resolved) for each in (head, trusted))
        if decision.by is Decider.LOWER:
            counting = min((value for value in (wanted, counting) if value is not None), default=None)
        if counting != wanted:
            suite = with_value(suite, key.attributes, counting)
            loosens = is_judging and lets_more_pass(key.dotted, wanted, counting)
            change = KeyChange(key.dotted, _place(key.dotted, head, trusted), loosens)
            (judging if is_judging else changes).append(change)
            origins[key.dotted] = trusted.provenance[key.dotted]
    settled_suite = replace(head, resolved=suite, provenance=origins)
    if head.skip != trusted.skip:
        changes.append(KeyChange("skip", Origin(suite.file)))
    settled_suite = replace(settled_suite, skip=trusted.skip)
    return SettledSuite(settled_suite, own is None, tuple(changes), tuple(judging))


def _is_its_own(key: str, head: LoadedSuite, *, is_new: bool) -> bool:
    """Whether the pull request decides how a suite is judged: where nothing that was agreed on is changed by it."""
    suite = head.resolved
    if key == "coverageThreshold" and suite.test_command is None:
        return True
    return is_new and head.provenance.get(key, DEFAULT).file == suite.file


def lets_more_pass(key: str, wanted: Any, given: Any) -> bool:
    """Whether a value of a key that says how results are judged lets more pass than another."""
    if key == "gate.failOn":
        return not set(given) <= set(wanted)
    if key == "undecided":
        return bool(wanted == "ignore")
    if key.startswith("metrics."):
        return not wanted
    lower_is_stricter = key.startswith(("gate.tolerance", "efficiencyTargets"))
    if given is None or wanted is None:
        # Without a tolerance of its own the ordinary limits hold; without a minimum or a target none does.
        return wanted is None and not key.startswith("gate.tolerance")
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return wanted > given if lower_is_stricter else wanted < given
    return False


def _place(key: str, head: LoadedSuite, base: LoadedSuite) -> Origin:
    places = (side.provenance.get(key, DEFAULT) for side in (head, base))
    return next((place for place in places if place != DEFAULT), DEFAULT)
