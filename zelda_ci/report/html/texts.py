"""Texts of a page: long ones folded, cut or coloured, with the lines to which citations lead."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from zelda_ci.domain.numbers import format_count, whole
from zelda_ci.report.builders.anchors import Quotes
from zelda_ci.report.html.model import FoldedText, LineKind, PatchedFile, Span
from zelda_ci.report.text import sentence, text_lines, visible

FIRST_LINES = 14
LAST_LINES = 6
# A fold that hides less than this costs more than it saves.
FOLD_FROM = FIRST_LINES + LAST_LINES + 6
# Two versions of a text that are longer are not compared line by line.
MAX_COMPARED_LINES = 3_000
# How things began tells a little more than how they ended.
HEAD_SHARE = 0.6

# A line with its kind, and the anchor of the citation that leads to it.
PageLine = tuple[str, LineKind, str]


def plain(text: str, *, limit: int | None = None, quotes: Quotes | None = None) -> FoldedText:
    """A text as it is, cut in the middle where it is longer than the limit."""
    return folded(_cited([(line, "", "") for line in text_lines(shortened(text, limit))], quotes))


def _cited(lines: Iterable[PageLine], quotes: Quotes | None) -> list[PageLine]:
    if quotes is None or not quotes.wanted:
        return list(lines)
    return [(text, "cited" if anchor and not kind else kind, anchor) for text, kind, anchor in _anchored(lines, quotes)]


def _anchored(lines: Iterable[PageLine], quotes: Quotes) -> Iterator[PageLine]:
    for text, kind, _ in lines:
        yield text, kind, quotes.found_in(text) if kind != "del" and quotes.wanted else ""


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


def folded(lines: Sequence[PageLine]) -> FoldedText:
    """With the middle folded where it is long; browsers open a fold into which a link leads."""
    if len(lines) <= FOLD_FROM:
        return FoldedText(merged(lines))
    middle = lines[FIRST_LINES:-LAST_LINES]
    hidden = format_count(len(middle), "more line")
    return FoldedText(merged(lines[:FIRST_LINES]), merged(middle), merged(lines[-LAST_LINES:]), hidden)


def merged(lines: Iterable[PageLine]) -> tuple[Span, ...]:
    """Neighbouring lines of a kind as one: a page of a million lines has not a million elements."""
    spans = []
    for (kind, anchor), group in groupby(lines, key=lambda line: (line[1], line[2])):
        spans.append(Span("".join(f"{text}\n" for text, _, _ in group), kind, anchor))
    return tuple(spans)


# --- what a call writes -----------------------------------------------------------------------------------------

# Parameters that are shown as lines that come and lines that go.
WRITTEN = frozenset({"old_string", "new_string", "content", "new_source", "edits"})


def written_lines(given: Mapping[str, Any], limit: int | None, quotes: Quotes | None) -> FoldedText | None:
    """What a call of a tool that writes files replaces by what; nothing where it is none."""
    lines = _cited(_changes(given, limit), quotes)
    return folded(lines) if lines else None


def _changes(given: Mapping[str, Any], limit: int | None) -> Iterator[PageLine]:
    match given:
        case {"old_string": str(old), "new_string": str(new)}:
            yield from compared_lines(shortened(old, limit), shortened(new, limit))
        case {"content": str(new)} | {"new_source": str(new)}:
            yield from ((f"+{line}", "add", "") for line in text_lines(shortened(new, limit)))
        case {"edits": list(edits) | tuple(edits)}:
            for number, edit in enumerate(edits, start=1):
                if isinstance(edit, Mapping):
                    yield f"@@ edit {number} of {len(edits)} @@", "hunk", ""
                    yield from _changes({key: value for key, value in edit.items() if key != "edits"}, limit)
        case _:
            pass


def compared_lines(old: str, new: str) -> Iterator[PageLine]:
    """Lines that stay, go and come, as a patch would show them."""
    before, after = text_lines(old) if old else [], text_lines(new) if new else []
    if len(before) + len(after) > MAX_COMPARED_LINES:
        opcodes = [("replace", 0, len(before), 0, len(after))]
    else:
        opcodes = list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    for tag, start, end, other_start, other_end in opcodes:
        if tag == "equal":
            yield from ((f" {line}", "", "") for line in before[start:end])
        else:
            yield from ((f"-{line}", "del", "") for line in before[start:end])
            yield from ((f"+{line}", "add", "") for line in after[other_start:other_end])


# --- patches ----------------------------------------------------------------------------------------------------

MAX_FILE_LINES = 2_000
PATCH_KINDS: Mapping[str, LineKind] = {"+": "add", "-": "del", "@": "hunk", "\\": "hunk"}


def patched_files(patch: bytes, quotes: Mapping[str, Quotes], limit: int) -> tuple[PatchedFile, ...]:
    """A patch file by file; `quotes` are the citations by file, `limit` is for its text."""
    parts = f"\n{patch.decode('utf-8', 'backslashreplace')}".split("\ndiff --git ")[1:]
    # Each file by itself, so that none ends in the lines of another.
    each = fair_limit([len(part) for part in parts], limit)
    return tuple(_patched(part, quotes, each) for part in parts)


def _patched(part: str, quotes: Mapping[str, Quotes], limit: int | None) -> PatchedFile:
    whole = [PATCH_KINDS.get(line[:1], "") for line in part.partition("\n@@")[2].splitlines()]
    first, *lines = text_lines(shortened(part, limit))
    name = _name(first, lines)
    start = next((place for place, line in enumerate(lines) if line.startswith("@@")), len(lines))
    header = [(line, "hunk", "") for line in lines[:start] if line.startswith(("new file", "deleted", "rename", "Bin"))]
    body: list[PageLine] = [(line, PATCH_KINDS.get(line[:1], ""), "") for line in lines[start:]]
    shown = body[:MAX_FILE_LINES]
    if len(body) > MAX_FILE_LINES:
        shown.append((f"[… {format_count(len(body) - MAX_FILE_LINES, 'line')} more are left out here …]", "hunk", ""))
    cited = _cited([*_kinds(header), *shown], quotes.get(name))
    return PatchedFile(visible(name), whole.count("add"), whole.count("del"), folded(cited))


def _kinds(lines: Iterable[tuple[str, str, str]]) -> Iterator[PageLine]:
    return ((text, "hunk", anchor) for text, _, anchor in lines)


def _name(first: str, lines: Sequence[str]) -> str:
    """The file's name behind the change; before it where it is gone."""
    for mark in ("+++ b/", "rename to ", "--- a/"):
        for line in lines[:12]:
            if line.startswith(mark):
                return line.removeprefix(mark).rstrip()
    return first.rpartition(" b/")[2] or sentence(first, 200)


def fair_limit(sizes: Sequence[int], room: int) -> int | None:
    """The length to which the longest of several texts have to be cut so that all fit; nothing where all do."""
    if sum(sizes) <= room:
        return None
    left = room
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = left // (len(ordered) - place)
        if size > share:
            return share
        left -= size
    return None
