"""Two sessions of a suite side by side: turns aligned by what they called, and where they part."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.session import SessionTranscript, Turn
from zelda_ci.report.builders.anchors import SessionCitations
from zelda_ci.report.html.conversation import ShownConversation, target
from zelda_ci.report.html.suite import SuiteSessions
from zelda_ci.report.html.texts import Span, compared_lines, written_lines

MAX_TURNS = 400
# Of a text; the whole is one click away.
MAX_SHOWN_LENGTH = 800


class SidesRow(NamedTuple):
    """Turns that belong together; one of them is absent where the other side has nothing alike."""

    base: Turn | None
    head: Turn | None
    kind: str
    """`same`, `alike` (the same with other words, such as other text in the same file), `differs` or `only`."""
    difference: list[Span]
    """Of those that are alike, what the head wrote instead."""


def sides_page(
    suite: SuiteSessions, base_talk: SessionTranscript | None, head_talk: SessionTranscript | None
) -> dict[str, Any]:
    """The page of the pair, for its template; turns beyond the first few hundred are in the sessions."""
    if base_talk is None or head_talk is None:
        summary = "The two sides cannot be shown beside each other: a transcript is not stored here."
        return {"rows": [], "first": None, "summary": summary}
    assert suite.pair is not None  # noqa: S101 - without one there is no such page
    base, head, why = suite.pair
    rows = list(_rows(base_talk.turns[:MAX_TURNS], head_talk.turns[:MAX_TURNS]))
    parted = [place for place, row in enumerate(rows) if row.kind in {"differs", "only"}]
    # At another step, or where there is none at other text.
    first = next(iter(parted or [place for place, row in enumerate(rows) if row.kind == "alike"]), None)
    summary = f"{len(rows) - len(parted)} of {format_count(len(rows), 'step')} alike"
    if not parted:
        summary = f"Both took the same steps{' and differ in what they wrote' if first is not None else ''}"
    if max(len(base_talk.turns), len(head_talk.turns)) > MAX_TURNS:
        summary += f"; the first {MAX_TURNS} turns of each are shown"
    return {
        "base_talk": ShownConversation(base_talk, base.anchor, SessionCitations(), MAX_SHOWN_LENGTH),
        "head_talk": ShownConversation(head_talk, head.anchor, SessionCitations(), MAX_SHOWN_LENGTH),
        "rows": rows,
        "first": first,
        "summary": f"{summary}. {why}".strip(),
    }


def _rows(before: tuple[Turn, ...], after: tuple[Turn, ...]) -> Iterator[SidesRow]:
    # By what a turn did: the tools it called, each with what it was about.
    left, right = (
        [tuple((call.name, target(call)) for call in turn.tool_calls) for turn in turns] for turns in (before, after)
    )
    for tag, start, end, other_start, other_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        pairs = min(end - start, other_end - other_start)
        for old, new in zip(before[start : start + pairs], after[other_start : other_start + pairs], strict=True):
            yield _pair(old, new, is_equal=tag == "equal")
        yield from (SidesRow(turn, None, "only", []) for turn in before[start + pairs : end])
        yield from (SidesRow(None, turn, "only", []) for turn in after[other_start + pairs : other_end])


def _pair(old: Turn, new: Turn, *, is_equal: bool) -> SidesRow:
    # The same command that fails on one side only is where the sides part.
    went = [[call.is_error or call.denied for call in turn.tool_calls] for turn in (old, new)]
    if not is_equal or went[0] != went[1]:
        return SidesRow(old, new, "differs", [])
    written = [
        [line for call in turn.tool_calls for line in written_lines(call.input, MAX_SHOWN_LENGTH)]
        for turn in (old, new)
    ]
    if written[0] == written[1]:
        return SidesRow(old, new, "same", [])
    # What the head wrote instead, without most of what both have in common.
    texts = ("\n".join(line.text[1:] for line in side if line.kind == "add") for side in written)
    lines = list(compared_lines(*texts))
    near = [line for place, line in enumerate(lines) if any(it.kind for it in lines[max(place - 1, 0) : place + 2])]
    return SidesRow(old, new, "alike", near)
