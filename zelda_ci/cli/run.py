"""`zelda run`: suites in, results and a report out."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from zelda_ci.app import Invocation
from zelda_ci.cli import merge, options, printing, reporters
from zelda_ci.cli.choosing import load, only_changed, run_projects
from zelda_ci.cli.options import OF_ORDER
from zelda_ci.cli.reporters import RunReport
from zelda_ci.cli.watch import watch
from zelda_ci.config.environment import read_environment
from zelda_ci.domain.run import BatchResult, empty_batch
from zelda_ci.domain.shards import ShardOf
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.workspace.base_commit import BaseOrder

# A session mostly waits for the model: two processors carry more, and the lowest rate limits this many.
JOBS = 4
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run 'api/*' -x` runs those of a folder; `zelda run --last-failed`."
)
@click.argument("names", **options.NAMES, **OF_ORDER)
@options.project
@click.option("--tag", "tags", **options.TAGS, **OF_ORDER)
@click.option("--grep", metavar="PATTERN", help="Only suites whose name, description, prompt or criteria match.")
@click.option("--last-failed", is_flag=True, help="Only suites that did not pass when they were last run.")
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
    **OF_ORDER,
)
@click.option(
    "--record", type=FOLDER, metavar="DIR", help="Record the model's responses as cassettes in this folder.", **OF_ORDER
)
@click.option(
    "--replay",
    type=FOLDER,
    metavar="DIR",
    help="Replay the model's responses from this folder: no key, no network.",
    **OF_ORDER,
)
@click.option(
    "--against",
    type=BaseOrder,
    metavar="REF",
    help="Compare with this commit, branch or tag, such as main or HEAD~1: a few trials of your files, and where they "
    "look worse, more of both, side by side.",
    **OF_ORDER,
)
@click.option(
    "--budget-usd",
    type=options.Amount(min=0, min_open=True),
    help="Most that the whole invocation may cost, judges included; what is under way may finish.",
    **OF_ORDER,
)
@click.option(
    "--shard",
    type=options.shard,
    metavar="I/N",
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
    **OF_ORDER,
)
@click.option(
    "--watch",
    "is_watching",
    is_flag=True,
    help="Run again after each save what it can concern, --against the last commit if nothing else is named. Each save "
    "spends money: see --budget-usd.",
)
@click.option(
    "--yes",
    "despite_failing",
    is_flag=True,
    help="Also run suites whose build or tests fail before any session.",
    **OF_ORDER,
)
@options.order("run")
@options.unsafe
@options.no_check
@options.commit
@reporters.options
@click.option("-v", "--steps", is_flag=True, help="Show what sessions say and do as it happens, a line each.")
def run(  # noqa: PLR0913 - its options
    order: RunOrder,
    *,
    project: Path,
    grep: str | None,
    last_failed: bool,
    changed_since: str | None,
    run_all: bool,
    all_projects: bool,
    shard: ShardOf | None,
    dry_run: bool,
    fail_fast: bool,
    is_watching: bool,
    steps: bool,
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
        against = order.against or BaseOrder(options.LAST)
        order, changed_since = replace(order, against=against), changed_since or against.ref
    since = None if run_all else changed_since
    reporting = reporters.chosen(steps=steps)
    order = replace(order, max_failures=1) if fail_fast else order
    settings = read_environment(os.environ)
    if shard:
        apart = {"all-projects": all_projects, "last-failed": last_failed, "dry-run": dry_run}
        merge.check_shard(reporting, {**apart, "commit": not order.working_tree})
        # Every shard must see the same files: a commit has them on all machines.
        order = replace(order, working_tree=False)
    nothing = empty_batch(datetime.now(UTC))

    def run_project(whole: Invocation) -> tuple[int, BatchResult]:
        report = RunReport(reporting.within(whole.loaded.root if all_projects else Path()), whole.loaded)
        invocation = only_changed(whole, since)
        if invocation and not dry_run:
            printing.ask_about_isolation(invocation)
        if shard:
            return merge.run_shard(invocation or whole, shard, report, is_empty=invocation is None), nothing
        if invocation and dry_run:
            with report.progress():
                forecast = invocation.with_stored().forecast()
            printing.print_forecast(forecast, as_json=reporting.printed == "json")
        if invocation is None or dry_run:
            return 0 if dry_run else report.show(nothing, {}), nothing
        with report.progress() as emit:
            counted = invocation.with_stored()
            batch = counted.run(emit)
        return report.show(batch, counted.order.stored), batch

    def once() -> int:
        chosen = partial(load, order=order, settings=settings, grep=grep, failed=last_failed)
        if not all_projects:
            return run_project(chosen(project))[0]
        reporting.check_several()
        return run_projects(project, chosen, run_project, quiet=bool(reporting.printed))

    return watch(project, once) if is_watching else once()
