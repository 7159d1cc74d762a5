"""`zelda run`: suites in, results and a report out."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.app import RunOrder
from zelda_ci.cli import completion, merge, options, report, reporters
from zelda_ci.cli.choosing import Selection, select_in
from zelda_ci.cli.reporters import Reporter, RunReport
from zelda_ci.cli.watch import watch
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.settings import EnvironmentSettings, read_environment
from zelda_ci.domain.shards import ShardOf
from zelda_ci.errors import EXIT_INTERRUPTED
from zelda_ci.overrides import Overrides
from zelda_ci.pipeline.invocation import foretell
from zelda_ci.workspace.base_commit import BaseOrder

# A session mostly waits for the model: two processors carry more, and the lowest rate limits this many.
JOBS = 4
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run 'api/*' -x` runs those of a folder; `zelda run --last-failed`."
)
@click.argument("names", nargs=-1, metavar="[SUITE]...", shell_complete=completion.suites)
@options.project
@options.selection
@click.option(
    "--changed-since",
    metavar="REF",
    help="Only suites whose result may change by what changed since this branch, tag or commit; the others are named.",
)
@click.option("--all", "run_all", is_flag=True, help="All suites, whatever --changed-since says.")
@click.option("--all-projects", is_flag=True, help="Run every project in the folder and below, one after the other.")
@click.option(
    "--jobs",
    type=options.Whole(min=1),
    default=JOBS,
    envvar="ZELDA_JOBS",
    show_default=True,
    help="Sessions in parallel; ZELDA_JOBS is the same.",
)
@click.option("--record", type=FOLDER, metavar="DIR", help="Record the model's responses as cassettes in this folder.")
@click.option(
    "--replay", type=FOLDER, metavar="DIR", help="Replay the model's responses from this folder: no key, no network."
)
@click.option(
    "--against",
    metavar="REF",
    help="Compare with this commit, branch or tag, such as main or HEAD~1: a few trials of your files, and where they "
    "look worse, more of both, side by side.",
)
@click.option(
    "--budget-usd",
    type=options.Amount(min=0, min_open=True),
    help="Most that the whole invocation may cost, judges included; what is under way may finish.",
)
@click.option(
    "--shard",
    type=options.ShardType(),
    help="Run this part of the suites only, as 2/4, and leave it as a file under .zelda/shards/ for `zelda merge`.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only say what would run and what it may cost, from stored trials; needs no key. With --json for programs.",
)
@click.option("-x", "--fail-fast", is_flag=True, help="Begin nothing more once a run did not pass: --max-failures 1.")
@click.option(
    "--max-failures",
    type=options.Whole(min=1),
    help="Begin nothing more once so many runs did not pass; what is under way finishes, and the rest is named.",
)
@click.option(
    "--watch",
    "is_watching",
    is_flag=True,
    help="Run again after each save what it can concern, --against the last commit if nothing else is named. Each save "
    "spends money: see --budget-usd.",
)
@click.option("--yes", is_flag=True, help="Also run suites whose build or tests fail before any session.")
@options.overrides("run")
@options.unsafe
@options.no_check
@options.commit
@reporters.option
@reporters.page
@reporters.quiet
@reporters.steps
@click.option("--json", "as_json", is_flag=True, help="The same as --reporter json; progress goes to standard error.")
def run(  # noqa: PLR0913 - its options
    overrides: Overrides,
    *,
    project: Path,
    changed_since: str | None,
    run_all: bool,
    all_projects: bool,
    jobs: int,
    record: Path | None,
    replay: Path | None,
    against: str | None,
    budget_usd: float | None,
    shard: ShardOf | None,
    dry_run: bool,
    fail_fast: bool,
    max_failures: int | None,
    is_watching: bool,
    yes: bool,
    unsafe: bool,
    no_check: bool,
    commit: str | None,
    chosen_reporters: tuple[Reporter, ...],
    page: Path | None,
    quiet: bool,
    steps: bool,
    as_json: bool,
    names: tuple[str, ...],
    tags: tuple[str, ...],
    grep: str | None,
    last_failed: bool,
) -> int:
    """Run suites, each in a real Claude Code session, and print a report.

    SUITE is a suite's name, its file or folder, or a pattern such as 'api/*'; without it, all suites run. Each session
    works in a copy of your files as they are, committed or not, but not of those that git ignores; with --commit in a
    copy of a commit. Results are stored under .zelda/runs/. With --against, suites run on your files and on that
    commit, side by side, as often as a verdict needs, and are compared.

    A session needs ANTHROPIC_API_KEY or another credential, and costs money; --replay needs neither. Before anything is
    spent, everything that the runs need is tried as `zelda check` does it.
    """
    if is_watching:
        against = against or options.LAST
        changed_since = changed_since or against
    reporting = reporters.chosen(chosen_reporters, as_json=as_json, quiet=quiet, page=page)
    reporting = replace(reporting, steps=steps)
    settings = read_environment(os.environ)
    order = RunOrder(overrides=overrides, jobs=jobs, record=record, replay=replay, unsafe=unsafe, check=not no_check)
    against_ref = None if against is None else BaseOrder(against)
    # Every shard must see the same files: a commit has them on all machines.
    order = options.tested(order, options.LAST if shard and commit is None else commit)
    order = replace(order, against=against_ref, budget_usd=budget_usd, despite_failing=yes)
    order = replace(order, max_failures=1 if fail_fast else max_failures)
    since = None if run_all else changed_since

    def once() -> int:
        chosen = select_in(project, Selection(names, tags, grep, last_failed), all_projects=all_projects)
        orders = [(loaded, replace(order, names=meant)) for loaded, meant in chosen.projects]
        running = RunReport(reporting, project.resolve() if all_projects else None, settings, titled=chosen.is_several)
        running.refuse_all(chosen.unusable)
        if shard:
            return merge.run_shard(orders, shard, settings, running, since)
        if dry_run:
            return _foretell(orders, settings, running, since, as_json=reporting.printed == "json")
        return _run_each(orders, settings, running, since)

    return watch(project, once) if is_watching else once()


def _foretell(
    orders: Sequence[tuple[LoadedProject, RunOrder]],
    settings: EnvironmentSettings,
    running: RunReport,
    changed_since: str | None,
    *,
    as_json: bool,
) -> int:
    """What would run, without the suites that cannot feel what has changed, and what it may cost."""
    plans = []
    for asked in orders:
        for loaded, order in running.narrowed(*asked, settings, changed_since):
            with running.progress(loaded) as emit:
                counted = app.with_stored(loaded, order, settings, emit)
            suites = app.ordered(loaded, order, settings)
            plans.append((loaded, foretell(counted, suites, loaded.results_dir)))
    return report.foretell(plans, as_json=as_json)


def _run_each(
    orders: Sequence[tuple[LoadedProject, RunOrder]],
    settings: EnvironmentSettings,
    running: RunReport,
    changed_since: str | None,
) -> int:
    """One project after the other, and every question before the first; the exit code of all of it."""
    ready = []
    for loaded, order in orders:
        with running.tolerant(loaded.root):
            for narrowed in running.narrowed(loaded, order, settings, changed_since):
                report.ask_about_isolation(*narrowed, settings)
                ready.append(narrowed)
    spent = 0.0
    for at, (loaded, order) in enumerate(ready, start=1):
        with running.tolerant(loaded.root):
            if order.budget_usd is not None:
                # It is that of the whole invocation: what one project has spent, the next one lacks.
                order = replace(order, budget_usd=max(0.0, order.budget_usd - spent))  # noqa: PLW2901
            with running.progress(loaded) as emit:
                counted = app.with_stored(loaded, order, settings, emit)
                batch = app.run(loaded, counted, settings, emit)
            spent += batch.cost_usd
            if running.show(batch, counted.stored) == EXIT_INTERRUPTED or batch.ended:
                running.leave([project.root for project, _ in ready[at:]])
                return running.finish()
    return running.finish()
