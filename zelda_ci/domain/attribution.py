"""Which part of a change made a suite worse: the parts, and what was found out about them."""

from typing import Literal

from zelda_ci.domain.base import Document, Record
from zelda_ci.redact import SafeText


class ChangeUnit(Record):
    """A part of a change that can be taken back by itself."""

    kind: Literal["hunk", "file", "code"]
    """A hunk of a file that steers, all that changed in such files that belong together, or the project's other
    files."""
    files: tuple[SafeText, ...]
    """Relative to the top of the tree; the first names the unit."""
    lines: tuple[int, int] | None = None
    """First and last line of a hunk, as the head has it."""


class Suspicion(Record):
    """How likely it is, by the sessions so far, that a hypothesis is right."""

    unit: int | None = None
    """Index of the unit; absent of a hypothesis without one."""
    hypothesis: Literal["unit", "length", "none"] = "unit"
    probability: float


class Round(Record):
    """Sessions that ran side by side, all with the same units taken back."""

    reverted: tuple[int, ...]
    """Indexes of the units."""
    passed: int
    sessions: int


class Attribution(Document):
    """Answer to why a criterion or a measure of a suite got worse."""

    suite: SafeText
    subject: SafeText
    """The criterion, or the name of the measure."""
    units: tuple[ChangeUnit, ...]
    suspicions: tuple[Suspicion, ...] = ()
    """By probability, the highest first."""
    rounds: tuple[Round, ...] = ()
    confirmation: Round | None = None
    """Sessions of the head without the named unit, run after it was named."""
    verdict: Literal["named", "between", "length", "none", "only", "undecided"]
    """`only` where there is one unit, and no session was needed; `undecided` where the money was spent before."""
    cost_usd: float = 0.0
