"""A report as finished text: every renderer prints these, and none of them sorts, rounds or escapes anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from zelda_ci.domain import numbers
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.session import SessionStatus


class Tone(StrEnum):
    """What a piece of text means; each renderer has its own colours for it."""

    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    NEUTRAL = "neutral"
    DIM = "dim"


class Detail(StrEnum):
    """How much is printed of each suite as it finishes."""

    QUIET = "quiet"  # a line, if it failed
    LINES = "lines"  # a line; at the end, why and where to look of what failed
    FULL = "full"


@dataclass(frozen=True)
class Cell:
    """A piece of text that is shown as one: a number with its unit, a name, a sentence."""

    text: str
    tone: Tone = Tone.NEUTRAL
    whole: bool = False
    """True where it is to be copied, and so never broken into lines, and code in Markdown."""
    url: str | None = None
    """Where it leads, for whoever can print links; none where the address cannot be trusted."""
    bold: bool = False
    """True for a name in a sentence."""


@dataclass(frozen=True)
class Row:
    """A label, facts side by side, and below them what is listed line by line."""

    label: str
    cells: tuple[Cell, ...]
    lines: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Problem:
    """What a person needs first: why, what to do, where to look, and the last lines of what was printed."""

    sentence: str
    advice: str
    look: str | None = None
    output: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunFiles:
    """Where a run's files lie, as the user would type the paths; absent where there is no such file."""

    result: str | None = None
    transcript: str | None = None
    patch: str | None = None
    setup_log: str | None = None
    build_log: str | None = None
    test_log: str | None = None


# Of a run whose files nobody can reach from where it is told.
NO_FILES = RunFiles()


@dataclass(frozen=True)
class Column:
    """A column's heading; numbers stand at its right edge."""

    title: str
    right: bool = False


@dataclass(frozen=True)
class TableRow:
    """A row of a table, and sentences about it."""

    cells: tuple[Cell, ...]
    notes: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Table:
    """Lines under columns. Where a row is too wide, its cells up to the leading one get a line of their own."""

    columns: tuple[Column, ...]
    lines: tuple[TableRow, ...]
    leading: int = 0
    remarks: tuple[Cell, ...] = ()
    """What else is to be said, beside what programs read."""


@dataclass(frozen=True)
class Section:
    """Rows under a title, a table, or both; in Markdown something to open."""

    title: str
    rows: tuple[Row, ...] = ()
    table: Table | None = None


# A sentence: blanks at the ends of its pieces count.
Line = tuple[Cell, ...]


def plain(line: Line) -> str:
    """The line without its markup."""
    return "".join(piece.text for piece in line)


@dataclass(frozen=True)
class CiView:
    """Everything that a comment and a summary say; of causes and folds, what matters most comes first."""

    title: str
    headline: str
    lead: tuple[Line, ...]
    """What the headline means here, and what the pull request changes of its own test."""
    causes: tuple[tuple[Line, ...], ...]
    """A box each: what is worse and by how much, why, and what may have done it."""
    more_causes: str
    """How many there are beyond these; empty where there are none."""
    table: Table
    """What moved: a line per suite; suites as before share one."""
    basis: tuple[Line, ...]
    """What was compared with what, and what it cost."""
    details: tuple[Section, ...]
    footer: Line
    """The commit that a reviewer knows, and where everything is."""
    changed: bool
    """Whether anything differs from the baseline, or nothing is known to be equal to it."""
    failed: bool
    """Whether the check is red."""

    @property
    def sentence(self) -> str:
        """The first line as plain text."""
        return f"{self.title}: {self.headline}"


@dataclass(frozen=True)
class SuiteView:
    """One suite on both sides; tables without lines are left out by whoever prints."""

    name: str
    verdict: Cell
    facts: tuple[Cell, ...]
    remarks: tuple[Cell, ...]
    measures: Table
    criteria: Table
    tools: tuple[Row, ...]


@dataclass(frozen=True)
class ComparisonView:
    """Everything that is said about two sides."""

    verdict: Cell
    sides: tuple[Row, ...]
    overall: Table
    suites: tuple[SuiteView, ...]
    certainty: Section
    gate: Section


@dataclass(frozen=True)
class Words:
    """An outcome as a badge, a character, a word in a sentence, and what an exit code with it means."""

    badge: str
    mark: str
    word: str
    tone: Tone
    meaning: str = ""
    several: str = ""
    """The word for several, where it is another one."""

    @property
    def verdict(self) -> Cell:
        """The badge in its colour."""
        return Cell(self.badge, self.tone)


# The gravest first.
OUTCOMES: Mapping[Outcome, Words] = {
    Outcome.INTERRUPTED: Words("STOP", "!", "interrupted", Tone.WARN, "interrupted"),
    Outcome.BROKEN: Words("ERROR", "✗", "error", Tone.BAD, "Zelda could not do its work", "errors"),
    Outcome.INCOMPLETE: Words("INCOMPLETE", "?", "INCOMPLETE", Tone.BAD),
    Outcome.FAILED: Words("FAIL", "✗", "failed", Tone.BAD, "evaluations ran and something failed"),
    Outcome.PASSED: Words("PASS", "✓", "passed", Tone.GOOD, "all well"),
    Outcome.MEASURED: Words("MEASURED", "·", "measured", Tone.NEUTRAL),
}

# How a session ended.
ENDINGS: Mapping[SessionStatus, str] = {
    **{status: status.value for status in SessionStatus},
    SessionStatus.MAX_TURNS: "ran out of turns",
    SessionStatus.BUDGET_EXCEEDED: "reached its cost limit",
    SessionStatus.TIMED_OUT: "timed out",
}


def first(cells: Sequence[Cell], most: int, *, unlisted: int = 0) -> tuple[Cell, ...]:
    """The first of them, and how many more there are; `unlisted` counts those that are not even known."""
    more = max(len(cells) - most, 0) + unlisted
    return (*cells[:most], *([Cell(f"and {numbers.whole(more)} more", Tone.DIM)] if more else []))
