"""Everything that is shown on a terminal; with the commands, the only user of rich."""

from contextlib import AbstractContextManager

from rich.console import Console

from zelda_ci.events import Emit
from zelda_ci.report.terminal.console import is_plain, open_console
from zelda_ci.report.terminal.pages import print_report
from zelda_ci.report.terminal.progress import LiveProgress, PlainProgress, QuietProgress
from zelda_ci.report.terminal.suites import FinishedSuites

__all__ = ["LiveProgress", "PlainProgress", "is_plain", "open_console", "print_report", "progress"]


def progress(
    console: Console,
    *,
    plain: bool = False,
    suites: FinishedSuites | None = None,
    quiet: bool = False,
    steps: bool = False,
) -> AbstractContextManager[Emit]:
    """The sink that shows events on the console while it is entered.

    Args:
        console: Where.
        plain: Whether nothing is redrawn, also where it could be.
        suites: Prints suites as soon as they are over; without it, each run is announced in a line.
        quiet: Show no progress: only suites and warnings.
        steps: Also show what sessions do, a line each.
    """
    sink = QuietProgress if quiet else PlainProgress if plain or is_plain(console) else LiveProgress
    return sink(console, suites=suites, steps=steps)
