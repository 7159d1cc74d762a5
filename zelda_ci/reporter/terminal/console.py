"""The console that everything is printed on."""

from typing import TextIO

from rich.console import Console


def open_console(stream: TextIO) -> Console:
    """A console that takes outside text literally, and its colours and width from the terminal and NO_COLOR."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def is_plain(console: Console) -> bool:
    """Whether lines cannot be redrawn: a file, a pipe, a dumb terminal. FORCE_COLOR gives colours, not a cursor."""
    return not (console.is_terminal and console.file.isatty()) or console.is_dumb_terminal
