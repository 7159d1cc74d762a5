"""A table in as much room as there is: rows of one line, of two, or facts that flow."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.style import Ink
from zelda_ci.reporter.view.nouns import Cell, Tone
from zelda_ci.reporter.view.tables import Column, Line, Table

GAP = 2
STEP = 2
"""Indent of what belongs to the line above."""


def print_table(page: Page, table: Table, *, indent: int = 0, one_line: bool = False) -> None:
    """Add a table to the page.

    Args:
        page: Where it goes.
        table: What is shown.
        indent: Blanks before each line.
        one_line: Keep each row on one line, however wide: for programs that read lines.
    """
    everything = range(len(table.columns))
    rest = [index for index in everything if index != table.leading]
    if one_line or indent + _width(table, everything) <= page.width:
        _aligned(page, table, everything, indent)
    elif indent + STEP + _width(table, rest) <= page.width:
        _two_lines(page, table, rest, indent)
    else:
        _flowing(page, table, rest, indent)


def write_table(console: Console, table: Table) -> None:
    """Write each row on one line, without colours: ten thousand rows are no matter then."""
    ink, widths = Ink.of(console), _widths(table, range(len(table.columns)))
    rows = [_headings(table.columns), *(line.cells for line in table.lines)]
    texts = (
        (" " * GAP).join(_padded(row[index].text, width, table.columns[index]) for index, width in widths.items())
        for row in rows
    )
    plain = "".join(f"{text.rstrip()}\n" for text in texts)
    console.file.write(plain if ink.unicode else ink.write(plain).plain)


def _padded(text: str, width: int, column: Column) -> str:
    blanks = " " * max(width - cell_len(text), 0)
    return blanks + text if column.right else text + blanks


def _aligned(page: Page, table: Table, columns: Sequence[int], indent: int) -> None:
    widths = _widths(table, columns)
    page.line(_row(page, _headings(table.columns), table.columns, widths, indent))
    for line in table.lines:
        page.line(_row(page, line.cells, table.columns, widths, indent))
        _notes(page, line, indent + STEP)


def _two_lines(page: Page, table: Table, columns: Sequence[int], indent: int) -> None:
    widths = _widths(table, columns)
    page.line(_row(page, _headings(table.columns), table.columns, widths, indent + STEP))
    for line in table.lines:
        _lead(page, table, line, indent)
        page.line(_row(page, line.cells, table.columns, widths, indent + STEP))
        _notes(page, line, indent + STEP)


def _flowing(page: Page, table: Table, columns: Sequence[int], indent: int) -> None:
    for line in table.lines:
        _lead(page, table, line, indent)
        facts = [_labelled(table.columns[index], line.cells[index]) for index in columns if _tells(line.cells[index])]
        page.beside(Text(" " * (indent + STEP)), facts)
        _notes(page, line, indent + STEP)


def _lead(page: Page, table: Table, line: Line, indent: int) -> None:
    page.beside(Text(" " * indent), (line.cells[table.leading],))


def _tells(cell: Cell) -> bool:
    return cell.text not in {"", "-"}


def _labelled(column: Column, cell: Cell) -> Cell:
    """A number says what it is; a word does so itself."""
    if not column.right:
        return cell
    label, percent, _ = column.title.lower().partition(" %")
    return Cell(f"{label} {cell.text}{percent}", cell.tone)


def _notes(page: Page, line: Line, indent: int) -> None:
    for note in line.notes:
        page.beside(Text(" " * indent), (note,))


def _row(page: Page, cells: Sequence[Cell], columns: Sequence[Column], widths: dict[int, int], indent: int) -> Text:
    row = Text(" " * indent)
    for index, width in widths.items():
        text = page.ink.cell(cells[index])
        blanks = " " * max(width - text.cell_len, 0)
        row = row + (Text(blanks) + text if columns[index].right else text + blanks) + " " * GAP
    return row


def _headings(columns: Sequence[Column]) -> list[Cell]:
    return [Cell(column.title, Tone.DIM) for column in columns]


def _width(table: Table, columns: Sequence[int]) -> int:
    return sum(_widths(table, columns).values()) + GAP * (len(columns) - 1)


def _widths(table: Table, columns: Sequence[int]) -> dict[int, int]:
    """A column in which nothing stands takes no room."""
    filled = [index for index in columns if any(line.cells[index].text for line in table.lines)]
    return {
        index: max(len(table.columns[index].title), *(cell_len(line.cells[index].text) for line in table.lines))
        for index in filled
    }
