"""Which part of a change made a suite worse: the parts, and what was found out about them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.numbers import format_count
from zelda_ci.redact import SafeText

# What is not known by then, more sessions would hardly tell.
MAX_SESSIONS = 60


class ChangeUnit(Record):
    """A part of a change that can be taken back by itself."""

    kind: Literal["hunk", "file", "code"]
    """A hunk of a file that steers, all that changed in such files that belong together, or the project's other
    files."""
    files: tuple[SafeText, ...]
    """Relative to the top of the tree; the first names the unit."""
    lines: tuple[int, int] | None = None
    """First and last line of a hunk, as the head has it; where it has none, the last is the one before."""


def unit_words(unit: ChangeUnit) -> str:
    """Name of a unit in a sentence."""
    first, more = unit.files[0], len(unit.files) - 1
    if unit.kind == "code":
        return "the project's other files" if more else first
    if unit.lines:
        start, end = unit.lines
        gone = f"lines removed {f'after line {end}' if end else 'at the top'}"
        return f"{first}, {gone if end < start else f'line {start}' if start == end else f'lines {start} to {end}'}"
    return f"{first} and {format_count(more, 'more file')}" if more else first


class Suspicion(Record):
    """How likely it is, by the sessions so far, that a hypothesis is right."""

    unit: int | None = None
    """Index of the unit; absent of a hypothesis without one."""
    hypothesis: Literal["unit", "length", "none"] = "unit"
    probability: float = Field(ge=0, lt=1.01)


class Round(Record):
    """Sessions that ran side by side, all with the same units taken back."""

    reverted: tuple[int, ...]
    passed: int
    sessions: int
    outcomes: tuple[float, ...] = ()
    """What each showed: 100 or 0, of a resource how much it was."""


class Attribution(Document):
    """Answer to why a criterion or a measure of a suite got worse."""

    batch_id: str
    """The batch that showed it."""
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

    @model_validator(mode="after")
    def _names_its_units(self) -> Self:
        """Refuse a file from elsewhere whose indexes lead nowhere."""
        rounds, confirmed = self.rounds, [self.confirmation] if self.confirmation else []
        named = {index for each in (*rounds, *confirmed) for index in each.reverted}
        named |= {each.unit for each in self.suspicions if each.unit is not None} | {*[0] * (self.verdict == "only")}
        if not named <= {*range(len(self.units))} or not all(it.files for it in self.units):
            raise ValueError("a unit is named that is not there")
        if not all(each.reverted for each in confirmed):
            raise ValueError("the confirmation takes nothing back")
        return self


class PassCount(Record):
    """Sessions that met a criterion, of those that count."""

    passed: int
    sessions: int


class CriterionWorth(Record):
    """What a criterion of a suite is worth without a part of the files that steer."""

    part: SafeText
    """Skill, rule, agent, file or section, as it was asked for."""
    suite: SafeText
    criterion: SafeText
    whole: PassCount
    without: PassCount
    inert: PassCount | None = None
    """With text of the same length in its place that says nothing; only made where something is worse without it."""
    verdict: Literal["worse", "better", "none"]
    """Proven; `none` where no difference was."""
    at_most: float
    """Points by which it may be worse without it at most, with 95 %."""


class WorthReport(Document):
    """What parts of the files that steer are worth: of each suite the criterion that fell most without each."""

    rows: tuple[CriterionWorth, ...]
    untold: tuple[SafeText, ...] = ()
    """Parts, with the suite, of which nothing is known: it has no criterion, or no session of both kinds counted."""
    cost_usd: float = 0.0
