"""Progress: one line for each run under way, redrawn on a terminal and printed once in a log."""

import math
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import zip_longest
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from zelda_ci import events
from zelda_ci.domain import numbers
from zelda_ci.domain.attribution import Attribution
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import AssistantSaid, Ended, Retried, SessionRecord, ToolCalled, ToolReturned
from zelda_ci.domain.trials import DoneReason, MoreTrials, Side, SuiteArms, trials_alone
from zelda_ci.report.builders.run import run_facts, run_problem
from zelda_ci.report.builders.steering import round_words
from zelda_ci.report.builders.summary import FilesOf, by_name, forecast_lines, more_trials, suite_done, suite_facts
from zelda_ci.report.model import NO_FILES, Cell, Detail, Tone
from zelda_ci.report.terminal.pages import DIM, LABEL, STYLES, Page, is_plain, print_head, print_suite
from zelda_ci.report.text import clock, in_workspace, sentence, visible

# Arguments that say best what a tool call is about, the best first.
TELLING = ("file_path", "command", "pattern", "skill", "subagent_type", "url", "query", "path", "description")
MAX_CALL_LENGTH, MAX_STEP_LENGTH = 120, 200
# Stands where the label of a run does.
CHECK = "check"


def rough_duration(seconds: float) -> str:
    """`40 s`, `7 min` or `2h 05m`: an estimate is no finer than it is sure."""
    if (tens := max(10, 10 * round(seconds / 10))) < numbers.MINUTE:
        return f"{tens} s"
    minutes = round(seconds / numbers.MINUTE)
    return f"{minutes} min" if minutes < numbers.MINUTE else numbers.duration(numbers.MINUTE * minutes)


def _step(record: SessionRecord) -> str:
    """What a session did, as a line; empty for what is no step."""
    match record:
        case ToolCalled():
            values = (record.input.get(key) for key in TELLING)
            argument = next((value for value in values if value and isinstance(value, str)), "")
            return sentence(f"{record.name} {in_workspace(argument)}", MAX_CALL_LENGTH)
        case ToolReturned(is_error=True):
            return f"failed: {sentence(record.output, MAX_STEP_LENGTH)}"
        case AssistantSaid(thinking=False):
            return sentence(record.text, MAX_STEP_LENGTH)
        case Retried():
            after = f"HTTP {record.status}" if record.status else "a broken connection"
            return f"trying again in {numbers.duration(record.delay_seconds)} after {after}"
        case _:
            return ""


@dataclass
class Activity:
    """One run under way."""

    label: str
    since: float
    expected: float = math.inf
    """Seconds that it takes in all, as far as stored runs know."""
    phase: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    doing: str = ""
    open_calls: dict[str, str] = field(default_factory=dict)

    def record(self, record: SessionRecord) -> None:
        """Note what the session is at: the last tool that has not returned, or the model."""
        match record:
            case ToolCalled():
                self.open_calls[record.id] = _step(record)
            case ToolReturned():
                self.open_calls.pop(record.id, None)
                self.doing = "thinking"
            case Retried():
                self.doing = _step(record)
            case AssistantSaid():
                self.doing = "thinking" if record.thinking else "writing"
            case Ended():
                self.doing = "closing"
            case _:
                pass

    def facts(self, now: float) -> tuple[Cell, ...]:
        """Phase, time so far, and in the session its turns, its cost and what it is at."""
        facts = [clock(now - self.since)]
        if self.turns:
            facts += [numbers.format_count(self.turns, "turn"), numbers.money(self.cost_usd)]
        if self.phase == events.Phase.SESSION:
            facts += filter(None, [next(reversed(self.open_calls.values()), self.doing)])
        return (Cell(self.phase or "starting"), *(Cell(fact, Tone.DIM) for fact in facts))


@dataclass
class ProgressState:
    """All runs of the invocation."""

    planned: int = 0
    jobs: int = 1
    cost_usd: float = 0.0
    finished: int = 0
    running: dict[str, Activity] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)
    """Label → expected seconds of a run that has not begun."""

    def record(self, event: events.Event, now: float) -> None:
        """Note an event; `now` is seconds of any steady clock."""
        match event:
            case events.RunsPlanned():
                self.jobs = event.jobs
                self.planned += len(event.runs)
                self.waiting |= {label: math.inf if time is None else time for label, time in event.runs.items()}
            case events.Checking():
                self.running.pop(CHECK, None)
                if event.about:
                    self.running[CHECK] = Activity(CHECK, now, phase=event.about)
            case events.RunStarted():
                self.running[event.run_id] = Activity(event.label, now, self.waiting.pop(event.label, math.inf))
            case events.PhaseStarted() | events.SessionProgressed():
                activity = self.running.setdefault(event.run_id, Activity(event.run_id, now))
                if isinstance(event, events.PhaseStarted):
                    activity.phase = str(event.phase)
                else:
                    self.cost_usd += event.cost_usd - activity.cost_usd
                    activity.turns, activity.cost_usd = event.turns, event.cost_usd
                    activity.record(event.record)
            case events.RunFinished():
                self.finished += 1
                self.cost_usd += event.result.judge.cost_usd if event.result.judge else 0.0
                self.running.pop(event.result.run_id, None)
            case _:
                pass

    def label(self, event: events.Event) -> str:
        """The label of the run that an event is about, its id where that is not known; empty where it is about none."""
        run_id = event.result.run_id if isinstance(event, events.RunFinished) else getattr(event, "run_id", None)
        return self.running[run_id].label if run_id in self.running else run_id or ""

    def estimate(self, now: float, end: str = "") -> str:
        """Like `, about 4 min left` for all runs, as stored runs of the same suites lead to expect; else empty."""
        slots = [max(it.expected - (now - it.since), 0.0) for it in self.running.values()]
        slots += [0.0] * (self.jobs - len(slots))
        for seconds in self.waiting.values():
            slots.sort()
            slots[0] += seconds
        return f", about {rough_duration(max(slots))}{end}" if 0 < max(slots) < math.inf else ""


class FinishedSuites:
    """Prints each suite as soon as its last trial is over, while others are still under way."""

    def __init__(self, detail: Detail, files_of: FilesOf) -> None:
        self._detail, self._files_of = detail, files_of
        self.runs: dict[str, list[RunResult]] = {}
        self._printed: set[str] = set()

    def take(self, console: Console, result: RunResult) -> None:
        """Note a run that is over; of an adaptive plan, it may not be the last."""
        if result.side is Side.HEAD:
            runs = self.runs.setdefault(result.suite, [])
            runs.append(result)
            if result.look is None and len(runs) >= trials_alone(result.config.trials):
                self.print_rest(console, runs)

    def print_rest(self, console: Console, runs: Sequence[RunResult]) -> None:
        """Print suites that were not printed yet, be it that not every trial was carried out."""
        for suite, unordered in by_name(runs).items():
            if suite in self._printed:
                continue
            self._printed.add(suite)
            page, outcome = Page(console), max(map(run_outcome, unordered))
            ordered = sorted(unordered, key=lambda run: run.trial)
            if self._detail is Detail.FULL:
                page.line()
                print_suite(page, ordered, self._files_of)
                page.line()
            elif self._detail is Detail.LINES or outcome > Outcome.PASSED:
                print_head(page, outcome, suite, suite_facts(ordered))
                reasons = [problem.sentence for run in ordered if (problem := run_problem(run, NO_FILES))]
                page.notes([Cell(reason, Tone.DIM) for reason in dict.fromkeys(reasons)], indent=3)
            page.show()


# Columns of a log: searching it line by line must find everything that belongs together.
UNBROKEN = 100_000
HEARTBEAT_SECONDS = 30.0
REDRAWS_PER_SECOND, SPINS_PER_SECOND = 8, 10
SPINNER, PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
# Phase, time, turns and cost keep their places, so that nothing dances.
COLUMNS = ("<10", ">5", ">9", ">9")
# Of a command's output, in a warning.
MAX_LINE_LENGTH = 300
# Ways in which a suite ends of which its own rows say enough.
USUAL_ENDS = {DoneReason.AS_EXPECTED, DoneReason.REGRESSED, DoneReason.PLAN_ENDED, DoneReason.NOT_PROVEN}


@dataclass
class Progress:
    """A context manager that takes events, and prints what shall stay.

    On a terminal it redraws a line per run under way below what is printed. Events only change the state; a thread
    redraws it a few times a second, however many events arrive. The cursor stays visible, so that a Zelda that is
    killed leaves the terminal as it was. Where lines cannot be redrawn, it prints a log: every line is flushed, and
    begins with whom it is about.
    """

    console: Console
    _: KW_ONLY
    plain: bool | None = None
    """Whether lines cannot be redrawn; by default as the console says."""
    suites: FinishedSuites | None = None
    """Prints suites as soon as they are over; without it, runs are announced."""
    quiet: bool = False
    """Whether only suites and warnings are shown."""
    steps: bool = False
    """Whether what sessions do is shown, a line each."""

    def __post_init__(self) -> None:
        self._plain = is_plain(self.console) if self.plain is None else self.plain
        self._state, self._heard = ProgressState(), dict[str, float]()
        self._lock, self._over, self._stack = threading.Lock(), threading.Event(), ExitStack()

    def __enter__(self) -> Self:
        if self._plain and not self.quiet:
            thread = threading.Thread(target=self._tick, name="zelda-ticker", daemon=True)
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(self._over.set)
        elif not self.quiet:
            live = Live(
                console=self.console,
                get_renderable=self._frame,
                refresh_per_second=REDRAWS_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._stack.enter_context(live)
            self.console.show_cursor(show=True)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, ValueError):
            self._stack.close()

    def __call__(self, event: events.Event) -> None:
        """Note the event, and print what is worth a line."""
        with self._lock:
            label = self._state.label(event)
            self._state.record(event, time.monotonic())
        match event:
            case events.Warned():
                self._warn(event, label)
            case events.RunFinished():
                self._finish(event.result, label)
            case SuiteArms() if self.suites and not (self.quiet and event.reason in USUAL_ENDS):
                self.suites.print_rest(self.console, self.suites.runs.get(event.suite, ()))
                self._say("", Cell(f"{event.suite}: {suite_done(event)}", Tone.DIM))
            case _ if self.quiet:
                pass
            case events.RunsPlanned() if self._state.planned == len(event.runs):
                self._plan(event)
            case MoreTrials():
                self._say(event.suite, Cell(more_trials(event)))
            case Attribution():
                self._say(str(event.suite), Cell(round_words(event)))
            case SuiteArms() if self._plain:
                self._say(event.suite, Cell(suite_done(event)))
            case events.Checking(about=str(about)) if self._plain:
                self._say(CHECK, Cell(sentence(about)))
            case events.PhaseStarted() if self._plain:
                self._heard[event.run_id] = time.monotonic()
                self._say(label, Cell(str(event.phase)))
            case events.SessionProgressed() if self.steps and (words := _step(event.record)):
                self._say(label, Cell(words, Tone.DIM))

    def _plan(self, event: events.RunsPlanned) -> None:
        planned = self._state.planned
        if self._plain:
            beside = f", {event.jobs} at a time" if min(event.jobs, planned) > 1 else ""
            self._say("", Cell(f"{numbers.format_count(planned, 'run')}{beside}{self._state.estimate(0.0)}"))
        if event.isolation:
            self._say("", Cell(sentence(event.isolation), Tone.DIM))
        for line in forecast_lines(event.forecast) if event.forecast else ():
            self._say("", Cell(line))

    def _warn(self, event: events.Warned, label: str) -> None:
        page, about = self._page(), f"{label}: " if label else ""
        mark = Text(" ") + page.write("warning ", STYLES[Tone.WARN])
        lines = (Cell(visible(line, MAX_LINE_LENGTH), Tone.DIM) for line in event.output.splitlines())
        page.beside(mark, (Cell(about + sentence(event.message)),), lines=lines)
        page.show()

    def _finish(self, result: RunResult, label: str) -> None:
        """Announce one of several trials, or a run where no suite is printed; of a single run the report follows."""
        several = trials_alone(result.config.trials) > 1 or result.look or result.side is Side.BASE
        if not self.quiet and (several if self.suites else self._plain or self._state.planned != 1):
            page = self._page()
            mark = page.mark(run_outcome(result))
            page.beside(Text(" ") + mark + " " + page.write(label) + "  ", run_facts(result))
            if problem := run_problem(result, NO_FILES):
                page.beside("   ", (Cell(problem.sentence, Tone.DIM),))
            page.show()
        if self.suites:
            self.suites.take(self.console, result)

    def _say(self, label: str, *cells: Cell) -> None:
        """Print a line about a run or a suite, or without a label about all."""
        page = self._page()
        page.beside(Text("   ") + page.write(f"{label}  " if label else "", LABEL), cells)
        page.show()

    def _page(self) -> Page:
        return Page(self.console, width=UNBROKEN if self._plain else None)

    def _tick(self) -> None:
        """Say what those do of whom nothing was heard for long; many CI services end a job that keeps silent."""
        with suppress(OSError, ValueError):  # a screen that has gone
            while not self._over.wait(HEARTBEAT_SECONDS):
                with self._lock:
                    now = time.monotonic()
                    for run_id, activity in self._state.running.items():
                        if now - self._heard.get(run_id, activity.since) >= HEARTBEAT_SECONDS:
                            self._heard[run_id] = now
                            self._say(activity.label, *activity.facts(now))

    def _frame(self) -> Text:
        """As many lines as the screen can hold, the rest counted: what scrolls away could not be redrawn."""
        with self._lock:
            now, state, page = time.monotonic(), self._state, Page(self.console)
            shown = list(state.running.values())[: max(self.console.height - 3, 1)]
            labels = [page.write(activity.label) for activity in shown]
            width = min(max((label.cell_len for label in labels), default=0), page.width // 3)
            spinner = SPINNER if page.unicode else PLAIN_SPINNER
            frame = page.write(spinner[int(now * SPINS_PER_SECOND) % len(spinner)], LABEL)
            for label, activity in zip(labels, shown, strict=True):
                label.truncate(width, overflow="crop", pad=True)
                line = Text(" ") + frame + " " + label
                for cell, column in zip_longest(activity.facts(now), COLUMNS):
                    text = page.cell(Cell(f"{cell.text:{column or ''}}", cell.tone)) if cell else Text()
                    # Half a number misleads.
                    if not cell or (column and line.cell_len + 2 + text.cell_len >= page.width):
                        break
                    line = line + "  " + text
                page.lines.append(line)
            left, hidden = state.estimate(now, " left"), len(state.running) - len(shown)
            if state.planned > 1 or left:
                done = f"{state.finished} of {state.planned} done, {numbers.money(state.cost_usd)} so far{left}"
                more = f", {hidden} more under way" if hidden else ""
                page.lines.append(Text("   ") + page.write(done + more, DIM))
            for line in page.lines:
                line.truncate(page.width - 1, overflow="crop")
            return Text("\n").join(page.lines)
