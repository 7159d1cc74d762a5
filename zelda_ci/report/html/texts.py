"""Texts of a page: long ones folded, cut or coloured, with the lines to which citations lead."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal, NamedTuple

from zelda_ci.domain.numbers import format_count, whole
from zelda_ci.report.builders.anchors import Quotes
from zelda_ci.report.text import text_lines

FIRST_LINES = 14
LAST_LINES = 6
# A fold that hides less than this costs more than it saves.
FOLD_FROM = FIRST_LINES + LAST_LINES + 6
SHORT_LENGTH = 200
# Two versions of a text that are longer are not compared line by line.
MAX_COMPARED_LINES = 3_000
# How things began tells a little more than how they ended.
HEAD_SHARE = 0.6

LineKind = Literal["", "add", "del", "hunk", "cited"]


class Span(NamedTuple):
    """A line, or neighbouring ones of one kind; with an anchor where a citation leads to it."""

    text: str
    kind: LineKind = ""
    anchor: str = ""


class FoldedText(NamedTuple):
    """A text whose middle is folded where it is long."""

    first: tuple[Span, ...]
    middle: tuple[Span, ...] = ()
    last: tuple[Span, ...] = ()
    hidden: str = ""
    """Like "212 more lines"; empty where nothing is folded."""

    @property
    def is_short(self) -> bool:
        """Whether it is a line or two, which nobody has to unfold."""
        return not self.middle and sum(len(span.text) for span in self.first) <= SHORT_LENGTH


def plain(text: str, *, limit: int | None = None, quotes: Quotes | None = None) -> FoldedText:
    """A text as it is, cut in the middle where it is longer than the limit."""
    return folded([Span(line) for line in text_lines(shortened(text, limit))], quotes)


def shortened(text: str, limit: int | None) -> str:
    """The text, or its beginning and its end in whole lines, around a line that says how much is missing."""
    if limit is None or len(text) <= limit:
        return text
    head = text[: int(limit * HEAD_SHARE)]
    tail = text[len(text) - (limit - len(head)) :]
    head = head[: head.rfind("\n")] if head.rfind("\n") > len(head) // 2 else head
    tail = tail[tail.find("\n") + 1 :] if 0 <= tail.find("\n") < len(tail) // 2 else tail
    missing = whole(len(text) - len(head) - len(tail))
    return f"{head}\n[… {missing} characters are left out here …]\n{tail}"


def folded(lines: Sequence[Span], quotes: Quotes | None = None) -> FoldedText:
    """With the middle folded where it is long; browsers open a fold into which a link leads."""
    if quotes:
        lines = [_cited(line, quotes) for line in lines]
    if len(lines) <= FOLD_FROM:
        return FoldedText(_merged(lines))
    middle = lines[FIRST_LINES:-LAST_LINES]
    hidden = format_count(len(middle), "more line")
    return FoldedText(_merged(lines[:FIRST_LINES]), _merged(middle), _merged(lines[-LAST_LINES:]), hidden)


def _cited(line: Span, quotes: Quotes) -> Span:
    anchor = quotes.found_in(line.text, is_removed=line.kind == "del")
    return Span(line.text, line.kind or "cited", anchor) if anchor else line


def _merged(lines: Iterable[Span]) -> tuple[Span, ...]:
    """Neighbouring lines of a kind as one: a page of a million lines has not a million elements."""
    groups = groupby(lines, key=lambda line: (line.kind, line.anchor))
    return tuple(Span("".join(f"{line.text}\n" for line in group), *alike) for alike, group in groups)


# Parameters that are shown as lines that come and lines that go.
WRITTEN = frozenset({"old_string", "new_string", "content", "new_source", "edits"})


def written_lines(given: Mapping[str, Any], limit: int | None) -> Iterator[Span]:
    """What a call of a tool that writes files replaces by what."""
    match given:
        case {"old_string": str(old), "new_string": str(new)}:
            yield from compared_lines(shortened(old, limit), shortened(new, limit))
        case {"content": str(new)} | {"new_source": str(new)}:
            yield from (Span(f"+{line}", "add") for line in text_lines(shortened(new, limit)))
        case {"edits": list(edits) | tuple(edits)}:
            for number, edit in enumerate(edits, start=1):
                if isinstance(edit, Mapping):
                    yield Span(f"@@ edit {number} of {len(edits)} @@", "hunk")
                    yield from written_lines({key: value for key, value in edit.items() if key != "edits"}, limit)
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


# --- patches ----------------------------------------------------------------------------------------------------

PATCH_KINDS: Mapping[str, LineKind] = {"+": "add", "-": "del", "@": "hunk", "\\": "hunk"}


class PatchedFile(NamedTuple):
    """A file of a patch."""

    name: str
    added: int
    removed: int
    lines: FoldedText


def patched_files(patch: bytes, quotes: Mapping[Any, Quotes], limit: int) -> Iterator[PatchedFile]:
    """A patch file by file; `quotes` are the citations by file, `limit` is for its text."""
    parts = f"\n{patch.decode('utf-8', 'backslashreplace')}".split("\ndiff --git ")[1:]
    # Each file by itself, so that none ends in the lines of another.
    each = fair_limit([len(part) for part in parts], limit)
    for part in parts:
        header, _, body = part.partition("\n@@")
        first, *header_lines = header.split("\n")
        # The file's name behind the change; before it where it is gone.
        marks = ("+++ b/", "rename to ", "--- a/")
        names = (line.removeprefix(mark) for mark in marks for line in header_lines if line.startswith(mark))
        name = next(names, first.rpartition(" b/")[2]).rstrip()
        lines = [
            Span(line, "hunk") for line in header_lines if line.startswith(("new file", "deleted", "rename", "Bin"))
        ]
        if body:
            text = shortened(f"@@{body}", each)
            lines += (Span(line, PATCH_KINDS.get(line[:1], "")) for line in text_lines(text))
        added, removed = (f"\n{body}".count(f"\n{mark}") for mark in "+-")
        yield PatchedFile(name, added, removed, folded(lines, quotes.get(name)))


def fair_limit(sizes: Sequence[int], room: int) -> int | None:
    """The length to which the longest of several texts have to be cut so that all fit; nothing where all do."""
    if sum(sizes) <= room:
        return None
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = room // (len(ordered) - place)
        if size > share:
            return share
        room -= size
    return None
