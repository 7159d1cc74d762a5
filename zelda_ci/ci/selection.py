"""Which suites a pull request can concern: what it changes, read by git, and what stored trials of the base felt."""

import os
from dataclasses import dataclass
from pathlib import Path

import anyio

from zelda_ci.ci import baseline
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.stored import Evidence
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.errors import ZeldaError
from zelda_ci.pipeline.fingerprints import evidence, project_files, read_changes
from zelda_ci.selection.choice import SuiteChoice, choose, run_if_either, steering_changes, trials_may_tell
from zelda_ci.selection.effects import ChangeSet
from zelda_ci.workspace.git import borrowing


@dataclass(frozen=True)
class ChosenSuites:
    """The suites of a pull request with whether they run, and the baseline that was looked at for that."""

    choices: tuple[SuiteChoice, ...] = ()
    """Empty where nobody knows what is changed, so that all run."""
    baseline: Evidence | None = None
    """Absent where the changes alone decided."""
    steering: tuple[SteeringChange, ...] = ()
    """Of the pull request, as far as its changes are known."""
    others: tuple[str, ...] = ()
    """Files that it changes and that steer nothing."""


def choose_suites(case: CiContext, loaded: LoadedProject, source: BaseSource) -> ChosenSuites:
    """Which suites run, and what the pull request changes of the files that steer.

    Raises:
        ZeldaError: A suite that was asked for does not exist, or the baseline that the workflow names cannot be read.
    """
    settings, base = case.settings, source.commit
    if base is None or source.is_foreign:
        return ChosenSuites()
    pull = settings.event.pull_request
    has_label = pull is not None and settings.run_all_label in {label["name"] for label in pull.labels}
    if has_label and not settings.run_all:
        case.log.say(f"All suites run: the pull request has the label {settings.run_all_label}.")
    suites = select(loaded.suites, settings.suites, ())
    project, stored = project_files(loaded, loaded.root.resolve().relative_to(source.top).as_posix()), None
    changes = _changes(case, source, base, project.folder)
    known = evidence(suites, project.folder, (), source.environ)
    choices = choose(changes, known, project)
    if settings.run_all or has_label:
        choices = tuple(SuiteChoice(it.resolved.name, runs=True, reason="all were asked for") for it in suites)
    elif trials_may_tell(choices, changes, project):
        stored = baseline.resolve_baseline(case)
        before, trials = stored.origin.commit, stored.trials_of_base
        # Of an artifact that names no commit, each trial has to say that it is of the base.
        if before or all(run.source is not None and run.source.commit == base for run in trials):
            known = evidence(suites, project.folder, trials, source.environ)
        choices = choose(changes, known, project)
        if before and before != base:
            # What has changed since the last commit with results counts, too: trials tell of that commit. But alone it
            # would hide what takes back a change that the base has made since.
            choices = run_if_either(choices, choose(_changes(case, source, before, project.folder), known, project))
    steering = steering_changes(changes, known, project)
    paths = {it.path for it in steering}
    return ChosenSuites(choices, stored, steering, tuple(it.path for it in changes.files if it.path not in paths))


def changed_steering(case: CiContext, source: BaseSource) -> tuple[SteeringChange, ...]:
    """What the pull request changes of the files that steer, whatever suites there are."""
    if source.commit is None or source.is_foreign:
        return ()
    loaded = source.alone(case.root)
    project = project_files(loaded, loaded.root.resolve().relative_to(source.top).as_posix())
    return steering_changes(_changes(case, source, source.commit, project.folder), (), project)


def _changes(case: CiContext, source: BaseSource, before: str, folder: str) -> ChangeSet:
    """What differs between the state that results are compared with and the checkout; if unknown, everything runs."""

    async def read() -> ChangeSet:
        git = await source.at(before)
        head = (await source.git("rev-parse", "--verify", "HEAD^{commit}")).decode().strip()
        here = await source.git("rev-parse", "--path-format=absolute", "--git-common-dir")
        both = borrowing(git, Path(os.fsdecode(here.removesuffix(b"\n"))))
        return await read_changes(both, before, head, folder)

    try:
        return anyio.run(read)
    except ZeldaError as problem:
        case.log.say(f"What the pull request changes is not known: {problem.message}")
        return ChangeSet(problem=f"what changed since {before[:7]} is not known")
