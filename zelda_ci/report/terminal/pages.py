"""Reports on the terminal: what failed, why and what to do come first."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from zelda_ci.report.model import (
    Cell,
    CheckView,
    CiView,
    ComparisonView,
    Detail,
    HistoryView,
    Problem,
    ReportSummary,
    ReportView,
    Row,
    RunView,
    Section,
    SuiteComparisonView,
    SuiteView,
    Table,
    Tone,
    Trouble,
    plain,
)
from zelda_ci.report.terminal.console import LABEL, TITLE
from zelda_ci.report.terminal.layout import Page, write_table


def print_report(console: Console, view: ReportView) -> None:
    """Print every suite in full, then the summary."""
    page = Page(console)
    page.line(Text())
    for suite in view.suites:
        page.blank()
        print_suite(page, suite)
    page.blank()
    _summary(page, view.summary)
    page.show()


def print_closing(console: Console, view: ReportView, detail: Detail) -> None:
    """Print what comes after the suites: what went wrong and the summary, or one line where that is wanted."""
    page = Page(console)
    if detail is Detail.QUIET:
        badge = page.style.badge(view.summary.outcome, view.summary.verdict)
        page.beside(Text(" ") + badge + "  ", view.summary.line)
    else:
        page.line(Text())
        if detail is not Detail.FULL:
            _troubles(page, view.summary.troubles)
        _summary(page, view.summary)
    page.show()


def print_troubles(console: Console, view: ReportView) -> None:
    """Print what went wrong, each problem once."""
    page = Page(console)
    page.line(Text())
    _troubles(page, view.summary.troubles)
    page.show()


def _troubles(page: Page, troubles: Sequence[Trouble]) -> None:
    if troubles:
        print_title(page, "What went wrong")
    for trouble in troubles:
        mark = page.style.mark(trouble.outcome, trouble.verdict)
        page.beside(Text("    ") + mark + " ", (Cell(trouble.names),))
        why = "" if trouble.unmet else trouble.problem.sentence
        page.rows((*trouble.unmet, *_problem_rows(replace(trouble.problem, sentence=why))), indent=6)
        page.quote(trouble.problem.output, indent=12)


def print_suite(page: Page, suite: SuiteView) -> None:
    """A suite in full: its only run, or its trials."""
    if suite.runs[0].trial:
        _suite(page, suite)
    else:
        _run(page, suite.runs[0])


def print_run(console: Console, run: RunView) -> None:
    page = Page(console)
    page.line(Text())
    _run(page, run)
    page.show()


def _run(page: Page, run: RunView) -> None:
    """A run in full."""
    print_head(page, run)
    if run.problem:
        _problem(page, run.problem, indent=2)
    for section in run.sections:
        print_title(page, section.title)
        page.rows(section.rows, indent=4)
    if run.files:
        print_title(page, "Files")
        page.rows(run.files, indent=4)


def _suite(page: Page, suite: SuiteView) -> None:
    """A suite of several trials: how they spread, and each in a line; `zelda show` has every detail."""
    print_head(page, suite)
    if suite.spread:
        print_title(page, suite.spread.title)
        page.rows(suite.spread.rows, indent=4)
    print_title(page, "Trials")
    last_sentence = ""
    for run in suite.runs:
        mark = Text("    ") + page.style.mark(run.outcome, run.verdict) + f" {run.trial}  "
        page.beside(mark, run.facts)
        if run.problem:
            is_known = run.problem.sentence == last_sentence
            shown = replace(run.problem, sentence="", advice="") if is_known else run.problem
            page.rows(_problem_rows(shown), indent=6)
            last_sentence = run.problem.sentence
        elif run.files:
            page.beside(Text(" " * 6), run.files[0].cells)


def print_head(page: Page, subject: RunView | SuiteView) -> None:
    """The verdict, the name, and how it went: of a suite that passed, all that need be said."""
    name = subject.suite if isinstance(subject, RunView) else subject.name
    badge = page.style.badge(subject.outcome, subject.verdict)
    page.beside(Text(" ") + badge + " " + page.style.write(name, TITLE) + "  ", subject.facts)


def print_title(page: Page, title: str) -> None:
    """A title, with room above."""
    page.blank()
    page.line(Text("  ") + page.style.write(title, TITLE))


def _problem(page: Page, problem: Problem, *, indent: int) -> None:
    page.blank()
    page.rows(_problem_rows(problem), indent=indent)
    page.quote(problem.output, indent=indent + 6)


def _problem_rows(problem: Problem) -> tuple[Row, ...]:
    rows = (
        Row("Why", (Cell(problem.sentence),)),
        Row("Next", (Cell(problem.advice),)),
        Row("Look", (Cell(problem.look or "", whole=True),)),
    )
    return tuple(row for row in rows if row.cells[0].text)


def _summary(page: Page, summary: ReportSummary) -> None:
    if summary.table.lines:
        page.blank()
        page.table(summary.table, indent=4)
    print_title(page, "Summary")
    page.rows(summary.rows, indent=4)


def print_checks(console: Console, view: CheckView) -> None:
    """Print a line for each check, and below them what is to be done."""
    page = Page(console)
    page.line(Text())
    mark_width = max((len(mark.text) for mark, _ in view.lines), default=0)
    width = max((len(row.label) for _, row in view.lines), default=0)
    for mark, row in view.lines:
        shown = page.style.cell(mark)
        shown.pad_right(mark_width - shown.cell_len)
        page.beside(Text("  ") + shown + "  " + page.style.write(row.label.ljust(width), LABEL) + "  ", row.cells)
    for label, lines in view.details:
        page.blank()
        page.line(Text("  ") + page.style.cell(label))
        page.beside(Text("    "), lines[:1], lines=lines[1:])
    page.blank()
    page.beside(Text("  "), (view.summary,))
    page.show()


def print_forecast(console: Console, table: Table, lines: Sequence[str]) -> None:
    """Print what would run, suite by suite, and the sums."""
    page = Page(console)
    page.table(table, indent=2)
    page.blank()
    for line in lines:
        page.beside(Text("  "), (Cell(line),))
    page.show()


def print_verdict(console: Console, view: CiView, changed: Iterable[Row], gate: Section) -> None:
    """Print how two sides ended as the comment does, with what changed and what the gate says of it."""
    page = Page(console)
    page.line(Text())
    tone = Tone.BAD if view.failed else Tone.WARN if view.causes else Tone.GOOD
    page.beside(Text(" "), (Cell(view.sentence, tone),))
    page.rows(changed, indent=4)
    for first, *others in view.causes:
        page.blank()
        page.beside(Text("    "), (Cell(plain(first)),), lines=(Cell(plain(line), Tone.DIM) for line in others))
    if view.more_causes:
        page.beside(Text("    "), (Cell(view.more_causes, Tone.DIM),))
    page.blank()
    page.table(view.table, indent=4)
    for line in view.basis:
        page.blank()
        page.beside(Text("    "), (Cell(plain(line), Tone.DIM),))
    print_title(page, gate.title)
    page.rows(gate.rows, indent=4)
    page.show()


def print_comparison(console: Console, view: ComparisonView) -> None:
    """Print every suite, the overall numbers, how sure all of it is, and the gate."""
    page = Page(console)
    page.line(Text())
    verdict = page.style.cell(view.verdict)
    verdict.stylize(TITLE)
    page.line(Text(" ") + verdict)
    page.rows(view.sides, indent=4)
    for suite in view.suites:
        page.blank()
        _comparison_suite(page, suite)
    if view.overall.lines:
        print_title(page, "All suites")
        page.table(view.overall, indent=4)
    for section in (view.certainty, view.gate):
        if section.rows:
            print_title(page, section.title)
            page.rows(section.rows, indent=4)
    page.show()


def _comparison_suite(page: Page, suite: SuiteComparisonView) -> None:
    label = Text(" ") + page.style.write(suite.name, TITLE) + "  "
    page.beside(label, (suite.verdict, *suite.facts))
    for remark in suite.remarks:
        page.beside(Text("    "), (remark,))
    for table in (suite.measures, suite.criteria):
        if table.lines:
            page.blank()
            page.table(table, indent=4)
    if suite.tools:
        page.blank()
        page.rows(suite.tools, indent=4)


def print_history(console: Console, remarks: Console, view: HistoryView, *, one_line: bool) -> None:
    """Print the table, and on the other console what is to be said about it."""
    if view.table.lines and one_line and not console.color_system:
        write_table(console, view.table)
    elif view.table.lines:
        page = Page(console)
        page.table(view.table, one_line=one_line)
        page.show()
    if view.remarks:
        page = Page(remarks)
        if view.table.lines:
            page.line(Text())
        for remark in view.remarks:
            page.beside(Text(), (remark,))
        page.show()
