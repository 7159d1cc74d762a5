"""Which settings a pull request decides for itself, and which stay those of the commit that it is merged into.

A pull request is written by anybody. What it tests is its own; what gives rights, or says where credentials, prompts
and results go, is not. Every key carries its `KeyDecision`; one without any is the base's.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from zelda_ci.config.document import DEFAULT, Layer, Model, Origin, load_document
from zelda_ci.config.files import find_root, suite_files
from zelda_ci.config.messages import ordered
from zelda_ci.config.project import InvalidConfigError, LoadedProject, folder_problems
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig, SuiteConfig, keys
from zelda_ci.config.source import Source
from zelda_ci.config.suite_file import LoadedSuite, SuiteFile, resolve, with_usual, with_value
from zelda_ci.domain.base import HEAD, Decider, KeyDecision
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ConfigError

# Key → whose value counts.
DECISIONS: Mapping[str, KeyDecision] = {
    key.dotted: key.decision for model in (ProjectConfig, SuiteConfig) for key in keys(model) if key.group is None
}


@dataclass(frozen=True)
class KeyChange:
    """A key that the pull request changes, and that stayed what it was."""

    key: str
    origin: Origin
    """Where the pull request gives it, or the base did where the pull request left it out."""
    loosens: bool = False
    """Of a key that says how results are judged, whether less would be red."""
    suite: str | None = None
    """Name of the suite that has it; absent of a key that belongs to none."""

    @property
    def is_judging(self) -> bool:
        """Whether it says how results are judged, and counts once the pull request is merged; else it gives rights."""
        return DECISIONS[self.key].by is Decider.JUDGING

    @property
    def effect(self) -> str:
        return f"It {DECISIONS[self.key].effect}; it was not taken from the pull request."


@dataclass(frozen=True)
class SettledProject:
    """A pull request's project with the rights that its base gives."""

    project: LoadedProject
    changes: tuple[KeyChange, ...] = ()
    new: tuple[str, ...] = ()
    """Files of suites that the base lacks."""
    gone: tuple[str, ...] = ()
    """Files of suites that only the base has, by path in the repository."""


def places(loaded: LoadedProject, top: Path) -> Mapping[str, str]:
    """Suite → where its file is in the repository, links followed."""
    files = {it.resolved.name: os.path.realpath(loaded.root / it.resolved.file) for it in loaded.suites}
    return {name: Path(os.path.relpath(file, os.path.realpath(top))).as_posix() for name, file in files.items()}


def settle(head: LoadedProject, top: Path, base: Path, folder: Path, commit: str) -> SettledProject:
    """Take the base's settings where these count for the pull request's project, in whose repository `top` is.

    The files of the base commit lie in `base`, and those of the project in its `folder`. Raises ConfigError where the
    settings of the base are invalid, or do not fit the files of the pull request.
    """
    root, paths = find_root(folder), places(head, top)
    layer = _base_layer(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig)
    own = {it: _base_layer(base / it, it, SuiteConfig) for it in {*paths.values()} if (base / it).exists()}
    if problems := (*layer.problems, *(problem for suite in own.values() for problem in suite.problems)):
        message = (
            f"On a pull request, security settings are taken from the base commit {commit[:7]}. Its configuration "
        )
        lines = "\n".join(["is invalid:", *map(str, ordered(problems))])
        hint = "Nothing was run. Correct it on the base branch first."
        raise ConfigError(message + lines, hint=hint, code="BASE_CONFIGURATION_INVALID")
    changes, results_dir = list[KeyChange](), layer.config.results_dir
    if results_dir != head.config.results_dir:
        place = head.layer.origin("resultsDir") or layer.origin("resultsDir") or DEFAULT
        changes.append(KeyChange("resultsDir", place))
    suites = tuple(_settled(it, own.get(paths[it.resolved.name]), layer, changes) for it in head.suites)
    config = head.config.replace(results_dir=results_dir)
    settled = replace(head, layer=replace(head.layer, config=config), suites=suites)
    if unfit := tuple(folder_problems(replace(settled.layer, source=Source()), head.root)):
        raise InvalidConfigError(unfit)
    new = dict.fromkeys(it.resolved.file for it in head.suites if paths[it.resolved.name] not in own)
    held = {Path(os.path.relpath(file, base)).as_posix() for file in suite_files(root, layer.config.test_dir)}
    # Names need not be text.
    gone = (os.fsencode(file).decode("utf-8", "backslashreplace") for file in sorted(held - {*paths.values()}))
    return SettledProject(settled, tuple(changes), tuple(new), tuple(gone))


def _base_layer(path: Path, file: str, model: type[Model]) -> Layer[Model]:
    """What a file gives, with the problems of that part of it that counts."""
    read = load_document(path, file, model) if os.path.lexists(path) else Layer(file, model())
    counting = {name.partition(".")[0] for name, decision in DECISIONS.items() if decision.by is not Decider.HEAD}
    tops = [(at.line, str(path[0])) for path, at in read.source.keys.items() if len(path) == 1]
    above = {it: max((top for top in tops if top[0] <= (it.line or 0)), default=None) for it in read.problems}
    return replace(read, problems=tuple(it for it, top in above.items() if top is None or top[1] in counting))


def _settled(
    head: LoadedSuite, own: Layer[SuiteConfig] | None, base: Layer[ProjectConfig], changes: list[KeyChange]
) -> LoadedSuite:
    """One suite of the pull request with the base's settings, to which that suite's `own` belong; notes the changes."""
    suite = head.resolved
    layer = own or Layer(suite.file, SuiteConfig())
    trusted = resolve(SuiteFile(suite.name, suite.prompt, DEFAULT, with_usual(layer)), base)
    origins = dict(head.provenance)
    for key in keys(ResolvedSuite):
        decision = HEAD if key.group else DECISIONS.get(key.dotted, HEAD)
        is_judging = decision.by is Decider.JUDGING
        # Where nothing that was agreed on is changed by it, the pull request decides how a suite is judged.
        is_new = own is None and origins.get(key.dotted, DEFAULT).file == suite.file
        is_free = is_new or (key.dotted == "coverageThreshold" and suite.test_command is None)
        if decision.by is Decider.HEAD or (is_judging and is_free):
            continue
        wanted, counting = (attrgetter(".".join(key.attributes))(each.resolved) for each in (head, trusted))
        if decision.by is Decider.LOWER:
            counting = min((value for value in (wanted, counting) if value is not None), default=None)
        if counting != wanted:
            suite = with_value(suite, key.attributes, counting)
            loosens = is_judging and lets_more_pass(key.dotted, wanted, counting)
            given = [side.provenance.get(key.dotted, DEFAULT) for side in (head, trusted)]
            place = next((each for each in given if each != DEFAULT), DEFAULT)
            changes.append(KeyChange(key.dotted, place, loosens, suite.name))
            origins[key.dotted] = trusted.provenance[key.dotted]
    if head.skip != trusted.skip:
        changes.append(KeyChange("skip", Origin(suite.file), suite=suite.name))
    return replace(head, resolved=suite, provenance=origins, skip=trusted.skip)


def lets_more_pass(key: str, wanted: Any, given: Any) -> bool:
    """Whether a value of a key that says how results are judged lets more pass than another."""
    if key == "gate.failOn":
        return not set(given) <= set(wanted)
    if key == "undecided":
        return bool(wanted == "ignore")
    if key.startswith("metrics."):
        return not wanted
    lower_is_stricter = key.startswith(("gate.tolerance", "gate.maxAlwaysOn", "efficiencyTargets"))
    if given is None or wanted is None:
        # Without a tolerance of its own the ordinary limits hold; without a minimum or a target none does.
        return wanted is None and not key.startswith("gate.tolerance")
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return wanted > given if lower_is_stricter else wanted < given
    return False
