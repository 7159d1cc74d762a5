"""Progress for logs: a line at each phase and each finished run, and a sign of life in between."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from zelda_ci.events import BatchStarted, Event, PhaseStarted, RunFinished, Warned
from zelda_ci.reporter.activity import Board
from zelda_ci.reporter.terminal.announcements import announce
from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.style import LABEL
from zelda_ci.reporter.terminal.ticker import Ticker
from zelda_ci.reporter.view.escape import sentence
from zelda_ci.reporter.view.nouns import Cell, Tone

HEARTBEAT_SECONDS = 30.0
UNBROKEN = 100_000
"""Columns of a log: searching it line by line must find everything that belongs together."""


class PlainProgress:
    """A context manager that takes events. Every line is flushed, never redrawn, and begins with whom it is about."""

    def __init__(
        self,
        console: Console,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._clock = clock
        self._board = Board()
        self._lock = threading.Lock()
        self._heard: dict[str, float] = {}
        self._heartbeat_seconds = heartbeat_seconds
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(Ticker(self._heartbeat_seconds, self._beat))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __call__(self, event: Event) -> None:
        """Note the event and print what is worth a line."""
        with self._lock:
            now, label = self._clock(), self._board.subject(event)
            self._board.take(event, now)
            match event:
                case BatchStarted():
                    self._say("", Cell(self._board.plan()))
                    if event.isolation:
                        self._say("", Cell(sentence(event.isolation), Tone.DIM))
                case PhaseStarted():
                    self._heard[event.run_id] = now
                    self._say(self._board.label(event.run_id), Cell(str(event.phase)))
                case RunFinished() | Warned():
                    announce(self._page(), event, label)
                case _:
                    pass

    def _beat(self) -> None:
        """Say what those do of whom nothing was heard for long; many CI services end a job that keeps silent."""
        with self._lock:
            now = self._clock()
            for run_id, activity in self._board.running.items():
                if now - self._heard.get(run_id, activity.since) >= self._heartbeat_seconds:
                    self._heard[run_id] = now
                    self._say(activity.label, *activity.facts(now))

    def _say(self, label: str, *cells: Cell) -> None:
        page = self._page()
        page.beside(Text("   ") + page.ink.write(f"{label}  " if label else "", LABEL), cells)
        page.show()

    def _page(self) -> Page:
        return Page(self._console, width=UNBROKEN)
