"""What runs are doing right now: a fold over events, in finished strings."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from zelda_ci.domain.session import AssistantSaid, Ended, Retried, SessionRecord, ToolCalled, ToolReturned
from zelda_ci.events import BatchStarted, Event, Phase, PhaseStarted, RunFinished, RunStarted, SessionProgressed, Warned
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Tone

TELLING = ("file_path", "command", "pattern", "skill", "subagent_type", "url", "query", "path", "description")
"""Arguments that say best what a tool call is about, the best first."""


@dataclass
class Activity:
    """One run under way."""

    label: str
    since: float
    phase: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    doing: str = ""
    open_calls: dict[str, str] = field(default_factory=dict)

    def hear(self, record: SessionRecord) -> None:
        """Note what the session is at: the last tool that has not returned, or the model."""
        match record:
            case ToolCalled():
                self.open_calls[record.id] = _call(record)
            case ToolReturned():
                self.open_calls.pop(record.id, None)
            case _:
                pass
        self.doing = next(reversed(self.open_calls.values()), "") or _doing(record) or self.doing

    def facts(self, now: float) -> tuple[Cell, ...]:
        """Phase, time so far, and in the session its turns, its cost and what it is at."""
        return tuple(self._facts(now))

    def _facts(self, now: float) -> Iterator[Cell]:
        yield Cell(self.phase or "starting")
        yield Cell(numbers.clock(now - self.since), Tone.DIM)
        if self.turns:
            yield Cell(numbers.count(self.turns, "turn"), Tone.DIM)
            yield Cell(numbers.money(self.cost_usd), Tone.DIM)
        if self.doing and self.phase == Phase.SESSION:
            yield Cell(self.doing, Tone.DIM)


@dataclass
class Board:
    """All runs of the invocation."""

    planned: int = 0
    jobs: int = 1
    cost_usd: float = 0.0
    finished: int = 0
    running: dict[str, Activity] = field(default_factory=dict)

    def take(self, event: Event, now: float) -> None:
        """Note an event; `now` is seconds of any steady clock."""
        match event:
            case BatchStarted():
                self.planned, self.jobs = len(event.runs), event.jobs
            case RunStarted():
                self.running[event.run_id] = Activity(visible(event.label, 60), now)
            case PhaseStarted():
                self._of(event.run_id, now).phase = str(event.phase)
            case SessionProgressed():
                activity = self._of(event.run_id, now)
                self.cost_usd += event.cost_usd - activity.cost_usd
                activity.turns, activity.cost_usd = event.turns, event.cost_usd
                activity.hear(event.record)
            case RunFinished():
                self.finished += 1
                self.running.pop(event.result.run_id, None)
            case Warned():
                pass

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
        return numbers.count(self.planned, "run") + side_by_side

    def progress(self) -> str:
        """Like `3 of 8 done, $0.1234 so far`."""
        return f"{self.finished} of {self.planned} done, {numbers.money(self.cost_usd)} so far"

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
    told = next((value for value in values if value and isinstance(value, str)), "")
    name = visible(record.name, 60)
    return f"{name} {sentence(told, 60)}" if told else name
