"""Texts of a page as lines: long ones cut, changes coloured, with the lines to which citations lead."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal, NamedTuple

from zelda_ci.domain.numbers import whole
from zelda_ci.report.builders.anchors import Quotes
from zelda_ci.report.text import text_lines

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


def plain(text: str, limit: int | None = None, quotes: Quotes | None = None) -> list[Span]:
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
    head = text[: int(limit * HEAD_SHARE)]
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
