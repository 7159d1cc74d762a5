"""Which suites `zelda run` means in a project, and the projects below a folder, one after the other."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio

from zelda_ci import app
from zelda_ci.app import Invocation
from zelda_ci.cli import debug_log
from zelda_ci.cli.output import echo
from zelda_ci.config import files
from zelda_ci.config.environment import EnvironmentSettings
from zelda_ci.config.selection import containing, last_failed, select
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import EXIT_INTERRUPTED, ConfigError, ZeldaError
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.selecting import changed_since
from zelda_ci.redact import Redactor
from zelda_ci.report.text import sentence
from zelda_ci.selection.choice import reasons
from zelda_ci.storage.history import RunHistory

MAX_NAMED = 5
# What a project says that has none of the suites that are meant.
NOT_HERE = {"UNKNOWN_SUITE", "NO_SUITE_SELECTED"}


def load(folder: Path, order: RunOrder, settings: EnvironmentSettings, grep: str | None, *, failed: bool) -> Invocation:
    """What is to run in the project of a folder: of the ordered suites those that match, or failed when last run.

    Raises:
        ConfigError: The project is broken, or no suite is left.
    """
    loaded = app.load(folder, order.names)
    suites = select(loaded.suites, order.names, order.tags, loaded.notices)
    if grep is not None:
        suites = containing(suites, grep)
    if failed:
        suites = last_failed(suites, _passed(RunHistory(loaded.results_dir)))
    names = [suite.resolved.name for suite in suites]
    return Invocation(loaded, replace(order, names=names, tags=()), settings)


def _passed(history: RunHistory) -> dict[str, bool]:
    """By suite, whether all trials of its newest batch were good."""
    newest: dict[str, str] = {}
    passed: dict[str, bool] = {}
    for run in history.overview().runs:
        # What ran beside the tested files says nothing of them.
        if run.side is not Side.BASE and newest.setdefault(run.suite, run.batch_id) == run.batch_id:
            passed[run.suite] = passed.get(run.suite, True) and run.outcome <= Outcome.PASSED
    return passed


def only_changed(invocation: Invocation, ref: str | None) -> Invocation | None:
    """The invocation without the suites that the change cannot concern, each of which is named; none if all are."""
    if ref is None:
        return invocation
    settings, order = invocation.settings, invocation.order
    redact = Redactor(settings.secrets())
    wanted = (ref, invocation.loaded, invocation.chosen, settings.environ, redact, order)
    choices = anyio.run(changed_since, *wanted)
    for line in (*reasons(choices, runs=True), *reasons(choices, runs=False)):
        echo(sentence(line), err=True)
    kept = [choice.suite for choice in choices if choice.runs]
    return invocation.ordering(replace(order, names=kept, tags=())) if kept else None


def run_projects(
    folder: Path,
    load: Callable[[Path], Invocation],
    run: Callable[[Invocation], tuple[int, BatchResult]],
    *,
    quiet: bool,
) -> int:
    """Run every project in a folder and below; one that cannot be run does not keep the others from it.

    Raises:
        ConfigError: There is no project, or none has a suite that is meant.
    """
    roots = [*files.projects(folder.resolve())]
    if not roots:
        hint = "A project has a zelda.config.yaml, or suites in zelda/. `zelda init` makes one."
        raise ConfigError(f"There is no project in {folder} or below.", hint=hint, code="NO_SUITES")
    codes, endings, refusals, spent, is_over = list[int](), list[str](), list[ZeldaError](), 0.0, False
    for name, root in ((os.path.relpath(root), root) for root in roots):
        if is_over:
            endings.append(f"{name} (not begun)")
            continue
        try:
            invocation = load(root)
            echo(f"\nProject {name}", err=quiet)
            if (budget := invocation.order.budget_usd) is not None:
                # It is that of the whole command: what one project has spent, the next one lacks.
                invocation = invocation.ordering(replace(invocation.order, budget_usd=max(0.0, budget - spent)))
            code, batch = run(invocation)
            spent += batch.cost_usd
            is_over = code == EXIT_INTERRUPTED or bool(batch.ended)
            endings.append(f"{name} (exit code {code})")
        except ZeldaError as problem:
            if problem.code in NOT_HERE:
                refusals.append(problem)
                continue
            echo(f"\nProject {name} could not be run.", err=True)
            debug_log.explain(problem)
            code = problem.exit_code
            endings.append(f"{name} (could not be run)")
        codes.append(code)
    if not codes:
        where = ", ".join(map(str, roots[:MAX_NAMED]))
        raise ConfigError(f"{refusals[0].message} Looked at {where}.", hint=refusals[0].hint, code=refusals[0].code)
    echo(f"\nProjects: {', '.join(endings)}", err=True)
    return max(codes)
