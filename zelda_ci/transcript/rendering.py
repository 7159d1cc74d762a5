"""A transcript as text, with the numbers by which a judge cites it. Pure."""

import json
from collections.abc import Iterator, Mapping
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


def _fields(given: Mapping[str, Any]) -> Iterator[str]:
    """Texts as they are, so that they can be quoted; everything else as JSON."""
    for name, value in given.items():
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _thread(parent: str | None) -> str:
    return ", in a sub-agent" if parent else ""


def _error(*, is_error: bool) -> str:
    return " an error" if is_error else ""
