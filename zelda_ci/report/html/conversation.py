"""A transcript as a conversation: turns, what was called and what came back, sub-agents inside of what called them."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from zelda_ci.domain.numbers import duration, format_count, whole
from zelda_ci.domain.session import (
    Denied,
    Entry,
    HookRan,
    Noticed,
    Retried,
    SessionImage,
    SessionTranscript,
    ToolCall,
    ToolReturned,
    Turn,
    UserSaid,
)
from zelda_ci.report.builders.anchors import Quotes, SessionCitations
from zelda_ci.report.html.model import CallView, EntryView, FoldedText, ImageView
from zelda_ci.report.html.texts import WRITTEN, fair_limit, plain, written_lines
from zelda_ci.report.model import Cell, Tone
from zelda_ci.report.text import clock, sentence, visible

MAX_TARGET_LENGTH = 160
# What markup and numbers of an entry or a call take beside its texts.
OVERHEAD = 200
MAX_ENTRIES = 6_000
# A parameter that says what a call is about, the most telling first.
TARGETS = ("file_path", "notebook_path", "command", "pattern", "path", "skill", "subagent_type", "url", "query")
# Parameters of which the target is a part; the rest is worth a line of its own.
SPOKEN_FOR = frozenset({"file_path", "notebook_path", "skill", "replace_all"})

# The bytes of an image that lies beside the transcript; nothing where it is gone, or not to be shown.
ImageSource = Callable[[SessionImage], str]


def no_images(_image: SessionImage) -> str:
    """Of a report that shows none."""
    return ""


@dataclass
class EntryBuilder:
    """Makes the entries of one session."""

    transcript: SessionTranscript
    anchor: str
    cited: SessionCitations
    root: str = ""
    """The folder in which the session worked, which readers need not see in every path."""
    limit: int | None = None
    """Characters of the longest text that is shown whole."""
    source_of: ImageSource = no_images
    _threads: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By the id of the call that began a thread: its depth and its name."""

    def entries(self) -> Iterator[EntryView]:
        """In order, the prompt first."""
        yield EntryView("user", f"{self.anchor}-prompt", "prompt", clock(0), text=self._plain(self.transcript.prompt))
        entries = self.transcript.entries
        skipped = len(entries) - MAX_ENTRIES
        for place, entry in enumerate(entries):
            if skipped > 0 and MAX_ENTRIES // 2 <= place < MAX_ENTRIES // 2 + skipped:
                if place == MAX_ENTRIES // 2:
                    text = f"{format_count(skipped, 'step')} of this session are left out here"
                    yield EntryView("note", "", text, clock(entry.at), tone="warn")
                continue
            yield self._entry(entry)

    def _entry(self, entry: Entry) -> EntryView:
        if isinstance(entry, Turn):
            return self._turn(entry)
        author, text, tone = _aside(entry)
        depth, thread = self._thread(getattr(entry, "parent_tool_call_id", None))
        kind: Literal["user", "note"] = "user" if isinstance(entry, UserSaid) else "note"
        shown = self._plain(text) if text.strip() else None
        return EntryView(kind, "", author, clock(entry.at), thread, depth, tone, text=shown)

    def _turn(self, turn: Turn) -> EntryView:
        depth, thread = self._thread(turn.parent_tool_call_id)
        for call in turn.tool_calls:
            self._threads[call.id] = depth + 1, target(call, self.root) or call.name
        quotes = self.cited.by_call.get((turn.index, 0), Quotes())
        calls = tuple(self._call(turn, number, call, quotes) for number, call in enumerate(turn.tool_calls, start=1))
        is_bad = turn.synthetic or any(call.is_error or call.denied for call in turn.tool_calls)
        return EntryView(
            "turn",
            f"{self.anchor}-t{turn.index}",
            f"turn {turn.index}",
            clock(turn.at),
            thread,
            depth,
            "bad" if is_bad else "",
            tuple(_marks(turn)),
            self._plain(turn.thinking, quotes) if turn.thinking else None,
            self._plain(turn.text, quotes) if turn.text else None,
            calls,
            quotes.rest(),
        )

    def _thread(self, parent: str | None) -> tuple[int, str]:
        return self._threads.get(parent, (1, "")) if parent else (0, "")

    def _call(self, turn: Turn, number: int, call: ToolCall, of_turn: Quotes) -> CallView:
        quotes = self.cited.by_call.get((turn.index, number), of_turn)
        about = target(call, self.root)
        output = None if call.output is None else self._plain(call.output, quotes) if call.output.strip() else None
        return CallView(
            anchor=f"{self.anchor}-t{turn.index}-c{number}",
            name=visible(call.name, 80),
            target=about,
            status=call_status(call),
            took=duration(call.ended_at - call.started_at) if call.ended_at is not None else "",
            inputs=tuple(self._inputs(call, about, quotes)),
            changes=written_lines(call.input, self.limit, quotes),
            output=output,
            images=tuple(self._image(image) for image in call.images),
            anchors=() if quotes is of_turn else quotes.rest(),
        )

    def _inputs(self, call: ToolCall, about: str, quotes: Quotes) -> Iterator[tuple[str, FoldedText]]:
        for key, value in call.input.items():
            if key in WRITTEN or key in SPOKEN_FOR or value is None:
                continue
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
            if text != about:
                yield visible(key, 60), self._plain(text, quotes)

    def _image(self, image: SessionImage) -> ImageView:
        text = f"{image.media_type}, {whole(image.size_bytes)} bytes"
        return ImageView(text, self.source_of(image))

    def _plain(self, text: str, quotes: Quotes | None = None) -> FoldedText:
        return plain(text, limit=self.limit, quotes=quotes)


EntryTone = Literal["", "warn", "bad"]


def _aside(entry: ToolReturned | UserSaid | Retried | Denied | HookRan | Noticed) -> tuple[str, str, EntryTone]:
    """Who, what, and how grave it is."""
    match entry:
        case UserSaid():
            return "to the model", entry.text, ""
        case ToolReturned():
            return "a tool returned whose call is not known", entry.output, "bad" if entry.is_error else "warn"
        case Retried():
            answer = f"HTTP {entry.status}" if entry.status else "a broken connection"
            return f"request repeated after {answer}", entry.error, "warn"
        case Denied():
            return f"denied: {visible(entry.tool)}", entry.reason, "bad"
        case HookRan():
            author = f"hook {visible(entry.name)} on {visible(entry.event)}: {visible(entry.outcome)}"
            return author, entry.output, "" if entry.outcome == "success" else "warn"
        case Noticed():
            return visible(entry.kind), entry.text, ""


def target(call: ToolCall, root: str) -> str:
    """What a call is about, in a line."""
    given: Mapping[str, Any] = call.input
    key = next((key for key in TARGETS if isinstance(given.get(key), str)), None)
    text = given[key] if key else next((value for value in given.values() if isinstance(value, str)), "")
    return sentence(text.replace(root, "") if root else text, MAX_TARGET_LENGTH)


def call_status(call: ToolCall) -> Cell | None:
    """How a call ended, unless it went well."""
    if call.denied:
        return Cell("denied", Tone.BAD)
    if call.is_error:
        return Cell("error", Tone.BAD)
    return Cell("never returned", Tone.WARN) if call.ended_at is None and call.output is None else None


def _marks(turn: Turn) -> Iterator[Cell]:
    yield Cell("Claude Code itself" if turn.synthetic else visible(turn.model), Tone.DIM)
    if turn.usage:
        use = turn.usage
        yield Cell(f"{whole(use.output_tokens)} out", Tone.DIM)
        yield Cell(f"{whole(use.total - use.output_tokens)} in", Tone.DIM)


def working_folder(transcript: SessionTranscript, files: tuple[str, ...]) -> str:
    """The folder in which a session worked, with a slash at its end, by a file that is known from its top."""
    ends = tuple(f"/{file}" for file in files)
    for call in transcript.tool_calls:
        path = call.input.get("file_path")
        if isinstance(path, str) and path.startswith("/"):
            for end in ends:
                if path.endswith(end):
                    return path[: len(path) - len(end) + 1]
    return ""


def text_limit(transcript: SessionTranscript, room: int) -> int | None:
    """The length to which texts are cut so that the session takes no more than its room; nothing where it is whole."""
    sizes = [OVERHEAD + size for entry in transcript.entries for size in _sizes(entry)]
    limit = fair_limit(sizes, room)
    return None if limit is None else max(limit - OVERHEAD, OVERHEAD)


def _sizes(entry: Entry) -> Iterator[int]:
    match entry:
        case Turn():
            yield len(entry.text or "") + len(entry.thinking or "")
            for call in entry.tool_calls:
                yield sum(len(str(value)) for value in call.input.values())
                yield len(call.output or "")
        case UserSaid() | Noticed():
            yield len(entry.text)
        case ToolReturned() | HookRan():
            yield len(entry.output)
        case Denied() | Retried():
            yield 0
