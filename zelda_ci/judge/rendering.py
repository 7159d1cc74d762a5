"""What a judge reads, as text: prompts, fences around what is quoted, and a transcript in pieces that can be cited."""

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from zelda_ci.domain import session
from zelda_ci.domain.session import SessionImage, SessionTranscript, Turn, UserSaid
from zelda_ci.imports import one_at_a_time
from zelda_ci.judge.characters import marked, spelled

if TYPE_CHECKING:
    from jinja2 import Environment

# How every fence begins.
OPENING = "<evidence-"
NONCE_BYTES = 16
SEPARATOR = "\n\n"
# Of a text that has to be shortened: how things began tells a little more than how they ended.
HEAD_SHARE = 0.6
LEFT_OUT = "[... {} characters are left out here: this was too long to be shown whole ...]"
# Characters of such a line.
MAX_MARKER = 160
# Of what was said, and of what a call was given, in an outline.
MAX_BRIEF = 120
# How many times as much is shown of what a session most likely hangs on.
TELLING_FACTOR = 4
# The part that is shown of what went from and to files: it stands in the patch and in the final files, too.
FILE_DIVISOR = 3
# Of all commands of a session, those whose output says in which state it ended.
LAST_COMMANDS = 10
# Also as the beginning of a word: errors, FAILED, failures.
_TROUBLE = re.compile(r"\b(?:error|fail|fatal|panic|exception|traceback)", re.IGNORECASE)


def render(name: str, **values: object) -> str:
    """The prompt `<name>.j2` with its values; a value that is missing is an error, never a blank."""
    return environment().get_template(f"{name}.j2").render(**values)


@cache
def environment() -> "Environment":
    with one_at_a_time("jinja2"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 30 ms, few commands judge

    # What is rendered is read by a model: escaping HTML would only spoil the evidence.
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("prompts")),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
    )


def new_nonce() -> str:
    """A mark that nobody can guess: to be made for each run after its session has ended."""
    return secrets.token_hex(NONCE_BYTES)


def mark_of(nonce: str) -> str:
    """A short form, for the many small marks inside a fence."""
    return nonce[:8]


def fence(kind: str, text: str, nonce: str) -> str:
    """The text between marks that only the holder of the nonce can write; a nonce that leaked into it is masked.

    Raises ValueError for a kind that is not letters, digits and hyphens, and for a nonce that is too short to be one.
    """
    if not kind.replace("-", "").isalnum() or len(nonce) < 2 * NONCE_BYTES:
        raise ValueError("a fence needs a plain kind and a nonce of its own")
    inner = text.replace(nonce, "*" * len(nonce))
    return f'{OPENING}{nonce} kind="{kind}">\n{inner}\n</evidence-{nonce}>'


def problems_of(problem: ValidationError) -> str:
    """What is wrong with a form, in words for the model that filled it in; nothing of what it wrote."""
    errors = problem.errors(include_url=False, include_input=False, include_context=False)
    sentences = [f"{'.'.join(map(str, error['loc'])) or 'answer'}: {error['msg']}" for error in errors[:10]]
    return spelled("; ".join(sentences))


def lines_of_images(mark: str) -> re.Pattern[str]:
    """Matches the lines that stand for images, by a mark that no session can forge; the group is the digest."""
    return re.compile(rf"^\[{re.escape(mark)} image \d+: image/\w+, \d+ bytes, ([0-9a-f]{{64}})\]$", re.MULTILINE)


def windowed(text: str, budget_chars: int, marker: str = LEFT_OUT) -> str:
    """The text, or head and tail around a marker with how many characters, and at which `line`, are left out."""
    # First, so that no mark makes a text larger than was measured.
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


def limits(transcript: SessionTranscript, max_chars: int) -> Mapping[tuple[int, int], int]:
    """By turn and number of a call, how much of it is shown where the rest can be looked up."""
    calls = {(turn.index, number): call for turn in transcript.turns for number, call in enumerate(turn.tool_calls, 1)}
    commands = [place for place, call in calls.items() if "command" in call.input]
    telling = {*commands[-LAST_COMMANDS:], *(place for place, call in calls.items() if call.is_error)}
    # Only of what commands print do words tell that something failed: in a file they may stand for anything.
    telling.update(place for place in commands if _TROUBLE.search(calls[place].output or ""))
    of_files = [place for place, call in calls.items() if {"file_path", "notebook_path"} & call.input.keys()]
    most = dict.fromkeys(calls, max_chars) | dict.fromkeys(of_files, max_chars // FILE_DIVISOR)
    return most | dict.fromkeys(telling, max_chars * TELLING_FACTOR)


class CitedPiece(NamedTuple):
    """What was said in a turn, one of its calls with what it returned, or something beside the turns."""

    place: str
    heading: str
    text: str

    def told(self, mark: str) -> str:
        """With its heading, and with marks for what deceives a reader."""
        return marked(f"[{mark} {self.heading}]\n{self.text}".rstrip())


def pieces(transcript: SessionTranscript, mark: str, max_chars: int | None = None) -> Iterator[CitedPiece]:
    """The session in order, each heading with a mark that the session does not know, and so cannot forge."""
    # With `max_chars`, of longer calls head and tail around a line that says how to look up the rest; see `limits`.
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
    return tuple(piece.told(mark) for piece in pieces(transcript, mark, max_chars))


def preface(transcript: SessionTranscript, mark: str) -> tuple[str, ...]:
    """Before the first unit: the MCP servers that the session had to do without, by the last that was heard of them."""
    started = transcript.started.mcp_servers if transcript.started else ()
    states: dict[str, session.McpServer] = {str(server.name): server for server in (*started, *transcript.mcp_servers)}
    missing = [f"[{mark} MCP servers that were not connected]"]
    for state in states.values():
        error = state.error if isinstance(state, session.McpServerState) else None
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


def _around(
    entry: session.ToolReturned | UserSaid | session.Denied | session.HookRan | session.Retried | session.Noticed,
    mark: str,
) -> tuple[str, str]:
    """What happened around the conversation."""
    match entry:
        case session.ToolReturned():
            text = "\n".join((entry.output, *_image_lines(entry.images, mark)))
            return f"a tool result whose call is not known{' an error' if entry.is_error else ''}", text
        case UserSaid():
            return f"said to the model{_thread(entry)}", entry.text
        case session.Denied():
            return "denied", f"{entry.tool}: {entry.reason}"
        case session.HookRan():
            return "hook", f"{entry.name} ran on {entry.event}: {entry.outcome}\n{entry.output}"
        case session.Retried():
            return "a model request was repeated", entry.error
        case session.Noticed():
            return "notice", f"{entry.kind}: {entry.text}"


def _image_lines(images: Sequence[SessionImage], mark: str) -> Iterator[str]:
    for number, image in enumerate(images, start=1):
        yield f"[{mark} image {number}: {image.media_type}, {image.size_bytes} bytes, {image.sha256}]"


def fields(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a call was given: texts as they are, so that they can be quoted; everything else as JSON."""
    return ((name, it if isinstance(it, str) else json.dumps(it, ensure_ascii=False)) for name, it in values.items())


def _thread(entry: Turn | UserSaid) -> str:
    return ", in a sub-agent" if entry.parent_tool_call_id else ""
