"""`zelda show`: one stored run, or a batch of them."""

import sys
from functools import partial
from pathlib import Path

import click

from zelda_ci.cli import completion, options, printing
from zelda_ci.cli.output import echo
from zelda_ci.compare.gate import missed_minimums
from zelda_ci.config.project import results_folder
from zelda_ci.domain.run import batch_of
from zelda_ci.errors import ConfigError
from zelda_ci.pipeline.comparing import kept_comparison
from zelda_ci.pipeline.html_report import report_of_arms
from zelda_ci.report import terminal
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.terminal.page import print_lines
from zelda_ci.report.terminal.pages import print_report, print_run
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
    run_id, *others = run_ids = references.find_runs(history, run or "".join(newest) or references.LATEST)
    if others and (transcript or patch):
        hint = f"Give one of its runs: {', '.join(run_ids)}."
        message = f"A batch of {len(run_ids)} runs has no single transcript or patch."
        raise ConfigError(message, hint=hint, code="USAGE")
    if transcript:
        print_lines(terminal.open_console(sys.stdout), transcript_lines(history.run(run_id).transcript()))
    elif patch:
        _show_patch(history.run(run_id).patch(), run_id)
    elif others:
        batch = batch_of([history.result(each) for each in run_ids])
        made = kept_comparison(results_dir, batch.batch_id)
        batch = made[0] if made else batch
        if as_json:
            printing.print_json(batch)
            return
        files_of = partial(printing.run_files, results_dir)
        print_report(terminal.open_console(sys.stdout), batch, missed_minimums(batch.runs), files_of)
        if made:
            printing.print_sides(report_of_arms(*made), whole=False)
    elif as_json:
        printing.print_json(history.result(run_id))
    else:
        files = printing.run_files(results_dir, run_id)
        print_run(terminal.open_console(sys.stdout), history.result(run_id), files)


def _show_patch(patch: bytes, run_id: str) -> None:
    """To a program byte by byte, to a person in colours and harmless."""
    if not patch:
        echo(f"The session of {run_id} left no patch: it changed no file.", err=True)
    elif sys.stdout.isatty():
        print_lines(terminal.open_console(sys.stdout), patch_lines(patch))
    else:
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
