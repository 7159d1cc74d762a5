"""Progress: one line for each run under way, redrawn on a terminal and printed once in a log."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from types import TracebackType
from typing import Any, ClassVar, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from zelda_ci.domain import numbers
from zelda_ci.domain.arms import MoreTrials, SuiteArms
from zelda_ci.domain.session import AssistantSaid, Ended, Retried, SessionRecord, ToolCalled, ToolReturned
from zelda_ci.domain.trials import DoneReason
from zelda_ci.events import (
    BatchStarted,
    Checking,
    Event,
    Phase,
    PhaseStarted,
    RoundStarted,
    RunFinished,
    RunStarted,
    SessionProgressed,
    Warned,
)
from zelda_ci.report.builders.arms import more_trials, suite_done
from zelda_ci.report.model import Cell, Tone
from zelda_ci.report.terminal.console import DIM, LABEL, Style, Ticker
from zelda_ci.report.terminal.layout import Page
from zelda_ci.report.terminal.suites import FinishedSuites, announce, beginning, show_finished
from zelda_ci.report.text import clock, in_workspace, sentence, visible

# Arguments that say best what a tool call is about, the best first.
TELLING = ("file_path", "command", "pattern", "skill", "subagent_type", "url", "query", "path", "description")


# Stands where the label of a run does.
CHECK = "check"


def rough_duration(seconds: float) -> str:
    """`40 s`, `7 min` or `2h 05m`: an estimate is no finer than it is sure."""
    if (tens := max(10, 10 * round(seconds / 10))) < numbers.MINUTE:
        return f"{tens} s"
    minutes = round(seconds / numbers.MINUTE)
    return f"{minutes} min" if minutes < numbers.MINUTE else numbers.duration(numbers.MINUTE * minutes)


@dataclass
class Activity:
    """One run under way."""

    label: str
    since: float
    expected: float | None = None
    phase: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    doing: str = ""
    open_calls: dict[str, str] = field(default_factory=dict)

    def record(self, record: SessionRecord) -> None:
        """Note what the session is at: the last tool that has not returned, or the model."""
        match record:
            case ToolCalled():
                self.open_calls[record.id] = _call(record)
            case ToolReturned():
                self.open_calls.pop(record.id, None)
            case _:
                pass
        self.doing = next(reversed(self.open_calls.values()), "") or _doing(record) or self.doing

    def seconds_left(self, now: float) -> float | None:
        """What is left of what was expected; nothing where nothing was."""
        return None if self.expected is None else max(self.expected - (now - self.since), 0.0)

    def facts(self, now: float) -> tuple[Cell, ...]:
        """Phase, time so far, and in the session its turns, its cost and what it is at."""
        return tuple(self._facts(now))

    def _facts(self, now: float) -> Iterator[Cell]:
        yield Cell(self.phase or "starting")
        yield Cell(clock(now - self.since), Tone.DIM)
        if self.turns:
            yield Cell(numbers.format_count(self.turns, "turn"), Tone.DIM)
            yield Cell(numbers.money(self.cost_usd), Tone.DIM)
        if self.doing and self.phase == Phase.SESSION:
            yield Cell(self.doing, Tone.DIM)


@dataclass
class ProgressState:
    """All runs of the invocation."""

    planned: int = 0
    jobs: int = 1
    cost_usd: float = 0.0
    finished: int = 0
    running: dict[str, Activity] = field(default_factory=dict)
    waiting: list[float | None] = field(default_factory=list)
    """What runs that have not begun are expected to take, in seconds."""
    expected: dict[str, float | None] = field(default_factory=dict)
    """The same by label."""

    def record(self, event: Event, now: float) -> None:
        """Note an event; `now` is seconds of any steady clock."""
        match event:
            case BatchStarted() | RoundStarted():
                self._expect(event)
            case Checking():
                self._check(event.about, now)
            case RunStarted():
                expected = self.expected.get(event.label)
                if expected in self.waiting:
                    self.waiting.remove(expected)
                self.running[event.run_id] = Activity(visible(event.label, 60), now, expected)
            case PhaseStarted():
                self._of(event.run_id, now).phase = str(event.phase)
            case SessionProgressed():
                activity = self._of(event.run_id, now)
                self.cost_usd += event.cost_usd - activity.cost_usd
                activity.turns, activity.cost_usd = event.turns, event.cost_usd
                activity.record(event.record)
            case RunFinished():
                self.finished += 1
                self.cost_usd += event.result.judge.cost_usd if event.result.judge else 0.0
                self.running.pop(event.result.run_id, None)
            case _:
                pass

    def _expect(self, event: BatchStarted | RoundStarted) -> None:
        if isinstance(event, BatchStarted):
            self.jobs = event.jobs
        self.planned += len(event.runs)
        expected = dict(zip(event.runs, event.expected_seconds, strict=False))
        self.expected |= expected
        self.waiting += expected.values()

    def _check(self, about: str | None, now: float) -> None:
        self.running.pop(CHECK, None)
        if about:
            self.running[CHECK] = Activity(CHECK, now, phase=visible(about))

    def label(self, run_id: str) -> str:
        """The run's label, or its id where it is not known."""
        activity = self.running.get(run_id)
        return activity.label if activity else visible(run_id)

    def subject(self, event: Event) -> str:
        """The label of the run that an event is about; empty where it is about none."""
        match event:
            case RunFinished():
                return self.label(event.result.run_id)
            case Warned(run_id=str(run_id)):
                return self.label(run_id)
            case _:
                return ""

    def plan(self) -> str:
        """Like `8 runs, 2 at a time`."""
        side_by_side = f", {self.jobs} at a time" if min(self.jobs, self.planned) > 1 else ""
        left = self.seconds_left(0.0)
        estimate = f", about {rough_duration(left)}" if left else ""
        return numbers.format_count(self.planned, "run") + side_by_side + estimate

    def progress(self, now: float = 0.0) -> str:
        """Like `3 of 8 done, $0.1234 so far, about 4 min left`."""
        left = self.seconds_left(now)
        estimate = f", about {rough_duration(left)} left" if left else ""
        return f"{self.finished} of {self.planned} done, {numbers.money(self.cost_usd)} so far{estimate}"

    def seconds_left(self, now: float) -> float | None:
        """Until the last run is over, as stored runs of the same suites lead to expect; nothing where one has none."""
        under_way = [activity.seconds_left(now) for activity in self.running.values()]
        known = [seconds for seconds in (*under_way, *self.waiting) if seconds is not None]
        if not known or len(known) < len(under_way) + len(self.waiting):
            return None
        slots = [*known[: len(under_way)], *[0.0] * (self.jobs - len(under_way))]
        for seconds in known[len(under_way) :]:
            slots.sort()
            slots[0] += seconds
        return max(slots)

    def _of(self, run_id: str, now: float) -> Activity:
        return self.running.setdefault(run_id, Activity(visible(run_id), now))


def _doing(record: SessionRecord) -> str:
    match record:
        case Retried():
            after = f"HTTP {record.status}" if record.status else "a broken connection"
            return f"trying again in {numbers.duration(record.delay_seconds)} after {after}"
        case AssistantSaid() if not record.thinking:
            return "writing"
        case ToolReturned() | AssistantSaid():
            return "thinking"
        case Ended():
            return "closing"
        case _:
            return ""


def _call(record: ToolCalled) -> str:
    values = (record.input.get(key) for key in TELLING)
    argument = next((value for value in values if value and isinstance(value, str)), "")
    name = visible(record.name, 60)
    return f"{name} {sentence(in_workspace(argument), 60)}" if argument else name


MAX_STEP_LENGTH = 200


def step(record: SessionRecord) -> str:
    """What a session did, as a line; empty for what is no step."""
    match record:
        case ToolCalled():
            return _call(record)
        case ToolReturned(is_error=True):
            return f"failed: {sentence(record.output, MAX_STEP_LENGTH)}"
        case AssistantSaid(thinking=False):
            return sentence(record.text, MAX_STEP_LENGTH)
        case _:
            return _doing(record) if isinstance(record, Retried) else ""


# Columns of a log: searching it line by line must find everything that belongs together.
UNBROKEN = 100_000


class Progress(ABC):
    """A context manager that takes events and prints what shall stay.

    Args:
        console: Where.
        clock: Seconds of a steady clock.
        suites: Prints suites as they finish; without it, each run is announced in a line.
        steps: Also print what sessions do, a line each.
    """

    is_log: ClassVar[bool] = False
    """Whether phases are printed, too, since nothing can be redrawn."""

    def __init__(
        self,
        console: Console,
        *,
        clock: Callable[[], float] = time.monotonic,
        suites: FinishedSuites | None = None,
        steps: bool = False,
    ) -> None:
        self._console, self._clock, self._suites, self._steps = console, clock, suites, steps
        self._state = ProgressState()
        self._lock = threading.Lock()
        self._stack = ExitStack()

    @abstractmethod
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, ValueError):
            self._stack.close()

    def __call__(self, event: Event) -> None:
        """Note the event, and print what is worth a line."""
        with self._lock:
            label = self._state.subject(event)
            self._state.record(event, self._clock())
        self.show(event, label)

    def show(self, event: Event, label: str) -> None:
        """Print what is worth a line; `label` is that of the event's run."""
        match event:
            case RunFinished() if self._suites:
                show_finished(self._suites, self._console, event, label)
            # Of a single run the report follows at once.
            case RunFinished() if not self.is_log and self._state.planned == 1:
                pass
            case RunFinished() | Warned():
                announce(Page(self._console, width=self._width), event, label)
            case BatchStarted():
                for line in beginning(event):
                    self.say("", line)
            case MoreTrials():
                self.say(visible(event.suite, 60), Cell(more_trials(event)))
            case SuiteArms() if self._suites:
                self._suites.done(self._console, event)
            case SessionProgressed() if self._steps and (words := step(event.record)):
                self.say(self._state.label(event.run_id), Cell(words, Tone.DIM))
            case _:
                pass

    def say(self, label: str, *cells: Cell) -> None:
        """Print a line about a run or a suite, or without a label about all."""
        page = Page(self._console, width=self._width)
        page.beside(Text("   ") + page.style.write(f"{label}  " if label else "", LABEL), cells)
        page.show()

    @property
    def _width(self) -> int | None:
        return UNBROKEN if self.is_log else None


REDRAW_SECONDS = 0.125
SPINS_PER_SECOND = 10
# Phase, time, turns and cost keep their places, so that nothing dances.
COLUMNS = ("<10", ">5", ">9", ">9")


class LiveProgress(Progress):
    """Redraws a line per run under way below what is printed.

    Events only change the state; a thread redraws it a few times a second, however many events arrive. The cursor stays
    visible, so that a Zelda that is killed leaves the terminal as it was.
    """

    def __enter__(self) -> Self:
        live = Live(
            console=self._console,
            get_renderable=self._frame,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._style = Style.of(self._console)
        self._stack.enter_context(live)
        self._console.show_cursor(show=True)
        self._stack.enter_context(Ticker(REDRAW_SECONDS, live.refresh))
        return self

    def _frame(self) -> Text:
        with self._lock:
            return Text("\n").join(self._lines())

    def _lines(self) -> Iterator[Text]:
        """As many lines as the screen can hold, the rest counted: what scrolls away could not be redrawn."""
        now, state = self._clock(), self._state
        most = max(self._console.height - 3, 1)
        activities = list(state.running.values())[:most]
        width = max((len(activity.label) for activity in activities), default=0)
        for activity in activities:
            yield self._line(activity, now, min(width, self._console.width // 3))
        hidden = len(state.running) - len(activities)
        if state.planned > 1 or state.seconds_left(now):
            more = f", {hidden} more under way" if hidden else ""
            yield self._fitted(Text("   ") + self._style.write(state.progress(now) + more, DIM))

    def _line(self, activity: Activity, now: float, label_width: int) -> Text:
        frames = self._style.spinner
        label = self._style.write(activity.label)
        label.truncate(label_width, overflow="crop", pad=True)
        line = Text(" ") + self._style.write(frames[int(now * SPINS_PER_SECOND) % len(frames)], LABEL) + " " + label
        for cell, column in zip_longest(activity.facts(now), COLUMNS):
            if cell is None:
                break
            text = self._style.cell(Cell(f"{cell.text:{column or ''}}", cell.tone))
            if column and line.cell_len + 2 + text.cell_len >= self._console.width:
                break  # half a number misleads
            line = line + "  " + text
        return self._fitted(line)

    def _fitted(self, line: Text) -> Text:
        line.truncate(self._console.width - 1, overflow="crop")
        return line


HEARTBEAT_SECONDS = 30.0


class PlainProgress(Progress):
    """Prints a log: every line is flushed, never redrawn, and begins with whom it is about."""

    is_log = True

    def __init__(self, console: Console, *, heartbeat_seconds: float = HEARTBEAT_SECONDS, **options: Any) -> None:
        super().__init__(console, **options)
        self._heartbeat_seconds = heartbeat_seconds
        self._heard: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._stack.enter_context(Ticker(self._heartbeat_seconds, self._beat))
        return self

    def show(self, event: Event, label: str) -> None:
        match event:
            case Checking(about=str(about)):
                self.say(CHECK, Cell(sentence(about)))
            case PhaseStarted():
                self._heard[event.run_id] = self._clock()
                self.say(self._state.label(event.run_id), Cell(str(event.phase)))
            case SuiteArms() if not self._suites:
                self.say(visible(event.suite, 60), Cell(suite_done(event)))
            case BatchStarted():
                self.say("", Cell(self._state.plan()))
                super().show(event, label)
            case _:
                super().show(event, label)

    def _beat(self) -> None:
        """Say what those do of whom nothing was heard for long; many CI services end a job that keeps silent."""
        with self._lock:
            now = self._clock()
            for run_id, activity in self._state.running.items():
                if now - self._heard.get(run_id, activity.since) >= self._heartbeat_seconds:
                    self._heard[run_id] = now
                    self.say(activity.label, *activity.facts(now))


# Ways in which a suite ends of which its own rows say enough.
USUAL_ENDS = {DoneReason.AS_EXPECTED, DoneReason.REGRESSED, DoneReason.PLAN_ENDED, DoneReason.NOT_PROVEN}


class QuietProgress(Progress):
    """Prints only what failed and what somebody must know."""

    def __enter__(self) -> Self:
        return self

    def show(self, event: Event, label: str) -> None:
        match event:
            case RunFinished() if self._suites:
                self._suites.take(self._console, event.result)
            case SuiteArms() if self._suites and event.reason not in USUAL_ENDS:
                self._suites.done(self._console, event)
            case Warned():
                super().show(event, label)
            case _:
                pass
