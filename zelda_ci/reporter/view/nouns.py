"""A report as finished strings: every renderer prints these, and none of them sorts, rounds or cleans anything."""

from dataclasses import dataclass
from enum import StrEnum

from zelda_ci.domain.outcome import Outcome


class Tone(StrEnum):
    """What a piece of text means; each renderer has its own colours for it."""

    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    NEUTRAL = "neutral"
    DIM = "dim"


@dataclass(frozen=True)
class Cell:
    """A piece of text that is shown as one: a number with its unit, a name, a sentence."""

    text: str
    tone: Tone = Tone.NEUTRAL
    whole: bool = False
    """True where it is to be copied, and so never broken into lines."""


@dataclass(frozen=True)
class Row:
    """A label, facts side by side, and below them what is listed line by line."""

    label: str
    cells: tuple[Cell, ...]
    lines: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Section:
    """Rows under a title."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class MetricRow:
    """One metric: its score, or that it has none, and why."""

    label: str
    score: Cell
    note: Cell


@dataclass(frozen=True)
class SpreadRow:
    """One number over several trials: its mean, and from where to where it goes."""

    label: str
    mean: str
    span: tuple[Cell, ...]


@dataclass(frozen=True)
class Spread:
    """How far the trials of a suite lie apart; the title says how many count."""

    title: str
    rows: tuple[SpreadRow, ...]


@dataclass(frozen=True)
class Problem:
    """What a person needs first: why, what to do, where to look, and the last lines of what was printed."""

    sentence: str
    advice: str
    look: str | None = None
    output: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunView:
    """One run."""

    run_id: str
    suite: str
    trial: str
    """Like "trial 2"; empty where there is one."""
    outcome: Outcome
    verdict: Cell
    facts: tuple[Cell, ...]
    problem: Problem | None
    scores: tuple[MetricRow, ...]
    sections: tuple[Section, ...]
    files: tuple[Row, ...]


@dataclass(frozen=True)
class SuiteView:
    """The runs of one suite; `spread` is there when several of them count."""

    name: str
    outcome: Outcome
    verdict: Cell
    facts: tuple[Cell, ...]
    spread: Spread | None
    runs: tuple[RunView, ...]


@dataclass(frozen=True)
class Trouble:
    """A problem and every run that has it."""

    outcome: Outcome
    verdict: Cell
    names: str
    problem: Problem


@dataclass(frozen=True)
class Summary:
    """The last thing on the screen: what went wrong, the totals, what the exit code will be."""

    outcome: Outcome
    troubles: tuple[Trouble, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ReportView:
    """Everything a report says about one invocation."""

    suites: tuple[SuiteView, ...]
    summary: Summary


@dataclass(frozen=True)
class RunFiles:
    """Where a run's files lie, as the user would type the paths; absent where there is no such file."""

    result: str | None = None
    transcript: str | None = None
    patch: str | None = None
    setup_log: str | None = None
    build_log: str | None = None
    test_log: str | None = None


NO_FILES = RunFiles()
"""Of a run whose files nobody can reach from where it is told."""
