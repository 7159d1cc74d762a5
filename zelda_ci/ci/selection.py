"""Which suites a pull request can concern: what it changes, read by git, and what stored trials of the base felt."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from zelda_ci.ci import baseline, publish, refused
from zelda_ci.ci.base import BaseSource, fetch_files
from zelda_ci.ci.baseline import BatchBaseline
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import path_in
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.domain.kinds import may_steer
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.errors import ZeldaError
from zelda_ci.pipeline.changed_files import read_changes
from zelda_ci.pipeline.selecting import evidence, project_files
from zelda_ci.redact import Redactor
from zelda_ci.report.markdown import render_nothing_to_run
from zelda_ci.selection.choice import SuiteChoice, choose, reasons, run_if_either, steering_changes, trials_may_tell
from zelda_ci.selection.effects import ChangeSet
from zelda_ci.workspace.git import Git, prepare


@dataclass(frozen=True)
class ChosenSuites:
    """The suites of a pull request with whether they run, and the baseline that was looked at for that."""

    choices: tuple[SuiteChoice, ...]
    baseline: BatchBaseline | None
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
    has_label = settings.run_all_label in _labels(case)
    if has_label and not settings.run_all:
        case.log.say(f"All suites run: the pull request has the label {settings.run_all_label}.")
    suites = select(loaded.suites, settings.suites, ())
    below = loaded.root.resolve().relative_to(source.top)
    prefix = "" if below == Path() else below.as_posix()
    project = project_files(loaded, prefix)
    changes = _changes(case, source, base, prefix)
    known = evidence(suites, prefix, (), source.environ)
    if settings.run_all or has_label:
        choices = tuple(SuiteChoice(it.resolved.name, runs=True, reason="all were asked for") for it in suites)
        return _chosen(choices, None, steering_changes(changes, known, project), changes)
    choices = choose(changes, known, project)
    if not trials_may_tell(choices, changes, project):
        return _chosen(choices, None, steering_changes(changes, known, project), changes)
    stored = baseline.given(case) or baseline.resolve_baseline(case, case.decision.target, case.run_id)
    trials = stored.trials_of_base
    known = evidence(suites, prefix, trials if stored.origin.commit or _is_of(trials, base) else (), source.environ)
    choices = choose(changes, known, project)
    steering = steering_changes(changes, known, project)
    if (before := stored.origin.commit or base) != base:
        # What has changed since the last commit with results counts, too: trials tell of that commit. But alone it
        # would hide what takes back a change that the base has made since.
        choices = run_if_either(choices, choose(_changes(case, source, before, prefix), known, project))
    return _chosen(choices, stored, steering, changes)


def _chosen(
    choices: tuple[SuiteChoice, ...],
    stored: BatchBaseline | None,
    steering: tuple[SteeringChange, ...],
    changes: ChangeSet,
) -> ChosenSuites:
    known = {it.path for it in steering}
    return ChosenSuites(choices, stored, steering, tuple(it.path for it in changes.files if it.path not in known))


def _labels(case: CiContext) -> list[str]:
    labels = path_in(case.settings.event, "pull_request", "labels")
    names = (label.get("name") for label in labels if isinstance(label, Mapping)) if isinstance(labels, list) else ()
    return [name for name in names if isinstance(name, str)]


def _is_of(trials: Sequence[RunResult], commit: str) -> bool:
    """Whether trials whose artifact names no commit are of this one."""
    return all(run.source is not None and run.source.commit == commit for run in trials)


def _changes(case: CiContext, source: BaseSource, before: str, prefix: str) -> ChangeSet:
    """What differs between the state that results are compared with and the checkout; if unknown, everything runs."""
    redact = Redactor(case.settings.secrets())
    try:
        with tempfile.TemporaryDirectory(prefix="zelda-changes-") as name:
            return anyio.run(_read, prepare(Path(name), source.environ, redact), before, source, prefix)
    except ZeldaError as problem:
        case.log.say(f"What the pull request changes is not known: {problem.message}")
        return ChangeSet(problem=f"what changed since {before[:7]} is not known")


async def _read(git: Git, before: str, source: BaseSource, prefix: str) -> ChangeSet:
    here = git.within(source.top)
    if (await here.attempt("rev-parse", "-q", "--verify", f"{before}^{{tree}}")).exit_code == 0:
        return await read_changes(here, before, "HEAD", prefix)
    head = (await here("rev-parse", "--verify", "HEAD^{commit}")).decode().strip()
    objects = (await here("rev-parse", "--path-format=absolute", "--git-path", "objects")).decode().rstrip("\n")
    fetched = await fetch_files(git, before, source, git.cwd / "fetched", lambda path: may_steer(str(path)))
    if fetched is None:
        return ChangeSet(problem=f"{before[:7]}, which results are compared with, could not be fetched")
    both = fetched.within(fetched.cwd, GIT_ALTERNATE_OBJECT_DIRECTORIES=objects)
    return await read_changes(both, before, head, prefix)


def report_nothing(case: CiContext, chosen: ChosenSuites) -> int:
    """Say that no session runs; nothing is stored that could become a baseline. Red only for what is not loaded."""
    case.log.report("notice", "No session runs: nothing here can change a result.", title="Zelda")
    text = render_nothing_to_run((*chosen.notes, *case.notes), case.settings.run_all_label)
    text = refused.with_refused(text, case.refused)
    code = refused.report_skipped(case.settings, case.log, text, case.refused)
    publish.replace_comment(case, text)
    return code
