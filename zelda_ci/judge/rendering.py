"""A transcript as text for a judge, cut between turns, never inside one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.session import (
    Denied,
    HookRan,
    Noticed,
    Retried,
    SessionTranscript,
    ToolCall,
    ToolReturned,
    Turn,
    UserSaid,
)

SEPARATOR = "\n\n"
# Of a text that has to be shortened: how things began tells a little more than how they ended.
HEAD_SHARE = 0.6


@dataclass(frozen=True)
class Chunk:
    """Consecutive units that fit together."""

    text: str
    units: tuple[int, ...]
    """Positions of the units in it, from 0."""
    shortened: tuple[int, ...] = ()
    """Those of them that did not fit whole."""


def chunked(units: Sequence[str], budget_chars: int) -> tuple[Chunk, ...]:
    """Fill chunks one after the other; every unit is in exactly one, in order.

    A unit larger than the budget gets a chunk of its own, with its middle replaced by a marker that says how much is
    missing. No chunk is larger than the budget, unless the budget is smaller than the marker.
    """
    chunks: list[Chunk] = []
    gathered: list[int] = []
    size = 0
    for position, unit in enumerate(units):
        if len(unit) > budget_chars:
            chunks += _closed(units, gathered)
            gathered, size = [], 0
            chunks.append(Chunk(windowed(unit, budget_chars), (position,), (position,)))
            continue
        if gathered and size + len(SEPARATOR) + len(unit) > budget_chars:
            chunks += _closed(units, gathered)
            gathered, size = [], 0
        size += len(unit) + (len(SEPARATOR) if gathered else 0)
        gathered.append(position)
    return (*chunks, *_closed(units, gathered))


def windowed(text: str, budget_chars: int) -> str:
    """The text, or its head and tail around a marker that says how many characters are left out."""
    if len(text) <= budget_chars:
        return text
    room = max(0, budget_chars - len(_marker(len(text))))
    head = int(room * HEAD_SHARE)
    tail = room - head
    return text[:head] + _marker(len(text) - room) + (text[-tail:] if tail else "")


def _marker(characters: int) -> str:
    return f"\n[... {characters} characters are left out here: this was too long to be shown whole ...]\n"


def _closed(units: Sequence[str], gathered: Sequence[int]) -> list[Chunk]:
    if not gathered:
        return []
    return [Chunk(SEPARATOR.join(units[position] for position in gathered), tuple(gathered))]


Aside = ToolReturned | UserSaid | Denied | HookRan | Retried | Noticed


def units(transcript: SessionTranscript, mark: str) -> tuple[str, ...]:
    """The session as pieces that belong together, in order: a turn with its calls and their results is one.

    Args:
        transcript: Of any length.
        mark: Stands in every heading and is unknown to the session, which therefore cannot forge a heading.
    """
    return tuple(f"[{mark} {heading}]\n{text}".rstrip() for heading, text in _pieces(transcript, mark))


def rendered_turn(turn: Turn, mark: str = "") -> str:
    """One model response, its tool calls and what they returned, without the heading."""
    return "\n".join(_turn_lines(turn, mark))


def rendered_call(call: ToolCall, mark: str = "") -> str:
    """What a call was given and what came back."""
    return "\n".join(_call_lines(call, mark))


def _pieces(transcript: SessionTranscript, mark: str) -> Iterator[tuple[str, str]]:
    for entry in transcript.entries:
        yield (_turn_heading(entry), rendered_turn(entry, mark)) if isinstance(entry, Turn) else _around(entry)


def _around(entry: Aside) -> tuple[str, str]:
    """What happened around the conversation."""
    match entry:
        case ToolReturned():
            return f"a tool result whose call is not known{_error(is_error=entry.is_error)}", entry.output
        case UserSaid():
            return f"said to the model{_thread(entry.parent_tool_call_id)}", entry.text
        case Denied():
            return "denied", f"{entry.tool}: {entry.reason}"
        case HookRan():
            return "hook", f"{entry.name} ran on {entry.event}: {entry.outcome}\n{entry.output}"
        case Retried():
            return "a model request was repeated", entry.error
        case Noticed():
            return "notice", f"{entry.kind}: {entry.text}"


def _turn_heading(turn: Turn) -> str:
    invented = ", words of the program, not of the model" if turn.synthetic else ""
    return f"turn {turn.index}{_thread(turn.parent_tool_call_id)}{invented}"


def _turn_lines(turn: Turn, mark: str) -> Iterator[str]:
    if turn.thinking:
        yield f"(thinking) {turn.thinking}"
    if turn.text:
        yield turn.text
    for number, call in enumerate(turn.tool_calls, start=1):
        yield f"[{mark} turn {turn.index} call {number}: {call.name}]"
        yield from _call_lines(call, mark)


def _call_lines(call: ToolCall, mark: str) -> Iterator[str]:
    yield from _fields(call.input)
    if call.output is None:
        yield f"[{mark} it never returned]"
    else:
        yield f"[{mark} returned{_error(is_error=call.is_error)}{', denied' if call.denied else ''}]"
        yield call.output


def _fields(values: Mapping[str, Any]) -> Iterator[str]:
    """Texts as they are, so that they can be quoted; everything else as JSON."""
    for name, value in values.items():
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _thread(parent: str | None) -> str:
    return ", in a sub-agent" if parent else ""


def _error(*, is_error: bool) -> str:
    return " an error" if is_error else ""
