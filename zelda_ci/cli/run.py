"""`zelda run`: suites in, results and a report out."""

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from zelda_ci.app import Invocation
from zelda_ci.cli import merge, options, printing, reporters
from zelda_ci.cli.choosing import load, only_changed, run_projects
from zelda_ci.cli.options import of_order
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.cli.watch import watch
from zelda_ci.config.environment import read_environment
from zelda_ci.domain.run import BatchResult, empty_batch
from zelda_ci.domain.shards import ShardOf, shard_of
from zelda_ci.errors import ConfigError
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report import terminal
from zelda_ci.report.builders.arms import forecast_lines, forecast_table
from zelda_ci.report.terminal.pages import print_forecast
from zelda_ci.workspace.base_commit import BaseOrder

# A session mostly waits for the model: two processors carry more, and the lowest rate limits this many.
JOBS = 4
CASSETTES = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run 'api/*' -x` runs those of a folder; `zelda run --last-failed`."
)
@options.tested("run")
@click.option("--grep", metavar="PATTERN", help="Only suites whose name, description, prompt or criteria match.")
@click.option("--last-failed", is_flag=True, help="Only suites that did not pass when they were last run.")
@click.option(
    "--changed-since",
    metavar="REF",
    help="Only suites whose result may change by what changed since this branch, tag or commit; the others are named.",
)
@click.option("--all", "run_all", is_flag=True, help="All suites, whatever --changed-since says.")
@click.option("--all-projects", is_flag=True, help="Run every project in the folder and below, one after the other.")
@of_order(
    "--jobs",
    type=options.whole(1),
    default=JOBS,
    envvar="ZELDA_JOBS",
    show_default=True,
    help="Sessions in parallel; ZELDA_JOBS is the same.",
)
@of_order("--record", type=CASSETTES, metavar="DIR", help="Record the model's responses as cassettes in this folder.")
@of_order(
    "--replay", type=CASSETTES, metavar="DIR", help="Replay the model's responses from this folder: no key, no network."
)
@of_order(
    "--against",
    type=BaseOrder,
    metavar="REF",
    help="Compare with this commit, branch or tag, such as main or HEAD~1: a few trials of your files, and where they "
    "look worse, more of both, side by side.",
)
@of_order(
    "--budget-usd",
    type=options.OptionType(options.amount, "amount"),
    help="Most that the whole invocation may cost, judges included; what is under way may finish.",
)
@click.option(
    "--shard",
    type=options.OptionType(shard_of, "shard"),
    metavar="I/N",
    help="Run this part of the suites only, as 2/4, and leave it as a file under .zelda/shards/ for `zelda merge`.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only say what would run and what it may cost, from stored trials; needs no key. With --json for programs.",
)
@of_order(
    "-x",
    "--fail-fast",
    "max_failures",
    flag_value=1,
    type=int,
    help="The same as --max-failures 1.",
)
@of_order(
    "--max-failures",
    type=options.whole(1),
    help="Begin nothing more once so many runs did not pass; what is under way finishes, and the rest is named.",
)
@click.option(
    "--watch",
    "is_watching",
    is_flag=True,
    help="Run again after each save what it can concern, --against the last commit if nothing else is named. Each save "
    "spends money: see --budget-usd.",
)
@of_order(
    "--yes", "despite_failing", is_flag=True, help="Also run suites whose build or tests fail before any session."
)
@options.no_check
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
    is_watching: bool,
    reporting: Reporting,
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
    settings = read_environment(os.environ)
    if shard:
        # Every shard must see the same suites and the same commit; it knows a part only, and `zelda merge` reports all.
        apart = {"all-projects": all_projects, "last-failed": last_failed, "dry-run": dry_run}
        apart |= {"commit": not order.working_tree, "reporter": bool(reporting.printed or reporting.files)}
        for name, given in apart.items():
            options.exclusive(shard=shard, **{name: given})
        order = replace(order, working_tree=False)
    nothing = empty_batch(datetime.now(UTC))

    def run_project(whole: Invocation) -> tuple[int, BatchResult]:
        loaded = whole.loaded
        folder = loaded.root if all_projects else Path()
        report = RunReport(reporting, loaded.results_dir, loaded.root.name, folder=folder)
        invocation = only_changed(whole, since)
        if invocation and not dry_run:
            printing.ask_about_isolation(invocation)
        if shard:
            return merge.run_shard(invocation or whole, shard, report, is_empty=invocation is None), nothing
        if invocation is None or dry_run:
            if invocation:
                _print_forecast(invocation, as_json=reporting.printed == "json")
            return 0 if dry_run else report.show(nothing, {}), nothing
        with report.progress() as emit:
            counted = invocation.with_stored()
            batch = counted.run(emit)
        return report.show(batch, counted.order.stored), batch

    chosen = partial(load, order=order, settings=settings, grep=grep, failed=last_failed)

    def once() -> int:
        if not all_projects:
            return run_project(chosen(project))[0]
        if reporting.printed == "junit" or any(file.is_absolute() for _, file in reporting.files):
            hint = "Give files by relative paths: each project writes its own below its folder."
            raise ConfigError("Several projects cannot write one report.", hint=hint, code="USAGE")
        return run_projects(project, chosen, run_project, quiet=bool(reporting.printed))

    return watch(project, once) if is_watching else once()


def _print_forecast(invocation: Invocation, *, as_json: bool) -> None:
    """Print what would run and what it may cost."""
    forecast = invocation.with_stored().forecast()
    if as_json:
        printing.print_json(forecast)
    else:
        console = terminal.open_console(sys.stdout)
        print_forecast(console, forecast_table(forecast), [*forecast_lines(forecast)])
