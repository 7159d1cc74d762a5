"""What commands print: reports on runs, where what failed, why and what to do come first, comparisons and tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from zelda_ci.domain import numbers
from zelda_ci.domain.check import CheckReport, Status
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.trials import Forecast
from zelda_ci.report.builders import summary
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.routing import routing_tables
from zelda_ci.report.builders.run import file_rows, run_facts, run_sections, unmet_rows
from zelda_ci.report.builders.summary import FilesOf, forecast_lines, forecast_table
from zelda_ci.report.model import (
    Cell,
    CiView,
    ComparisonView,
    Detail,
    Details,
    Problem,
    Row,
    RunFiles,
    Section,
    Table,
    Tone,
    plain,
)
from zelda_ci.report.terminal.page import LABEL, TITLE, Page
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.words import first

# --- reports on runs --------------------------------------------------------------------------------------------


def print_closing(
    console: Console, batch: BatchResult, gate: GateResult | None, files_of: FilesOf, detail: Detail
) -> None:
    """Print what comes after the suites: what went wrong, each problem once, what routing suites called, a summary.

    Where little is wanted the summary is a line, and without a gate, since the end of two sides follows, there is none.
    """
    page = Page(console)
    if detail is not Detail.QUIET:
        page.line()
    for problem, affected in summary.troubles(batch.runs, files_of) if detail is Detail.LINES else ():
        if len(page.lines) == 1:
            page.title("What went wrong")
        names, unmet = Cell(summary.affected_names(affected, batch.runs)), unmet_rows(affected[0])
        page.beside(Text("    ") + page.mark(run_outcome(affected[0])) + " ", (names,))
        page.rows((*unmet, *_problem_rows(replace(problem, sentence="") if unmet else problem)), indent=6)
        page.quote(problem.output, indent=12)
    if gate and batch.runs and detail is not Detail.QUIET:
        page.blank()
        page.table(summary.suite_table(batch, by_file=detail is Detail.LINES), indent=4)
    for title, table in routing_tables(batch.runs, batch.base_runs):
        if detail is Detail.QUIET:
            page.beside(" ", (Cell(title),))
        else:
            page.title(title)
            page.table(table, indent=4)
    if gate and detail is Detail.QUIET:
        badge = page.badge(summary.closing_outcome(batch, gate))
        page.beside(Text(" ") + badge + "  ", [*summary.closing_line(batch, gate)])
    elif gate:
        _section(page, Section("Summary", tuple(summary.closing_rows(batch, gate))))
    if any(line.plain for line in page.lines):
        page.show()


def print_run(console: Console, run: RunResult, files: RunFiles) -> None:
    """Print one stored run in full, whichever trial it was."""
    page = Page(console)
    page.line()
    _run(page, run, files, (*run_sections(run), summary.about_run(run)))
    page.show()


def print_head(page: Page, outcome: Outcome, suite: str, facts: Sequence[Cell]) -> None:
    """The verdict, the name, and how it went: of a suite that passed, all that need be said."""
    page.beside(Text(" ") + page.badge(outcome) + " " + page.write(suite, TITLE) + "  ", facts)


def print_suite(page: Page, runs: Sequence[RunResult], files_of: FilesOf) -> None:
    """A suite in full: its only run, or how its trials spread, and each in a line; `zelda show` has every detail."""
    if not summary.has_trials(runs):
        _run(page, runs[0], files_of(runs[0].run_id), run_sections(runs[0]))
        return
    print_head(page, max(map(run_outcome, runs)), runs[0].suite, summary.suite_facts(runs))
    if found := summary.spread(runs):
        _section(page, found)
    page.title("Trials")
    last_sentence = ""
    for run in runs:
        page.beside(Text("    ") + page.mark(run_outcome(run)) + f" trial {run.trial}  ", run_facts(run))
        files = files_of(run.run_id)
        if problem := run_problem(run, files):
            is_known, last_sentence = problem.sentence == last_sentence, problem.sentence
            page.rows(_problem_rows(replace(problem, sentence="", advice="") if is_known else problem), indent=6)
        elif files.result:
            page.beside("      ", (Cell(files.result, Tone.DIM, whole=True),))


def _run(page: Page, run: RunResult, files: RunFiles, sections: Iterable[Section]) -> None:
    print_head(page, run_outcome(run), run.suite, run_facts(run))
    if problem := run_problem(run, files):
        page.blank()
        page.rows(_problem_rows(problem), indent=2)
        page.quote(problem.output, indent=8)
    for section in (*sections, Section("Files", tuple(file_rows(run, files)))):
        _section(page, section)


def _section(page: Page, section: Section) -> None:
    if section.rows:
        page.title(section.title)
        page.rows(section.rows, indent=4)


def _problem_rows(problem: Problem) -> list[Row]:
    texts = {"Why": problem.sentence, "Next": problem.advice, "Look": problem.look or ""}
    return [Row(label, (Cell(text, whole=label == "Look"),)) for label, text in texts.items() if text]


# --- checks, forecasts, tables ----------------------------------------------------------------------------------

CHECKS: dict[Status, Cell] = {
    "passed": Cell("ok", Tone.GOOD),
    "warning": Cell("WARNING", Tone.WARN),
    "failed": Cell("ERROR", Tone.BAD),
    "skipped": Cell("skipped", Tone.DIM),
}
MAX_NAMED = 3
MAX_MESSAGE = 2_000


def print_checks(console: Console, report: CheckReport) -> None:
    """Print what was tried, how it went and how long it took, a line each, and below what is to be done."""
    page = Page(console)
    page.line()
    mark_width = max((len(CHECKS[check.status].text) for check in report.checks), default=0)
    width = max((cell_len(check.subject) for check in report.checks), default=0)
    for check in report.checks:
        mark = page.cell(CHECKS[check.status])
        mark.pad_right(mark_width - mark.cell_len)
        suites = ", ".join(cell.text for cell in first([*map(Cell, check.suites)], MAX_NAMED))
        time = "remembered" if check.remembered else numbers.duration(check.seconds)
        cost = numbers.brief_money(check.cost_usd) if check.cost_usd else ""
        facts = [Cell(fact, Tone.DIM) for fact in (suites, time, cost) if fact]
        label = page.write(set_cell_size(check.subject, width), LABEL)
        page.beside(Text("  ") + mark + "  " + label + "  ", (Cell(sentence(check.about, 60)), *facts))
    for check in report.checks:
        if check.status != "passed":
            status = CHECKS[check.status]
            page.blank()
            page.line(Text("  ") + page.cell(Cell(f"{status.text}  {check.origin or check.subject}", status.tone)))
            named = f"{check.subject} {check.about}: " if check.status == "skipped" else ""
            output = [Cell(visible(line, 300), Tone.DIM) for line in (check.output or "").splitlines()]
            hint = [Cell(sentence(check.hint))] if check.hint else []
            message = Cell(sentence(named + (check.message or check.about), MAX_MESSAGE))
            page.beside("    ", (message,), lines=(*output, *hint))
    page.blank()
    spent = numbers.brief_money(sum(check.cost_usd for check in report.checks))
    errors, warnings = len(report.failures), len(report.warnings)
    known = numbers.format_count(warnings, "warning") if warnings else "everything is there"
    words, tone = f"A run can begin: {known}", Tone.GOOD
    if errors:
        words, tone = f"{numbers.format_count(errors, 'error')}: no run can begin like this", Tone.BAD
    page.beside("  ", (Cell(f"{words} ({numbers.duration(report.seconds)}, {spent}).", tone),))
    page.show()


def print_forecast(console: Console, forecast: Forecast) -> None:
    """Print what would run, suite by suite, and the sums."""
    page = Page(console)
    page.table(forecast_table(forecast), indent=2)
    page.blank()
    page.notes(map(Cell, forecast_lines(forecast)), indent=2)
    page.show()


def print_table(console: Console, remarks: Console, table: Table, *, unbroken: bool) -> None:
    """Print the table, and on the other console what is to be said about it."""
    if table.lines:
        page = Page(console)
        page.table(replace(table, remarks=()), unbroken=unbroken)
        page.show()
    if table.remarks:
        page = Page(remarks)
        if table.lines:
            page.line()
        page.notes(table.remarks, indent=0)
        page.show()


def print_details(console: Console, details: Details) -> None:
    """Print what can be opened elsewhere: its title, its rows and its table."""
    page = Page(console)
    page.line(page.write(details.title, TITLE))
    page.blank()
    page.rows(details.rows, indent=2)
    if details.table:
        page.blank()
        page.table(details.table, indent=2)
    page.show()


# --- two sides --------------------------------------------------------------------------------------------------


def print_verdict(console: Console, view: CiView, changed: Iterable[Row], gate: Section) -> None:
    """Print how two sides ended as the comment does, with what changed and what the gate says of it."""
    page = Page(console)
    page.line()
    tone = Tone.BAD if view.failed else Tone.WARN if view.causes else Tone.GOOD
    page.beside(" ", (Cell(view.sentence, tone),))
    page.rows(changed, indent=4)
    for cause, *others in view.causes:
        page.blank()
        page.beside("    ", (Cell(plain(cause)),), lines=(Cell(plain(line), Tone.DIM) for line in others))
    if view.more_causes:
        page.beside("    ", (Cell(view.more_causes, Tone.DIM),))
    page.blank()
    page.table(view.table, indent=4)
    for line in view.basis:
        page.blank()
        page.beside("    ", (Cell(plain(line), Tone.DIM),))
    _section(page, gate)
    page.show()


def print_comparison(console: Console, view: ComparisonView) -> None:
    """Print every suite, the overall numbers, how sure all of it is, and the gate."""
    page = Page(console)
    page.line()
    verdict = page.cell(view.verdict)
    verdict.stylize(TITLE)
    page.line(Text(" ") + verdict)
    page.rows(view.sides, indent=4)
    for suite in view.suites:
        page.blank()
        page.beside(Text(" ") + page.write(suite.name, TITLE) + "  ", (suite.verdict, *suite.facts))
        page.notes(suite.remarks, indent=4)
        for table in (suite.measures, suite.criteria):
            if table.lines:
                page.blank()
                page.table(table, indent=4)
        if suite.tools:
            page.blank()
            page.rows(suite.tools, indent=4)
    if view.overall.lines:
        page.title("All suites")
        page.table(view.overall, indent=4)
    for section in (view.certainty, view.gate):
        _section(page, section)
    page.show()
