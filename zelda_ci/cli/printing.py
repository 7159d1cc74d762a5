"""What commands print while they work and at their end, and what they ask at a terminal."""

import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci.app import Invocation
from zelda_ci.cli.output import echo, echo_raw, typed_path
from zelda_ci.config.environment import EnvironmentSettings, accept_isolation, accepted_isolation
from zelda_ci.domain.arms import Forecast
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import GateResult
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit
from zelda_ci.pipeline.invocation import WeakIsolation
from zelda_ci.report import terminal
from zelda_ci.report.builders.arms import forecast_lines, forecast_table
from zelda_ci.report.builders.comparison import changed_row, comparison_view
from zelda_ci.report.builders.gate import gate_sentences, uncounted_sentences
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.model import ComparisonView, HistoryView, RunFiles, Section
from zelda_ci.report.terminal import pages
from zelda_ci.report.text import json_text, sentence
from zelda_ci.report.told import CiReport
from zelda_ci.storage import run_folder
from zelda_ci.storage.result_store import RUNS

MAX_MEANING = 600


def progress(*, as_json: bool) -> AbstractContextManager[Emit]:
    """A listener that shows what goes on: live on a terminal, in plain lines elsewhere."""
    console = terminal.open_console(sys.stderr if as_json else sys.stdout)
    return terminal.progress(console, plain=terminal.is_plain(console))


def json_of(record: Record) -> str:
    """A record for programs; people see it on a terminal, too."""
    return json_text(record.model_dump_json(by_alias=True, exclude_none=True, indent=2))


def print_json(record: Record) -> None:
    """Print a record for programs."""
    echo_raw(json_of(record))


def print_table(view: HistoryView) -> None:
    """Print a table, and remarks on it where they are no part of what programs read."""
    console = terminal.open_console(sys.stdout)
    remarks = terminal.open_console(sys.stdout if sys.stdout.isatty() else sys.stderr)
    pages.print_history(console, remarks, view, one_line=terminal.is_plain(console))


def print_forecast(forecast: Forecast, *, as_json: bool) -> None:
    """Print what would run and what it may cost."""
    if as_json:
        print_json(forecast)
    else:
        table, lines = forecast_table(forecast), [*forecast_lines(forecast)]
        pages.print_forecast(terminal.open_console(sys.stdout), table, lines)


def print_gate(gate: GateResult) -> None:
    """Say to people what the gate says, where programs read standard output."""
    for reason in gate_sentences(gate):
        echo(f"gate: {reason}", err=True)
    for reason in uncounted_sentences(gate):
        echo(f"not counted: {reason}", err=True)


def sides_view(sides: CiReport) -> ComparisonView:
    """The two sides of `zelda run --against`: every suite with every number."""
    assert sides.comparison  # noqa: S101 - two sides ran
    base = sides.batch.base
    names = {"baseline": base.commit[:12] if base and base.commit else "", "candidate": sides.batch.batch_id}
    return comparison_view(sides.comparison, sides.gate, **names, changes=sides.changes.steering)


def print_sides(sides: CiReport, *, whole: bool) -> None:
    """Print how they ended as the comment on a pull request says it; first every number if the `whole` is wanted."""
    view, console = sides_view(sides), terminal.open_console(sys.stdout)
    if whole:
        pages.print_comparison(console, replace(view, gate=Section("", ())))
    pages.print_verdict(console, ci_view(replace(sides, subject="")), changed_row(sides.changes.steering), view.gate)


def run_files(results_dir: Path | None, run_id: str) -> RunFiles:
    """The files of a run, with paths as the user would type them."""
    if results_dir is None:
        return RunFiles()
    logs = map(run_folder.log_name, ("setup", "build", "test"))
    paths = (
        results_dir / RUNS / run_id / name
        for name in (run_folder.RESULT, run_folder.TRANSCRIPT, run_folder.PATCH, *logs)
    )
    return RunFiles(*(typed_path(path) if path.exists() else None for path in paths))


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
