"""Lines of a given width: facts flow, sentences wrap, paths stay whole, and nothing starts where a label belongs."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from zelda_ci.reporter.terminal.style import DIM, GUTTER, LABEL, SEPARATOR, Ink
from zelda_ci.reporter.view.nouns import Cell, Row

NARROWEST = 24
"""Columns that text gets even where the terminal has fewer."""


ALONE = 8
"""Indent of what belongs to a label that stands alone."""


class Page:
    """Collects lines and prints them at once, so that no other output comes between them."""

    def __init__(self, console: Console, *, width: int | None = None) -> None:
        self.console = console
        self.width = width or console.width
        self.ink = Ink.of(console)
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
        label = self.ink.write(row.label.ljust(label_width), LABEL)
        self.beside(Text(" " * indent) + label + "  ", row.cells, lines=row.lines)

    def quote(self, lines: Iterable[str], *, indent: int) -> None:
        """Output of a program, behind a gutter that it cannot cross."""
        gutter = Text(" " * indent) + self.ink.write(GUTTER, DIM)
        for line in lines:
            for text in self._wrapped(self.ink.write(line), self._room(gutter.cell_len)):
                self.line(gutter + text)

    def _room(self, indent: int) -> int:
        return max(self.width - indent, NARROWEST)

    def _flow(self, cells: Sequence[Cell], indent: int) -> Iterator[Text]:
        """Lines of cells; a cell goes to the next line whole, and is broken only where a line is too short for it."""
        room, separator = self._room(indent), self.ink.write(SEPARATOR, DIM)
        line = Text()
        for cell in cells:
            for text in [self.ink.cell(cell)] if cell.whole else self._wrapped(self.ink.cell(cell), room):
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
