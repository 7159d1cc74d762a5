"""The pages of the HTML report as finished text: what `html/` prints, and `builders/page_*` make.

Pages name each other by anchors, which are safe in an address and unique in a report.
"""

from dataclasses import dataclass
from typing import Literal

from zelda_ci.report.model import Cell, Problem, Section, Table

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
class PageLink:
    """Leads to an anchor of this report; one without an anchor is only its words."""

    text: str
    anchor: str = ""
    title: str = ""


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
    """A part of a picture, on a scale from 0 to 1000."""

    start: float
    length: float
    kind: str
    title: str
    anchor: str = ""
    """What it is about, below the anchor of the session."""


@dataclass(frozen=True)
class Picture:
    """Bars in rows that have names."""

    title: str
    rows: tuple[tuple[str, tuple[Bar, ...]], ...]
    scale: tuple[str, str]
    """What stands at both ends."""
    step: float = 0.0
    """Of columns, their width: their length goes upwards, on a scale to 100; of a time line zero."""


@dataclass(frozen=True)
class CitedPlace:
    """Where a verdict can be checked."""

    link: PageLink
    quote: str


@dataclass(frozen=True)
class JudgedView:
    """What was said of one criterion in one session."""

    session: PageLink
    verdict: Cell
    reasoning: str
    votes: str
    places: tuple[CitedPlace, ...]


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
class SessionCard:
    """A session in a list."""

    anchor: str
    title: str
    side: Literal["base", "head"]
    verdict: Cell
    facts: tuple[Cell, ...]


@dataclass(frozen=True)
class PrintedOutput:
    """The end of what a command printed."""

    title: str
    verdict: Cell
    output: FoldedText
    where: str


@dataclass(frozen=True)
class Dot:
    """A session's value of a number, on a scale from 0 to 100."""

    place: float
    side: Literal["base", "head"]
    title: str


@dataclass(frozen=True)
class NumberCell:
    """A number of a suite: its mean, how it changed, and each session as a dot."""

    mean: str
    change: Cell | None
    dots: tuple[Dot, ...]
    title: str


@dataclass(frozen=True)
class SuiteLine:
    """A suite on the overview."""

    anchor: str
    name: str
    verdict: Cell
    key: str
    """The verdict by which it is filtered."""
    tags: tuple[str, ...]
    sessions: tuple[SessionCard, ...]
    numbers: tuple[NumberCell | None, ...]


@dataclass(frozen=True)
class Choice:
    """A value of a filter, and how many suites have it."""

    key: str
    text: str
    count: int


@dataclass(frozen=True)
class OverviewPage:
    """What a reader sees first."""

    title: str
    verdict: Cell
    headline: Cell
    """The comment's first line."""
    lead: tuple[Cell, ...]
    """The sentences below it."""
    remarks: tuple[Cell, ...]
    worst: tuple[tuple[Cell, PageLink], ...]
    """What regressed or failed, the gravest first, with the place where it is seen."""
    columns: tuple[str, ...]
    lines: tuple[SuiteLine, ...]
    verdicts: tuple[Choice, ...]
    tags: tuple[Choice, ...]
    overall: Table | None
    sections: tuple[Section, ...]
    has_base: bool
    left_out: tuple[str, ...]
    """What is missing in this report and where it is whole, in sentences."""
    made: str


@dataclass(frozen=True)
class SuitePage:
    """Everything about one suite."""

    anchor: str
    name: str
    verdict: Cell
    facts: tuple[Cell, ...]
    remarks: tuple[Cell, ...]
    tags: tuple[str, ...]
    prompt: FoldedText
    sessions: tuple[SessionCard, ...]
    criteria: tuple[CriterionView, ...]
    tables: tuple[tuple[str, Table], ...]
    commands: tuple[PrintedOutput, ...]
    tools: tuple[tuple[str, Cell, tuple[tuple[PageLink, str], ...]], ...]
    """A tool or rule, what is to be said of it, and in which sessions, with the reason."""
    sides: PageLink | None


@dataclass(frozen=True)
class SessionPage:
    """One session, but for its conversation, which is written entry by entry."""

    anchor: str
    title: str
    suite: PageLink
    side: Literal["base", "head"]
    verdict: Cell
    facts: tuple[Cell, ...]
    problem: Problem | None
    criteria: tuple[tuple[str, JudgedView], ...]
    sections: tuple[Section, ...]
    pictures: tuple[Picture, ...]
    around: tuple[PageLink, ...]
    """The sessions before and behind it, and the two sides."""
    whole: str
    """The command that prints the whole transcript."""
    left_out: str
    patch: tuple["PatchedFile", ...]


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
    base: SessionCard
    head: SessionCard
    rows: tuple[SidesRow, ...]
    first: str
    """The anchor of the first difference; empty where there is none."""
    summary: str
    why: str
    """Why these two sessions."""
