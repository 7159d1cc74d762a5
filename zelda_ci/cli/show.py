"""`zelda show`: one stored run, or a batch of them."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from zelda_ci.cli import completion, options, report
from zelda_ci.cli.output import echo
from zelda_ci.cli.sides import ComparedSides
from zelda_ci.config.project import results_folder
from zelda_ci.domain.run import batch_of
from zelda_ci.errors import ConfigError
from zelda_ci.report import terminal
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.terminal.layout import print_lines
from zelda_ci.storage import references
from zelda_ci.storage.history import RunHistory


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
    if as_json + transcript + patch > 1:
        hint = "Give one of them."
        raise ConfigError("--json, --transcript and --patch exclude each other.", hint=hint, code="USAGE")
    results_dir = results_folder(project)
    history = RunHistory(results_dir)
    newest = [each.batch_id for each in history.overview().runs[:1]] if run is None else []
    run_ids = references.find_runs(history, run or "".join(newest) or references.LATEST)
    if len(run_ids) > 1:
        _show_batch(history, results_dir, run_ids, as_json=as_json, whole=not (transcript or patch))
        return
    (run_id,) = run_ids
    if transcript:
        print_lines(terminal.open_console(sys.stdout), transcript_lines(history.transcript(run_id)))
    elif patch:
        _show_patch(history.patch(run_id), run_id)
    elif as_json:
        report.print_json(history.result(run_id))
    else:
        report.show_stored(history.result(run_id), history.folder(run_id))


def _show_batch(history: RunHistory, results_dir: Path, run_ids: Sequence[str], *, as_json: bool, whole: bool) -> None:
    if not whole:
        hint = f"Give one of its runs: {', '.join(run_ids)}."
        raise ConfigError(f"A batch of {len(run_ids)} runs has no single transcript or patch.", hint=hint, code="USAGE")
    batch = batch_of([history.result(run_id) for run_id in run_ids])
    sides = ComparedSides.read(results_dir, batch.batch_id)
    batch = sides.batch if sides else batch
    if as_json:
        report.print_json(batch)
        return
    report.show_stored_batch(batch, history)
    if sides:
        sides.show(whole=False)


def _show_patch(patch: bytes, run_id: str) -> None:
    """To a program byte by byte, to a person in colours and harmless."""
    if not patch:
        echo(f"The session of {run_id} left no patch: it changed no file.", err=True)
    elif sys.stdout.isatty():
        print_lines(terminal.open_console(sys.stdout), patch_lines(patch))
    else:
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
