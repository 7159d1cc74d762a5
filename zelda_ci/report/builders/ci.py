"""The comment and the job summary as a report, and the same with less where it would be too long."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineState, CiReport
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.report.builders.ci_details import (
    broken_details,
    change_details,
    comparison_details,
    gate_details,
    run_details,
    trial_details,
    unmet_details,
)
from zelda_ci.report.builders.ci_table import suite_table
from zelda_ci.report.builders.ci_verdict import HASH, about_details, verdict_rows
from zelda_ci.report.builders.comparison import NOT_PROVEN
from zelda_ci.report.builders.nights import trend_details
from zelda_ci.report.model import Cell, CiView, Details, Link, Priority, Row, Section, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible

MAX_TITLE_LENGTH = 80
MAX_NOTES = 10
MAX_DETAILS = 500
FOREIGN = "These results were made by the workflow run of a fork's pull request, whose author controls what it does."
NOT_STORED = "The results were not stored as an artifact"
NO_JUNIT = "There is no JUnit XML"
GRAVE = {Outcome.INCOMPLETE, Outcome.BROKEN, Outcome.INTERRUPTED}


def ci_view(report: CiReport) -> CiView:
    """The view that comment and summary are rendered from."""
    return CiView(
        title=visible(report.title.strip(), MAX_TITLE_LENGTH) or "Zelda",
        verdict=tuple(verdict_rows(report)),
        remarks=tuple(_remarks(report)),
        table=suite_table(report.batch, report.comparison),
        details=tuple(_details(report)),
        evidence=tuple(_evidence(report)),
        tested=_tested(report),
        links=tuple(_links(report)),
        changed=_changed(report),
        failed=bool(report.gate.reasons) or batch_outcome(report.batch) in GRAVE,
    )


def _details(report: CiReport) -> Iterator[Details]:
    runs, comparison = report.batch.runs, report.comparison
    yield from gate_details(report.gate)
    yield from broken_details(runs)
    if comparison:
        yield from _some(change_details(comparison, runs))
    yield from unmet_details(runs, comparison)
    yield about_details(report)


def _evidence(report: CiReport) -> Iterator[Details]:
    if report.nights:
        yield from trend_details(report.nights)
    if report.comparison:
        yield from _some(comparison_details(report.comparison))
    yield from _some(trial_details(report.batch.runs))
    yield from _some(run_details(report.batch.runs))


def _some(details: Iterator[Details]) -> Iterator[Details]:
    """More than any page has room for need not be made; that there is more is said."""
    last = None
    for last in islice(details, MAX_DETAILS):
        yield last
    if last and next(details, None):
        yield Details(f"More than {MAX_DETAILS} of them: all are in the artifact", last.priority)


def _remarks(report: CiReport) -> Iterator[Cell]:
    """Why there is nothing to compare with, and what happened on the way."""
    if report.comparison is None and report.baseline.state is not BaselineState.OFF and report.baseline.sentence:
        yield Cell(_capital(sentence(report.baseline.sentence)), Tone.WARN)
    if report.batch.interrupted:
        yield Cell("The run was cancelled. This is what had been done until then.", Tone.WARN)
    if report.comparison and report.comparison.counts.changed:
        yield Cell(_capital(NOT_PROVEN), Tone.WARN)
    for note in report.notes[:MAX_NOTES]:
        yield Cell(_capital(sentence(note)))


def _capital(text: str) -> str:
    """As a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _tested(report: CiReport) -> Row:
    commit = report.tested or next((run.source.commit for run in report.batch.runs if run.source), None)
    return Row("Tested", (Cell(visible(commit, 80)[:HASH], whole=True),) if commit else ())


def _links(report: CiReport) -> Iterator[Link]:
    links = report.links
    for title, url in (("commit", links.commit), ("workflow run", links.run), ("artifact", links.artifact)):
        if url:
            yield Link(title, url)


def _changed(report: CiReport) -> bool:
    comparison = report.comparison
    if comparison is None:
        return report.baseline.state is not BaselineState.OFF
    cut_short = report.batch.interrupted or any(run_outcome(run) in GRAVE for run in report.batch.runs)
    return cut_short or _differs(comparison)


def _differs(comparison: Comparison) -> bool:
    calm = {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    tools = any(suite.tools.newly_missed or suite.tools.no_longer_missed for suite in comparison.suites)
    return tools or comparison.verdict not in calm or any(suite.verdict not in calm for suite in comparison.suites)


EVERYTHING = 10**9


@dataclass(frozen=True)
class DetailLevel:
    """How much is shown, and in words what is not."""

    words: str
    least: Priority = Priority.RUN_PASSED
    """Details of less importance are left out."""
    longest: int = EVERYTHING
    """Characters of a text inside of an entry."""
    rows: int = EVERYTHING
    """Rows of an entry."""
    details: int = EVERYTHING
    suites: int = EVERYTHING
    """Lines of the table."""


SHORT = 120
FEW = 20

# From all to the first line alone.
STEPS = (
    DetailLevel(""),
    DetailLevel("runs that passed are not shown one by one", Priority.RUN_FAILED),
    DetailLevel("runs are not shown one by one", Priority.UNCHANGED),
    DetailLevel("what is as it was before is not shown", Priority.ABOUT),
    DetailLevel("long texts are cut, and only what changed or failed is shown", Priority.ABOUT, SHORT),
    DetailLevel("long texts are cut, and only the worst is shown", Priority.CHANGED, SHORT, rows=FEW, details=FEW),
    DetailLevel("of the details only the gate's reasons are shown", Priority.GATE, SHORT, rows=FEW),
    DetailLevel("only the 100 suites that matter most are shown", Priority.GATE, SHORT, rows=FEW, suites=100),
    DetailLevel("only the 25 suites that matter most are shown", Priority.GATE, SHORT, rows=FEW, suites=25),
    DetailLevel("neither suites nor details are shown", Priority.GATE, SHORT, details=0, suites=0),
)


def reduced(view: CiView, level: DetailLevel) -> CiView:
    """The view with no more than the level allows."""
    details = [_cut_details(entry, level) for entry in view.details if entry.priority >= level.least]
    return replace(
        view,
        verdict=_rows(view.verdict, level),
        remarks=_cut(view.remarks, level.longest),
        table=_table(view.table, level.suites),
        details=tuple(details[: level.details]),
        left_out=level.words,
    )


def least_size(view: CiView) -> int:
    """Characters that the view has at least once it is rendered: what is too much already need not be rendered."""
    cells = [cell for row in view.verdict for cell in row.cells] + [*view.remarks, *_cells(view.table)]
    for entry in view.details:
        cells += (cell for table in entry.tables for cell in _cells(table))
        cells += (cell for section in entry.sections for row in section.rows for cell in (*row.cells, *row.lines))
    return sum(len(cell.text) for cell in cells)


def _cells(table: Table) -> list[Cell]:
    return [cell for line in table.lines for cell in (*line.cells, *line.notes)]


def _table(table: Table, most: int) -> Table:
    if len(table.lines) <= most:
        return table
    more = f"and {numbers.format_count(len(table.lines) - most, 'more suite')}"
    rest = TableRow((Cell(more, Tone.DIM), *(Cell("") for _ in table.columns[1:])))
    return replace(table, lines=(*table.lines[:most], rest) if most else ())


def _cut_details(entry: Details, level: DetailLevel) -> Details:
    sections = tuple(Section(section.title, _rows(section.rows, level)) for section in entry.sections)
    tables = tuple(_notes(table, level.longest) for table in entry.tables)
    return replace(entry, sections=sections, tables=tables)


def _rows(rows: tuple[Row, ...], level: DetailLevel) -> tuple[Row, ...]:
    shortened = tuple(
        Row(row.label, _cut(row.cells, level.longest), _cut(row.lines, level.longest)) for row in rows[: level.rows]
    )
    if more := len(rows) - len(shortened):
        return (*shortened, Row("", (Cell(f"and {numbers.whole(more)} more", Tone.DIM),)))
    return shortened


def _notes(table: Table, longest: int) -> Table:
    lines = tuple(TableRow(_cut(line.cells, longest), _cut(line.notes, longest)) for line in table.lines)
    return replace(table, lines=lines)


def _cut(cells: Iterable[Cell], longest: int) -> tuple[Cell, ...]:
    return tuple(cell if len(cell.text) <= longest else replace(cell, text=_shortened(cell, longest)) for cell in cells)


def _shortened(cell: Cell, longest: int) -> str:
    return cell.text[:longest].rstrip() + " \u2026"
