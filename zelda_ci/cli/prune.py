"""`zelda prune`: old runs go, and what killed runs left."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import click

from zelda_ci.cli import options
from zelda_ci.cli.output import echo
from zelda_ci.config.files import find_root
from zelda_ci.config.project import results_folder
from zelda_ci.domain.numbers import format_count
from zelda_ci.redact import Redactor
from zelda_ci.storage import comparisons
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces

DAYS = 30


@click.command(
    epilog="Examples: `zelda prune` says what would go; `zelda prune --before 7d --keep 5 --yes` removes it."
)
@options.project
@click.option(
    "--before",
    type=options.MOMENT,
    help=f"Runs that ended before a date (2026-02-13, in UTC) or a period ago (7d, 24h).  [default: {DAYS}d]",
)
@click.option(
    "--keep", type=options.whole(0), metavar="N", default=1, show_default=True, help="Newest batches that stay."
)
@click.option("--yes", is_flag=True, help="Remove them; otherwise it is only said what would go.")
def prune(*, project: Path, before: datetime | None, keep: int, yes: bool) -> None:
    """Remove old runs, with transcripts and patches, and workspaces that killed runs left.

    Whole batches go, so that no comparison loses a part of its side. Runs that are under way are not touched. A removed
    run is gone: it can be neither shown nor judged again, and says nothing about prices and prior trials any more.
    """
    results = results_folder(project)
    runs = RunHistory(results).overview().runs
    # Newest first; whole batches go, but for the newest and those of which a run is young.
    since, batches = (
        before or datetime.now(UTC) - timedelta(days=DAYS),
        list(dict.fromkeys(run.batch_id for run in runs)),
    )
    staying = {run.batch_id for run in runs if run.finished_at >= since} | set(batches[:keep])
    old = [run for run in runs if run.batch_id not in staying]
    what = f"{format_count(len(old), 'run')} of {format_count(len({run.batch_id for run in old}), 'batch', 'batches')}"
    if not yes:
        echo(f"{what} would be removed, of {len(runs)} stored.{' Remove them: add --yes.' if old else ''}")
        return
    store = ResultStore(results)
    for run in old:
        store.remove(run.run_id)
    comparisons.forget(results, {run.run_id for run in old}, {run.batch_id for run in old})
    swept = anyio.run(Workspaces(find_root(project), results, os.environ, Redactor()).sweep)
    left = f", and what {format_count(len(swept), 'killed run')} left" if swept else ""
    echo(f"Removed {what}{left}; {len(runs) - len(old)} stored.")
