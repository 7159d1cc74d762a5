"""How a run is reported: to people on the terminal, and to programs (`--reporter`), there or in files."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.cli.printing import json_of, print_gate, print_sides, run_files
from zelda_ci.compare.gate import missed_minimums
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import batch_outcome
from zelda_ci.domain.run import BatchResult, StoredTrials
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.events import Emit
from zelda_ci.files.atomic import write_whole
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import compare_arms, keep_comparison
from zelda_ci.pipeline.html_report import report_alone, report_of_arms, write_html
from zelda_ci.report import terminal
from zelda_ci.report.builders.arms import cut_short
from zelda_ci.report.builders.summary import report_view
from zelda_ci.report.model import Detail
from zelda_ci.report.terminal.pages import print_closing, print_troubles
from zelda_ci.report.terminal.suites import FinishedSuites
from zelda_ci.report.text import sentence
from zelda_ci.report.told import CiReport
from zelda_ci.storage.history import RunHistory

FORMATS = {"json": "results.json", "junit": "results.xml"}
HTML = "html"


@dataclass(frozen=True)
class Reporter:
    """One of the reporters that were asked for; without a file it writes to standard output."""

    kind: str
    file: Path | None = None

    @property
    def option(self) -> str:
        """As it was given."""
        return f"--report {self.file}" if self.kind == HTML else f"--reporter {self.kind}={self.file}"


def reporter(text: str) -> Reporter:
    """Read `json` or `junit`, also as `json=FILE`; a usage error says what there is."""
    kind, sign, file = text.partition("=")
    if kind not in FORMATS:
        raise click.BadParameter(f"{kind!r} is none of {', '.join(FORMATS)}.")
    if sign and not file:
        raise click.BadParameter(f"{kind}= names no file: {kind}={FORMATS[kind]}, or {kind}.")
    return Reporter(kind, Path(file) if file else None)


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta[str(param.name)] = value


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of which `chosen` makes one answer."""
    noted: dict[str, Any] = {"expose_value": False, "callback": _note}
    for option in (
        click.option(
            "--json",
            "json",
            is_flag=True,
            help="The same as --reporter json; all else goes to standard error.",
            **noted,
        ),
        click.option(
            "--quiet", "-q", is_flag=True, help="Print failures only: no progress, no suites that pass.", **noted
        ),
        click.option(
            "--report",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Also write an HTML report: verdicts, numbers, transcripts, two sides beside each other.",
            **noted,
        ),
        click.option(
            "--reporter",
            type=reporter,
            multiple=True,
            metavar="|".join(FORMATS),
            help="Report as JSON or JUnit XML to standard output; json=FILE and junit=FILE write a file beside what is "
            "printed. May be given several times.",
            **noted,
        ),
    ):
        function = option(function)
    return function


@dataclass(frozen=True)
class Reporting:
    """What was asked for, checked."""

    detail: Detail
    printed: str | None = None
    """What goes to standard output for programs, so that people read standard error."""
    files: tuple[Reporter, ...] = ()
    """What is written into files."""
    steps: bool = False
    """Whether what sessions do is shown as it happens."""

    def check_several(self) -> None:
        """Refuse what several projects would write to the same place."""
        if absolute := next((one.option for one in self.files if one.file and one.file.is_absolute()), None):
            hint = "Give a relative path: each project writes its file below its own folder."
            raise ConfigError(f"{absolute} would be written by every project.", hint=hint, code="USAGE")
        if self.printed == "junit":
            hint = "Give it a file, as in --reporter junit=results.xml, for each project's folder."
            raise ConfigError("Several projects cannot print one JUnit XML.", hint=hint, code="USAGE")

    def within(self, folder: Path) -> "Reporting":
        """The same with files in or below a folder; raises `ConfigError` where a file's own folder is missing."""
        files = tuple(Reporter(one.kind, one.file and folder / one.file) for one in self.files)
        for one in files:
            if one.file and not one.file.parent.is_dir():
                message = f"{one.option}: the folder {one.file.parent} does not exist."
                raise ConfigError(message, hint="Make it first. Nothing was run.", code="USAGE")
        return replace(self, files=files)


def chosen(*, steps: bool = False) -> Reporting:
    """One answer from all options, `zelda --verbose` included; raises `ConfigError` where they exclude each other."""
    context = click.get_current_context()
    given, quiet = context.meta, context.meta["quiet"]
    verbose = bool(context.find_root().params.get("verbose"))
    printed = dict.fromkeys([*(one.kind for one in given["reporter"] if one.file is None), *["json"] * given["json"]])
    if len(printed) > 1:
        hint = "Give one of them a file, as in --reporter junit=results.xml."
        raise ConfigError("json and junit cannot both go to standard output.", hint=hint, code="USAGE")
    if quiet and verbose:
        raise ConfigError("--quiet and --verbose exclude each other.", hint="Give one of them.", code="USAGE")
    detail = Detail.QUIET if quiet else Detail.FULL if verbose else Detail.LINES
    files = [
        *(one for one in given["reporter"] if one.file),
        *([Reporter(HTML, given["report"])] if given["report"] else []),
    ]
    return Reporting(detail, next(iter(printed), None), tuple(files), steps)


class RunReport:
    """Reports what the suites of one project show: as they finish, at the end, and for programs.

    Files of runs are named where they stay.
    """

    def __init__(self, reporting: Reporting, loaded: LoadedProject, *, files_stay: bool = True) -> None:
        self.reporting = reporting
        self._subject, self._results_dir = loaded.root.name, loaded.results_dir
        self._files_of = partial(run_files, loaded.results_dir if files_stay else None)
        self._suites = FinishedSuites(reporting.detail, self._files_of)

    def progress(self) -> AbstractContextManager[Emit]:
        """A listener that shows what goes on, and each suite's report as soon as it is over."""
        console = terminal.open_console(sys.stderr if self.reporting.printed else sys.stdout)
        return terminal.progress(
            console,
            plain=terminal.is_plain(console),
            suites=None if self.reporting.printed else self._suites,
            quiet=self.reporting.detail is Detail.QUIET,
            steps=self.reporting.steps,
        )

    def show(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> int:
        """Print what has not been printed yet, and write what programs read; the exit code that it means.

        Where two commits are compared, stored trials count beside those of the batch, by suite.
        """
        report, gate = report_alone(batch, self._subject), missed_minimums(batch.runs)
        code = max(batch_outcome(batch).exit_code, gate.exit_code)
        if batch.base and batch.base.commit and not batch.interrupted:
            report = report_of_arms(batch, compare_arms(batch, stored), self._subject)
            gate, code = report.gate, report.outcome.exit_code
            self._keep(batch, stored)
        if self.reporting.printed:
            print_gate(gate)
        else:
            self._print(report, gate)
        for one in self.reporting.files:
            if one.file and one.kind == HTML:
                write_html(one.file, report, RunHistory(self._results_dir))
                echo(f"Report: {one.file}", err=bool(self.reporting.printed))
            elif one.file:
                write_whole(one.file, [_written(one.kind, report).encode()], durable=False)
        if self.reporting.printed:
            echo_raw(_written(self.reporting.printed, report), nl=False)
        return code

    def _print(self, report: CiReport, gate: GateResult) -> None:
        batch, detail, console = report.batch, self.reporting.detail, terminal.open_console(sys.stdout)
        view = report_view(batch, {run.run_id: self._files_of(run.run_id) for run in batch.runs}, gate)
        self._suites.print_rest(console, batch.runs)
        if report.comparison is None:
            print_closing(console, view, detail)
            if batch.base and batch.arms:
                echo(f"\n{cut_short(batch)}")
            return
        if detail is Detail.LINES:
            print_troubles(console, view)
        print_sides(report, whole=detail is Detail.FULL)

    def _keep(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> None:
        try:
            keep_comparison(self._results_dir, batch, stored)
        except StorageError as problem:
            # What was paid for is shown all the same.
            echo(sentence(f"warning: no later command can show this comparison again: {problem.message}"), err=True)


def _written(kind: str, report: CiReport) -> str:
    """The whole of `--reporter json` or `junit`."""
    if kind == "json":
        return json_of(report.batch) + "\n"
    with one_at_a_time("zelda_ci.report.junit"):
        from zelda_ci.report.junit import render_junit  # noqa: PLC0415 - needed by few

    return render_junit(report)
