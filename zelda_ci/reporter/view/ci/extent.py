"""A view in less room: steps that each leave out what matters least, and say so."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.ci.nouns import CiView, Fold, Worth
from zelda_ci.reporter.view.nouns import Cell, Row, Section, Tone
from zelda_ci.reporter.view.tables import Line, Table

EVERYTHING = 10**9


@dataclass(frozen=True)
class Extent:
    """How much is shown, and in words what is not."""

    words: str
    least: Worth = Worth.RUN_PASSED
    """Folds that are worth less are left out."""
    longest: int = EVERYTHING
    """Characters of a text inside of a fold."""
    rows: int = EVERYTHING
    """Rows of a fold."""
    folds: int = EVERYTHING
    suites: int = EVERYTHING
    """Lines of the table."""


SHORT = 120
FEW = 20

STEPS = (
    Extent(""),
    Extent("runs that passed are not shown one by one", Worth.RUN_FAILED),
    Extent("runs are not shown one by one", Worth.UNCHANGED),
    Extent("what is as it was before is not shown", Worth.ABOUT),
    Extent("long texts are cut, and only what changed or failed is shown", Worth.ABOUT, SHORT),
    Extent("long texts are cut, and only the worst is shown", Worth.CHANGED, SHORT, rows=FEW, folds=FEW),
    Extent("of the details only the gate's reasons are shown", Worth.GATE, SHORT, rows=FEW),
    Extent("only the 100 suites that matter most are shown", Worth.GATE, SHORT, rows=FEW, suites=100),
    Extent("only the 25 suites that matter most are shown", Worth.GATE, SHORT, rows=FEW, suites=25),
    Extent("neither suites nor details are shown", Worth.GATE, SHORT, folds=0, suites=0),
)
"""From all to the first line alone."""


def reduced(view: CiView, extent: Extent) -> CiView:
    """The view with no more than the extent allows."""
    folds = [_fold(fold, extent) for fold in view.folds if fold.worth >= extent.least]
    return replace(
        view,
        verdict=_rows(view.verdict, extent),
        remarks=_cut(view.remarks, extent.longest),
        table=_table(view.table, extent.suites),
        folds=tuple(folds[: extent.folds]),
        left_out=extent.words,
    )


def least_size(view: CiView) -> int:
    """Characters that the view has at least once it is rendered: what is too much already need not be rendered."""
    cells = [cell for row in view.verdict for cell in row.cells] + [*view.remarks, *_cells(view.table)]
    for fold in view.folds:
        cells += (cell for table in fold.tables for cell in _cells(table))
        cells += (cell for section in fold.sections for row in section.rows for cell in (*row.cells, *row.lines))
    return sum(len(cell.text) for cell in cells)


def _cells(table: Table) -> list[Cell]:
    return [cell for line in table.lines for cell in (*line.cells, *line.notes)]


def _table(table: Table, most: int) -> Table:
    if len(table.lines) <= most:
        return table
    more = f"and {numbers.count(len(table.lines) - most, 'more suite')}"
    rest = Line((Cell(more, Tone.DIM), *(Cell("") for _ in table.columns[1:])))
    return replace(table, lines=(*table.lines[:most], rest) if most else ())


def _fold(fold: Fold, extent: Extent) -> Fold:
    sections = tuple(Section(section.title, _rows(section.rows, extent)) for section in fold.sections)
    tables = tuple(_notes(table, extent.longest) for table in fold.tables)
    return replace(fold, sections=sections, tables=tables)


def _rows(rows: tuple[Row, ...], extent: Extent) -> tuple[Row, ...]:
    kept = tuple(
        Row(row.label, _cut(row.cells, extent.longest), _cut(row.lines, extent.longest)) for row in rows[: extent.rows]
    )
    if more := len(rows) - len(kept):
        return (*kept, Row("", (Cell(f"and {numbers.whole(more)} more", Tone.DIM),)))
    return kept


def _notes(table: Table, longest: int) -> Table:
    lines = tuple(Line(_cut(line.cells, longest), _cut(line.notes, longest)) for line in table.lines)
    return replace(table, lines=lines)


def _cut(cells: Iterable[Cell], longest: int) -> tuple[Cell, ...]:
    return tuple(cell if len(cell.text) <= longest else replace(cell, text=_shortened(cell, longest)) for cell in cells)


def _shortened(cell: Cell, longest: int) -> str:
    return cell.text[:longest].rstrip() + " \u2026"
