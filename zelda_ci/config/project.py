"""The whole configuration of a project: `load` gives it, or raises with everything that is wrong with it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from zelda_ci.config import dependents, discovery, document, suite_file
from zelda_ci.config.document import Document
from zelda_ci.config.files import lies_in
from zelda_ci.config.problems import Problem, Rejected, ordered, problem, shown
from zelda_ci.config.resolver import LoadedSuite, resolve
from zelda_ci.config.schemas import CONFIG_FILE, ProjectConfig
from zelda_ci.config.suite_file import SuiteFile
from zelda_ci.errors import ConfigError


@dataclass(frozen=True)
class LoadedProject:
    """A project whose configuration is right: every suite resolved, in the order of their files."""

    root: Path
    results_dir: Path
    config: ProjectConfig
    suites: tuple[LoadedSuite, ...]


@dataclass(frozen=True)
class Examination:
    """The project, or else everything that is wrong with it: exactly one of the two is there."""

    project: LoadedProject | None
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    """Machine-readable, where another than that of invalid files fits better."""

    def error(self) -> ConfigError:
        """All problems as one error."""
        count = "one problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = "\n".join(map(str, self.problems))
        hint = "Nothing was run. Correct the configuration, then check it with `zelda validate`."
        return ConfigError(f"{count} in the configuration:\n{lines}", hint=hint, code=self.code)


def load(folder: Path) -> LoadedProject:
    """Read the configuration of the project that a folder belongs to.

    Raises:
        ConfigError: its message has a line for every problem of every file.
    """
    examination = examine(folder)
    if examination.project is None:
        raise examination.error()
    return examination.project


def results_dir(folder: Path) -> Path:
    """Where the results of a folder's project lie, whatever is wrong with its suites.

    Raises:
        ConfigError: zelda.config.yaml cannot be used.
    """
    root = discovery.find_root(folder)
    config = _read_config(root)
    if config.problems:
        raise Examination(None, ordered(config.problems)).error()
    return root / config.config.results_dir


def examine(folder: Path) -> Examination:
    """Read everything, whatever is wrong."""
    if not folder.is_dir():
        return Examination(None, (problem(str(folder), None, "is not a folder"),))
    root = discovery.find_root(folder)
    config = _read_config(root)
    suites, problems = _read_suites(root, config)
    problems += config.problems
    layers = [suite.layer for suite in suites]
    problems += (*dependents.untested(config.layer, layers, complete=not problems),)
    problems += (*dependents.switched_off(config.layer, layers),)
    if problems:
        return Examination(None, ordered(problems))
    if not suites:
        return Examination(None, (discovery.no_suites(root, config.config.test_dir),), "NO_SUITES")
    resolved = tuple(resolve(suite.identity, suite.layer, config.layer) for suite in suites)
    return Examination(LoadedProject(root, root / config.config.results_dir, config.config, resolved))


def _read_config(root: Path) -> Document[ProjectConfig]:
    path = root / CONFIG_FILE
    if not os.path.lexists(path):
        misnamed = discovery.misnamed_config(root)
        config = document.empty(CONFIG_FILE, ProjectConfig, *filter(None, [misnamed]))
    else:
        try:
            config = document.read(path, CONFIG_FILE, ProjectConfig)
        except Rejected as exc:
            return document.empty(CONFIG_FILE, ProjectConfig, *exc.problems)
    return replace(config, problems=(*config.problems, *_folder_problems(config, root)))


def _folder_problems(config: Document[ProjectConfig], root: Path) -> Iterator[Problem]:
    """Folders that the configuration names must lie in the project, links followed, and not be each other."""
    test_dir, results_dir = root / config.config.test_dir, root / config.config.results_dir
    if not lies_in(test_dir, root):
        yield config.problem("testDir", "leads out of the project through a symbolic link")
    elif os.path.exists(test_dir) and not os.path.isdir(test_dir):  # noqa: PTH110, PTH112 - never raise
        yield config.problem("testDir", "is not a folder")
    if not lies_in(results_dir, root) or lies_in(root, results_dir) or _is_taken(results_dir, root, test_dir):
        yield config.problem("resultsDir", "must be a folder of its own in the project, outside .git")


def _is_taken(results_dir: Path, root: Path, test_dir: Path) -> bool:
    same = lies_in(results_dir, test_dir) and lies_in(test_dir, results_dir)
    return same or ".git" in results_dir.relative_to(root).parts


def _read_suites(root: Path, config: Document[ProjectConfig]) -> tuple[tuple[SuiteFile, ...], tuple[Problem, ...]]:
    suites: list[SuiteFile] = []
    problems: list[Problem] = []
    for path in discovery.suite_files(root, config.config.test_dir):
        try:
            suites.append(suite_file.read(path, root))
        except Rejected as exc:
            problems += exc.problems
    problems += (found for suite in suites for found in suite.problems)
    return tuple(suites), (*problems, *_shared_names(suites))


def _shared_names(suites: list[SuiteFile]) -> Iterator[Problem]:
    """Names become folder names, and some file systems do not tell upper from lower case."""
    taken: dict[str, str] = {}
    for suite in suites:
        name, file = suite.identity.name, suite.identity.file
        first = taken.setdefault(name.casefold(), file)
        if first != file:
            place = suite.layer.places.get("name")
            yield problem(file, place, f"the name {shown(name)} is that of {first} already: every suite needs its own")
