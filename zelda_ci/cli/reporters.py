"""How a run is reported: to people on the terminal, and to programs (`--reporter`), there or in files."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from zelda_ci.app import Invocation
from zelda_ci.cli.boundary import echo, echo_raw, typed_path
from zelda_ci.cli.options import FILE, OptionType, check_folder, exclusive, together
from zelda_ci.cli.options import as_json as json_option
from zelda_ci.compare.gate import missed_minimums
from zelda_ci.config.environment import accept_isolation, accepted_isolation
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import batch_outcome
from zelda_ci.domain.run import BatchResult, StoredTrials
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.events import Emit
from zelda_ci.files.atomic import write_whole
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import compare_arms, keep_comparison, report_of
from zelda_ci.pipeline.invocation import WEAK
from zelda_ci.report.builders.comparison import changed_row, comparison_view, gate_sentence, uncounted_sentences, untold
from zelda_ci.report.builders.summary import cut_short
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.html.writer import write_report
from zelda_ci.report.model import ComparisonView, Detail, RunFiles, Section, Table
from zelda_ci.report.terminal import pages
from zelda_ci.report.terminal.progress import FinishedSuites, Progress
from zelda_ci.report.text import json_of, sentence
from zelda_ci.storage import result_store
from zelda_ci.storage.result_store import RUNS, ResultStore

Found = TypeVar("Found", bound=Record)
FORMATS = {"json": "results.json", "junit": "results.xml"}
HTML = "html"


def print_json(record: Record) -> None:
    """Print a record for programs."""
    echo_raw(json_of(record), nl=False)


def print_found(found: Found, show: Callable[[Console, Found], None], *, as_json: bool) -> None:
    """Print a record for programs, or for people as they are shown it."""
    if as_json:
        print_json(found)
    else:
        show(pages.open_console(sys.stdout), found)


def print_table(record: Record, table: Table, *, as_json: bool) -> None:
    """Print a record for programs, or its table, and remarks on it where they are no part of what programs read."""
    remarks = pages.open_console(sys.stdout if sys.stdout.isatty() else sys.stderr)

    def show(console: Console, _: Record) -> None:
        pages.print_table(console, remarks, table, unbroken=pages.is_plain(console))

    print_found(record, show, as_json=as_json)


def listener(*, as_json: bool) -> Progress:
    """What shows progress, where programs do not read it."""
    return Progress(pages.open_console(sys.stderr if as_json else sys.stdout))


def carry_out(invocation: Invocation, work: Callable[[Emit], Found], *, as_json: bool) -> Found:
    """Do what an invocation is to do, once its isolation is accepted, and show how it goes."""
    ask_about_isolation(invocation)
    with listener(as_json=as_json) as emit:
        return work(emit)


def print_gate(gate: GateResult) -> None:
    """Say to people what the gate says, where programs read standard output."""
    for reason in map(gate_sentence, gate.reasons):
        echo(f"gate: {reason}", err=True)
    for reason in uncounted_sentences(gate):
        echo(f"not counted: {reason}", err=True)


def sides_view(sides: CiReport, base: str = "", head: str = "") -> ComparisonView:
    """Two sides with every number of every suite; those of `zelda run --against` have names of their own."""
    assert sides.comparison  # noqa: S101 - two sides ran
    commit = (sides.batch.base.commit if sides.batch.base else None) or ""
    names = {"baseline": base or commit[:7], "candidate": head or sides.batch.batch_id}
    return comparison_view(sides.comparison, sides.gate, **names, changes=sides.changes.steering)


def print_sides(sides: CiReport, *, whole: bool) -> None:
    """Print how they ended as the comment on a pull request says it; first every number if the `whole` is wanted."""
    view, console = sides_view(sides), pages.open_console(sys.stdout)
    if whole:
        pages.print_comparison(console, replace(view, gate=Section("", ())))
    told = ci_view(replace(sides, subject=""))
    gate = untold(sides.gate, view.gate) if told.causes and not told.more_causes else view.gate
    pages.print_verdict(console, told, changed_row(sides.changes.steering), gate)


def run_files(results_dir: Path, run_id: str) -> RunFiles:
    """The files of a run, with paths as the user would type them."""
    logs = map(result_store.log_name, ("setup", "build", "test"))
    names = (result_store.RESULT, result_store.TRANSCRIPT, result_store.PATCH, *logs)
    paths = (results_dir / RUNS / run_id / name for name in names)
    return RunFiles(*(typed_path(path) if path.exists() else None for path in paths))


def ask_about_isolation(invocation: Invocation, *, asks: bool = True) -> None:
    """Remember which weak level the user accepts: the option's, or at a terminal the answer; a run refuses others."""
    given, environ = invocation.order.overrides.get("acceptIsolation"), invocation.settings.environ
    level: str | None = given.value if given and given.kind == "option" else accepted_isolation(environ)
    if asks and os.isatty(0) and os.isatty(2) and (weak := invocation.weak_isolation()):
        echo(sentence(weak), err=True)
        if click.confirm(f"Accept isolation level {WEAK} on this machine from now on?", err=True):
            level = WEAK
    if level and level != accepted_isolation(environ):
        file = accept_isolation(environ, level)
        echo(f"Isolation level {level} is accepted on this machine: {file} remembers it.", err=True)


@dataclass(frozen=True)
class Reporting:
    """What was asked for."""

    detail: Detail
    printed: str | None = None
    """What goes to standard output for programs, so that people read standard error."""
    files: tuple[tuple[str, Path], ...] = ()
    """What is written beside it: a format, and where."""
    steps: bool = False
    """Whether what sessions do is shown as it happens."""


def _reporter(text: str) -> tuple[str, Path | None]:
    kind, sign, file = text.partition("=")
    if kind not in FORMATS:
        raise ValueError(f"allowed are {', '.join(FORMATS)}")
    if sign and not file:
        raise ValueError(f"allowed are {kind}={FORMATS[kind]} and {kind}")
    return kind, Path(file) if file else None


Reporters = tuple[tuple[str, Path | None], ...]


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of reporting; the function takes the one answer that they give as `reporting`."""

    @wraps(function)
    def gathered(
        *args: Any, as_json: bool, quiet: bool, report: Path | None, reporters: Reporters, **others: object
    ) -> Any:
        verbose = bool(click.get_current_context().find_root().params.get("verbose"))
        exclusive(quiet=quiet, verbose=verbose)
        printed = {kind for kind, file in reporters if file is None} | ({"json"} if as_json else set())
        if len(printed) > 1:
            hint = "Give one of them a file, as in --reporter junit=results.xml."
            raise ConfigError("json and junit cannot both go to standard output.", hint=hint, code="USAGE")
        files = [(kind, file) for kind, file in (*reporters, (HTML, report)) if file]
        detail = Detail.QUIET if quiet else Detail.FULL if verbose else Detail.LINES
        reporting = Reporting(detail, next(iter(printed), None), tuple(files))
        return function(*args, reporting=reporting, **others)

    return together(
        click.option(
            "--reporter",
            "reporters",
            type=OptionType(_reporter, "format"),
            multiple=True,
            metavar="|".join(FORMATS),
            help="Report as JSON or JUnit XML to standard output; json=FILE and junit=FILE write a file beside what is "
            "printed. May be given several times.",
        ),
        click.option(
            "--report",
            type=FILE,
            metavar="FILE",
            help="Also write an HTML report: verdicts, numbers, transcripts, two sides beside each other.",
        ),
        click.option("--quiet", "-q", is_flag=True, help="Print failures only: no progress, no suites that pass."),
        json_option,
    )(gathered)


@dataclass
class RunReport:
    """Reports what suites of one project show: as they finish, at the end, and for programs."""

    reporting: Reporting
    results_dir: Path
    subject: str = ""
    """The project's name."""
    folder: Path = Path()
    """Where files of reports lie."""

    def __post_init__(self) -> None:
        self._files = [(kind, self.folder / file) for kind, file in self.reporting.files]
        for _, file in self._files:
            check_folder(file)
        self._files_of = partial(run_files, self.results_dir)
        self._suites = FinishedSuites(self.reporting.detail, self._files_of)

    def progress(self) -> AbstractContextManager[Emit]:
        """A listener that shows what goes on, and each suite's report as soon as it is over."""
        printed, quiet = self.reporting.printed, self.reporting.detail is Detail.QUIET
        console = pages.open_console(sys.stderr if printed else sys.stdout)
        suites = None if printed else self._suites
        return Progress(console, suites=suites, quiet=quiet, steps=self.reporting.steps)

    def show(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> int:
        """Compare two commits, if there are, with stored trials by suite, and report all; the exit code it means."""
        is_alone = batch.base is None or batch.base.commit is None or batch.interrupted
        report = report_of(batch, None if is_alone else compare_arms(batch, stored))
        try:
            if not is_alone:
                keep_comparison(self.results_dir, batch, stored)
        except StorageError as problem:
            # What was paid for is shown all the same.
            echo(sentence(f"warning: no later command can show this comparison again: {problem.message}"), err=True)
        return self.print(replace(report, subject=self.subject))

    def print(self, report: CiReport) -> int:
        """Print what has not been printed yet, and write what programs read; the exit code that it means."""
        batch, printed, is_compared = report.batch, self.reporting.printed, report.comparison is not None
        # Whatever else fails, the runs themselves say.
        gate = report.gate if is_compared else missed_minimums(batch.runs)
        if printed:
            print_gate(gate)
        else:
            console, is_whole = pages.open_console(sys.stdout), self.reporting.detail is Detail.FULL
            self._suites.print_rest(console, batch.runs)
            closing = gate if is_whole or not is_compared else None
            pages.print_closing(console, batch, closing, self._files_of, self.reporting.detail)
            if is_compared:
                print_sides(report, whole=is_whole)
            elif batch.base and batch.arms:
                echo(f"\n{cut_short(batch)}")
        for kind, file in self._files:
            if kind == HTML:
                write_report(file, report, ResultStore(self.results_dir))
                echo(f"Report: {file}", err=bool(printed))
            else:
                write_whole(file, [_written(kind, report).encode()], durable=False)
        if printed:
            echo_raw(_written(printed, report), nl=False)
        return report.outcome.exit_code if is_compared else max(batch_outcome(batch).exit_code, gate.exit_code)


def _written(kind: str, report: CiReport) -> str:
    """The whole of `--reporter json` or `junit`."""
    if kind == "json":
        return json_of(report.batch)
    with one_at_a_time("zelda_ci.report.junit"):
        from zelda_ci.report.junit import render_junit  # noqa: PLC0415 - needed by few

    return render_junit(report)
