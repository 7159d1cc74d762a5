"""The table of measures: everything that is known of a number that runs are compared by stands in its row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import ValidationError

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import Measure
from zelda_ci.domain.evaluation import EfficiencyDetails, Metric
from zelda_ci.domain.outcome import unjudged_criteria
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ScoreLimits

MAX_PLAUSIBLE = 1e15
"""Results may come from strangers; a larger number cannot be meant, and would upset the arithmetic."""

VARYING_WEIGHT = 0.1
"""Resources vary in every session and quality does not: with equal shares, five resource tests per suite would use up
the error that the criteria need."""


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


PASS_RATE = Scale("higher", 10.0)
"""Percent of trials: one trial of ten may go either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSpec:
    """One row: how a measure is read, judged, named and written."""

    metric: Metric
    """Whose evaluator computes it."""
    heading: str
    """Its name where a row begins with it."""
    column: str
    """Its name where a column has little room."""
    label: str
    """Its name in a sentence."""
    scale: Scale
    read: Callable[[RunResult], float | None]
    """Its value in a stored result; nothing where it was not computed."""
    limit: Callable[[ScoreLimits], float | None] = lambda _: None
    """What a suite's gate asks of it; only scores have limits."""
    write: Callable[[float], str]
    brief: Callable[[float], str]
    """The value in a narrow column."""
    write_difference: Callable[[float], str]
    """A difference without its sign."""
    relative: bool = True
    """Whether a change is also given in percent of what it was."""
    brief_relative: bool = True
    """Whether, in a narrow column, it is given in percent and nothing else."""


def efficiency_details(run: RunResult) -> EfficiencyDetails | None:
    """The resources that a session used; nothing where a result of another Zelda holds other details."""
    result = run.evaluations.get(Metric.EFFICIENCY)
    try:
        return EfficiencyDetails.model_validate(result.details) if result else None
    except ValidationError:
        return None


def values(run: RunResult) -> Mapping[Measure, float]:
    """Every number that a run has, without those that cannot be meant."""
    found = ((measure, _read(spec, run)) for measure, spec in MEASURES.items())
    return {measure: float(value) for measure, value in found if value is not None and abs(value) < MAX_PLAUSIBLE}


def _read(spec: MeasureSpec, run: RunResult) -> float | None:
    try:
        return spec.read(run)
    except Exception:  # noqa: BLE001  # a fault in one row costs this number, not the report of a run that was paid for
        return None


def written(write: Callable[[float], str], value: float) -> str:
    """The value as a row of the table writes it; as a plain number where that fails."""
    try:
        return write(value)
    except Exception:  # noqa: BLE001  # as above
        return f"{value:g}"


def scale_of(measure: Measure, tolerance: ScoreLimits) -> Scale:
    """The measure's scale with the user's tolerance, which exists for scores."""
    spec = MEASURES[measure]
    return replace(spec.scale, tolerated_drop=spec.limit(tolerance))


def _score(metric: Metric) -> Callable[[RunResult], float | None]:
    def read(run: RunResult) -> float | None:
        result = run.evaluations.get(metric)
        return result.score if result else None

    return read


def _fulfillment(run: RunResult) -> float | None:
    # An older Zelda gave a score to what had been judged.
    return None if unjudged_criteria(run) else _score(Metric.REQUIREMENT_FULFILLMENT)(run)


def _resource(read: Callable[[EfficiencyDetails], float]) -> Callable[[RunResult], float | None]:
    def value(run: RunResult) -> float | None:
        details = efficiency_details(run)
        return read(details) if details else None

    return value


def _points(value: float) -> str:
    return f"{numbers.format_score(value)}%"


def _turns(value: float) -> str:
    return f"{numbers.average(value)} {'turn' if value == 1 else 'turns'}"


def _of_score(
    metric: Metric,
    label: str,
    column: str,
    scale: Scale,
    limit: Callable[[ScoreLimits], float | None],
    read: Callable[[RunResult], float | None] | None = None,
) -> MeasureSpec:
    """The row of a metric's score: points of 100."""
    return MeasureSpec(
        metric=metric,
        label=label,
        heading=label.capitalize(),
        column=column,
        scale=scale,
        read=read or _score(metric),
        limit=limit,
        write=numbers.format_score,
        brief=numbers.format_score,
        write_difference=_points,
        relative=False,
        brief_relative=False,
    )


MEASURES: Mapping[Measure, MeasureSpec] = {
    Measure.EFFICIENCY: _of_score(
        Metric.EFFICIENCY,
        "efficiency",
        "Efficiency",
        Scale("higher", 10.0, varies=True),  # cost, turns and time go into it, so it moves as they do
        lambda limits: limits.efficiency,
    ),
    Measure.FUNCTIONAL_CORRECTNESS: _of_score(
        Metric.FUNCTIONAL_CORRECTNESS,
        "functional correctness",
        "Correctness",
        # Tests of one change share a cause; one flaky test in twenty is not a regression of the steering files.
        Scale("higher", 5.0),
        lambda limits: limits.functional_correctness,
    ),
    Measure.REQUIREMENT_FULFILLMENT: _of_score(
        Metric.REQUIREMENT_FULFILLMENT,
        "requirement fulfillment",
        "Fulfillment",
        Scale("higher", 5.0),  # less than one criterion of the twenty that a large suite has
        lambda limits: limits.requirement_fulfillment,
        _fulfillment,
    ),
    Measure.TOOL_USAGE: _of_score(
        Metric.TOOL_USAGE,
        "tool usage",
        "Tool usage",
        Scale("higher", 10.0),  # a judge's rating, given in steps of five or ten points
        lambda limits: limits.tool_usage,
    ),
    Measure.COST: MeasureSpec(
        metric=Metric.EFFICIENCY,
        heading="Cost",
        column="Cost",
        label="cost",
        # Two sessions with the same task differ by a fifth easily; below a cent nobody cares.
        scale=Scale("lower", 0.01, 0.2, varies=True),
        read=_resource(lambda details: details.cost_usd),
        write=numbers.money,
        brief=numbers.brief_money,
        write_difference=numbers.money,
    ),
    Measure.TOKENS: MeasureSpec(
        metric=Metric.EFFICIENCY,
        heading="Tokens",
        column="Tokens",
        label="tokens",
        scale=Scale("lower", 1000.0, 0.2, varies=True),
        read=_resource(lambda details: details.usage.total),
        write=numbers.whole,
        brief=numbers.brief_count,
        write_difference=numbers.whole,
    ),
    Measure.TURNS: MeasureSpec(
        metric=Metric.EFFICIENCY,
        heading="Turns",
        column="Turns",
        label="turns",
        scale=Scale("lower", 1.0, 0.2, varies=True),
        read=_resource(lambda details: details.turns),
        write=numbers.average,
        brief=numbers.average,
        write_difference=_turns,
        brief_relative=False,
    ),
    Measure.DURATION: MeasureSpec(
        metric=Metric.EFFICIENCY,
        heading="Time",
        column="Duration",
        label="duration",
        scale=Scale("lower", 10.0, 0.3, varies=True),  # wall time also carries the load of machine and API
        read=_resource(lambda details: details.wall_seconds),
        write=numbers.duration,
        brief=numbers.duration,
        write_difference=numbers.duration,
    ),
}
