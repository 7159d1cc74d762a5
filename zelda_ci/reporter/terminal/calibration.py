"""Prints a calibration."""

from rich.console import Console
from rich.text import Text

from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.style import TITLE
from zelda_ci.reporter.terminal.table import print_table
from zelda_ci.reporter.view.calibration import CalibrationView


def print_calibration(console: Console, view: CalibrationView) -> None:
    """Print both tables and the remarks."""
    page = Page(console)
    page.line(Text())
    page.beside(Text(" ") + page.ink.write(view.suite, TITLE) + "  ", view.facts)
    for table in (view.criteria, view.measures):
        if table.lines:
            page.blank()
            print_table(page, table, indent=4)
    page.blank()
    for remark in view.remarks:
        page.beside(Text("    "), (remark,))
    page.show()
