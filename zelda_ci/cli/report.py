"""What `run` and `demo` show: progress while they work, the report at the end."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from zelda_ci.app import Invocation
from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.compare.gate import missed_minimums
from zelda_ci.config.environment import EnvironmentSettings, accept_isolation, accepted_isolation
from zelda_ci.domain.arms import Forecast
from zelda_ci.domain.base import Record
from zelda_ci.domain.outcome import batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit
from zelda_ci.pipeline.confinement import WeakIsolation
from zelda_ci.report import terminal
from zelda_ci.report.builders.arms import forecast_lines, forecast_table
from zelda_ci.report.builders.gate import gate_sentences
from zelda_ci.report.builders.summary import report_view, stored_run_view
from zelda_ci.report.model import HistoryView, RunFiles
from zelda_ci.report.terminal.pages import print_forecast, print_history, print_run
from zelda_ci.report.text import json_text, sentence
from zelda_ci.storage import run_folder
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.result_store import RUNS

MAX_MEANING = 600


@contextmanager
def progress(*, as_json: bool) -> Iterator[Emit]:
    """A listener that shows what goes on: live on a terminal, in plain lines elsewhere."""
    console = terminal.open_console(sys.stderr if as_json else sys.stdout)
    with terminal.progress(console, plain=terminal.is_plain(console)) as emit:
        yield emit


def print_json(record: Record) -> None:
    """Print what programs read, and people see on a terminal, too."""
    echo_raw(json_text(record.model_dump_json(by_alias=True, exclude_none=True, indent=2)))


def print_table(view: HistoryView) -> None:
    """Print a table, and remarks on it where they are no part of what programs read."""
    console = terminal.open_console(sys.stdout)
    remarks = terminal.open_console(sys.stdout if sys.stdout.isatty() else sys.stderr)
    print_history(console, remarks, view, one_line=terminal.is_plain(console))


def ask_about_isolation(invocation: Invocation) -> None:
    """Remember which weak level the user accepts: the option's, or at a terminal the answer; a run refuses others.

    Raises:
        ZeldaError: The order cannot be used, or the answer not be kept.
    """
    given, settings = invocation.order.overrides.get("acceptIsolation"), invocation.settings
    if given and given.kind == "option" and given.value != accepted_isolation(settings.environ):
        _remember_isolation(given.value, settings)
    if weak := invocation.weak_isolation():
        ask_to_accept(weak, settings)


def ask_to_accept(weak: WeakIsolation, settings: EnvironmentSettings) -> WeakIsolation | None:
    """At a terminal, have the user accept a weak level once and for all; the level again where that is not so."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return weak
    echo(sentence(weak.meaning, MAX_MEANING), err=True)
    if not click.confirm(f"Accept isolation level {weak.level} on this machine from now on?", err=True):
        return weak
    _remember_isolation(weak.level, settings)
    return None


def _remember_isolation(level: str, settings: EnvironmentSettings) -> None:
    try:
        file = accept_isolation(settings.environ, level)
    except OSError as problem:
        raise ConfigError(f"The answer cannot be kept: {problem.strerror}.", code="ANSWER_LOST") from problem
    echo(f"Isolation level {level} is accepted on this machine: {file} remembers it.", err=True)


def show(batch: BatchResult, results_dir: Path | None, *, as_json: bool) -> int:
    """Print the results, and where the files are if they stay; the exit code that they mean."""
    gate = missed_minimums(batch.runs)
    if as_json:
        print_json(batch)
        for reason in gate_sentences(gate):
            echo(f"gate: {reason}", err=True)
    else:
        files = {run.run_id: run_files(results_dir, run.run_id) for run in batch.runs} if results_dir else {}
        terminal.print_report(terminal.open_console(sys.stdout), report_view(batch, files, gate))
    sys.stdout.flush()
    return max(batch_outcome(batch).exit_code, gate.exit_code)


def print_forecast_of(forecast: Forecast, *, as_json: bool) -> None:
    """Print what would run and what it may cost."""
    if as_json:
        print_json(forecast)
    else:
        print_forecast(terminal.open_console(sys.stdout), forecast_table(forecast), [*forecast_lines(forecast)])


def run_files(results_dir: Path, run_id: str) -> RunFiles:
    """The files of a run, with paths as the user would type them."""
    return _files(results_dir / RUNS / run_id)


def _files(folder: Path) -> RunFiles:
    """Paths that can be pasted into the shell that Zelda was started from."""
    logs = map(run_folder.log_name, ("setup", "build", "test"))
    names = (run_folder.RESULT, run_folder.TRANSCRIPT, run_folder.PATCH, *logs)
    return RunFiles(*(_typed(folder / name) for name in names))


def _typed(path: Path) -> str | None:
    return typed_path(path) if path.exists() else None


def typed_path(path: Path) -> str:
    """A path that can be pasted into the shell that Zelda was started from."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def show_stored(run: RunResult, folder: Path) -> None:
    """Print the report of a run that lies in a folder."""
    print_run(terminal.open_console(sys.stdout), stored_run_view(run, _files(folder)))


def show_stored_batch(batch: BatchResult, history: RunHistory) -> None:
    """Print the report of an invocation whose runs are stored."""
    files = {run.run_id: _files(history.folder(run.run_id)) for run in batch.runs}
    view = report_view(batch, files, missed_minimums(batch.runs))
    terminal.print_report(terminal.open_console(sys.stdout), view)
