"""A transcript and a patch as reports."""

import json
from collections.abc import Iterable, Iterator

from zelda_ci.domain.numbers import duration, format_count
from zelda_ci.domain.session import (
    Denied,
    HookRan,
    McpServerState,
    Noticed,
    Retried,
    SessionTranscript,
    Started,
    ToolCall,
    ToolReturned,
    Turn,
    UserSaid,
)
from zelda_ci.report.builders.correctness import STATUS_WORDS
from zelda_ci.report.model import Cell, Tone
from zelda_ci.report.text import clock, in_workspace, sentence, text_lines, visible

PATCH_TAB = 8


def patch_lines(patch: bytes) -> Iterator[Cell]:
    """Lines in their colours, in which nothing acts on a terminal."""
    in_hunk = False
    for raw in patch.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n"):
        in_hunk = raw.startswith("@@") or (in_hunk and not raw.startswith("diff --git "))
        line = raw.expandtabs(PATCH_TAB)
        yield Cell(visible(line, len(line)), _tone(raw, in_hunk=in_hunk))


def _tone(line: str, *, in_hunk: bool) -> Tone:
    if not in_hunk or line.startswith("@@"):
        return Tone.DIM
    if line.startswith("+"):
        return Tone.GOOD
    return Tone.BAD if line.startswith("-") else Tone.NEUTRAL


OUTPUT = "    | "


def transcript_lines(transcript: SessionTranscript) -> Iterator[Cell]:
    """Finished lines, in which nothing of the session can act; none of its words are left out."""
    yield Cell(f"Session of {visible(transcript.run_id)}", Tone.GOOD)
    if transcript.started:
        yield from _started(transcript.started)
    yield from map(_server, transcript.mcp_servers)
    yield from _message("prompt", transcript.prompt)
    for entry in transcript.entries:
        yield Cell("")
        yield from _entry(entry)
    yield Cell("")
    yield from _end(transcript)


def _started(started: Started) -> Iterator[Cell]:
    facts = (f"Claude Code {visible(started.cli_version)}", visible(started.model), visible(started.permission_mode))
    yield Cell(", ".join(facts), Tone.DIM)
    loaded = {"skills": started.skills, "agents": started.agents}
    for kind, names in loaded.items():
        if names:
            yield Cell(f"{kind}: {', '.join(map(visible, names))}", Tone.DIM)


def _server(server: McpServerState) -> Cell:
    since = "" if server.connected_at is None else f" after {duration(server.connected_at)}"
    late = ", when the session had already started" if server.late else ""
    error = f", {sentence(server.error, 300)}" if server.error else ""
    state = f"MCP server {visible(server.name)}: {visible(server.status)}"
    if server.status == "connected":
        return Cell(f"{state}{since}{late}", Tone.DIM)
    return Cell(f"{state}{error}{f', connected{since}{late}' if since else ''}", Tone.WARN)


def _entry(entry: Turn | ToolReturned | UserSaid | Retried | Denied | HookRan | Noticed) -> Iterator[Cell]:
    match entry:
        case Turn():
            yield from _turn(entry)
        case ToolReturned():
            yield _heading(entry.at, "a tool returned whose call is not known", Tone.WARN)
            yield from _lines(entry.output, OUTPUT, Tone.BAD if entry.is_error else Tone.DIM)
        case UserSaid():
            yield from _message("to the model", entry.text, entry.at)
        case Retried():
            answer = f"HTTP {entry.status}" if entry.status else "a broken connection"
            yield _heading(entry.at, f"request repeated after {answer}", Tone.WARN)
        case Denied():
            yield _heading(entry.at, f"denied: {visible(entry.tool)}, {sentence(entry.reason)}", Tone.WARN)
        case HookRan():
            text = f"hook {visible(entry.name)} on {visible(entry.event)}: {visible(entry.outcome)}"
            yield _heading(entry.at, text, Tone.DIM)
            yield from _lines(entry.output, OUTPUT, Tone.DIM)
        case Noticed():
            yield from _message(visible(entry.kind), entry.text, entry.at)


def _turn(turn: Turn) -> Iterator[Cell]:
    thread = ", sub-agent" if turn.parent_tool_call_id else ""
    author = "Claude Code itself" if turn.synthetic else visible(turn.model)
    yield _heading(turn.at, f"turn {turn.index}{thread}, {author}", Tone.GOOD)
    if turn.thinking:
        yield from _lines(turn.thinking, "  ", Tone.DIM)
    if turn.text:
        yield from _lines(turn.text, "  ")
    for call in turn.tool_calls:
        yield from _call(call)


def _call(call: ToolCall) -> Iterator[Cell]:
    yield Cell(f"  > {visible(call.name)}", Tone.WARN)
    for key, value in call.input.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = text_lines(in_workspace(text)) or [""]
        yield Cell(f"      {visible(key)}: {first}")
        yield from (Cell(f"        {line}") for line in rest)
    if call.output is None:
        yield Cell(f"{OUTPUT}(it never returned)", Tone.WARN)
    else:
        yield from _lines(call.output, OUTPUT, Tone.BAD if call.is_error else Tone.DIM)


def _message(who: str, text: str, seconds: float | None = None) -> Iterator[Cell]:
    yield Cell("") if seconds is None else _heading(seconds, who, Tone.DIM)
    if seconds is None:
        yield Cell(who, Tone.GOOD)
    yield from _lines(text, "  ")


def _end(transcript: SessionTranscript) -> Iterator[Cell]:
    turns = format_count(len(transcript.turns), "turn")
    ending = f"{STATUS_WORDS[transcript.status]} after {turns} and {duration(transcript.wall_seconds)}"
    yield Cell(f"The session {ending}.", Tone.GOOD)
    if transcript.reason:
        yield Cell(sentence(transcript.reason), Tone.BAD)


def _heading(seconds: float, text: str, tone: Tone) -> Cell:
    return Cell(f"[{clock(seconds)}] {text}", tone)


def _lines(text: str, prefix: str, tone: Tone = Tone.NEUTRAL) -> Iterable[Cell]:
    return (Cell(f"{prefix}{line}".rstrip(), tone) for line in text_lines(text))
