"""Which projects and suites `zelda run` means."""

from dataclasses import dataclass
from pathlib import Path

from zelda_ci import app
from zelda_ci.config import discovery
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import containing, last_failed, select
from zelda_ci.domain.history import StoredRun
from zelda_ci.errors import ConfigError
from zelda_ci.storage.history import RunHistory

MAX_NAMED = 5
GOOD = {"passed", "measured"}


@dataclass(frozen=True)
class Selection:
    """What was asked for; without anything, every suite."""

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    grep: str | None = None
    last_failed: bool = False


def select_in(folder: Path, selection: Selection, *, all_projects: bool) -> list[tuple[LoadedProject, tuple[str, ...]]]:
    """Each project with the names of the suites to run in it.

    Raises:
        ConfigError: A file is broken, or nothing is left.
    """
    if not all_projects:
        loaded = app.load(folder, selection.names)
        return [(loaded, _narrowed(loaded, selection))]
    roots = list(discovery.projects(folder.resolve()))
    if not roots:
        hint = "A project has a zelda.config.yaml, or suites in zelda/. `zelda init` makes one."
        raise ConfigError(f"There is no project in {folder} or below.", hint=hint, code="NO_SUITES")
    projects = [app.load(root, selection.names) for root in roots]
    chosen, refusals = [], []
    for loaded in projects:
        try:
            chosen.append((loaded, _narrowed(loaded, selection)))
        except ConfigError as problem:
            if problem.code not in {"UNKNOWN_SUITE", "NO_SUITE_SELECTED"}:
                raise
            refusals.append(problem)
    if not chosen:
        where = ", ".join(str(root) for root in roots[:MAX_NAMED])
        raise ConfigError(f"{refusals[0].message} Looked at {where}.", hint=refusals[0].hint, code=refusals[0].code)
    return chosen


def _narrowed(loaded: LoadedProject, selection: Selection) -> tuple[str, ...]:
    """Names of suites; none where all are meant."""
    if selection == Selection():
        return ()
    suites = select(loaded.suites, selection.names, selection.tags)
    if selection.grep is not None:
        suites = containing(suites, selection.grep)
    if selection.last_failed:
        suites = last_failed(suites, _passed(RunHistory(loaded.results_dir)))
    return tuple(suite.resolved.name for suite in suites)


def _passed(history: RunHistory) -> dict[str, bool]:
    """By suite, whether all trials of its newest batch were good."""
    newest: dict[str, list[StoredRun]] = {}
    for run in history.overview().runs:
        runs = newest.setdefault(run.suite, [])
        if not runs or runs[0].batch_id == run.batch_id:
            runs.append(run)
    return {suite: all(run.outcome in GOOD for run in runs) for suite, runs in newest.items()}
