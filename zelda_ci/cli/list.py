"""`zelda list`: what was run so far."""

from datetime import datetime
from pathlib import Path

import click

from zelda_ci.cli import options, printing
from zelda_ci.config.project import results_folder
from zelda_ci.report.builders.history import history_table
from zelda_ci.storage.history import RunHistory


@click.command(
    "list",
    epilog="Examples: `zelda list --since 7d`; `zelda list --suite rest-endpoint --limit 5`.",
)
@options.project
@options.suites
@click.option(
    "--since", type=options.moment, help="Only runs since a date (2026-02-13, in UTC) or within a period (7d, 24h)."
)
@click.option("--limit", type=options.Whole(min=1), metavar="N", help="Only the newest N.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_runs(
    *, project: Path, suites: tuple[str, ...], since: datetime | None, limit: int | None, as_json: bool
) -> None:
    """List stored runs, the newest first.

    Scores are percentages. A dash stands for a value that was not computed. If the output is not a terminal, each run
    is one line. `zelda show RUN` shows a run in full.
    """
    history = RunHistory(results_folder(project)).overview()
    chosen = [run for run in history.runs if not suites or run.suite in suites]
    recent = [run for run in chosen if since is None or run.started_at >= since][:limit]
    listed = history.replace(runs=tuple(recent))
    if as_json:
        printing.print_json(listed)
        return
    printing.print_table(history_table(listed, of=len(history.runs)))


list = list_runs  # noqa: A001 - the name by which the table of commands finds it
