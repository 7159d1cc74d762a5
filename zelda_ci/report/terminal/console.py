"""The terminal: its colours, its characters, and a clock that ticks while something runs."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.text import Text

from zelda_ci.domain.outcome import Outcome
from zelda_ci.report.model import Cell, Tone
from zelda_ci.report.text import inert

LABEL = "cyan"
TITLE = "bold"
DIM = "dim"

STYLES = {Tone.GOOD: "green", Tone.BAD: "red", Tone.WARN: "yellow", Tone.NEUTRAL: "", Tone.DIM: DIM}

BADGES = {
    Outcome.MEASURED: "bold black on white",
    Outcome.PASSED: "bold black on green",
    Outcome.FAILED: "bold white on red",
    Outcome.INCOMPLETE: "bold white on red",
    Outcome.BROKEN: "bold white on red",
    Outcome.INTERRUPTED: "bold black on yellow",
}

MARKS = {
    Outcome.MEASURED: "·",
    Outcome.PASSED: "✓",
    Outcome.FAILED: "✗",
    Outcome.INCOMPLETE: "?",
    Outcome.BROKEN: "✗",
    Outcome.INTERRUPTED: "!",
}

SEPARATOR = " · "
GUTTER = "│ "
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_SPINNER = "|/-\\"

# For terminals that know less than Unicode.
SPARE = str.maketrans({"✓": "+", "✗": "x", "·": "|", "│": "|", "…": "..."})


@dataclass(frozen=True)
class Style:
    """Writes for one console. What it writes is text only: neither markup nor emoji codes mean anything in it."""

    encoding: str

    @classmethod
    def of(cls, console: Console) -> "Style":
        """Styles for what the console's stream can encode."""
        return cls(console.encoding)

    @property
    def unicode(self) -> bool:
        """Whether every character can be shown."""
        return self.encoding.startswith("utf")

    @property
    def spinner(self) -> str:
        """Frames of a spinner, one character each."""
        return SPINNER if self.unicode else PLAIN_SPINNER

    def plain(self, text: str) -> str:
        """The text, with what the encoding lacks replaced, and what acts spelled out."""
        if not self.unicode:
            text = text.translate(SPARE).encode(self.encoding, "backslashreplace").decode(self.encoding)
        return inert(text)

    def write(self, text: str, style: str = "") -> Text:
        """The same in a style."""
        # As a span: a style of the whole Text would spread to whatever is appended later.
        return Text().append(self.plain(text), style)

    def cell(self, cell: Cell) -> Text:
        """A cell in the colour of its tone."""
        return self.write(cell.text, STYLES[cell.tone])

    def badge(self, outcome: Outcome, verdict: Cell) -> Text:
        """The verdict as a coloured plate."""
        return self.write(f" {verdict.text} ", BADGES[outcome])

    def mark(self, outcome: Outcome, verdict: Cell) -> Text:
        """The verdict as one character."""
        return self.write(MARKS[outcome], STYLES[verdict.tone])


def open_console(stream: TextIO) -> Console:
    """A console that takes outside text literally, and its colours and width from the terminal and NO_COLOR."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def is_plain(console: Console) -> bool:
    """Whether lines cannot be redrawn: a file, a pipe, a dumb terminal. FORCE_COLOR gives colours, not a cursor."""
    return not (console.is_terminal and console.file.isatty()) or console.is_dumb_terminal


class Ticker:
    """Calls `tick` every so many seconds while it is entered; a screen that has gone ends it quietly."""

    def __init__(self, seconds: float, tick: Callable[[], None]) -> None:
        self._seconds = seconds
        self._tick = tick
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="zelda-ticker", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError, ValueError):
            while not self._over.wait(self._seconds):
                self._tick()
