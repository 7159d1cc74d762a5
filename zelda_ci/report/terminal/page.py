"""Lines, rows and tables in as much room as the terminal has, in its colours and characters."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from zelda_ci.domain.outcome import Outcome
from zelda_ci.report.model import Cell, Row, Table, TableRow, Tone
from zelda_ci.report.text import one_line
from zelda_ci.report.words import OUTCOMES

LABEL, TITLE, DIM = "cyan", "bold", "dim"
STYLES = {Tone.GOOD: "green", Tone.BAD: "red", Tone.WARN: "yellow", Tone.NEUTRAL: "", Tone.DIM: DIM}
# Plate and character of an outcome.
MARKS = {
    Outcome.MEASURED: ("bold black on white", "·"),
    Outcome.PASSED: ("bold black on green", "✓"),
    Outcome.FAILED: ("bold white on red", "✗"),
    Outcome.INCOMPLETE: ("bold white on red", "?"),
    Outcome.BROKEN: ("bold white on red", "✗"),
    Outcome.INTERRUPTED: ("bold black on yellow", "!"),
}
SEPARATOR, GUTTER, GAP = " · ", "│ ", "  "
# For terminals that know less than Unicode.
SPARE = str.maketrans({"✓": "+", "✗": "x", "·": "|", "│": "|", "…": "..."})

# Columns that text gets even where the terminal has fewer.
NARROWEST = 24
# Indent of what belongs to a label that stands alone, and of what belongs to the line above.
ALONE, STEP = 8, 2


def open_console(stream: TextIO) -> Console:
    """A console that takes outside text literally, and its colours and width from the terminal and NO_COLOR."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def is_plain(console: Console) -> bool:
    """Whether lines cannot be redrawn: a file, a pipe, a dumb terminal. FORCE_COLOR gives colours, not a cursor."""
    return not (console.is_terminal and console.file.isatty()) or console.is_dumb_terminal


class Page:
    """Collects lines and prints them at once, so that no other output comes between them.

    What is written is text only: neither markup nor emoji codes mean anything in it, and nothing in it acts.
    """

    def __init__(self, console: Console, *, width: int | None = None) -> None:
        self.console = console
        self.width = width or console.width
        self.unicode = console.encoding.startswith("utf")
        self.lines: list[Text] = []

    def write(self, text: str, style: str = "") -> Text:
        """The text in a style, with what the encoding lacks replaced, and what acts spelled out."""
        if not self.unicode:
            encoding = self.console.encoding
            text = text.translate(SPARE).encode(encoding, "backslashreplace").decode(encoding)
        # As a span: a style of the whole Text would spread to whatever is appended later.
        return Text().append(one_line(text), style)

    def cell(self, cell: Cell) -> Text:
        """A cell in the colour of its tone."""
        return self.write(cell.text, STYLES[cell.tone])

    def badge(self, outcome: Outcome) -> Text:
        """The verdict as a coloured plate."""
        return self.write(f" {OUTCOMES[outcome].badge} ", MARKS[outcome][0])

    def mark(self, outcome: Outcome) -> Text:
        """The verdict as one character."""
        return self.write(MARKS[outcome][1], STYLES[OUTCOMES[outcome].tone])

    def show(self) -> None:
        """Print what was collected, each line as it is: the terminal itself wraps what is longer than it is wide."""
        if self.lines and self.console.is_terminal:
            self.console.print(Text("\n").join(self.lines), soft_wrap=True, markup=False, emoji=False, highlight=False)
        else:
            # At once, so that a list of ten thousand runs takes no time to lay out.
            self.console.file.write("".join(f"{line.plain}\n" for line in self.lines))
            self.console.file.flush()

    def blank(self) -> None:
        """An empty line, never two in a row."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def line(self, text: Text | str = "") -> None:
        """A line of its own, without blanks at its end, and inert in the log of a CI service."""
        text = Text(text) if isinstance(text, str) else text.copy()
        text.rstrip()
        start = len(text.plain) - len(text.plain.lstrip())
        if text.plain.startswith("::", start):
            text = Text.assemble(text[:start], ": :", text[start + 2 :])
        self.lines.append(text)

    def title(self, title: str) -> None:
        """A title, with room above."""
        self.blank()
        self.line(Text("  ") + self.write(title, TITLE))

    def beside(self, label: Text | str, cells: Sequence[Cell], *, lines: Iterable[Cell] = ()) -> None:
        """Cells to the right of a label, then lines below the cells; a label that leaves no room stands alone."""
        label = Text(label) if isinstance(label, str) else label
        if label.cell_len > ALONE and self.width - label.cell_len < NARROWEST:
            for number, text in enumerate(self._wrapped(label, self._room(ALONE))):
                self.line(Text(" " * ALONE if number else "") + text)
            label = Text(" " * ALONE)
        indent = label.cell_len
        for text in [text for group in (cells, *((line,) for line in lines)) for text in self._flow(group, indent)] or [
            Text()
        ]:
            self.line(label + text)
            label = Text(" " * indent)

    def rows(self, rows: Iterable[Row], *, indent: int) -> None:
        """Rows whose labels are aligned."""
        rows = tuple(rows)
        width = max((cell_len(row.label) for row in rows), default=0)
        for row in rows:
            label = self.write(set_cell_size(row.label, width), LABEL)
            self.beside(Text(" " * indent) + label + GAP, row.cells, lines=row.lines)

    def table(self, table: Table, *, indent: int = 0, unbroken: bool = False) -> None:
        """A table, each row on one line if there is room for all of them or programs read it; else flowing."""
        titles = [Cell(column.title, Tone.DIM) for column in table.columns]
        texts = [[*map(self.cell, cells)] for cells in (titles, *(row.cells for row in table.lines))]
        # A column in which nothing stands takes no room.
        widths = {
            number: max(text.cell_len for text in column)
            for number, column in enumerate(zip(*texts, strict=True))
            if any(column[1:])
        }
        if unbroken or indent + sum(widths.values()) + len(GAP) * (len(widths) - 1) <= self.width:
            for line, row in zip(texts, (None, *table.lines), strict=True):
                for number, width in widths.items():
                    line[number].align("right" if table.columns[number].right else "left", width)
                self.line(Text(" " * indent) + Text(GAP).join(line[number] for number in widths))
                self.notes(row.notes if row else (), indent=indent + STEP)
        else:
            for row in table.lines:
                self._flowing(row, table, indent)
        self.notes(table.remarks, indent=indent)

    def _flowing(self, row: TableRow, table: Table, indent: int) -> None:
        *marks, name = row.cells[: table.leading + 1]
        self.beside(Text(" " * indent) + Text().join(self.cell(mark) + GAP for mark in marks), (name,))
        facts = []
        for column, cell in [*zip(table.columns, row.cells, strict=True)][table.leading + 1 :]:
            # A number says what it is; a word does so itself.
            title, percent, _ = column.title.lower().partition(" %") if column.right else ("", "", "")
            if cell.text not in {"", "-"}:
                facts.append(Cell(f"{title} {cell.text}{percent}".lstrip(), cell.tone, cell.whole))
        self.beside(" " * (indent + STEP), facts)
        self.notes(row.notes, indent=indent + STEP)

    def notes(self, cells: Iterable[Cell], *, indent: int) -> None:
        """Each cell from a line of its own on."""
        for cell in cells:
            self.beside(" " * indent, (cell,))

    def quote(self, lines: Iterable[str], *, indent: int) -> None:
        """Output of a program, behind a gutter that it cannot cross."""
        gutter = Text(" " * indent) + self.write(GUTTER, DIM)
        for line in lines:
            for text in self._wrapped(self.write(line), self._room(gutter.cell_len)):
                self.line(gutter + text)

    def _room(self, indent: int) -> int:
        return max(self.width - indent, NARROWEST)

    def _flow(self, cells: Sequence[Cell], indent: int) -> Iterator[Text]:
        """Lines of cells; a cell goes to the next line whole, and is broken only where a line is too short for it."""
        room, separator, line = self._room(indent), self.write(SEPARATOR, DIM), Text()
        for cell in cells:
            for text in [self.cell(cell)] if cell.whole else self._wrapped(self.cell(cell), room):
                if line and line.cell_len + separator.cell_len + text.cell_len <= room:
                    line = line + separator + text
                    continue
                if line:
                    yield line
                line = text
        if line:
            yield line

    def _wrapped(self, text: Text, width: int) -> list[Text]:
        return [*text.wrap(self.console, width, overflow="fold")] if text.cell_len > width else [text]


def print_lines(console: Console, lines: Iterable[Cell]) -> None:
    """Print each line as soon as it is known: a transcript may have a million."""
    for cell in lines:
        page = Page(console)
        page.line(page.cell(cell))
        page.show()
