"""Prints the list of stored runs."""

from rich.console import Console
from rich.text import Text

from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.table import print_table, write_table
from zelda_ci.reporter.view.history import HistoryView


def print_history(console: Console, remarks: Console, view: HistoryView, *, one_line: bool) -> None:
    """Print the table, and on the other console what is to be said about it."""
    if view.table.lines and one_line and not console.color_system:
        write_table(console, view.table)
    elif view.table.lines:
        page = Page(console)
        print_table(page, view.table, one_line=one_line)
        page.show()
    if view.remarks:
        page = Page(remarks)
        if view.table.lines:
            page.line(Text())
        for remark in view.remarks:
            page.beside(Text(), (remark,))
        page.show()
