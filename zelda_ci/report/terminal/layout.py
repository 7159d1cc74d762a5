"""Tables and lines in as much room as the terminal has."""

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from zelda_ci.report.model import Cell, Column, Row, Table, TableRow, Tone
from zelda_ci.report.terminal.console import DIM, GUTTER, LABEL, SEPARATOR, Style

# Columns that text gets even where the terminal has fewer.
NARROWEST = 24


# Indent of what belongs to a label that stands alone.
ALONE = 8


class Page:
    """Collects lines and prints them at once, so that no other output comes between them."""

    def __init__(self, console: Console, *, width: int | None = None) -> None:
        self.console = console
        self.width = width or console.width
        self.style = Style.of(console)
        self.lines: list[Text] = []

    def show(self) -> None:
        """Print what was collected, each line as it is: the terminal itself wraps what is longer than it is wide."""
        self.console.print(Text("\n").join(self.lines), soft_wrap=True, markup=False, emoji=False, highlight=False)

    def blank(self) -> None:
        """An empty line, never two in a row."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def line(self, text: Text) -> None:
        """A line of its own, without blanks at its end, and inert in the log of a CI service."""
        text = text.copy()
        text.rstrip()
        start = len(text.plain) - len(text.plain.lstrip())
        if text.plain.startswith("::", start):
            text = Text.assemble(text[:start], ": :", text[start + 2 :])
        self.lines.append(text)

    def beside(self, label: Text, cells: Sequence[Cell], *, lines: Iterable[Cell] = ()) -> None:
        """Cells to the right of a label, then lines below the cells; a label that leaves no room stands alone."""
        if label.cell_len > ALONE and self.width - label.cell_len < NARROWEST:
            first, *rest = self._wrapped(label, self._room(ALONE))
            self.line(first)
            for text in rest:
                self.line(Text(" " * ALONE) + text)
            label = Text(" " * ALONE)
        indent = label.cell_len
        body = [*self._flow(cells, indent)]
        for cell in lines:
            body += self._flow([cell], indent)
        for text in body or [Text()]:
            self.line(label + text)
            label = Text(" " * indent)

    def row(self, row: Row, *, indent: int, label_width: int) -> None:
        """A labelled row."""
        label = self.style.write(row.label.ljust(label_width), LABEL)
        self.beside(Text(" " * indent) + label + "  ", row.cells, lines=row.lines)

    def quote(self, lines: Iterable[str], *, indent: int) -> None:
        """Output of a program, behind a gutter that it cannot cross."""
        gutter = Text(" " * indent) + self.style.write(GUTTER, DIM)
        for line in lines:
            for text in self._wrapped(self.style.write(line), self._room(gutter.cell_len)):
                self.line(gutter + text)

    def _room(self, indent: int) -> int:
        return max(self.width - indent, NARROWEST)

    def _flow(self, cells: Sequence[Cell], indent: int) -> Iterator[Text]:
        """Lines of cells; a cell goes to the next line whole, and is broken only where a line is too short for it."""
        room, separator = self._room(indent), self.style.write(SEPARATOR, DIM)
        line = Text()
        for cell in cells:
            for text in [self.style.cell(cell)] if cell.whole else self._wrapped(self.style.cell(cell), room):
                if not line:
                    line = text
                elif line.cell_len + separator.cell_len + text.cell_len <= room:
                    line = line + separator + text
                else:
                    yield line
                    line = text
        if line:
            yield line

    def _wrapped(self, text: Text, width: int) -> list[Text]:
        return list(text.wrap(self.console, width, overflow="fold")) if text.cell_len > width else [text]


GAP = 2
# Indent of what belongs to the line above.
STEP = 2


def print_table(page: Page, table: Table, *, indent: int = 0, one_line: bool = False) -> None:
    """Add a table to the page.

    Args:
        page: Where it goes.
        table: What is shown.
        indent: Blanks before each line.
        one_line: Keep each row on one line, however wide: for programs that read lines.
    """
    everything = range(len(table.columns))
    rest = everything[table.leading + 1 :]
    if one_line or indent + _width(table, everything) <= page.width:
        _aligned(page, table, everything, indent)
    elif indent + STEP + _width(table, rest) <= page.width:
        _two_lines(page, table, rest, indent)
    else:
        _flowing(page, table, rest, indent)


def write_table(console: Console, table: Table) -> None:
    """Write each row on one line, without colours: ten thousand rows are no matter then."""
    style, widths = Style.of(console), _widths(table, range(len(table.columns)))
    rows = [_headings(table.columns), *(line.cells for line in table.lines)]
    texts = (
        (" " * GAP).join(_padded(row[index].text, width, table.columns[index]) for index, width in widths.items())
        for row in rows
    )
    plain = "".join(f"{text.rstrip()}\n" for text in texts)
    console.file.write(style.write(plain).plain)


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
    headings = _headings(table.columns)
    _print_leading_cell(page, table, TableRow(tuple(headings)), indent)
    page.line(_row(page, headings, table.columns, widths, indent + STEP))
    for line in table.lines:
        _print_leading_cell(page, table, line, indent)
        page.line(_row(page, line.cells, table.columns, widths, indent + STEP))
        _notes(page, line, indent + STEP)


def _flowing(page: Page, table: Table, columns: Sequence[int], indent: int) -> None:
    for line in table.lines:
        _print_leading_cell(page, table, line, indent)
        facts = [_labelled(table.columns[index], line.cells[index]) for index in columns if _is_set(line.cells[index])]
        page.beside(Text(" " * (indent + STEP)), facts)
        _notes(page, line, indent + STEP)


def _print_leading_cell(page: Page, table: Table, line: TableRow, indent: int) -> None:
    *marks, name = line.cells[: table.leading + 1]
    label = Text(" " * indent)
    for mark in marks:
        label = label + page.style.cell(mark) + " " * GAP
    page.beside(label, (name,))


def _is_set(cell: Cell) -> bool:
    return cell.text not in {"", "-"}


def _labelled(column: Column, cell: Cell) -> Cell:
    """A number says what it is; a word does so itself."""
    if not column.right:
        return cell
    label, percent, _ = column.title.lower().partition(" %")
    return Cell(f"{label} {cell.text}{percent}", cell.tone, cell.whole)


def _notes(page: Page, line: TableRow, indent: int) -> None:
    for note in line.notes:
        page.beside(Text(" " * indent), (note,))


def _row(page: Page, cells: Sequence[Cell], columns: Sequence[Column], widths: dict[int, int], indent: int) -> Text:
    row = Text(" " * indent)
    for index, width in widths.items():
        text = page.style.cell(cells[index])
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
        index: max(cell_len(table.columns[index].title), *(cell_len(line.cells[index].text) for line in table.lines))
        for index in filled
    }


def print_lines(console: Console, lines: Iterable[Cell]) -> None:
    """Print each line as it is: a terminal wraps what is longer than it is wide."""
    for cell in lines:
        page = Page(console)
        page.line(page.style.cell(cell) if cell.text else Text())
        if console.color_system:
            page.show()
        else:
            # A transcript may have a million lines, and laying them out takes long.
            console.file.write(page.lines[0].plain + "\n")
    console.file.flush()
