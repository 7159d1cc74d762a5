"""For every number: which direction is better, and which change is too small to matter."""

from dataclasses import dataclass, replace
from typing import Literal

from zelda_ci.domain.comparison import Measure
from zelda_ci.domain.suite import ScoreLimits


@dataclass(frozen=True, slots=True)
class Scale:
    """A change counts when it exceeds the larger of a fixed amount and a share of the baseline mean."""

    better: Literal["higher", "lower"]
    amount: float
    share: float = 0.0
    varies: bool = False
    """Whether it differs between any two sessions, changed or not: then a single trial says nothing."""
    tolerated_drop: float | None = None
    """The user's own limit for the worse direction, in place of the amount."""

    @property
    def weight(self) -> float:
        """Share of the comparison's error that its tests may use, relative to others."""
        return VARYING_WEIGHT if self.varies else 1.0

    def threshold(self, baseline: float, change: float) -> float:
        """Largest change from this baseline, in the direction of `change`, that does not matter."""
        if self.tolerated_drop is not None and self.is_worse(change):
            return self.tolerated_drop
        return max(self.amount, self.share * abs(baseline))

    def is_worse(self, change: float) -> bool:
        """Whether a change of this sign is for the worse."""
        return change < 0 if self.better == "higher" else change > 0


VARYING_WEIGHT = 0.1
"""Resources vary in every session and quality does not: with equal shares, five resource tests per suite would use up
the error that the criteria need."""

PASS_RATE = Scale("higher", 10.0)
"""Percent of trials: one trial of ten may go either way."""

SCALES: dict[Measure, Scale] = {
    # Cost, turns and time go into it, so it moves as they do.
    Measure.EFFICIENCY: Scale("higher", 10.0, varies=True),
    # Tests of one change share a cause; one flaky test in twenty is not a regression of the steering files.
    Measure.FUNCTIONAL_CORRECTNESS: Scale("higher", 5.0),
    # Less than one criterion of the twenty that a large suite has.
    Measure.REQUIREMENT_FULFILLMENT: Scale("higher", 5.0),
    # A judge's rating, given in steps of five or ten points.
    Measure.TOOL_USAGE: Scale("higher", 10.0),
    # Two sessions with the same task differ by a fifth easily; below a cent nobody cares.
    Measure.COST: Scale("lower", 0.01, 0.2, varies=True),
    Measure.TOKENS: Scale("lower", 1000.0, 0.2, varies=True),
    Measure.TURNS: Scale("lower", 1.0, 0.2, varies=True),
    # Wall time also carries the load of machine and API.
    Measure.DURATION: Scale("lower", 10.0, 0.3, varies=True),
}


def scale_of(measure: Measure, tolerance: ScoreLimits) -> Scale:
    """The measure's scale with the user's tolerance, which exists for the four scores."""
    tolerated = {
        Measure.EFFICIENCY: tolerance.efficiency,
        Measure.FUNCTIONAL_CORRECTNESS: tolerance.functional_correctness,
        Measure.REQUIREMENT_FULFILLMENT: tolerance.requirement_fulfillment,
        Measure.TOOL_USAGE: tolerance.tool_usage,
    }.get(measure)
    return replace(SCALES[measure], tolerated_drop=tolerated)
