"""Smaller commands about stored runs: list, show, coverage, rejudge, prune."""

import os
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import anyio
import click

from zelda_ci import app
from zelda_ci.cli import completion, options, reporters
from zelda_ci.cli.history import RESULTS
from zelda_ci.cli.output import echo
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.config.environment import read_environment
from zelda_ci.config.files import find_root
from zelda_ci.config.project import results_folder
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.run import batch_of
from zelda_ci.errors import ConfigError, StorageError, ZeldaError
from zelda_ci.pipeline.comparing import kept_comparison, report_of
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.redact import Redactor
from zelda_ci.report import terminal
from zelda_ci.report.builders.history import history_table
from zelda_ci.report.builders.steering import coverage_table
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.model import Detail
from zelda_ci.report.terminal.page import print_lines
from zelda_ci.report.terminal.pages import print_run
from zelda_ci.selection.felt import coverage as covered
from zelda_ci.storage.references import LATEST, find_runs, read_results
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces

MAX_RUNS = 1_000


@click.command("list", epilog="Examples: `zelda list --since 7d`; `zelda list --suite rest-endpoint --limit 5`.")
@options.project
@options.suites
@click.option(
    "--since", type=options.MOMENT, help="Only runs since a date (2026-02-13, in UTC) or within a period (7d, 24h)."
)
@options.limit()
@options.as_json
def list_runs(
    *, project: Path, suites: tuple[str, ...], since: datetime | None, limit: int | None, as_json: bool
) -> None:
    """List stored runs, the newest first.

    Scores are percentages. A dash stands for a value that was not computed. If the output is not a terminal, each run
    is one line. `zelda show RUN` shows a run in full.
    """
    history = ResultStore(results_folder(project)).overview()
    chosen = (run for run in history.runs if not suites or run.suite in suites)
    recent = [run for run in chosen if since is None or run.started_at >= since]
    listed = history.replace(runs=tuple(recent[:limit]))
    reporters.print_table(listed, history_table(listed, of=len(history.runs)), as_json=as_json)


@click.command(
    epilog="Examples: `zelda show latest`; `zelda show latest:rest-endpoint --transcript | less`; "
    "`zelda show latest --patch | git apply`."
)
@click.argument("run", required=False, shell_complete=completion.runs)
@options.project
@click.option("--json", "as_json", is_flag=True, help="Print the stored result as JSON.")
@click.option("--transcript", is_flag=True, help="Print the whole session: what was said and done.")
@click.option("--patch", is_flag=True, help="Print what the session changed, as a patch.")
def show(*, run: str | None, project: Path, as_json: bool, transcript: bool, patch: bool) -> None:
    """Show a stored run or batch: its report, or the transcript or patch of a run.

    RUN is the id of a run or of a batch (all runs of one `zelda run`), or the beginning of one. `latest` is the newest
    run, `latest~1` the one before, `latest:SUITE` the newest of a suite. `zelda list` shows all. Without RUN, the
    newest batch is shown; of a batch of `zelda run --against REF`, its comparison, too.
    """
    options.exclusive(json=as_json, transcript=transcript, patch=patch)
    results_dir = results_folder(project)
    history = ResultStore(results_dir)
    newest = (each.batch_id for each in history.overview().runs if not each.variant)
    run_id, *others = run_ids = find_runs(history, run or next(newest, LATEST))
    if others and (transcript or patch):
        message = f"A batch of {len(run_ids)} runs has no single transcript or patch."
        raise ConfigError(message, hint=f"Give one of its runs: {', '.join(run_ids)}.", code="USAGE")
    console = terminal.open_console(sys.stdout)
    if transcript:
        print_lines(console, transcript_lines(history.run(run_id).transcript()))
    elif patch:
        stored = history.run(run_id).patch()
        if not stored:
            echo(f"The session of {run_id} left no patch: it changed no file.", err=True)
        elif sys.stdout.isatty():
            print_lines(console, patch_lines(stored))
        else:
            sys.stdout.buffer.write(stored)
            sys.stdout.buffer.flush()
    elif others:
        batch = batch_of([history.result(each) for each in run_ids])
        made = kept_comparison(results_dir, batch.batch_id)
        reporting = Reporting(Detail.FULL, "json" if as_json else None)
        RunReport(reporting, results_dir).print(report_of(*made) if made else report_of(batch))
    elif as_json:
        reporters.print_json(history.result(run_id))
    else:
        print_run(console, history.result(run_id), reporters.run_files(results_dir, run_id))


@click.command(
    epilog="Examples: `zelda coverage`; `zelda coverage --suite rest-endpoint --json`; `zelda coverage artifact/` for "
    "an artifact of `zelda ci` that was downloaded."
)
@click.argument("source", required=False, metavar="[RESULTS]", type=click.Path(path_type=Path, exists=True))
@options.project
@options.suites
@options.as_json
def coverage(*, source: Path | None, project: Path, suites: tuple[str, ...], as_json: bool) -> None:
    """Show which suites used which skills, rules, CLAUDE.md files, sub-agents, MCP servers and hooks.

    What no suite ever touches comes first. RESULTS is a file with results, or the folder of an artifact; without it,
    the newest runs that are stored here are read. No session runs.
    """
    if source:
        file = source / RESULTS if source.is_dir() else source
        if not file.is_file():
            hint = "Give the folder of an artifact of `zelda ci`, or a file that `zelda run --json` printed."
            raise StorageError(f"{source} holds no {RESULTS}.", hint=hint, code="NO_RUNS")
        runs = [run for run in read_results(file) if not suites or run.suite in suites]
    else:
        history = ResultStore(results_folder(project))
        all_runs = (run for run in history.overview().runs if not run.variant)
        stored = [run for run in all_runs if not suites or run.suite in suites]
        runs = [history.result(run.run_id) for run in stored[:MAX_RUNS]]
    found = covered(runs)
    reporters.print_table(found, coverage_table(found), as_json=as_json)


@click.command(
    epilog="Examples: `zelda rejudge latest` after a judge that could not be reached; "
    "`zelda rejudge rest-endpoint-2026-02-13` by an unambiguous beginning of the run's name."
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=completion.runs)
@options.project
@options.overrides("rejudge")
@options.no_check
@options.as_json
def rejudge(order: RunOrder, *, runs: tuple[str, ...], project: Path, as_json: bool) -> int:
    """Judge stored runs again, without a new session.

    RUN is the id of a run (a folder in .zelda/runs) or of a batch, the beginning of one, or `latest`. The judge reads
    transcript and patch as they were stored, with the configuration of the run, and result.json is rewritten. A
    failure never replaces an existing verdict.

    The judge needs ANTHROPIC_API_KEY or another credential, or PORTKEY_API_KEY if a gateway is configured, and costs
    money. The smallest request shows first whether it answers.
    """
    suites = []
    # Others may be broken by now. Whatever is wrong is told where the runs are read.
    with suppress(ZeldaError):
        history = ResultStore(results_folder(project))
        suites = [history.result(run_id).suite for name in runs for run_id in find_runs(history, name)]
    loaded = app.load(project, suites)
    report = RunReport(Reporting(Detail.FULL, "json" if as_json else None), loaded.results_dir)
    with report.progress() as emit:
        batch = app.rejudge(loaded, runs, order.overrides, read_environment(os.environ), emit, check=order.check)
    return report.show(batch, {})


@click.command(
    epilog="Examples: `zelda prune` says what would go; `zelda prune --before 7d --keep 5 --yes` removes it."
)
@options.project
@click.option(
    "--before",
    type=options.MOMENT,
    default="30d",
    show_default=True,
    help="Runs that ended before a date (2026-02-13, in UTC) or a period ago (7d, 24h).",
)
@click.option(
    "--keep", type=options.whole(0), metavar="N", default=1, show_default=True, help="Newest batches that stay."
)
@click.option("--yes", is_flag=True, help="Remove them; otherwise it is only said what would go.")
def prune(*, project: Path, before: datetime, keep: int, yes: bool) -> None:
    """Remove old runs, with transcripts and patches, and workspaces that killed runs left.

    Whole batches go, so that no comparison loses a part of its side. Runs that are under way are not touched. A removed
    run is gone: it can be neither shown nor judged again, and says nothing about prices and prior trials any more.
    """
    results = results_folder(project)
    runs = ResultStore(results).overview().runs
    # Newest first; whole batches go, but for the newest and those of which a run is young.
    batches = [*dict.fromkeys(run.batch_id for run in runs)]
    staying = {run.batch_id for run in runs if run.finished_at >= before} | set(batches[:keep])
    old = [run for run in runs if run.batch_id not in staying]
    what = f"{format_count(len(old), 'run')} of {format_count(len({run.batch_id for run in old}), 'batch', 'batches')}"
    if not yes:
        echo(f"{what} would be removed, of {len(runs)} stored.{' Remove them: add --yes.' if old else ''}")
        return
    store = ResultStore(results)
    for run in old:
        store.remove(run.run_id)
    store.forget_comparisons({run.run_id for run in old}, {run.batch_id for run in old})
    swept = anyio.run(Workspaces(find_root(project), results, os.environ, Redactor()).sweep)
    left = f", and what {format_count(len(swept), 'killed run')} left" if swept else ""
    echo(f"Removed {what}{left}; {len(runs) - len(old)} stored.")
