"""A transcript as a conversation: turns, what was called and what came back, sub-agents inside of what called them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from zelda_ci.domain.numbers import duration, format_count, whole
from zelda_ci.domain.session import Entry, SessionImage, SessionTranscript, ToolCall, Turn, UserSaid
from zelda_ci.report.builders.anchors import Quotes, SessionCitations
from zelda_ci.report.builders.transcript import aside
from zelda_ci.report.html.texts import WRITTEN, FoldedText, fair_limit, folded, plain, written_lines
from zelda_ci.report.model import Cell, Tone
from zelda_ci.report.text import clock, in_workspace, sentence

MAX_TARGET_LENGTH = 160
# What markup and numbers of an entry or a call take beside its texts.
OVERHEAD = 200
MAX_ENTRIES = 6_000
# A parameter that says what a call is about, the most telling first.
TARGETS = ("file_path", "notebook_path", "command", "pattern", "path", "skill", "subagent_type", "url", "query")
# Parameters of which the target is a part; the rest is worth a line of its own.
SHOWN_IN_TITLE = frozenset({"file_path", "notebook_path", "skill", "replace_all"})

# The bytes of an image as a data URI; empty where it is gone, or not to be shown.
ImageSource = Callable[[SessionImage], str]


def no_images(_: SessionImage) -> str:
    """Where none is shown."""
    return ""


class CallView(NamedTuple):
    """A tool call."""

    anchor: str
    name: str
    target: str
    """What it was about: a file, a command, a pattern."""
    status: Cell | None
    """Absent where it went well."""
    took: str
    inputs: list[tuple[str, FoldedText]]
    """By the names of its parameters."""
    changes: FoldedText | None
    """What it writes or replaces, as lines that go and lines that come."""
    output: FoldedText | None
    images: list[tuple[str, str]]
    """Each in words, and its source."""
    anchors: tuple[str, ...]
    """Of citations that lead to it, and to no line of it."""


class EntryView(NamedTuple):
    """One step of the conversation."""

    kind: str
    author: str
    clock: str
    anchor: str = ""
    thread: str = ""
    """Of a sub-agent, which one."""
    depth: int = 0
    """How many calls of sub-agents it is inside of."""
    tone: Tone = Tone.DIM
    marks: str = ""
    thinking: FoldedText | None = None
    text: FoldedText | None = None
    calls: tuple[CallView, ...] = ()
    anchors: tuple[str, ...] = ()
    """Of citations that lead to it, and to no line of it."""


@dataclass
class EntryBuilder:
    """Makes the entries of one session."""

    transcript: SessionTranscript
    anchor: str
    """Of the session's page."""
    cited: SessionCitations
    limit: int | None = None
    """Characters of the longest text that is shown whole."""
    source_of: ImageSource = no_images
    _threads: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By the id of the call that began a thread: its depth and its name."""

    def entries(self) -> Iterator[EntryView]:
        """In order, the prompt first."""
        prompt = self._plain(self.transcript.prompt)
        yield EntryView("user", "prompt", clock(0), f"{self.anchor}-prompt", text=prompt)
        entries, half = self.transcript.entries, MAX_ENTRIES // 2
        skipped = entries[half : max(len(entries) - half, half)]
        yield from map(self._entry, entries[:half])
        if skipped:
            text = f"{format_count(len(skipped), 'step')} of this session are left out here"
            yield EntryView("note", text, clock(skipped[0].at), tone=Tone.WARN)
        yield from map(self._entry, entries[half + len(skipped) :])

    def _entry(self, entry: Entry) -> EntryView:
        if isinstance(entry, Turn):
            return self.turn(entry)
        author, text, tone = aside(entry)
        depth, thread = self._thread(getattr(entry, "parent_tool_call_id", None))
        shown = self._plain(text) if text.strip() else None
        kind = "user" if isinstance(entry, UserSaid) else "note"
        return EntryView(kind, author, clock(entry.at), "", thread, depth, tone, text=shown)

    def _plain(self, text: str, quotes: Quotes | None = None) -> FoldedText:
        return plain(text, limit=self.limit, quotes=quotes)

    def _thread(self, parent: str | None) -> tuple[int, str]:
        return self._threads.get(parent, (1, "")) if parent else (0, "")

    def turn(self, turn: Turn) -> EntryView:
        """What the model said and called, and what came back."""
        depth, thread = self._thread(turn.parent_tool_call_id)
        for call in turn.tool_calls:
            self._threads[call.id] = depth + 1, target(call) or call.name
        quotes = self.cited.quotes.get((turn.index, 0), Quotes())
        calls = tuple(self._call(turn, number, call, quotes) for number, call in enumerate(turn.tool_calls, start=1))
        is_bad = turn.synthetic or any(call.is_error or call.denied for call in turn.tool_calls)
        marks = ["Claude Code itself" if turn.synthetic else turn.model]
        if use := turn.usage:
            marks += [f"{whole(use.output_tokens)} out", f"{whole(use.total - use.output_tokens)} in"]
        return EntryView(
            "turn",
            f"turn {turn.index}",
            clock(turn.at),
            f"{self.anchor}-t{turn.index}",
            thread,
            depth,
            Tone.BAD if is_bad else Tone.DIM,
            ", ".join(marks),
            self._plain(turn.thinking, quotes) if turn.thinking else None,
            self._plain(turn.text, quotes) if turn.text else None,
            calls,
            quotes.rest(),
        )

    def _call(self, turn: Turn, number: int, call: ToolCall, of_turn: Quotes) -> CallView:
        quotes = self.cited.quotes.get((turn.index, number), of_turn)
        about, inputs = target(call), []
        for key, value in call.input.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
            if key not in WRITTEN | SHOWN_IN_TITLE and value is not None and text != about:
                inputs.append((key, self._plain(text, quotes)))
        changes = list(written_lines(call.input, self.limit))
        return CallView(
            anchor=f"{self.anchor}-t{turn.index}-c{number}",
            name=call.name,
            target=about,
            status=call_status(call),
            took=duration(call.ended_at - call.started_at) if call.ended_at is not None else "",
            inputs=inputs,
            changes=folded(changes, quotes) if changes else None,
            output=self._plain(call.output, quotes=quotes) if call.output and call.output.strip() else None,
            images=[(f"{it.media_type}, {whole(it.size_bytes)} bytes", self.source_of(it)) for it in call.images],
            anchors=() if quotes is of_turn else quotes.rest(),
        )


def target(call: ToolCall) -> str:
    """What a call is about, in a line."""
    given = call.input
    key = next((key for key in TARGETS if isinstance(given.get(key), str)), None)
    text = given[key] if key else next((value for value in given.values() if isinstance(value, str)), "")
    return sentence(in_workspace(str(text)), MAX_TARGET_LENGTH)


def call_status(call: ToolCall) -> Cell | None:
    """How a call ended, unless it went well."""
    if call.denied:
        return Cell("denied", Tone.BAD)
    if call.is_error:
        return Cell("error", Tone.BAD)
    return Cell("never returned", Tone.WARN) if call.ended_at is None and call.output is None else None


def text_limit(transcript: SessionTranscript, room: int) -> int | None:
    """The length to which texts are cut so that the session takes no more than its room; nothing where it is whole."""
    limit = fair_limit([OVERHEAD + size for entry in transcript.entries for size in _sizes(entry)], room)
    return None if limit is None else max(limit - OVERHEAD, OVERHEAD)


def _sizes(entry: Entry) -> Iterator[int]:
    if not isinstance(entry, Turn):
        yield len(aside(entry)[1])
        return
    yield len(entry.text or "") + len(entry.thinking or "")
    for call in entry.tool_calls:
        yield sum(len(str(value)) for value in call.input.values())
        yield len(call.output or "")
