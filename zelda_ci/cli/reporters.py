"""How a run is reported: to people on the terminal, and to programs (`--reporter`), there or in files."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from zelda_ci.app import Invocation
from zelda_ci.cli import report
from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.cli.sides import ComparedSides
from zelda_ci.compare.gate import missed_minimums
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, StoredTrials
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.events import Emit
from zelda_ci.files.atomic import write_whole
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import keep_comparison
from zelda_ci.pipeline.html_report import report_alone, write_html
from zelda_ci.pipeline.selecting import changed_since
from zelda_ci.redact import Redactor
from zelda_ci.report import terminal
from zelda_ci.report.builders.arms import cut_short
from zelda_ci.report.builders.gate import gate_sentences, uncounted_sentences
from zelda_ci.report.builders.summary import report_view
from zelda_ci.report.model import Detail, ReportView, RunFiles
from zelda_ci.report.terminal.pages import print_closing, print_troubles
from zelda_ci.report.terminal.suites import FinishedSuites
from zelda_ci.report.text import json_text, sentence
from zelda_ci.report.told import CiReport
from zelda_ci.selection.choice import reasons
from zelda_ci.storage.history import RunHistory

FORMATS = {"json": "results.json", "junit": "results.xml"}


@dataclass(frozen=True)
class Reporter:
    """One of the reporters that were asked for; without a file it writes to standard output."""

    kind: str
    file: Path | None = None


class ReporterType(click.ParamType[Reporter]):
    """`json` or `junit`, also as `json=FILE`."""

    name = "reporter"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """As the help shows it."""
        return "|".join(FORMATS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Reporter:
        """Read it; a usage error says what there is."""
        if isinstance(value, Reporter):
            return value
        kind, sign, file = str(value).partition("=")
        if kind not in FORMATS:
            self.fail(f"{kind!r} is none of {', '.join(FORMATS)}.", param, ctx)
        if sign and not file:
            self.fail(f"{kind}= names no file: {kind}={FORMATS[kind]}, or {kind}.", param, ctx)
        return Reporter(kind, Path(file) if file else None)


option = click.option(
    "--reporter",
    "chosen_reporters",
    type=ReporterType(),
    multiple=True,
    help="Report as JSON or JUnit XML to standard output; json=FILE and junit=FILE write a file beside what is "
    "printed. May be given several times.",
)
page = click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write an HTML report: verdicts, numbers, transcripts, two sides beside each other.",
)
steps = click.option("-v", "--steps", is_flag=True, help="Show what sessions say and do as it happens, a line each.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print failures only: no progress, no suites that pass.")


@dataclass(frozen=True)
class Reporting:
    """What was asked for, checked."""

    detail: Detail
    printed: str | None = None
    """What goes to standard output for programs, so that people read standard error."""
    files: tuple[Reporter, ...] = ()
    page: Path | None = None
    """Where the HTML report is written."""
    steps: bool = False
    """Whether what sessions do is shown as it happens."""

    def of_each(self, roots: Sequence[Path]) -> "list[Reporting]":
        """For each of several projects: files are written into its own folder.

        Raises:
            ConfigError: They would write to the same place.
        """
        named = [(f"--reporter {one.kind}=", one.file) for one in self.files] + [("--report ", self.page)]
        if absolute := next((f"{option}{file}" for option, file in named if file and file.is_absolute()), None):
            hint = "Give a relative path: each project writes its file below its own folder."
            raise ConfigError(f"{absolute} would be written by every project.", hint=hint, code="USAGE")
        if self.printed == "junit":
            hint = "Give it a file, as in --reporter junit=results.xml, for each project's folder."
            raise ConfigError("Several projects cannot print one JUnit XML.", hint=hint, code="USAGE")
        return [
            replace(
                self,
                files=tuple(Reporter(one.kind, one.file and root / one.file) for one in self.files),
                page=self.page and root / self.page,
            )
            for root in roots
        ]

    def need_folders(self) -> None:
        """See that files can be written.

        Raises:
            ConfigError: A folder is missing.
        """
        named = [(f"--reporter {one.kind}={one.file}", one.file) for one in self.files]
        for option, file in [*named, (f"--report {self.page}", self.page)]:
            if file and not file.parent.is_dir():
                message = f"{option}: the folder {file.parent} does not exist."
                raise ConfigError(message, hint="Make it first. Nothing was run.", code="USAGE")


def chosen(reporters: Sequence[Reporter], *, as_json: bool, quiet: bool, page: Path | None = None) -> Reporting:
    """One answer from all options, `zelda --verbose` included.

    Raises:
        ConfigError: They exclude each other.
    """
    verbose = bool(click.get_current_context().find_root().params.get("verbose"))
    printed = dict.fromkeys([*(one.kind for one in reporters if one.file is None), *["json"] * as_json])
    if len(printed) > 1:
        hint = "Give one of them a file, as in --reporter junit=results.xml."
        raise ConfigError("json and junit cannot both go to standard output.", hint=hint, code="USAGE")
    if quiet and verbose:
        raise ConfigError("--quiet and --verbose exclude each other.", hint="Give one of them.", code="USAGE")
    detail = Detail.QUIET if quiet else Detail.FULL if verbose else Detail.LINES
    return Reporting(detail, next(iter(printed), None), tuple(one for one in reporters if one.file), page)


def narrowed(invocation: Invocation, ref: str | None) -> Invocation | None:
    """The invocation without the suites that the change cannot concern, each of which is named; none if all are."""
    if ref is None:
        return invocation
    settings, order = invocation.settings, invocation.order
    redact = Redactor(settings.secrets())
    choices = changed_since(ref, invocation.loaded, invocation.chosen, settings.environ, redact, order)
    for line in (*reasons(choices, runs=True), *reasons(choices, runs=False)):
        echo(sentence(line), err=True)
    kept = [choice.suite for choice in choices if choice.runs]
    return invocation.ordering(replace(order, names=kept, tags=())) if kept else None


class RunReport:
    """Reports what the suites of one project show: as they finish, at the end, and for programs."""

    def __init__(self, reporting: Reporting, loaded: LoadedProject) -> None:
        self.reporting = reporting
        self._loaded, self._files_of = loaded, files_in(loaded.results_dir)
        self._suites = FinishedSuites(reporting.detail, self._files_of)

    @contextmanager
    def progress(self) -> Iterator[Emit]:
        """A listener that shows what goes on, and each suite's report as soon as it is over."""
        console = terminal.open_console(sys.stderr if self.reporting.printed else sys.stdout)
        suites = None if self.reporting.printed else self._suites
        quiet, steps = self.reporting.detail is Detail.QUIET, self.reporting.steps
        plain = terminal.is_plain(console)
        with terminal.progress(console, plain=plain, suites=suites, quiet=quiet, steps=steps) as emit:
            yield emit

    def show(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> int:
        """Print what has not been printed yet, and write what programs read; the exit code that it means.

        Args:
            batch: What ran.
            stored: By suite, the trials that count beside it where two commits are compared.
        """
        if batch.base and batch.base.commit and not batch.interrupted:
            code, told = self._show_arms(batch, stored)
        else:
            code, told = self._show_alone(batch)
        for reporter in self.reporting.files:
            if reporter.file:
                write_whole(reporter.file, [_written(reporter.kind, told).encode()], durable=False)
        if self.reporting.page:
            write_html(self.reporting.page, told, [RunHistory(self._loaded.results_dir)])
            echo(f"Report: {self.reporting.page}", err=bool(self.reporting.printed))
        if self.reporting.printed:
            echo_raw(_written(self.reporting.printed, told), nl=False)
        with suppress(OSError):
            sys.stdout.flush()
        return code

    def _show_alone(self, batch: BatchResult) -> tuple[int, CiReport]:
        minimums = missed_minimums(batch.runs)
        if self.reporting.printed:
            _print_gate(minimums)
        else:
            console = terminal.open_console(sys.stdout)
            self._suites.print_rest(console, batch.runs)
            print_closing(console, self._view(batch, minimums), self.reporting.detail)
            if batch.base and batch.arms:
                echo(f"\n{cut_short(batch)}")
        code = max(batch_outcome(batch).exit_code, minimums.exit_code)
        return code, report_alone(batch, self._loaded.root.name)

    def _view(self, batch: BatchResult, gate: GateResult) -> ReportView:
        return report_view(batch, {run.run_id: self._files_of(run.run_id) for run in batch.runs}, gate)

    def _show_arms(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> tuple[int, CiReport]:
        """Print what became worse, and one table of all suites."""
        sides = ComparedSides.of(batch, stored)
        try:
            keep_comparison(self._loaded.results_dir, batch, stored)
        except StorageError as problem:
            # What was paid for is shown all the same.
            echo(sentence(f"warning: no later command can show this comparison again: {problem.message}"), err=True)
        compared = sides.compared
        if self.reporting.printed:
            _print_gate(compared.gate)
        else:
            console, detail = terminal.open_console(sys.stdout), self.reporting.detail
            self._suites.print_rest(console, batch.runs)
            if detail is Detail.LINES:
                print_troubles(console, self._view(batch, compared.gate))
            sides.show(whole=detail is Detail.FULL)
        outcome = batch_outcome(batch)
        code = outcome.exit_code if outcome >= Outcome.INCOMPLETE else compared.gate.exit_code
        return code, sides.report(self._loaded.root.name)


def _print_gate(gate: GateResult) -> None:
    """For people, where programs read standard output."""
    for reason in gate_sentences(gate):
        echo(f"gate: {reason}", err=True)
    for reason in uncounted_sentences(gate):
        echo(f"not counted: {reason}", err=True)


def _written(kind: str, told: CiReport) -> str:
    """The whole of `--reporter json` or `junit`."""
    if kind == "json":
        return json_text(told.batch.model_dump_json(by_alias=True, exclude_none=True, indent=2)) + "\n"
    with one_at_a_time("zelda_ci.report.junit"):
        from zelda_ci.report.junit import render_junit  # noqa: PLC0415 - needed by few

    return render_junit(told)


def files_in(results_dir: Path) -> Callable[[str], RunFiles]:
    """Where the files of a run lie, by its id."""
    return lambda run_id: report.run_files(results_dir, run_id)


def folder_name(root: Path) -> str:
    """A project's folder as the user would type it."""
    return os.path.relpath(root)
