"""Prints a comparison."""

from rich.console import Console
from rich.text import Text

from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.report import print_rows, print_title
from zelda_ci.reporter.terminal.style import TITLE
from zelda_ci.reporter.terminal.table import print_table
from zelda_ci.reporter.view.comparison import ComparisonView, SuiteComparisonView


def print_comparison(console: Console, view: ComparisonView) -> None:
    """Print every suite, the overall numbers, how sure all of it is, and the gate."""
    page = Page(console)
    page.line(Text())
    verdict = page.ink.cell(view.verdict)
    verdict.stylize(TITLE)
    page.line(Text(" ") + verdict)
    print_rows(page, view.sides, indent=4)
    for suite in view.suites:
        page.blank()
        _suite(page, suite)
    if view.overall.lines:
        print_title(page, "All suites")
        print_table(page, view.overall, indent=4)
    for section in (view.certainty, view.gate):
        print_title(page, section.title)
        print_rows(page, section.rows, indent=4)
    page.show()


def _suite(page: Page, suite: SuiteComparisonView) -> None:
    label = Text(" ") + page.ink.write(suite.name, TITLE) + "  "
    page.beside(label, (suite.verdict, *suite.facts))
    for remark in suite.remarks:
        page.beside(Text("    "), (remark,))
    for table in (suite.measures, suite.criteria):
        if table.lines:
            page.blank()
            print_table(page, table, indent=4)
    if suite.tools:
        print_title(page, "Tools")
        print_rows(page, suite.tools, indent=4)
