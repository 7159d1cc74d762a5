"""`--reporter`: how a run is reported, to people on the terminal and to programs, there or in files."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, cast

import click
from rich.text import Text

from zelda_ci import app
from zelda_ci.app import RunOrder
from zelda_ci.cli import debug_log, report
from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.cli.programs import OfSuite, annotations_of, as_report, for_programs, of_projects, qualified
from zelda_ci.cli.sides import ComparedSides
from zelda_ci.compare.gate import missed_minimums
from zelda_ci.compare.impact import left_out, reasons
from zelda_ci.compare.pool import StoredTrials
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.settings import EnvironmentSettings
from zelda_ci.domain.ci import CiReport
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, empty_batch
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.events import Emit
from zelda_ci.files.atomic import write_whole
from zelda_ci.github.workflow_commands import Log, worst
from zelda_ci.pipeline.comparing import keep_comparison
from zelda_ci.pipeline.html_report import write_html
from zelda_ci.pipeline.selecting import changed_since
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.report import terminal
from zelda_ci.report.builders.arms import arms_table, cut_short
from zelda_ci.report.builders.gate import gate_sentences, uncounted_sentences
from zelda_ci.report.builders.run import VERDICTS
from zelda_ci.report.builders.summary import report_view
from zelda_ci.report.model import Cell, Detail, RunFiles, Tone
from zelda_ci.report.terminal.layout import Page
from zelda_ci.report.terminal.pages import print_arms, print_closing
from zelda_ci.report.terminal.suites import FinishedSuites
from zelda_ci.report.text import sentence, visible
from zelda_ci.storage.history import RunHistory

PEOPLE = {"line": Detail.LINE, "full": Detail.FULL, "github": Detail.FAILURES}
PROGRAMS = ("json", "junit")
NOTHING_TO_RUN = Cell("nothing to run", Tone.DIM)
MAX_NAME_LENGTH = 200


@dataclass(frozen=True)
class Reporter:
    """One of the reporters that were asked for; without a file it writes to standard output."""

    kind: str
    file: Path | None = None


class ReporterType(click.ParamType[Reporter]):
    """`line`, `full`, `github`, `json`, `junit`; the last two also as `json=FILE`."""

    name = "reporter"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """As the help shows it."""
        return "|".join((*PEOPLE, *PROGRAMS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Reporter:
        """Read it; a usage error says what there is."""
        if isinstance(value, Reporter):
            return value
        kind, sign, file = str(value).partition("=")
        if kind not in PEOPLE and kind not in PROGRAMS:
            self.fail(f"{kind!r} is none of {', '.join((*PEOPLE, *PROGRAMS))}.", param, ctx)
        if file and kind in PEOPLE:
            self.fail(f"{kind} writes to the terminal; only json and junit take a file.", param, ctx)
        if sign and not file:
            self.fail(
                f"{kind}= names no file: {kind}=results.{'xml' if kind == 'junit' else 'json'}, or {kind}.", param, ctx
            )
        return Reporter(kind, Path(file) if file else None)


option = click.option(
    "--reporter",
    "chosen_reporters",
    type=ReporterType(),
    multiple=True,
    help="How to report: one line per suite, everything, GitHub annotations, JSON or JUnit XML; json=FILE and "
    "junit=FILE write a file beside what is printed. May be given several times.",
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
    github: bool = False
    page: Path | None = None
    """Where the HTML report is written."""
    steps: bool = False
    """Whether what sessions do is shown as it happens."""


def chosen(reporters: Sequence[Reporter], *, as_json: bool, quiet: bool, page: Path | None = None) -> Reporting:
    """One answer from all options, `zelda --verbose` included.

    Raises:
        ConfigError: They exclude each other, or a file cannot be written where it shall be.
    """
    verbose = bool(click.get_current_context().find_root().params.get("verbose"))
    kinds = list(dict.fromkeys(reporter.kind for reporter in reporters if reporter.file is None))
    printed = [kind for kind in kinds if kind in PROGRAMS] or ["json"] * as_json
    details = [PEOPLE[kind] for kind in kinds if kind in {"line", "full"}]
    asked = len(details) + quiet + (verbose and Detail.FULL not in details)
    if len(set(printed) | ({"json"} if as_json else set())) > 1:
        hint = "Give one of them a file, as in --reporter junit=results.xml."
        raise ConfigError("json and junit cannot both go to standard output.", hint=hint, code="USAGE")
    if asked > 1:
        message = "--quiet, --verbose, --reporter line and --reporter full exclude each other."
        raise ConfigError(message, hint="Give one of them.", code="USAGE")
    files = tuple(reporter for reporter in reporters if reporter.file)
    for option, file in [
        *((f"--reporter {one.kind}={one.file}", one.file) for one in files),
        (f"--report {page}", page),
    ]:
        if file and not file.parent.is_dir():
            message = f"{option}: the folder {file.parent} does not exist."
            raise ConfigError(message, hint="Make it first. Nothing was run.", code="USAGE")
    detail = Detail.QUIET if quiet else Detail.FULL if verbose else (*details, Detail.FAILURES)[0]
    return Reporting(detail, printed[0] if printed else None, files, "github" in kinds, page)


class RunReport:
    """Reports one `zelda run`: suites as they finish, then each project, then all of it for programs."""

    def __init__(self, reporting: Reporting, top: Path | None, settings: EnvironmentSettings, *, titled: bool) -> None:
        """How, and of which projects.

        Args:
            reporting: What was asked for.
            top: The folder below which all projects are run; absent where one is.
            settings: Whose secrets no message may show.
            titled: Whether each project begins with its name.
        """
        self._reporting, self._top, self._titled = reporting, top, titled
        self._redact = Redactor(settings.secrets())
        self._batches: list[tuple[LoadedProject, BatchResult]] = []
        self._sides: dict[Path, ComparedSides] = {}
        self._unusable: dict[str, SafeText] = {}
        self._left: Sequence[Path] = ()
        self._began = datetime.now(UTC)
        self._code = 0
        self._log: Log | None = None
        if reporting.github and not reporting.printed:
            # From here on everything that others print is text, and commands are made by the log alone.
            self._log = Log(sys.stdout, masking=False)
            sys.stdout = cast("TextIO", self._log.text)

    @property
    def reporting(self) -> Reporting:
        """What was asked for."""
        return self._reporting

    @contextmanager
    def progress(self, loaded: LoadedProject) -> Iterator[Emit]:
        """A listener that shows what goes on, and each suite's report as soon as it is over."""
        self._loaded, self._files_of = loaded, files_in(loaded.results_dir)
        self._suites = FinishedSuites(
            self._reporting.detail, self._files_of, lambda runs: bool(missed_minimums(runs).reasons)
        )
        console = terminal.open_console(sys.stderr if self._reporting.printed else sys.stdout)
        plain = terminal.is_plain(console) or self._log is not None
        suites = None if self._reporting.printed else self._suites
        quiet = self._reporting.detail is Detail.QUIET
        if self._titled:
            echo(f"\nProject {self._name(loaded.root)}", file=console.file)
        with terminal.progress(console, plain=plain, suites=suites, quiet=quiet, steps=self._reporting.steps) as emit:
            yield emit

    def narrowed(
        self, loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, ref: str | None
    ) -> Iterator[tuple[LoadedProject, RunOrder]]:
        """The order without the suites that cannot feel what has changed, each of which is named; none if all are."""
        if ref is None:
            yield loaded, order
            return
        suites = app.selected(loaded, order, settings)
        choices = changed_since(ref, loaded, suites, settings.environ, self._redact, order)
        for line in (*reasons(choices), *left_out(choices)):
            echo(sentence(line), err=True)
        chosen = [choice for choice in choices if choice.runs]
        if chosen:
            yield loaded, replace(order, names=[choice.suite for choice in chosen], tags=())
            return
        self._batches.append((loaded, empty_batch(datetime.now(UTC))))

    def show(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> int:
        """Print what has not been printed yet of the project; the exit code that it means.

        Args:
            batch: What ran.
            stored: By suite, the trials that count beside it where two commits are compared.
        """
        self._batches.append((self._loaded, batch))
        if batch.base and batch.base.commit and not batch.interrupted:
            return self._show_arms(batch, stored)
        minimums = missed_minimums(batch.runs)
        if self._reporting.printed:
            for reason in gate_sentences(minimums):
                echo(f"gate: {reason}", err=True)
        else:
            console = terminal.open_console(sys.stdout)
            files = {run.run_id: self._files_of(run.run_id) for run in batch.runs}
            self._suites.print_rest(console, batch.runs)
            print_closing(console, report_view(batch, files, minimums), self._reporting.detail)
            if batch.base and batch.arms:
                print_arms(console, cut_short(batch), arms_table(batch))
        code = max(batch_outcome(batch).exit_code, minimums.exit_code)
        self._code = max(self._code, code)
        return code

    def _show_arms(self, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> int:
        """Print what became worse, and one table of all suites."""
        sides = ComparedSides.of(self._loaded.results_dir, batch, stored)
        keep_comparison(self._loaded.results_dir, batch, stored)
        compared = sides.compared
        self._sides[self._loaded.root] = sides
        if self._reporting.printed:
            for reason in gate_sentences(compared.gate):
                echo(f"gate: {reason}", err=True)
            for reason in uncounted_sentences(compared.gate):
                echo(f"not counted: {reason}", err=True)
        else:
            self._suites.print_rest(terminal.open_console(sys.stdout), batch.runs)
            detail = self._reporting.detail
            sides.show(whole=detail is Detail.FULL, details=detail is not Detail.QUIET)
        outcome = batch_outcome(batch)
        code = outcome.exit_code if outcome >= Outcome.INCOMPLETE else compared.gate.exit_code
        self._code = max(self._code, code)
        return code

    @contextmanager
    def tolerant(self, root: Path) -> Iterator[None]:
        """Of several projects, one that cannot be run does not keep the others from it.

        Raises:
            ZeldaError: There is only one project.
        """
        try:
            yield
        except ZeldaError as problem:
            if self._top is None:
                raise
            self.refuse(root, problem)

    def refuse_all(self, unusable: Mapping[Path, ZeldaError]) -> None:
        """Say what is wrong with each."""
        for root, problem in unusable.items():
            self.refuse(root, problem)

    def refuse(self, root: Path, problem: ZeldaError) -> None:
        """Say what is wrong with a project, once where it is the same with many."""
        name, why = self._name(root), self._redact(problem.message)
        same = next((other for other, said in self._unusable.items() if said == why), None)
        echo(f"\nProject {name}", err=True)
        if same is None:
            debug_log.explain(problem)
        else:
            echo(f"error: the same as {same}.", err=True)
        self._unusable[name] = why
        self._code = max(self._code, problem.exit_code)

    def leave(self, roots: Sequence[Path]) -> None:
        """Note projects that were not begun any more."""
        self._left = roots

    def _name(self, root: Path) -> str:
        """As the user would type it."""
        return visible(os.path.relpath(root, self._top or Path.cwd()), MAX_NAME_LENGTH)

    def finish(self) -> int:
        """Write what programs read, and say which exit code all of it means."""
        self._close()
        whole = self._reported_together()
        for reporter in self._reporting.files:
            if reporter.file:
                write_whole(reporter.file, [for_programs(reporter.kind, whole).encode()], durable=False)
        if self._reporting.page:
            self._write_page(self._reporting.page, whole)
        if self._reporting.printed:
            echo_raw(for_programs(self._reporting.printed, whole), nl=False)
        if self._log:
            reports = [(each, self._report_of(each, batch)) for each, batch in self._batches]
            for remark in worst(remark for loaded, report in reports for remark in annotations_of(loaded, report)):
                self._log.annotate(remark)
        with suppress(OSError):
            sys.stdout.flush()
        return self._code

    def _write_page(self, page: Path, whole: CiReport) -> None:
        write_html(page, whole, [RunHistory(loaded.results_dir) for loaded, _ in self._batches])
        echo(f"Report: {visible(str(page), 1000)}", err=bool(self._reporting.printed))

    def _close(self) -> None:
        """Of several projects, say what became of each: the last summary speaks of the last alone."""
        if not self._titled:
            return
        outcomes = [VERDICTS[batch_outcome(batch)] if batch.runs else NOTHING_TO_RUN for _, batch in self._batches]
        names = [self._name(loaded.root) for loaded, _ in self._batches]
        cells = [Cell(f"{name} {verdict.text}", verdict.tone) for name, verdict in zip(names, outcomes, strict=True)]
        cells += [Cell(f"{name} could not be run", Tone.BAD) for name in self._unusable]
        cells += [Cell(f"{self._name(root)} not begun", Tone.WARN) for root in self._left]
        page = Page(terminal.open_console(sys.stderr if self._reporting.printed else sys.stdout))
        page.line(Text())
        page.beside(Text("  Projects  "), (*cells, Cell(f"exit code {self._code}")))
        page.show()

    def _together(self) -> BatchResult:
        """The runs of several projects as those of one invocation."""
        batches = [batch for _, batch in self._batches]
        if self._top is None and len(batches) == 1:
            return batches[0]
        roots = [(loaded.root, batch) for loaded, batch in self._batches]
        bases = [batch.base for batch in batches if batch.base]
        return BatchResult(
            batch_id=batches[0].batch_id if batches else "none",
            started_at=self._began,
            finished_at=datetime.now(UTC),
            interrupted=any(batch.interrupted for batch in batches),
            planned=sum(batch.planned or 0 for batch in batches),
            runs=tuple(self._qualified(run, root) for root, batch in roots for run in batch.runs),
            base_runs=tuple(self._qualified(run, root) for root, batch in roots for run in batch.base_runs),
            arms=tuple(self._qualified(each, root) for root, batch in roots for each in batch.arms),
            base=bases[0] if bases else None,
            ended=next((batch.ended for batch in batches if batch.ended), None),
            unusable_projects=self._unusable or None,
            notes=tuple(dict.fromkeys(note for batch in batches for note in batch.notes)),
        )

    def _report_of(self, loaded: LoadedProject, batch: BatchResult) -> CiReport:
        sides = self._sides.get(loaded.root)
        subject = loaded.root.name
        return as_report(batch, sides.compared, subject, sides.changes) if sides else as_report(batch, None, subject)

    def _reported_together(self) -> CiReport:
        """The runs of all projects, with what the gate says of each."""
        reports = [(loaded.root, self._report_of(loaded, batch)) for loaded, batch in self._batches]
        if self._top is None and len(reports) == 1:
            return reports[0][1]
        return of_projects({self._name(root): report for root, report in reports}, self._together())

    def _qualified(self, of_suite: OfSuite, root: Path) -> OfSuite:
        """Suites of different projects may have one name: told apart, by folder."""
        return qualified(of_suite, self._name(root))


def files_in(results_dir: Path) -> Callable[[str], RunFiles]:
    """Where the files of a run lie, by its id."""
    return lambda run_id: report.run_files(results_dir, run_id)
