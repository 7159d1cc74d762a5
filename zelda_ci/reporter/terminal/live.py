"""Progress on a terminal: one line for each run under way, redrawn in place."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import zip_longest
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from zelda_ci.events import BatchStarted, Event, RunFinished, Warned
from zelda_ci.reporter.activity import Activity, Board
from zelda_ci.reporter.terminal.announcements import announce
from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.style import DIM, LABEL, Ink
from zelda_ci.reporter.terminal.ticker import Ticker
from zelda_ci.reporter.view.escape import sentence
from zelda_ci.reporter.view.nouns import Cell, Tone

REDRAW_SECONDS = 0.125
SPINS_PER_SECOND = 10
COLUMNS = ("<10", ">5", ">9", ">9")
"""Phase, time, turns and cost keep their places, so that nothing dances."""


class LiveProgress:
    """A context manager that takes events.

    Events only change the board; a thread redraws it a few times a second, however many events arrive. The cursor stays
    visible, so that a Zelda that is killed leaves the terminal as it was.
    """

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._ink = Ink.of(console)
        self._clock = clock
        self._board = Board()
        self._lock = threading.Lock()
        self._live = Live(
            console=console,
            get_renderable=self._frame,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        self._console.show_cursor(show=True)
        self._stack.enter_context(Ticker(REDRAW_SECONDS, self._live.refresh))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, ValueError):
            self._stack.close()

    def __call__(self, event: Event) -> None:
        """Note the event; what shall stay on the screen is printed above the lines that move."""
        with self._lock:
            label = self._board.subject(event)
            self._board.take(event, self._clock())
            alone = self._board.planned == 1
        match event:
            # Of a single run the report follows at once.
            case RunFinished() if not alone:
                announce(Page(self._console), event, label)
            case BatchStarted() if event.isolation:
                page = Page(self._console)
                page.beside(Text("   "), (Cell(sentence(event.isolation), Tone.DIM),))
                page.show()
            case Warned():
                announce(Page(self._console), event, label)
            case _:
                pass

    def _frame(self) -> Text:
        with self._lock:
            return Text("\n").join(self._lines())

    def _lines(self) -> Iterator[Text]:
        """As many lines as the screen can hold, the rest counted: what scrolls away could not be redrawn."""
        now, board = self._clock(), self._board
        most = max(self._console.height - 3, 1)
        shown = list(board.running.values())[:most]
        width = max((len(activity.label) for activity in shown), default=0)
        for activity in shown:
            yield self._line(activity, now, min(width, self._console.width // 3))
        hidden = len(board.running) - len(shown)
        if board.planned > 1:
            more = f", {hidden} more under way" if hidden else ""
            yield self._fitted(Text("   ") + self._ink.write(board.progress() + more, DIM))

    def _line(self, activity: Activity, now: float, label_width: int) -> Text:
        frames = self._ink.spinner
        label = self._ink.write(activity.label)
        label.truncate(label_width, overflow="crop", pad=True)
        line = Text(" ") + self._ink.write(frames[int(now * SPINS_PER_SECOND) % len(frames)], LABEL) + " " + label
        for cell, column in zip_longest(activity.facts(now), COLUMNS):
            if cell is None:
                break
            text = self._ink.cell(Cell(f"{cell.text:{column or ''}}", cell.tone))
            if column and line.cell_len + 2 + text.cell_len >= self._console.width:
                break  # half a number misleads
            line = line + "  " + text
        return self._fitted(line)

    def _fitted(self, line: Text) -> Text:
        line.truncate(self._console.width - 1, overflow="crop")
        return line
