"""`zelda show`: one stored run, or a batch of them."""

import sys
from pathlib import Path

import click

from zelda_ci.cli import completion, options, printing
from zelda_ci.cli.output import echo
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.config.project import results_folder
from zelda_ci.domain.run import batch_of
from zelda_ci.errors import ConfigError
from zelda_ci.pipeline.comparing import kept_comparison
from zelda_ci.pipeline.html_report import report_alone, report_of_arms
from zelda_ci.report import terminal
from zelda_ci.report.builders.summary import stored_run_view
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.model import Detail
from zelda_ci.report.terminal.layout import print_lines
from zelda_ci.report.terminal.pages import print_run
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import LATEST, find_runs


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
    history = RunHistory(results_dir)
    newest = [each.batch_id for each in history.overview().runs[:1]] if run is None else []
    run_id, *others = run_ids = find_runs(history, run or "".join(newest) or LATEST)
    if others and (transcript or patch):
        hint = f"Give one of its runs: {', '.join(run_ids)}."
        message = f"A batch of {len(run_ids)} runs has no single transcript or patch."
        raise ConfigError(message, hint=hint, code="USAGE")
    console = terminal.open_console(sys.stdout)
    if transcript:
        print_lines(console, transcript_lines(history.transcript(run_id)))
    elif patch:
        _show_patch(history.patch(run_id), run_id)
    elif others:
        batch = batch_of([history.result(each) for each in run_ids])
        made = kept_comparison(results_dir, batch.batch_id)
        reporting = Reporting(Detail.FULL, "json" if as_json else None)
        RunReport(reporting, results_dir).print(report_of_arms(*made) if made else report_alone(batch))
    elif as_json:
        printing.print_json(history.result(run_id))
    else:
        print_run(console, stored_run_view(history.result(run_id), printing.run_files(results_dir, run_id)))


def _show_patch(patch: bytes, run_id: str) -> None:
    """To a program byte by byte, to a person in colours and harmless."""
    if not patch:
        echo(f"The session of {run_id} left no patch: it changed no file.", err=True)
    elif sys.stdout.isatty():
        print_lines(terminal.open_console(sys.stdout), patch_lines(patch))
    else:
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
