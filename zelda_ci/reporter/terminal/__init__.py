"""Everything that is shown on a terminal; with the commands, the only user of rich."""

from contextlib import AbstractContextManager
from typing import TextIO

from rich.console import Console

from zelda_ci.events import Emit
from zelda_ci.reporter.terminal.live import LiveProgress
from zelda_ci.reporter.terminal.plain import PlainProgress
from zelda_ci.reporter.terminal.report import print_report

__all__ = ["LiveProgress", "PlainProgress", "is_plain", "open_console", "print_report", "progress"]


def open_console(stream: TextIO) -> Console:
    """A console that takes outside text literally, and its colours and width from the terminal and NO_COLOR."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def is_plain(console: Console) -> bool:
    """Whether lines cannot be redrawn: a file, a pipe, a dumb terminal. FORCE_COLOR gives colours, not a cursor."""
    return not console.file.isatty() or console.is_dumb_terminal


def progress(console: Console, *, plain: bool) -> AbstractContextManager[Emit]:
    """The sink that shows events on the console while it is entered."""
    return PlainProgress(console) if plain else LiveProgress(console)
