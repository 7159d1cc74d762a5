"""What the registry says of a number: how it is read, when a change of it matters, and how it is named and written."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from zelda_ci.domain import numbers
from zelda_ci.domain.base import Record

# Results may come from strangers; a larger number cannot be meant, and would upset the arithmetic.
MAX_PLAUSIBLE = 1e15


@dataclass(frozen=True, slots=True)
class Scale:
    """A change counts when it exceeds the larger of a fixed amount and a share of the baseline mean."""

    better: Literal["higher", "lower"]
    amount: float
    share: float = 0.0
    varies: bool = False
    """Whether it differs between any two sessions, changed or not: then a single trial says nothing."""
    of_the_hour: bool = False
    """Whether the load of machine and API goes into it: only trials of one job can be compared in it."""
    tolerated_drop: float | None = None
    """The user's own limit for the worse direction, in place of the amount."""

    def threshold(self, baseline: float, change: float) -> float:
        """Largest change from this baseline, in the direction of `change`, that does not matter."""
        if self.tolerated_drop is not None and self.is_worse(change):
            return self.tolerated_drop
        return max(self.amount, self.share * abs(baseline))

    def is_worse(self, change: float) -> bool:
        """Whether a change of this sign is for the worse."""
        return change < 0 if self.better == "higher" else change > 0

    def tolerating(self, drop: float | None) -> "Scale":
        """The scale with the user's limit, if there is one."""
        return replace(self, tolerated_drop=drop)


# Percent of trials: one trial of ten may go either way.
PASS_RATE = Scale("higher", 10.0)


class StoredMetric(Protocol):
    """As much of a metric's result as its row reads."""

    @property
    def score(self) -> float | None: ...

    @property
    def details(self) -> Record: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """How the values of a number are written."""

    write: Callable[[float], str]
    brief: Callable[[float], str]
    """In a narrow column."""
    difference: Callable[[float], str]
    """A difference without its sign."""
    relative: bool = True
    """Whether a change is also given in percent of what it was."""
    brief_relative: bool = True
    """Whether a narrow column gives a change in percent and nothing else."""


def _counted(noun: str) -> Callable[[float], str]:
    return lambda value: f"{numbers.average(value)} {noun if value == 1 else noun + 's'}"


POINTS = NumberFormat(
    write=numbers.format_score,
    brief=numbers.format_score,
    difference=lambda value: f"{numbers.format_score(value)} {'point' if value == 1 else 'points'}",
    relative=False,
    brief_relative=False,
)
USD = NumberFormat(write=numbers.money, brief=numbers.brief_money, difference=numbers.money)
COUNT = NumberFormat(write=numbers.whole, brief=numbers.brief_count, difference=numbers.whole)
SECONDS = NumberFormat(write=numbers.duration, brief=numbers.duration, difference=numbers.duration)
TURNS = NumberFormat(write=numbers.average, brief=numbers.average, difference=_counted("turn"), brief_relative=False)
TESTS = NumberFormat(write=numbers.average, brief=numbers.whole, difference=numbers.average, brief_relative=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimit:
    """What the documentation shows as the limits that a suite's gate may set for a score."""

    example_minimum: float
    example_tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSpec:
    """One number: how it is read, judged, named and written."""

    label: str
    """Its name in a sentence."""
    heading: str
    """Its name where a row begins with it."""
    column: str
    """Its name where a column has little room; empty where it has no column."""
    listed: str | None = None
    """Its column in a list of stored runs, if it has one there."""
    unit: NumberFormat
    scale: Scale
    read: Callable[[StoredMetric], float | None]
    """Its value in a stored result; nothing where it was not computed."""
    limit: GateLimit | None = None
    """Only scores, which are points of 100, have limits."""

    def number(self, result: StoredMetric) -> float | None:
        """The value; nothing where it was not computed, or cannot be meant."""
        try:
            value = self.read(result)
            return float(value) if value is not None and abs(value) < MAX_PLAUSIBLE else None
        except Exception:  # noqa: BLE001  # a fault in a row costs this number, not the report of a run that was paid for
            return None


def written(write: Callable[[float], str], value: float) -> str:
    """The value as a row of the registry writes it; as a plain number where that fails."""
    try:
        return str(write(value))
    except Exception:  # noqa: BLE001  # as above
        return f"{value:g}"
