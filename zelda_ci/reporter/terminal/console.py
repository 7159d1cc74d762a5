"""The console that everything is printed on."""

import os
from contextlib import suppress
from typing import TextIO

from rich.console import Console


class PatientConsole(Console):
    """A console that falls silent once its reader has gone: sessions that are paid for go on without an audience."""

    def on_broken_pipe(self) -> None:
        """Print nothing more. rich would end the process here."""
        self.quiet = True
        # What is still buffered must go somewhere, or flushing it would fail once more when Python ends.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def open_console(stream: TextIO) -> Console:
    """A console that takes outside text literally, and its colours and width from the terminal and NO_COLOR."""
    return PatientConsole(file=stream, markup=False, emoji=False, highlight=False)


def is_plain(console: Console) -> bool:
    """Whether lines cannot be redrawn: a file, a pipe, a dumb terminal. FORCE_COLOR gives colours, not a cursor."""
    return not (console.is_terminal and console.file.isatty()) or console.is_dumb_terminal
