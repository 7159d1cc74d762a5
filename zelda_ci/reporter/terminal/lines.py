"""Prints finished lines as they come, however many."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.view.nouns import Cell


def print_lines(console: Console, lines: Iterable[Cell]) -> None:
    """Print each line as it is: a terminal wraps what is longer than it is wide."""
    for cell in lines:
        page = Page(console)
        page.line(page.ink.cell(cell) if cell.text else Text())
        if console.color_system:
            page.show()
        else:
            # A transcript may have a million lines, and laying them out takes long.
            console.file.write(page.lines[0].plain + "\n")
    console.file.flush()
