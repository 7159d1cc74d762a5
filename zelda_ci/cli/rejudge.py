"""`zelda rejudge`: stored runs before the judge again."""

import os
from contextlib import suppress
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.cli import completion, options
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.config.environment import read_environment
from zelda_ci.config.project import results_folder
from zelda_ci.errors import ZeldaError
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report.model import Detail
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import find_runs


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
        history = RunHistory(results_folder(project))
        suites = [history.result(run_id).suite for name in runs for run_id in find_runs(history, name)]
    loaded = app.load(project, suites)
    report = RunReport(Reporting(Detail.FULL, "json" if as_json else None), loaded.results_dir)
    with report.progress() as emit:
        batch = app.rejudge(loaded, runs, order.overrides, read_environment(os.environ), emit, check=order.check)
    return report.show(batch, {})
