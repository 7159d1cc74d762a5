"""`zelda show`: one stored run."""

import sys
from pathlib import Path

import click

from zelda_ci.cli import options, report
from zelda_ci.config.project import results_folder
from zelda_ci.errors import ConfigError
from zelda_ci.report import terminal
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.terminal.layout import print_lines
from zelda_ci.storage import references
from zelda_ci.storage.history import RunHistory


@click.command(
    epilog="Examples: `zelda show latest`; `zelda show rest-endpoint-2026 --transcript | less`; "
    "`zelda show latest --patch | git apply`."
)
@click.argument("run")
@options.project
@click.option("--json", "as_json", is_flag=True, help="Print the stored result as JSON.")
@click.option("--transcript", is_flag=True, help="Print the whole session: what was said and done.")
@click.option("--patch", is_flag=True, help="Print what the session changed, as a patch.")
def show(*, run: str, project: Path, as_json: bool, transcript: bool, patch: bool) -> None:
    """Show a stored run: its report, or its transcript or patch.

    RUN is the id of a run, the beginning of one, or `latest`; `zelda list` shows all.
    """
    if as_json + transcript + patch > 1:
        hint = "Give one of them."
        raise ConfigError("--json, --transcript and --patch exclude each other.", hint=hint, code="USAGE")
    history = RunHistory(results_folder(project))
    run_id = references.find_run(history, run)
    if transcript:
        print_lines(terminal.open_console(sys.stdout), transcript_lines(history.transcript(run_id)))
    elif patch:
        _show_patch(history.patch(run_id), run_id)
    elif as_json:
        report.print_json(history.result(run_id))
    else:
        report.show_stored(history.result(run_id), history.folder(run_id))


def _show_patch(patch: bytes, run_id: str) -> None:
    """To a program byte by byte, to a person in colours and harmless."""
    if not patch:
        click.echo(f"The session of {run_id} left no patch: it changed no file.", err=True)
    elif sys.stdout.isatty():
        print_lines(terminal.open_console(sys.stdout), patch_lines(patch))
    else:
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
