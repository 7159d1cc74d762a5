"""Tables and lines in as much room as the terminal has."""

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from zelda_ci.report.model import Cell, Column, Row, Table, TableRow, Tone
from zelda_ci.report.terminal.console import DIM, GUTTER, LABEL, SEPARATOR, STYLES, Style

# Columns that text gets even where the terminal has fewer.
NARROWEST = 24
# Indent of what belongs to a label that stands alone.
ALONE = 8
GAP = "  "
# Indent of what belongs to the line above.
STEP = 2


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
        body = [text for group in (cells, *((line,) for line in lines)) for text in self._flow(group, indent)]
        for text in body or [Text()]:
            self.line(label + text)
            label = Text(" " * indent)

    def rows(self, rows: Iterable[Row], *, indent: int) -> None:
        """Rows whose labels are aligned."""
        rows = tuple(rows)
        width = max((cell_len(row.label) for row in rows), default=0)
        for row in rows:
            label = self.style.write(_padded(row.label, width), LABEL)
            self.beside(Text(" " * indent) + label + GAP, row.cells, lines=row.lines)

    def table(self, table: Table, *, indent: int = 0, one_line: bool = False) -> None:
        """A table, each row on one line if there is room for all of them or programs read it; else flowing."""
        lines = [*_lines(self.style, table)]
        if one_line or indent + max(sum(cell_len(text) for text, _ in line) for line in lines) <= self.width:
            for line, row in zip(lines, (None, *table.lines), strict=True):
                self.line(Text.assemble(" " * indent, *line))
                self._notes(row, indent)
            return
        for row in table.lines:
            *marks, name = row.cells[: table.leading + 1]
            label = Text(" " * indent) + Text().join(self.style.cell(mark) + GAP for mark in marks)
            self.beside(label, (name,))
            rest = zip(table.columns[table.leading + 1 :], row.cells[table.leading + 1 :], strict=True)
            facts = [_labelled(column, cell) for column, cell in rest if cell.text not in {"", "-"}]
            self.beside(Text(" " * (indent + STEP)), facts)
            self._notes(row, indent)

    def quote(self, lines: Iterable[str], *, indent: int) -> None:
        """Output of a program, behind a gutter that it cannot cross."""
        gutter = Text(" " * indent) + self.style.write(GUTTER, DIM)
        for line in lines:
            for text in self._wrapped(self.style.write(line), self._room(gutter.cell_len)):
                self.line(gutter + text)

    def _notes(self, row: TableRow | None, indent: int) -> None:
        for note in row.notes if row else ():
            self.beside(Text(" " * (indent + STEP)), (note,))

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


def write_table(console: Console, table: Table) -> None:
    """Write each row on one line, without colours: ten thousand rows are no matter then."""
    for line in _lines(Style.of(console), table):
        console.file.write("".join(text for text, _ in line).rstrip() + "\n")


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


def _lines(style: Style, table: Table) -> Iterator[list[tuple[str, str]]]:
    """Headings and rows in columns, each piece with its style; a column in which nothing stands takes no room."""
    rows = [[Cell(column.title, Tone.DIM) for column in table.columns], *(line.cells for line in table.lines)]
    texts = [[style.plain(cell.text) for cell in row] for row in rows]
    filled = [index for index in range(len(table.columns)) if any(row[index] for row in texts[1:])]
    widths = {index: max(cell_len(row[index]) for row in texts) for index in filled}
    for cells, row in zip(rows, texts, strict=True):
        line: list[tuple[str, str]] = []
        for index, width in widths.items():
            line += [(GAP, "")] * bool(line)
            line.append((_padded(row[index], width, right=table.columns[index].right), STYLES[cells[index].tone]))
        yield line


def _padded(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * max(width - cell_len(text), 0)
    return blanks + text if right else text + blanks


def _labelled(column: Column, cell: Cell) -> Cell:
    """A number says what it is; a word does so itself."""
    if not column.right:
        return cell
    label, percent, _ = column.title.lower().partition(" %")
    return Cell(f"{label} {cell.text}{percent}", cell.tone, cell.whole)
