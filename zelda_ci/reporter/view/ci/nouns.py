"""A report of CI as finished strings: every renderer prints these and computes nothing."""

from dataclasses import dataclass, replace
from enum import IntEnum

from zelda_ci.reporter.view.nouns import Cell, Row, Section
from zelda_ci.reporter.view.tables import Table


class Worth(IntEnum):
    """What is given up last when room is short, and what first."""

    GATE = 7
    FAILED = 6
    CHANGED = 5
    DOUBTFUL = 4
    ABOUT = 3
    UNCHANGED = 2
    RUN_FAILED = 1
    RUN_PASSED = 0


@dataclass(frozen=True)
class Fold:
    """Something to open: what its title says, as rows and tables."""

    title: str
    worth: Worth
    sections: tuple[Section, ...] = ()
    tables: tuple[Table, ...] = ()
    open: bool = False


@dataclass(frozen=True)
class Link:
    """A place to go to; without an address that can be trusted in Markdown, only its words are shown."""

    text: str
    url: str | None


@dataclass(frozen=True)
class CiView:
    """Everything that a comment and a summary say."""

    title: str
    verdict: tuple[Row, ...]
    """The first line: each row is a part of the sentence."""
    remarks: tuple[Cell, ...]
    """Plain sentences below it."""
    table: Table
    """A line per suite, the worst first."""
    folds: tuple[Fold, ...]
    evidence: tuple[Fold, ...]
    """What only the summary has room for: every number, criterion and run."""
    tested: Row
    links: tuple[Link, ...]
    changed: bool
    """Whether anything differs from the baseline, or nothing is known to be equal to it."""
    failed: bool
    """Whether the gate says no, or a run broke."""
    left_out: str = ""
    """What is missing for want of room, in a sentence; empty where nothing is."""

    @property
    def sentence(self) -> str:
        """The first line as plain text."""
        return "; ".join(spoken(row) for row in self.verdict)

    def with_evidence(self) -> "CiView":
        """As the summary shows it."""
        return replace(self, folds=(*self.folds, *self.evidence), evidence=())


def spoken(row: Row) -> str:
    """A row as a part of a sentence."""
    told = ", ".join(cell.text for cell in row.cells)
    return f"{row.label} {told}".strip()
