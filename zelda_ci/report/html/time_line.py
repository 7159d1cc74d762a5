"""What the time of a session went to."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from zelda_ci.domain.numbers import duration
from zelda_ci.domain.session import Retried, SessionTranscript, Turn
from zelda_ci.report.html.conversation import target
from zelda_ci.report.html.model import Bar, TimeLine
from zelda_ci.report.text import visible

SCALE = 1000.0
# Narrower bars are not seen.
MIN_LENGTH = 1.5
MAX_BARS = 400

Shown = TypeVar("Shown")


def time_line(transcript: SessionTranscript, root: str) -> TimeLine | None:
    """The time line; none of a session without a turn."""
    turns = transcript.turns
    if not turns:
        return None
    ends = [call.ended_at or call.started_at for turn in turns for call in turn.tool_calls]
    total = max([transcript.wall_seconds, *ends, 0.001])
    rows = (
        ("Model", tuple(_model_bars(turns, total))),
        ("Tools", tuple(_tool_bars(turns, total, root))),
        ("Sub-agents", tuple(_agent_bars(turns, total))),
        ("Waiting", tuple(_waits(transcript, total))),
    )
    return TimeLine(tuple(row for row in rows if row[1]), duration(total))


def _model_bars(turns: Iterable[Turn], total: float) -> Iterator[Bar]:
    """Of the main thread: from what came back last to what the model said."""
    ready = 0.0
    for turn in _capped([turn for turn in turns if not turn.parent_tool_call_id]):
        said = max([turn.at, *(call.started_at for call in turn.tool_calls)])
        title = f"turn {turn.index}: {duration(said - ready)}"
        yield _bar(ready, said, total, "model", title, f"t{turn.index}")
        ready = max([said, *(call.ended_at or said for call in turn.tool_calls)])


def _tool_bars(turns: Iterable[Turn], total: float, root: str) -> Iterator[Bar]:
    calls = [(turn, number, call) for turn in turns for number, call in enumerate(turn.tool_calls, start=1)]
    for turn, number, call in _capped(calls):
        end = call.ended_at if call.ended_at is not None else total
        kind = "bad" if call.is_error or call.denied else "tool"
        title = f"{visible(call.name, 40)} {target(call, root)[:80]}: {duration(end - call.started_at)}"
        yield _bar(call.started_at, end, total, kind, title, f"t{turn.index}-c{number}")


def _agent_bars(turns: Iterable[Turn], total: float) -> Iterator[Bar]:
    threads: dict[str, list[Turn]] = {}
    for turn in turns:
        if turn.parent_tool_call_id:
            threads.setdefault(turn.parent_tool_call_id, []).append(turn)
    for thread in _capped(list(threads.values())):
        end = max(max([turn.at, *(call.ended_at or turn.at for call in turn.tool_calls)]) for turn in thread)
        title = f"sub-agent, {len(thread)} turns: {duration(end - thread[0].at)}"
        yield _bar(thread[0].at, end, total, "agent", title, f"t{thread[0].index}")


def _waits(transcript: SessionTranscript, total: float) -> Iterator[Bar]:
    """Before the session was ready, and before requests were repeated."""
    if transcript.started and transcript.started.at > 0:
        yield _bar(0, transcript.started.at, total, "wait", f"start: {duration(transcript.started.at)}", "")
    for entry in transcript.entries:
        if isinstance(entry, Retried):
            end = entry.at + entry.delay_seconds
            yield _bar(entry.at, end, total, "wait", f"retry: {duration(entry.delay_seconds)}", "")


def _bar(start: float, end: float, total: float, kind: str, title: str, anchor: str) -> Bar:
    place = min(max(start, 0.0), total) / total * SCALE
    length = max((max(end, start) - start) / total * SCALE, MIN_LENGTH)
    return Bar(min(place, SCALE - MIN_LENGTH), min(length, SCALE - place), kind, title, anchor)


def _capped(items: Sequence[Shown]) -> Sequence[Shown]:
    """Evenly chosen ones, where there are more than anybody can tell apart."""
    step = -(-len(items) // MAX_BARS) or 1
    return items[::step]
