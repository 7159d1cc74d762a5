"""The configuration of a project: what it says, and everything that is wrong with it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from zelda_ci.config import document, files, suite_file
from zelda_ci.config.document import Layer, Origin
from zelda_ci.config.files import find_root, lies_in
from zelda_ci.config.messages import ConfigProblem, Rejected, config_problem, ordered, shown
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig, SuiteConfig
from zelda_ci.config.selection import is_meant, usual_name
from zelda_ci.config.suite_file import LoadedSuite, SuiteFile, resolve
from zelda_ci.errors import ConfigError

# The code of a project that is right, but has none.
NO_SUITES = "NO_SUITES"


@dataclass(frozen=True)
class LoadedProject:
    """A project whose configuration is right: every suite resolved, in the order of their files."""

    root: Path
    layer: Layer[ProjectConfig]
    suites: tuple[LoadedSuite, ...]
    notices: tuple[str, ...] = ()
    """What the user should know and that stops nothing: files that are no suites, broken suites nobody asked for."""

    @property
    def config(self) -> ProjectConfig:
        return self.layer.config

    @property
    def results_dir(self) -> Path:
        return self.root / self.config.results_dir


class InvalidConfigError(ConfigError):
    """The configuration is wrong; carries each problem, by file and place."""

    def __init__(self, problems: Iterable[ConfigProblem], code: str | None = None) -> None:
        self.problems = ordered(problems)
        count = "one problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = "\n".join(map(str, self.problems))
        hint = "Nothing was run. Correct the configuration, then check it with `zelda validate`."
        super().__init__(f"{count} in the configuration:\n{lines}", hint=hint, code=code)


def without_suites(folder: Path) -> LoadedProject:
    """Read the settings of the project that a folder lies in, with one suite that has them and asks for nothing.

    Raises InvalidConfigError where there is no such folder, or its own file is wrong.
    """
    root = find_root(folder)
    config = _read_config(root)
    if problems := config.problems if folder.is_dir() else (config_problem(str(folder), None, "is not a folder"),):
        raise InvalidConfigError(problems)
    nothing = SuiteFile("context", "Hi", Origin(CONFIG_FILE), Layer(CONFIG_FILE, SuiteConfig.model_construct()))
    suite = resolve(nothing, config)
    return LoadedProject(root, config, (replace(suite, resolved=suite.resolved.replace(setup_command=None)),))


def active(loaded: LoadedProject, *, is_ci: bool = False) -> LoadedProject:
    """The project without suites that are skipped, and without those beside which others say `only`; with notices.

    Raises ConfigError where no suite is left; or one says `only` in CI, where that would hide all others.
    """
    notices = [f"{it.resolved.name} is skipped: {it.skip} ({it.resolved.file})" for it in loaded.suites if it.skip]
    suites = [it for it in loaded.suites if not it.skip]
    alone = [it for it in suites if it.only]
    if alone and is_ci:
        message = f"{alone[0].resolved.file}: only is for your own machine: here it would hide every other suite."
        raise ConfigError(message, hint="Nothing was run. Take it out.")
    if alone and (others := len(suites) - len(alone)):
        names = ", ".join(it.resolved.name for it in alone)
        notices.append(f"only {names} runs, as `only` says; {others} of {len(suites)} suites are left out")
    if not suites:
        raise ConfigError("Every suite is skipped: nothing to run.", hint="\n".join(notices), code="NO_SUITE_SELECTED")
    return replace(loaded, suites=tuple(alone or suites), notices=(*loaded.notices, *notices))


def results_folder(folder: Path) -> Path:
    """Where the results of a folder's project lie, whatever is wrong with its suites, but not with its own file."""
    root = find_root(folder)
    config = _read_config(root)
    if config.problems:
        raise InvalidConfigError(config.problems)
    return root / config.config.results_dir


def load(folder: Path, asked_for: Sequence[str] = ()) -> LoadedProject:
    """Read the configuration of the project that a folder lies in; raises InvalidConfigError with all its problems.

    A broken suite stops nothing where none of the names in `asked_for` means it.
    """
    if not folder.is_dir():
        raise InvalidConfigError([config_problem(str(folder), None, "is not a folder")])
    root = find_root(folder)
    config = _read_config(root)
    tracked, suites, problems = cache(lambda: files.tracked(root)), list[SuiteFile](), list[ConfigProblem]()
    for path in files.suite_files(root, config.config.test_dir):
        try:
            suites.append(suite_file.load_suite(path, root, tracked))
            problems += suites[-1].layer.problems
        except Rejected as exc:
            problems += exc.problems
    problems += _shared_names(suites)
    left_out: tuple[ConfigProblem, ...] = ()
    if problems and asked_for and not config.problems:
        called = {suite.layer.file: suite.name for suite in suites}
        broken = {problem.file for problem in problems}
        names = {file: called.get(file) or usual_name(file) for file in broken}
        wanted = {file for file in broken if any(is_meant(name, names[file], file) for name in asked_for)}
        suites = [suite for suite in suites if suite.layer.file not in broken - wanted]
        left_out = ordered(problem for problem in problems if problem.file not in wanted)
        problems = [problem for problem in problems if problem.file in wanted]
    problems += config.problems
    problems += document.across(config, [suite.layer for suite in suites], complete=not (problems or left_out))
    if problems:
        raise InvalidConfigError(problems)
    if not suites:
        raise InvalidConfigError([files.no_suites(root, config.config.test_dir)], NO_SUITES)
    resolved = tuple(resolve(each, config) for suite in suites for each in suite_file.combinations(suite))
    notices = [f"left out, since it is broken: {problem}" for problem in left_out]
    notices += files.lookalikes(root, config.config.test_dir)
    return LoadedProject(root, config, resolved, tuple(notices))


def _read_config(root: Path) -> Layer[ProjectConfig]:
    if os.path.lexists(root / CONFIG_FILE):
        config = document.load_document(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig)
    else:
        config = Layer(CONFIG_FILE, ProjectConfig(), problems=tuple(files.misnamed_config(root)))
    return replace(config, problems=(*config.problems, *folder_problems(config, root)))


def folder_problems(layer: Layer[ProjectConfig], root: Path) -> Iterator[ConfigProblem]:
    """Folders that the configuration names must lie in the project, links followed, and not be each other."""
    test_dir, results_dir = root / layer.config.test_dir, root / layer.config.results_dir
    if not lies_in(test_dir, root):
        yield layer.problem("testDir", "leads out of the project through a symbolic link")
    elif os.path.exists(test_dir) and not os.path.isdir(test_dir):  # noqa: PTH110, PTH112 - never raise
        yield layer.problem("testDir", "is not a folder")
    is_same = lies_in(results_dir, test_dir) and lies_in(test_dir, results_dir)
    is_own = not is_same and ".git" not in results_dir.relative_to(root).parts
    steps = [step for step in (*reversed(results_dir.parents), results_dir) if root in step.parents]
    if not (is_own and lies_in(results_dir, root)) or lies_in(root, results_dir):
        yield layer.problem("resultsDir", "must be a folder of its own in the project, outside .git")
    elif link := next((step for step in steps if step.is_symlink()), None):
        place = link.relative_to(root).as_posix()
        yield layer.problem("resultsDir", f"leads through {place}, a symbolic link, and Zelda writes through none")


def _shared_names(suites: Sequence[SuiteFile]) -> Iterator[ConfigProblem]:
    """Names become folder names, and some file systems do not tell upper from lower case."""
    taken: dict[str, str] = {}
    for suite in suites:
        for made in (suite,) if suite.layer.problems else suite_file.combinations(suite):
            first = taken.setdefault(made.name.casefold(), made.layer.file)
            if first != made.layer.file:
                message = f"the name {shown(made.name)} is that of {first} already: every suite needs its own"
                yield config_problem(made.layer.file, made.layer.places.get("name"), message)
