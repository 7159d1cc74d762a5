"""Pieces of the HTML report of which several pages, or templates and their tests, know."""

from dataclasses import dataclass
from typing import Literal

from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import PageLink
from zelda_ci.report.model import Cell

SHORT_LENGTH = 200

LineKind = Literal["", "add", "del", "hunk", "cited"]


@dataclass(frozen=True)
class Span:
    """Lines of one kind, each with its line break; with an anchor where a citation leads to them."""

    text: str
    kind: LineKind = ""
    anchor: str = ""


@dataclass(frozen=True)
class FoldedText:
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


@dataclass(frozen=True)
class ImageView:
    """An image that a tool returned; without a source where it is not shown, and the text says why."""

    text: str
    source: str = ""
    """A data URI."""


@dataclass(frozen=True)
class CallView:
    """A tool call."""

    anchor: str
    name: str
    target: str
    """What it was about: a file, a command, a pattern."""
    status: Cell | None
    """Absent where it went well."""
    took: str
    inputs: tuple[tuple[str, FoldedText], ...]
    """By the names of its parameters."""
    changes: FoldedText | None
    """What it writes or replaces, as lines that go and lines that come."""
    output: FoldedText | None
    images: tuple[ImageView, ...] = ()
    anchors: tuple[str, ...] = ()
    """Of citations that lead to it, and to no line of it."""


@dataclass(frozen=True)
class EntryView:
    """One step of the conversation."""

    kind: Literal["turn", "user", "note"]
    anchor: str
    author: str
    clock: str
    thread: str = ""
    """Of a sub-agent, which one."""
    depth: int = 0
    """How many calls of sub-agents it is inside of."""
    tone: Literal["", "warn", "bad"] = ""
    marks: tuple[Cell, ...] = ()
    thinking: FoldedText | None = None
    text: FoldedText | None = None
    calls: tuple[CallView, ...] = ()
    anchors: tuple[str, ...] = ()
    """Of citations that lead to it, and to no line of it."""


@dataclass(frozen=True)
class Bar:
    """A part of a time line, on a scale from 0 to 1000."""

    start: float
    length: float
    kind: str
    title: str
    anchor: str = ""
    """What it is about, below the anchor of the session."""


@dataclass(frozen=True)
class TimeLine:
    """What a session's time went to: bars in rows that have names."""

    rows: tuple[tuple[str, tuple[Bar, ...]], ...]
    length: str


@dataclass(frozen=True)
class JudgedView:
    """What was said of one criterion in one session."""

    session: PageLink
    verdict: Cell
    reasoning: str
    votes: str
    places: tuple[tuple[PageLink, str], ...]
    """Where it can be checked, with what is quoted."""


@dataclass(frozen=True)
class CriterionView:
    """A criterion and every session's verdict on it."""

    number: int
    text: str
    verdict: Cell
    numbers: str
    """How often it passed, on both sides."""
    judged: tuple[JudgedView, ...]
    open: bool
    anchor: str


@dataclass(frozen=True)
class NumberCell:
    """A number of a suite: its mean, how it changed, and each session as a dot."""

    mean: str
    change: Cell | None
    dots: tuple[tuple[float, Side, str], ...]
    """Each with its place on a scale from 0 to 100, and its title."""
    title: str


@dataclass(frozen=True)
class PatchedFile:
    """A file of a patch."""

    name: str
    added: int
    removed: int
    lines: FoldedText

    @property
    def spans(self) -> tuple[Span, ...]:
        """All of its lines."""
        return (*self.lines.first, *self.lines.middle, *self.lines.last)
