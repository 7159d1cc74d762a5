"""What sessions said, did and changed, for its templates."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal, NamedTuple

from zelda_ci.domain.numbers import whole
from zelda_ci.domain.session import Retried, SessionImage, SessionTranscript, ToolCall, Turn
from zelda_ci.report.builders.anchors import Quotes, SessionCitations
from zelda_ci.report.model import Cell, Tone
from zelda_ci.report.text import in_workspace, sentence, text_lines

# Two versions of a text that are longer are not compared line by line.
MAX_COMPARED_LINES = 3_000
LineKind = Literal["", "add", "del", "hunk", "cited"]


class Span(NamedTuple):
    """A line, or neighbouring ones of one kind; with an anchor where a citation leads to it."""

    text: str
    kind: LineKind = ""
    anchor: str = ""


def spans(text: str, limit: int | None = None, quotes: Quotes | None = None) -> list[Span]:
    """A text as it is, cut in the middle where it is longer than the limit."""
    return cited((Span(line) for line in text_lines(shortened(text, limit))), quotes)


def cited(lines: Iterable[Span], quotes: Quotes | None) -> list[Span]:
    """The lines, those that hold a quote with its anchor."""
    found = []
    for line in lines:
        anchor = quotes.found_in(line.text, is_removed=line.kind == "del") if quotes else ""
        found.append(Span(line.text, line.kind or "cited", anchor) if anchor else line)
    return found


def merged(lines: Iterable[Span]) -> Iterator[Span]:
    """Neighbouring lines of a kind as one: a page of a million lines has not a million elements."""
    for alike, group in groupby(lines, key=lambda line: line[1:]):
        yield Span("".join(f"{line.text}\n" for line in group), *alike)


def shortened(text: str, limit: int | None) -> str:
    """The text, or its beginning and its end in whole lines, around a line that says how much is missing."""
    if limit is None or len(text) <= limit:
        return text
    # How things began tells a little more than how they ended.
    head = text[: int(limit * 0.6)]
    tail = text[len(text) - (limit - len(head)) :]
    head = head[: head.rfind("\n")] if head.rfind("\n") > len(head) // 2 else head
    tail = tail[tail.find("\n") + 1 :] if 0 <= tail.find("\n") < len(tail) // 2 else tail
    missing = whole(len(text) - len(head) - len(tail))
    return f"{head}\n[… {missing} characters are left out here …]\n{tail}"


def written_lines(given: Mapping[str, Any], limit: int | None) -> Iterator[Span]:
    """What a call of a tool that writes files replaces by what."""
    match given:
        case {"old_string": str(old), "new_string": str(new)}:
            yield from compared_lines(shortened(old, limit), shortened(new, limit))
        case {"content": str(new)} | {"new_source": str(new)}:
            yield from (Span(f"+{line}", "add") for line in text_lines(shortened(new, limit)))
        case _:
            pass


def compared_lines(old: str, new: str) -> Iterator[Span]:
    """Lines that stay, go and come, as a patch would show them."""
    before, after = text_lines(old) if old else [], text_lines(new) if new else []
    if len(before) + len(after) > MAX_COMPARED_LINES:
        opcodes = [("replace", 0, len(before), 0, len(after))]
    else:
        opcodes = list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    for tag, start, end, other_start, other_end in opcodes:
        if tag == "equal":
            yield from (Span(f" {line}") for line in before[start:end])
        else:
            yield from (Span(f"-{line}", "del") for line in before[start:end])
            yield from (Span(f"+{line}", "add") for line in after[other_start:other_end])


PATCH_KINDS: Mapping[str, LineKind] = {"+": "add", "-": "del", "@": "hunk", "\\": "hunk"}


def patched_files(patch: bytes, quotes: Mapping[Any, Quotes], limit: int) -> Iterator[tuple[str, int, int, list[Span]]]:
    """A patch file by file: its name, how many lines come and go, and these; of a long one, an equal share of each."""
    parts = f"\n{patch.decode('utf-8', 'backslashreplace')}".split("\ndiff --git ")[1:]
    for part in parts:
        header, _, body = part.partition("\n@@")
        first, *rest = header.split("\n")
        # The file's name behind the change; before it where it is gone.
        marks = ("+++ b/", "rename to ", "--- a/")
        names = (line.removeprefix(mark) for mark in marks for line in rest if line.startswith(mark))
        name = next(names, first.rpartition(" b/")[2]).rstrip()
        lines = [Span(line, "hunk") for line in rest if line.startswith(("new file", "deleted", "rename", "Bin"))]
        if body:
            text = shortened(f"@@{body}", limit // len(parts) if len(patch) > limit else None)
            lines += (Span(line, PATCH_KINDS.get(line[:1], "")) for line in text_lines(text))
        added, removed = (f"\n{body}".count(f"\n{mark}") for mark in "+-")
        yield name, added, removed, cited(lines, quotes.get(name))


# A parameter that says what a call is about, the most telling first.
TARGETS = ("file_path", "notebook_path", "command", "pattern", "path", "skill", "subagent_type", "url", "query")
# Parameters that are shown elsewhere: in the title, or as lines that come and lines that go.
SHOWN = {"file_path", "notebook_path", "skill", "replace_all", "old_string", "new_string", "content", "new_source"}


@dataclass
class ShownConversation:
    """What one session said and did."""

    transcript: SessionTranscript
    anchor: str
    """Of the session's page."""
    cited: SessionCitations
    limit: int | None = None
    """Characters of the longest text that is shown whole."""
    source_of: Callable[[SessionImage], str] = lambda _: ""
    """The bytes of an image as a data URI; empty where it is gone, or not to be shown."""

    def __post_init__(self) -> None:
        self._threads: dict[str | None, tuple[int, str]] = {None: (0, "")}
        for turn in self.transcript.turns:
            depth, _ = self.thread(turn.parent_tool_call_id)
            self._threads |= {call.id: (depth + 1, target(call) or call.name) for call in turn.tool_calls}

    def thread(self, parent: str | None) -> tuple[int, str]:
        """How many calls of sub-agents something is inside of, and which one; `parent` is the id of that call."""
        return self._threads.get(parent, (1, ""))

    def quotes(self, turn: Turn, call: int = 0) -> Quotes:
        """Citations of a call, or of the turn where nothing else leads to it."""
        of_turn = self.cited.quotes.get((turn.index, 0), Quotes())
        return self.cited.quotes.get((turn.index, call), of_turn)

    def text(self, text: str, quotes: Quotes | None = None) -> list[Span]:
        return spans(text, self.limit, quotes)

    def inputs(self, call: ToolCall, quotes: Quotes) -> Iterator[tuple[str, list[Span]]]:
        """The parameters of a call that its title does not show."""
        about = target(call)
        for key, value in call.input.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
            if key not in SHOWN and value is not None and text != about:
                yield key, self.text(text, quotes)

    def changes(self, call: ToolCall, quotes: Quotes) -> list[Span]:
        """What a call writes or replaces, as lines that go and lines that come."""
        return cited(written_lines(call.input, self.limit), quotes)


def target(call: ToolCall) -> str:
    """What a call is about, in a line."""
    given = call.input
    key = next((key for key in TARGETS if isinstance(given.get(key), str)), None)
    text = given[key] if key else next((value for value in given.values() if isinstance(value, str)), "")
    return sentence(in_workspace(str(text)), 160)


def call_status(call: ToolCall) -> Cell | None:
    """How a call ended, unless it went well."""
    if call.denied or call.is_error:
        return Cell("denied" if call.denied else "error", Tone.BAD)
    return Cell("never returned", Tone.WARN) if call.ended_at is None and call.output is None else None


# Of a time line: its kind, from when to when in seconds, what it was, and its place below the session's anchor.
Bar = tuple[str, float, float, str, str]


def time_line(transcript: SessionTranscript) -> dict[str, list[Bar]]:
    """What the time of a session went to, in lanes by their names."""
    lanes: dict[str, list[Bar]] = {"Model": [], "Tools": [], "Waiting": []}
    ready = 0.0
    for turn in transcript.turns:
        if not turn.parent_tool_call_id:
            # From what came back last to what the model said.
            said = max([turn.at, *(call.started_at for call in turn.tool_calls)])
            lanes["Model"].append(("model", ready, said, f"turn {turn.index}", f"t{turn.index}"))
            ready = max([said, *(call.ended_at or said for call in turn.tool_calls)])
        for number, call in enumerate(turn.tool_calls, start=1):
            end = call.ended_at if call.ended_at is not None else seconds(transcript)
            kind = "bad" if call.is_error or call.denied else "agent" if call.name in {"Agent", "Task"} else "tool"
            title = f"{call.name} {target(call)[:80]}"
            lanes["Tools"].append((kind, call.started_at, end, title, f"t{turn.index}-c{number}"))
    if transcript.started and transcript.started.at > 0:
        lanes["Waiting"].append(("wait", 0, transcript.started.at, "start", ""))
    retries = (entry for entry in transcript.entries if isinstance(entry, Retried))
    lanes["Waiting"] += (("wait", it.at, it.at + it.delay_seconds, "retry", "") for it in retries)
    return {name: bars for name, bars in lanes.items() if bars}


def seconds(transcript: SessionTranscript) -> float:
    return max([transcript.wall_seconds, *(call.ended_at or call.started_at for call in transcript.tool_calls), 0.001])


# --- two sides --------------------------------------------------------------------------------------------------

# Of a text; the whole is one click away.
MAX_SHOWN_LENGTH = 800


class SidesRow(NamedTuple):
    """Turns that belong together; one of them is absent where the other side has nothing alike."""

    base: Turn | None
    head: Turn | None
    kind: str
    """`same`, `alike` (the same with other words, such as other text in the same file), `differs` or `only`."""
    difference: Sequence[Span] = ()
    """Of those that are alike, what the head wrote instead."""


def side_rows(before: tuple[Turn, ...], after: tuple[Turn, ...]) -> Iterator[SidesRow]:
    """Turns of two sessions, aligned by what they called."""
    # By what a turn did: the tools it called, each with what it was about.
    left, right = (
        [tuple((call.name, target(call)) for call in turn.tool_calls) for turn in turns] for turns in (before, after)
    )
    for tag, start, end, other_start, other_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        pairs = min(end - start, other_end - other_start)
        for old, new in zip(before[start : start + pairs], after[other_start : other_start + pairs], strict=True):
            yield _pair(old, new, is_equal=tag == "equal")
        yield from (SidesRow(turn, None, "only") for turn in before[start + pairs : end])
        yield from (SidesRow(None, turn, "only") for turn in after[other_start + pairs : other_end])


def _pair(old: Turn, new: Turn, *, is_equal: bool) -> SidesRow:
    # The same command that fails on one side only is where the sides part.
    went = [[call.is_error or call.denied for call in turn.tool_calls] for turn in (old, new)]
    if not is_equal or went[0] != went[1]:
        return SidesRow(old, new, "differs")
    written = [
        [line for call in turn.tool_calls for line in written_lines(call.input, MAX_SHOWN_LENGTH)]
        for turn in (old, new)
    ]
    if written[0] == written[1]:
        return SidesRow(old, new, "same")
    # What the head wrote instead, without most of what both have in common.
    texts = ("\n".join(line.text[1:] for line in side if line.kind == "add") for side in written)
    lines = list(compared_lines(*texts))
    near = [line for place, line in enumerate(lines) if any(it.kind for it in lines[max(place - 1, 0) : place + 2])]
    return SidesRow(old, new, "alike", near)
