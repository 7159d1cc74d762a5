"""Everything that is shown on a terminal; with the commands, the only user of rich."""

from contextlib import AbstractContextManager

from rich.console import Console

from zelda_ci.events import Emit
from zelda_ci.report.terminal.console import is_plain, open_console
from zelda_ci.report.terminal.pages import print_report
from zelda_ci.report.terminal.progress import LiveProgress, PlainProgress

__all__ = ["LiveProgress", "PlainProgress", "is_plain", "open_console", "print_report", "progress"]


def progress(console: Console, *, plain: bool) -> AbstractContextManager[Emit]:
    """The sink that shows events on the console while it is entered."""
    return PlainProgress(console) if plain else LiveProgress(console)
