"""Two sessions of a suite side by side: turns aligned by what they called, and where they part."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.session import SessionTranscript, ToolCall, Turn
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import PageLink
from zelda_ci.report.html.conversation import call_status, target
from zelda_ci.report.html.model import CallView, FoldedText
from zelda_ci.report.html.suite import SuiteSession, SuiteSessions
from zelda_ci.report.html.texts import compared_lines, folded, plain, written_lines
from zelda_ci.report.text import sentence, visible

MAX_TURNS = 400
MAX_TEXT_LENGTH = 280
# Of a call; the whole is one click away.
MAX_SHOWN_LENGTH = 800

# Rows in which the sides have not parted.
TOGETHER = frozenset({"same", "alike"})

# What a turn did: the tools it called, each with what it was about.
Signature = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SideStep:
    """A turn of one side: what it said, what it called, and the place of the whole."""

    link: PageLink
    text: str
    calls: tuple[CallView, ...]


@dataclass(frozen=True)
class SidesRow:
    """Turns that belong together; one of them is absent where the other side has nothing alike."""

    base: SideStep | None
    head: SideStep | None
    kind: Literal["same", "alike", "differs", "only"]
    """Alike are those that did the same with other words, such as other text in the same file."""
    anchor: str = ""
    """Of the first row in which the sides differ."""
    difference: FoldedText | None = None
    """Of those that are alike, what the head wrote instead."""


@dataclass(frozen=True)
class SidesPage:
    """Two sessions of a suite side by side."""

    anchor: str
    title: str
    suite: PageLink
    base: SuiteSession
    head: SuiteSession
    rows: tuple[SidesRow, ...]
    first: str
    """The anchor of the first difference; empty where there is none."""
    summary: str
    why: str
    """Why these two sessions."""


@dataclass(frozen=True)
class SideSession:
    """One of the two."""

    transcript: SessionTranscript
    session: SuiteSession
    root: str
    """The folder in which it worked."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those of the main thread, and of sub-agents."""
        return self.transcript.turns[:MAX_TURNS]

    def signature(self, turn: Turn) -> Signature:
        """By which turns are aligned."""
        return tuple((call.name, target(call, self.root)) for call in turn.tool_calls)


def chosen_pair(suite: SuiteSessions) -> tuple[SuiteSession, SuiteSession, str] | None:
    """The two that tell most, and why: a session of the head that failed, and one of the base that did not.

    Nothing where a side has none, or without the texts of sessions.
    """
    base = [session for session in suite.of(Side.BASE) if _outcome(session) < Outcome.BROKEN]
    head = [session for session in suite.of(Side.HEAD) if _outcome(session) < Outcome.BROKEN]
    if not base or not head or not suite.with_texts:
        return None
    worst, best = max(head, key=_outcome), min(base, key=_outcome)
    if _outcome(worst) > _outcome(best):
        why = "The first session of the head with the worst outcome, and the first of the base with the best."
    else:
        worst, best, why = head[0], base[0], "The first session of each side."
    return best, worst, why if len(base) + len(head) > 2 else ""


def _outcome(session: SuiteSession) -> Outcome:
    return run_outcome(session.run)


def sides_page(anchor: str, suite: PageLink, base: SideSession, head: SideSession, why: str) -> SidesPage:
    """The page; turns beyond the first few hundred are in the sessions."""
    rows = _marked(tuple(_rows(base, head)), f"{anchor}-first")
    first = next((row for row in rows if row.anchor), None)
    together = sum(row.kind in TOGETHER for row in rows)
    summary = f"{together} of {format_count(len(rows), 'step')} alike" if first else "Both took the same steps"
    if first and first.kind == "alike":
        summary = "Both took the same steps and differ in what they wrote"
    cut = max(len(base.transcript.turns), len(head.transcript.turns)) > MAX_TURNS
    more = f"; the first {MAX_TURNS} turns of each are shown" if cut else ""
    return SidesPage(
        anchor=anchor,
        title=f"{suite.text}: base and head",
        suite=suite,
        base=base.session,
        head=head.session,
        rows=rows,
        first=first.anchor if first else "",
        summary=f"{summary}{more}.",
        why=why,
    )


def _rows(base: SideSession, head: SideSession) -> Iterator[SidesRow]:
    before, after = base.turns, head.turns
    left, right = [base.signature(turn) for turn in before], [head.signature(turn) for turn in after]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        pairs = min(end - start, other_end - other_start)
        for place in range(pairs):
            old, new = before[start + place], after[other_start + place]
            is_alike = tag == "equal" and _went(old) == _went(new)
            yield _pair(_step(base, old), _step(head, new), is_alike=is_alike)
        yield from (SidesRow(_step(base, turn), None, "only") for turn in before[start + pairs : end])
        yield from (SidesRow(None, _step(head, turn), "only") for turn in after[other_start + pairs : other_end])


def _pair(base: SideStep, head: SideStep, *, is_alike: bool) -> SidesRow:
    if not is_alike:
        return SidesRow(base, head, "differs")
    if [call.changes for call in base.calls] == [call.changes for call in head.calls]:
        return SidesRow(base, head, "same")
    return SidesRow(base, head, "alike", difference=_difference(base, head))


def _difference(base: SideStep, head: SideStep) -> FoldedText:
    """What the head wrote instead of what the base wrote, without most of what they have in common."""
    lines = list(compared_lines(_written(base), _written(head)))
    kept = [
        place for place, line in enumerate(lines) if any(kind for _, kind, _ in lines[max(place - 1, 0) : place + 2])
    ]
    return folded([lines[place] for place in kept])


def _written(step: SideStep) -> str:
    """The lines that came, without their marks."""
    changes = [call.changes for call in step.calls if call.changes]
    spans = [span for text in changes for span in (*text.first, *text.middle, *text.last) if span.kind == "add"]
    return "".join(line[1:] for span in spans for line in span.text.splitlines(keepends=True))


def _went(turn: Turn) -> tuple[bool, ...]:
    """Which of its calls went well: the same command that fails on one side only is where the sides part."""
    return tuple(call.is_error or call.denied for call in turn.tool_calls)


def _marked(rows: tuple[SidesRow, ...], anchor: str) -> tuple[SidesRow, ...]:
    """With an anchor where the sides part: at another step, or where there is none at other text."""
    kinds = [row.kind for row in rows]
    parted = [place for place, kind in enumerate(kinds) if kind not in TOGETHER]
    parted = parted or [place for place, kind in enumerate(kinds) if kind == "alike"]
    if not parted:
        return rows
    first = replace(rows[parted[0]], anchor=anchor)
    return (*rows[: parted[0]], first, *rows[parted[0] + 1 :])


def _step(side: SideSession, turn: Turn) -> SideStep:
    link = PageLink(f"turn {turn.index}", f"{side.session.anchor}-t{turn.index}")
    calls = tuple(_call(side, call) for call in turn.tool_calls)
    return SideStep(link, sentence(turn.text or "", MAX_TEXT_LENGTH), calls)


def _call(side: SideSession, call: ToolCall) -> CallView:
    changes = written_lines(call.input, MAX_SHOWN_LENGTH, None)
    output = plain(call.output, limit=MAX_SHOWN_LENGTH) if call.output and changes is None else None
    return CallView("", visible(call.name, 80), target(call, side.root), call_status(call), "", (), changes, output)
