"""Which suites a pull request can concern: what it changes, read by git, and what stored trials of the base felt."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from zelda_ci.ci import baseline, refused
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.evidence import Evidence
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.errors import ZeldaError
from zelda_ci.pipeline.changed_files import read_changes
from zelda_ci.pipeline.selecting import evidence, project_files
from zelda_ci.report.markdown import render_nothing_to_run
from zelda_ci.selection.choice import SuiteChoice, choose, reasons, run_if_either, steering_changes, trials_may_tell
from zelda_ci.selection.effects import ChangeSet


@dataclass(frozen=True)
class ChosenSuites:
    """The suites of a pull request with whether they run, and the baseline that was looked at for that."""

    choices: tuple[SuiteChoice, ...]
    baseline: Evidence | None
    """Absent where the changes alone decided."""
    steering: tuple[SteeringChange, ...] = ()
    """Of the pull request, as far as its changes are known."""
    others: tuple[str, ...] = ()
    """Files that it changes and that steer nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the suites that run."""
        return tuple(choice.suite for choice in self.choices if choice.runs)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not run, and why."""
        return reasons(self.choices, runs=False)


def choose_suites(case: CiContext, loaded: LoadedProject, source: BaseSource) -> ChosenSuites | None:
    """Which suites run, and what the pull request changes of the files that steer; absent without a base.

    Raises:
        ZeldaError: A suite that was asked for does not exist, or the baseline that the workflow names cannot be read.
    """
    settings, base = case.settings, case.decision.base
    # What a pull request changes of a foreign repository is known to nobody, so all suites run.
    if base is None or source.is_foreign:
        return None
    pull = settings.event.pull_request
    has_label = pull is not None and settings.run_all_label in {label["name"] for label in pull.labels}
    if has_label and not settings.run_all:
        case.log.say(f"All suites run: the pull request has the label {settings.run_all_label}.")
    suites = select(loaded.suites, settings.suites, ())
    below = loaded.root.resolve().relative_to(source.top)
    prefix = "" if below == Path() else below.as_posix()
    project = project_files(loaded, prefix)
    changes = _changes(case, source, base, prefix)
    known, stored = evidence(suites, prefix, (), source.environ), None
    choices = choose(changes, known, project)
    if settings.run_all or has_label:
        choices = tuple(SuiteChoice(it.resolved.name, runs=True, reason="all were asked for") for it in suites)
    elif trials_may_tell(choices, changes, project):
        stored = baseline.resolve_baseline(case, case.decision.target, case.run_id)
        trials = stored.trials_of_base
        of_base = trials if stored.origin.commit or _is_of(trials, base) else ()
        known = evidence(suites, prefix, of_base, source.environ)
        choices = choose(changes, known, project)
        if (before := stored.origin.commit or base) != base:
            # What has changed since the last commit with results counts, too: trials tell of that commit. But alone it
            # would hide what takes back a change that the base has made since.
            choices = run_if_either(choices, choose(_changes(case, source, before, prefix), known, project))
    steering = steering_changes(changes, known, project)
    paths = {it.path for it in steering}
    others = tuple(it.path for it in changes.files if it.path not in paths)
    return ChosenSuites(choices, stored, steering, others)


def _is_of(trials: Sequence[RunResult], commit: str) -> bool:
    """Whether trials whose artifact names no commit are of this one."""
    return all(run.source is not None and run.source.commit == commit for run in trials)


def _changes(case: CiContext, source: BaseSource, before: str, prefix: str) -> ChangeSet:
    """What differs between the state that results are compared with and the checkout; if unknown, everything runs."""

    async def read() -> ChangeSet:
        git = await source.at(before)
        if git is source.git:
            return await read_changes(git, before, "HEAD", prefix)
        head = (await source.git("rev-parse", "--verify", "HEAD^{commit}")).decode().strip()
        objects = await source.git("rev-parse", "--path-format=absolute", "--git-path", "objects")
        both = git.within(git.cwd, GIT_ALTERNATE_OBJECT_DIRECTORIES=objects.decode().rstrip("\n"))
        return await read_changes(both, before, head, prefix)

    try:
        return anyio.run(read)
    except ZeldaError as problem:
        case.log.say(f"What the pull request changes is not known: {problem.message}")
        return ChangeSet(problem=f"what changed since {before[:7]} is not known")


def report_nothing(case: CiContext, chosen: ChosenSuites) -> int:
    """Say that no session runs; nothing is stored that could become a baseline. Red only for what is not loaded."""
    case.log.report("notice", "No session runs: nothing here can change a result.", title="Zelda")
    markdown = render_nothing_to_run((*chosen.notes, *case.notes), case.settings.run_all_label)
    return refused.report_skipped(case, markdown, in_comment=True)
