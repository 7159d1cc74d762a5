"""A transcript and a patch as lines for a terminal, which spells out what acts in them."""

import json
from collections.abc import Iterator

from zelda_ci.domain.numbers import duration, format_count
from zelda_ci.domain.session import Denied, HookRan, Noticed, Retried, SessionTranscript, ToolReturned, Turn, UserSaid
from zelda_ci.report.model import ENDINGS, Cell, Tone
from zelda_ci.report.text import clock, in_workspace, sentence, text_lines

PATCH_TAB = 8
PATCH_TONES = {"@": Tone.DIM, "+": Tone.GOOD, "-": Tone.BAD}
OUTPUT = "    | "


def patch_lines(patch: bytes) -> Iterator[Cell]:
    in_hunk = False
    for line in patch.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n"):
        in_hunk = line.startswith("@@") or (in_hunk and not line.startswith("diff --git "))
        yield Cell(line.expandtabs(PATCH_TAB), PATCH_TONES.get(line[:1], Tone.NEUTRAL) if in_hunk else Tone.DIM)


def transcript_lines(transcript: SessionTranscript) -> Iterator[Cell]:
    """A session as lines; none of its words are left out."""
    yield Cell(f"Session of {transcript.run_id}", Tone.GOOD)
    if started := transcript.started:
        yield Cell(f"Claude Code {started.cli_version}, {started.model}, {started.permission_mode}", Tone.DIM)
        for kind, names in (("skills", started.skills), ("agents", started.agents)):
            if names:
                yield Cell(f"{kind}: {', '.join(names)}", Tone.DIM)
    for server in transcript.mcp_servers:
        words, is_connected = f"MCP server {server.name}: {server.status}", server.status == "connected"
        if server.error and not is_connected:
            words += f", {sentence(server.error, 300)}"
        if server.connected_at is not None:
            words += f"{', connected' * (not is_connected)} after {duration(server.connected_at)}"
            words += ", when the session had already started" * server.late
        yield Cell(words, Tone.DIM if is_connected else Tone.WARN)
    yield from (Cell(""), Cell("prompt", Tone.GOOD), *_lines(transcript.prompt, "  "))
    for entry in transcript.entries:
        yield Cell("")
        if isinstance(entry, Turn):
            yield from _turn(entry)
        else:
            who, text, tone = aside(entry)
            yield Cell(f"[{clock(entry.at)}] {who}", tone)
            yield from _lines(text, OUTPUT, Tone.DIM) if text.strip() else ()
    turns = format_count(len(transcript.turns), "turn")
    ending = f"{ENDINGS[transcript.status]} after {turns} and {duration(transcript.wall_seconds)}"
    yield from (Cell(""), Cell(f"The session {ending}.", Tone.GOOD))
    if transcript.reason:
        yield Cell(sentence(transcript.reason), Tone.BAD)


def aside(entry: ToolReturned | UserSaid | Retried | Denied | HookRan | Noticed) -> tuple[str, str, Tone]:
    """Of everything but a turn: whose it is or what happened, its text, and how grave it is."""
    match entry:
        case ToolReturned():
            return "a tool returned whose call is not known", entry.output, Tone.BAD if entry.is_error else Tone.WARN
        case UserSaid():
            return "to the model", entry.text, Tone.DIM
        case Retried():
            answer = f"HTTP {entry.status}" if entry.status else "a broken connection"
            return f"request repeated after {answer}", entry.error, Tone.WARN
        case Denied():
            return f"denied: {entry.tool}", entry.reason, Tone.BAD
        case HookRan():
            who = f"hook {entry.name} on {entry.event}: {entry.outcome}"
            return who, entry.output, Tone.DIM if entry.outcome == "success" else Tone.WARN
        case Noticed():
            return entry.kind, entry.text, Tone.DIM


def _turn(turn: Turn) -> Iterator[Cell]:
    thread = ", sub-agent" if turn.parent_tool_call_id else ""
    author = "Claude Code itself" if turn.synthetic else turn.model
    yield Cell(f"[{clock(turn.at)}] turn {turn.index}{thread}, {author}", Tone.GOOD)
    yield from _lines(turn.thinking, "  ", Tone.DIM) if turn.thinking else ()
    yield from _lines(turn.text, "  ") if turn.text else ()
    for call in turn.tool_calls:
        yield Cell(f"  > {call.name}", Tone.WARN)
        for key, value in call.input.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            first, *rest = text_lines(in_workspace(text))
            yield Cell(f"      {key}: {first}")
            yield from (Cell(f"        {line}") for line in rest)
        if call.output is None:
            yield Cell(f"{OUTPUT}(it never returned)", Tone.WARN)
        else:
            yield from _lines(call.output, OUTPUT, Tone.BAD if call.is_error else Tone.DIM)


def _lines(text: str, prefix: str, tone: Tone = Tone.NEUTRAL) -> Iterator[Cell]:
    return (Cell(f"{prefix}{line}".rstrip(), tone) for line in text_lines(text))
