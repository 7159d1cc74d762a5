"""The comment and the job summary as a report, and the same with less where it would be too long."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineState, CiReport
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.outcome import run_outcome
from zelda_ci.report.builders.ci_basis import about_details, basis, footer
from zelda_ci.report.builders.ci_causes import boxes, causes
from zelda_ci.report.builders.ci_details import (
    broken_details,
    change_details,
    comparison_details,
    gate_details,
    note_details,
    number_details,
    run_details,
    trial_details,
    unmet_details,
)
from zelda_ci.report.builders.ci_headline import capital, headline, lead
from zelda_ci.report.builders.ci_table import moved_table
from zelda_ci.report.builders.nights import trend_details
from zelda_ci.report.builders.phrases import text
from zelda_ci.report.builders.standings import GRAVE, SuiteStanding, standings
from zelda_ci.report.model import (
    Box,
    Cell,
    CiView,
    Details,
    Line,
    Phrase,
    Priority,
    Row,
    Section,
    Table,
    TableRow,
    Tone,
)
from zelda_ci.report.text import sentence, visible

MAX_TITLE_LENGTH = 80
MAX_NOTES = 10
MAX_DETAILS = 500
FOREIGN = "These results were made by the workflow run of a fork's pull request, whose author controls what it does."
NOT_STORED = "The results were not stored as an artifact"
NO_REPORT = "The HTML report could not be stored"
NO_JUNIT = "There is no JUnit XML"


def ci_view(report: CiReport) -> CiView:
    """The view that comment and summary are rendered from."""
    suites = standings(report)
    shown, more = boxes(report, [] if report.is_cut_short else causes(report, suites))
    return CiView(
        title=visible(report.title.strip(), MAX_TITLE_LENGTH) or "Zelda",
        headline=headline(report, suites),
        lead=(*lead(report, suites), *_open_notes(report)),
        causes=shown,
        more_causes=more,
        table=moved_table(report, suites),
        basis=tuple(basis(report)),
        details=tuple(_details(report, suites)),
        evidence=tuple(_evidence(report)),
        footer=footer(report),
        changed=_changed(report),
        failed=report.is_red,
    )


def _open_notes(report: CiReport) -> Iterator[Line]:
    """Of what happened on the way, what nobody may overlook; of a night, all: nobody is asked to look into folds."""
    for note in report.notes[:MAX_NOTES]:
        if report.nights or note == FOREIGN:
            yield (text(capital(sentence(note))),)


def _details(report: CiReport, suites: tuple[SuiteStanding, ...]) -> Iterator[Details]:
    if not report.is_cut_short:
        yield from gate_details(report.gate)
    yield from broken_details(report.batch.runs)
    if report.comparison and not report.is_cut_short:
        yield from change_details(suites)
    yield from unmet_details(report.batch.runs, report.comparison)
    yield from number_details(report, suites)
    if not report.nights:
        yield from note_details([note for note in report.notes if note != FOREIGN])
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


def _changed(report: CiReport) -> bool:
    comparison = report.comparison
    if comparison is None:
        return report.baseline.state is not BaselineState.OFF
    cut_short = report.is_cut_short or any(run_outcome(run) in GRAVE for run in report.batch.runs)
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
    """Lines of the table of what moved."""
    causes: int = EVERYTHING


SHORT = 120
FEW = 20

# From all to the first line alone; the causes stay until nothing else is left.
STEPS = (
    DetailLevel(""),
    DetailLevel("runs that passed are not shown one by one", Priority.RUN_FAILED),
    DetailLevel("runs are not shown one by one", Priority.UNCHANGED),
    DetailLevel("what is as it was before is not shown", Priority.ABOUT),
    DetailLevel("long texts are cut, and only what changed or failed is shown", Priority.ABOUT, SHORT),
    DetailLevel("long texts are cut, and only the worst is shown", Priority.CHANGED, SHORT, rows=FEW, details=FEW),
    DetailLevel("of the details only the gate's findings are shown", Priority.GATE, SHORT, rows=FEW),
    DetailLevel("no details are shown", Priority.GATE, SHORT, details=0),
    DetailLevel("neither suites nor details are shown", Priority.GATE, SHORT, details=0, suites=0),
    DetailLevel("neither causes nor suites are shown", Priority.GATE, SHORT, details=0, suites=0, causes=0),
)


def reduced(view: CiView, level: DetailLevel) -> CiView:
    """The view with no more than the level allows."""
    details = [_cut_details(entry, level) for entry in view.details if entry.priority >= level.least]
    return replace(
        view,
        lead=tuple(_cut_line(line, level.longest) for line in view.lead) if level.causes else (),
        causes=tuple(_cut_box(box, level.longest) for box in view.causes[: level.causes]),
        more_causes=view.more_causes if level.causes else "",
        table=_table(view.table, level.suites),
        basis=view.basis if level.suites else (),
        details=tuple(details[: level.details]),
        left_out=level.words,
    )


def least_size(view: CiView) -> int:
    """Characters that the view has at least once it is rendered: what is too much already need not be rendered."""
    cells = _cells(view.table)
    for entry in view.details:
        cells += (cell for table in entry.tables for cell in _cells(table))
        cells += (cell for section in entry.sections for row in section.rows for cell in (*row.cells, *row.lines))
    lines = (*view.lead, *view.basis, *(line for box in view.causes for line in box.lines))
    return sum(len(cell.text) for cell in cells) + sum(len(phrase.text) for line in lines for phrase in line)


def _cells(table: Table) -> list[Cell]:
    return [cell for line in table.lines for cell in (*line.cells, *line.notes)]


def _cut_box(box: Box, longest: int) -> Box:
    return Box(tuple(_cut_line(line, longest) for line in box.lines))


def _cut_line(line: Line, longest: int) -> Line:
    return tuple(
        phrase if len(phrase.text) <= longest else replace(phrase, text=_shortened(phrase, longest)) for phrase in line
    )


def _table(table: Table, most: int) -> Table:
    if len(table.lines) <= most:
        return table
    more = f"and {numbers.format_count(len(table.lines) - most, 'more suite')}"
    rest = TableRow((Cell(more, Tone.DIM), *(Cell("") for _ in table.columns[1:])))
    return replace(table, lines=(*table.lines[:most], rest) if most else ())


def _cut_details(entry: Details, level: DetailLevel) -> Details:
    sections = [Section(section.title, _rows(section.rows, level)) for section in entry.sections]
    tables = tuple(_table(_notes(table, level.longest), level.rows) for table in entry.tables)
    if more := len(sections) - level.rows:
        sections = [*sections[: level.rows], *([_more(more)] if more > 0 else [])]
    return replace(entry, sections=tuple(sections), tables=tables)


def _more(count: int) -> Section:
    return Section("", (Row("", (Cell(f"and {numbers.format_count(count, 'more suite')}", Tone.DIM),)),))


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


def _shortened(piece: Cell | Phrase, longest: int) -> str:
    return piece.text[:longest].rstrip() + " \u2026"
