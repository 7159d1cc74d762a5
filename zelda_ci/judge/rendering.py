"""A transcript as text for a judge: cut between turns, and inside one only where it does not fit by itself."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.session import (
    Denied,
    HookRan,
    McpServer,
    McpServerState,
    Noticed,
    Retried,
    SessionImage,
    SessionTranscript,
    ToolCall,
    ToolReturned,
    Turn,
    UserSaid,
)
from zelda_ci.judge.characters import marked

SEPARATOR = "\n\n"
# Of a text that has to be shortened: how things began tells a little more than how they ended.
HEAD_SHARE = 0.6


def image_line(mark: str, number: int, image: SessionImage) -> str:
    """What stands for an image in a text; with a mark that the session does not know, it cannot forge one."""
    return f"[{mark} image {number}: {image.media_type}, {image.size_bytes} bytes, {image.sha256}]"


def lines_of_images(mark: str) -> re.Pattern[str]:
    """Matches such lines; the group is the digest."""
    told = rf"\[{re.escape(mark)} image \d+: image/\w+, \d+ bytes, ([0-9a-f]{{64}})\]"
    return re.compile(f"^{told}$", re.MULTILINE)


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
    """The text, or its head and tail around a marker that says how many characters are left out.

    What deceives a reader is marked first, so that no mark makes a text larger than was measured.
    """
    text = marked(text)
    if len(text) <= budget_chars:
        return text
    head, tail = _ends(text, max(0, budget_chars - len(_marker(len(text)))))
    return head + _marker(len(text) - len(head) - len(tail)) + tail


def _ends(text: str, room: int) -> tuple[str, str]:
    """Head and tail of a text that is larger than the room for both, in whole lines where it has some."""
    size = int(room * HEAD_SHARE)
    return _to_line(text[:size]), _from_line(text[len(text) - (room - size) :])


def _to_line(text: str) -> str:
    """Without the line at its end, which is cut: the rest of it may mean something else, like 13 cut to 3."""
    end = text.rfind("\n")
    return text[:end] if end >= len(text) // 2 else text


def _from_line(text: str) -> str:
    """The same without the line at its beginning."""
    start = text.find("\n")
    return text[start + 1 :] if 0 <= start <= len(text) // 2 else text


def _marker(characters: int) -> str:
    return f"\n[... {characters} characters are left out here: this was too long to be shown whole ...]\n"


def _closed(units: Sequence[str], gathered: Sequence[int]) -> list[Chunk]:
    if not gathered:
        return []
    return [Chunk(SEPARATOR.join(units[position] for position in gathered), tuple(gathered))]


Aside = ToolReturned | UserSaid | Denied | HookRan | Retried | Noticed

# Characters of each text that a call was given or returned, by turn and number of the call.
Limits = Mapping[tuple[int, int], int]

# How many times as much is shown of what a session most likely hangs on.
TELLING_FACTOR = 4
# The part that is shown of what went from and to files: it stands in the patch and in the final files, too.
FILE_DIVISOR = 3
# Of all commands of a session, those whose output says in which state it ended.
LAST_COMMANDS = 10
# Also as the beginning of a word: errors, FAILED, failures.
_TROUBLE = re.compile(r"\b(?:error|fail|fatal|panic|exception|traceback)", re.IGNORECASE)


def limits(transcript: SessionTranscript, max_chars: int) -> Limits:
    """How much of each call is shown where the rest can be looked up: more of errors and the last ones, less of files.

    Only of what commands print do words tell that something failed: in a file that is read they may stand for anything.
    """
    calls = {
        (turn.index, number): call for turn in transcript.turns for number, call in enumerate(turn.tool_calls, start=1)
    }
    commands = [place for place, call in calls.items() if _is_command(call)]
    last = set(commands[-LAST_COMMANDS:])
    return {place: _limit(call, max_chars, is_last=place in last) for place, call in calls.items()}


def _limit(call: ToolCall, max_chars: int, *, is_last: bool) -> int:
    is_trouble = call.is_error or bool(_is_command(call) and call.output and _TROUBLE.search(call.output))
    if is_last or is_trouble:
        return max_chars * TELLING_FACTOR
    return max_chars // FILE_DIVISOR if {"file_path", "notebook_path"} & call.input.keys() else max_chars


def _is_command(call: ToolCall) -> bool:
    return "command" in call.input


def units(
    transcript: SessionTranscript, mark: str, max_chars: int | None = None, shown: Limits | None = None
) -> tuple[str, ...]:
    """The session as pieces that belong together, in order: a turn with its calls and their results is one.

    Args:
        transcript: Of any length.
        mark: Stands in every heading and is unknown to the session, which therefore cannot forge a heading.
        max_chars: A turn larger than this is told call by call, so that none of them is lost in its middle.
        shown: Of longer texts of calls, head and tail around a line that says how to look up the rest.
    """
    return tuple(piece for entry in transcript.entries for piece in _pieces(entry, mark, max_chars, shown or {}))


# Characters of what a call was given, in its line of an outline.
MAX_BRIEF = 100


def outline(transcript: SessionTranscript, budget_chars: int, max_shown: int) -> str:
    """A line for each turn and call, with sizes: for knowing what to look up where not all is shown.

    Args:
        transcript: Of any length.
        budget_chars: Calls are described in fewer words where there are many, down to none.
        max_shown: Characters from which on a call was cut for whoever read it.
    """
    texts = (marked("\n".join(_outlined(transcript, length, max_shown))) for length in (MAX_BRIEF, MAX_BRIEF // 4))
    shortest = marked("\n".join(_outlined(transcript, 0, max_shown)))
    return next((text for text in texts if len(text) <= budget_chars), windowed(shortest, budget_chars))


def _outlined(transcript: SessionTranscript, length: int, max_shown: int) -> Iterator[str]:
    for turn in transcript.turns:
        said = len(turn.text or "") + len(turn.thinking or "")
        yield f"turn {turn.index}{_thread(turn.parent_tool_call_id)}: {said} characters of text"
        for number, call in enumerate(turn.tool_calls, start=1):
            given = " ".join(" ".join(_fields(call.input))[: 8 * MAX_BRIEF].split())[:length]
            size = len(rendered_call(call))
            cut = ", was not shown whole" if size > max_shown else ""
            yield f"turn {turn.index} call {number}: {call.name} {given}, {_ended(call)}, {size} characters{cut}"


def _ended(call: ToolCall) -> str:
    if call.output is None:
        return "never returned"
    return "denied" if call.denied else "an error" if call.is_error else "ok"


def rendered_turn(turn: Turn, mark: str = "") -> str:
    """One model response, its tool calls and what they returned, without the heading."""
    return "\n".join(_turn_lines(turn, mark, {}))


def rendered_call(call: ToolCall, mark: str = "") -> str:
    """What a call was given and what came back."""
    return "\n".join(_call_lines(call, mark))


def preface(transcript: SessionTranscript, mark: str) -> tuple[str, ...]:
    """Before the first unit: the MCP servers that the session had to do without, by the last that was heard of them."""
    started = transcript.started.mcp_servers if transcript.started else ()
    states: dict[str, McpServer] = {str(server.name): server for server in (*started, *transcript.mcp_servers)}
    missing = [_explained(state) for state in states.values() if state.status != "connected"]
    return (marked("\n".join((f"[{mark} MCP servers that were not connected]", *missing))),) if missing else ()


def _explained(state: McpServer) -> str:
    error = state.error if isinstance(state, McpServerState) else None
    return f"{state.name}: {state.status}{f' ({error})' if error else ''}"


def _pieces(entry: Turn | Aside, mark: str, max_chars: int | None, shown: Limits) -> Iterator[str]:
    if isinstance(entry, Turn):
        heading, text = _turn_heading(entry), "\n".join(_turn_lines(entry, mark, shown))
    else:
        heading, text = _around(entry)
        if isinstance(entry, ToolReturned) and entry.images:
            text = "\n".join((text, *_image_lines(entry.images, mark)))
    piece = marked(f"[{mark} {heading}]\n{text}".rstrip())
    if max_chars is None or len(piece) <= max_chars or not isinstance(entry, Turn):
        yield piece
        return
    yield marked("\n".join((f"[{mark} {heading}, call by call]", *_words(entry))))
    for number in range(1, len(entry.tool_calls) + 1):
        yield marked("\n".join((_call_heading(entry, number, mark), *_shown_call(entry, number, mark, shown))))


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


def _turn_lines(turn: Turn, mark: str, shown: Limits) -> Iterator[str]:
    yield from _words(turn)
    for number in range(1, len(turn.tool_calls) + 1):
        yield _call_heading(turn, number, mark)
        yield from _shown_call(turn, number, mark, shown)


def _shown_call(turn: Turn, number: int, mark: str, shown: Limits) -> Iterator[str]:
    """A call, with as much of each of its texts as may be shown."""
    most = shown.get((turn.index, number))
    line = 1
    for text in _call_lines(turn.tool_calls[number - 1], mark):
        if most is None or len(text) <= most:
            yield text
        else:
            head, tail = _ends(text, max(0, most - MAX_MARK))
            # Where a line was cut, its rest is looked up from that line on.
            missing = line + _count(head) - (text[len(head)] != "\n")
            where = f"read_turn shows them: turn {turn.index}, call {number}, first_line {missing}"
            left_out = len(text) - len(head) - len(tail)
            yield f"{head}\n[{mark} {left_out} characters are left out here; {where}]\n{tail}"
        line += _count(text)


# Characters of the line that says what is left out.
MAX_MARK = 160


def _count(text: str) -> int:
    """Lines of a text before which and after which a line ends, as look-ups count them."""
    return len(f"{text}\n".splitlines())


def _words(turn: Turn) -> Iterator[str]:
    if turn.thinking:
        yield f"(thinking) {turn.thinking}"
    if turn.text:
        yield turn.text


def _call_heading(turn: Turn, number: int, mark: str) -> str:
    return f"[{mark} turn {turn.index} call {number}: {turn.tool_calls[number - 1].name}]"


def _call_lines(call: ToolCall, mark: str) -> Iterator[str]:
    yield from _fields(call.input)
    if call.output is None:
        yield f"[{mark} it never returned]"
    else:
        yield f"[{mark} returned{_error(is_error=call.is_error)}{', denied' if call.denied else ''}]"
        yield call.output
        yield from _image_lines(call.images, mark)


def _image_lines(images: Sequence[SessionImage], mark: str) -> Iterator[str]:
    yield from (image_line(mark, number, image) for number, image in enumerate(images, start=1))


def _fields(values: Mapping[str, Any]) -> Iterator[str]:
    """Texts as they are, so that they can be quoted; everything else as JSON."""
    for name, value in values.items():
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _thread(parent: str | None) -> str:
    return ", in a sub-agent" if parent else ""


def _error(*, is_error: bool) -> str:
    return " an error" if is_error else ""
