"""Which projects and suites `zelda run` means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci import app
from zelda_ci.config import files
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import containing, last_failed, select
from zelda_ci.domain.history import StoredRun
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ConfigError
from zelda_ci.storage.history import RunHistory

MAX_NAMED = 5


@dataclass(frozen=True)
class Selection:
    """What was asked for; without anything, every suite."""

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    grep: str | None = None
    last_failed: bool = False


@dataclass(frozen=True)
class Chosen:
    """Each project with the names of the suites to run in it."""

    projects: tuple[tuple[LoadedProject, tuple[str, ...]], ...]
    unusable: Mapping[Path, ConfigError] = field(default_factory=dict)
    """By folder, what is wrong with the others."""

    @property
    def is_several(self) -> bool:
        """Whether more than one project is meant, which are told apart by name then."""
        return len(self.projects) + len(self.unusable) > 1


def select_in(folder: Path, selection: Selection, *, all_projects: bool) -> Chosen:
    """What is meant; of several projects, a broken one does not keep the others from being run.

    Raises:
        ConfigError: The only project is broken, or nothing is left.
    """
    if not all_projects:
        loaded = app.load(folder, selection.names)
        return Chosen(((loaded, _narrowed(loaded, selection)),))
    roots = list(files.projects(folder.resolve()))
    if not roots:
        hint = "A project has a zelda.config.yaml, or suites in zelda/. `zelda init` makes one."
        raise ConfigError(f"There is no project in {folder} or below.", hint=hint, code="NO_SUITES")
    chosen, refusals, unusable = [], [], {}
    for root in roots:
        try:
            loaded = app.load(root, selection.names)
            chosen.append((loaded, _narrowed(loaded, selection)))
        except ConfigError as problem:
            if problem.code in {"UNKNOWN_SUITE", "NO_SUITE_SELECTED"}:
                refusals.append(problem)
            else:
                unusable[root] = problem
    if refusals and not chosen and not unusable:
        where = ", ".join(str(root) for root in roots[:MAX_NAMED])
        raise ConfigError(f"{refusals[0].message} Looked at {where}.", hint=refusals[0].hint, code=refusals[0].code)
    return Chosen(tuple(chosen), unusable)


def _narrowed(loaded: LoadedProject, selection: Selection) -> tuple[str, ...]:
    """Names of suites; none where all are meant."""
    if selection == Selection():
        return ()
    suites = select(loaded.suites, selection.names, selection.tags, loaded.notices)
    if selection.grep is not None:
        suites = containing(suites, selection.grep)
    if selection.last_failed:
        suites = last_failed(suites, _passed(RunHistory(loaded.results_dir)))
    return tuple(suite.resolved.name for suite in suites)


def _passed(history: RunHistory) -> dict[str, bool]:
    """By suite, whether all trials of its newest batch were good."""
    newest: dict[str, list[StoredRun]] = {}
    for run in history.overview().runs:
        # What ran beside the tested files says nothing of them.
        if run.side is Side.BASE:
            continue
        runs = newest.setdefault(run.suite, [])
        if not runs or runs[0].batch_id == run.batch_id:
            runs.append(run)
    return {suite: all(run.outcome <= Outcome.PASSED for run in runs) for suite, runs in newest.items()}
