"""A transcript as text for a judge: in pieces that can be cited, and of long texts head and tail."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    ToolReturned,
    Turn,
    UserSaid,
)
from zelda_ci.judge.characters import marked

SEPARATOR = "\n\n"
# Of a text that has to be shortened: how things began tells a little more than how they ended.
HEAD_SHARE = 0.6
LEFT_OUT = "[... {} characters are left out here: this was too long to be shown whole ...]"
# Characters of such a line.
MAX_MARKER = 160
# Of what was said, and of what a call was given, in an outline.
MAX_BRIEF = 120


def lines_of_images(mark: str) -> re.Pattern[str]:
    """Matches the lines that stand for images in a text; the group is the digest.

    They hold a mark that the session does not know, so that it cannot forge one.
    """
    told = rf"\[{re.escape(mark)} image \d+: image/\w+, \d+ bytes, ([0-9a-f]{{64}})\]"
    return re.compile(f"^{told}$", re.MULTILINE)


def windowed(text: str, budget_chars: int, marker: str = LEFT_OUT) -> str:
    """The text, or its head and tail around a marker that says how many characters are left out.

    What deceives a reader is marked first, so that no mark makes a text larger than was measured. The marker may name
    the `line` at which the head ends, which may be cut.
    """
    text = marked(text)
    if len(text) <= budget_chars:
        return text
    room = max(0, budget_chars - MAX_MARKER)
    size = int(room * HEAD_SHARE)
    head, tail = text[:size], text[len(text) - (room - size) :]
    # Without the lines that are cut, which may mean something else, like 13 cut to 3.
    end, start = head.rfind("\n"), tail.find("\n")
    head = head[:end] if end >= len(head) // 2 else head
    tail = tail[start + 1 :] if 0 <= start <= len(tail) // 2 else tail
    return f"{head}\n{marker.format(len(text) - len(head) - len(tail), line=len(f'{head}.'.splitlines()))}\n{tail}"


def chunked(units: Iterable[str], budget_chars: int) -> list[str]:
    """Fill chunks with units, one after the other; of a unit that is larger than a chunk, head and tail."""
    chunks: list[str] = []
    for unit in (windowed(unit, budget_chars) for unit in units):
        if chunks and len(chunks[-1]) + len(SEPARATOR) + len(unit) <= budget_chars:
            chunks[-1] += SEPARATOR + unit
        else:
            chunks.append(unit)
    return chunks


# How many times as much is shown of what a session most likely hangs on.
TELLING_FACTOR = 4
# The part that is shown of what went from and to files: it stands in the patch and in the final files, too.
FILE_DIVISOR = 3
# Of all commands of a session, those whose output says in which state it ended.
LAST_COMMANDS = 10
# Also as the beginning of a word: errors, FAILED, failures.
_TROUBLE = re.compile(r"\b(?:error|fail|fatal|panic|exception|traceback)", re.IGNORECASE)


def limits(transcript: SessionTranscript, max_chars: int) -> Mapping[tuple[int, int], int]:
    """How much of each call is shown where the rest can be looked up: more of errors and the last ones, less of files.

    By turn and number of the call. Only of what commands print do words tell that something failed: in a file that is
    read they may stand for anything.
    """
    calls = {(turn.index, number): call for turn in transcript.turns for number, call in enumerate(turn.tool_calls, 1)}
    commands = [place for place, call in calls.items() if "command" in call.input]
    telling = {*commands[-LAST_COMMANDS:], *(place for place, call in calls.items() if call.is_error)}
    telling.update(place for place in commands if _TROUBLE.search(calls[place].output or ""))

    of_files = [place for place, call in calls.items() if {"file_path", "notebook_path"} & call.input.keys()]
    most = dict.fromkeys(calls, max_chars) | dict.fromkeys(of_files, max_chars // FILE_DIVISOR)
    return most | dict.fromkeys(telling, max_chars * TELLING_FACTOR)


@dataclass(frozen=True)
class CitedPiece:
    """What was said in a turn, one of its calls with what it returned, or something beside the turns."""

    place: str
    """By which it is cited."""
    heading: str
    text: str

    def told(self, mark: str) -> str:
        """With its heading, and with marks for what deceives a reader."""
        return marked(f"[{mark} {self.heading}]\n{self.text}".rstrip())


def pieces(transcript: SessionTranscript, mark: str, max_chars: int | None = None) -> Iterator[CitedPiece]:
    """The session in order, each heading with a mark that the session does not know, and so cannot forge.

    With `max_chars`, of longer calls head and tail around a line that says how to look up the rest; see `limits`.
    """
    most = limits(transcript, max_chars) if max_chars else {}
    place = "turn 0"
    for entry in transcript.entries:
        if not isinstance(entry, Turn):
            yield CitedPiece(f"after {place}", *_around(entry, mark))
            continue
        place = f"turn {entry.index}"
        invented = ", words of the program, not of the model" if entry.synthetic else ""
        words = (f"(thinking) {entry.thinking}" if entry.thinking else "", entry.text)
        yield CitedPiece(place, f"{place}{_thread(entry)}{invented}", "\n".join(filter(None, words)))
        for number, call in enumerate(entry.tool_calls, start=1):
            # With the lines that look-ups count.
            texts = [*map(": ".join, fields(call.input)), f"[{mark} it never returned]"]
            if call.output is not None:
                how = " an error" * call.is_error + ", denied" * call.denied
                texts[-1:] = (f"[{mark} returned{how}]", call.output, *_image_lines(call.images, mark))
            text = marked("\n".join(texts))
            if limit := most.get((entry.index, number)):
                where = f"read_turn shows them: turn {entry.index}, call {number}, first_line {{line}}"
                text = windowed(text, limit, f"[{mark} {{}} characters are left out here; {where}]")
            yield CitedPiece(f"{place} call {number}", f"{place} call {number}: {call.name}", text)


def units(transcript: SessionTranscript, mark: str, max_chars: int | None = None) -> tuple[str, ...]:
    """The same as texts."""
    return tuple(piece.told(mark) for piece in pieces(transcript, mark, max_chars))


def preface(transcript: SessionTranscript, mark: str) -> tuple[str, ...]:
    """Before the first unit: the MCP servers that the session had to do without, by the last that was heard of them."""
    started = transcript.started.mcp_servers if transcript.started else ()
    states: dict[str, McpServer] = {str(server.name): server for server in (*started, *transcript.mcp_servers)}
    missing = [f"[{mark} MCP servers that were not connected]"]
    for state in states.values():
        error = state.error if isinstance(state, McpServerState) else None
        if state.status != "connected":
            missing.append(f"{state.name}: {state.status}{f' ({error})' if error else ''}")
    return (marked("\n".join(missing)),) if missing[1:] else ()


def outline(turns: Iterable[Turn]) -> Iterator[str]:
    """A line for each turn and call: for knowing what to look up."""
    for turn in turns:
        yield f"turn {turn.index}{_thread(turn)}: {_brief(turn.text or turn.thinking or '')}"
        for number, call in enumerate(turn.tool_calls, start=1):
            returned = "never returned" if call.output is None else f"returned {len(call.output.splitlines())} lines"
            ended = ", denied" if call.denied else ", an error" if call.is_error else ""
            given = _brief(" ".join(map(": ".join, fields(call.input))))
            yield f"turn {turn.index} call {number}: {call.name} {given} - {returned}{ended}"


def _brief(text: str) -> str:
    return " ".join(text[: 4 * MAX_BRIEF].split())[:MAX_BRIEF]


def _around(entry: ToolReturned | UserSaid | Denied | HookRan | Retried | Noticed, mark: str) -> tuple[str, str]:
    """What happened around the conversation."""
    match entry:
        case ToolReturned():
            text = "\n".join((entry.output, *_image_lines(entry.images, mark)))
            return f"a tool result whose call is not known{' an error' if entry.is_error else ''}", text
        case UserSaid():
            return f"said to the model{_thread(entry)}", entry.text
        case Denied():
            return "denied", f"{entry.tool}: {entry.reason}"
        case HookRan():
            return "hook", f"{entry.name} ran on {entry.event}: {entry.outcome}\n{entry.output}"
        case Retried():
            return "a model request was repeated", entry.error
        case Noticed():
            return "notice", f"{entry.kind}: {entry.text}"


def _image_lines(images: Sequence[SessionImage], mark: str) -> Iterator[str]:
    for number, image in enumerate(images, start=1):
        yield f"[{mark} image {number}: {image.media_type}, {image.size_bytes} bytes, {image.sha256}]"


def fields(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a call was given: texts as they are, so that they can be quoted; everything else as JSON."""
    return ((name, it if isinstance(it, str) else json.dumps(it, ensure_ascii=False)) for name, it in values.items())


def _thread(entry: Turn | UserSaid) -> str:
    return ", in a sub-agent" if entry.parent_tool_call_id else ""
