"""The registry of metrics: everything that is known of a metric stands in its row.

The switch in the configuration, the limits of the gate, the evaluator, and what is compared, listed and shown follow.

A row has one or several measures: the numbers that runs are compared by. The first carries the metric's own key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar

from pydantic import ValidationError

from zelda_ci.domain import numbers
from zelda_ci.domain.base import Record
from zelda_ci.domain.details import CriterionVerdict, EfficiencyDetails, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.test_run import CorrectnessDetails

MAX_PLAUSIBLE = 1e15
"""Results may come from strangers; a larger number cannot be meant, and would upset the arithmetic."""

VARYING_WEIGHT = 0.1
"""Resources vary in every session and quality does not: with equal shares, five resource tests per suite would use up
the error that the criteria need."""


class Metric(StrEnum):
    """The metrics, in the order in which they are computed and shown."""

    EFFICIENCY = "efficiency"
    FUNCTIONAL_CORRECTNESS = "functionalCorrectness"
    REQUIREMENT_FULFILLMENT = "requirementFulfillment"
    TOOL_USAGE = "toolUsage"


class Measure(StrEnum):
    """Every number that is compared, in the order in which they are shown: scores first, then resources."""

    EFFICIENCY = "efficiency"
    FUNCTIONAL_CORRECTNESS = "functionalCorrectness"
    REQUIREMENT_FULFILLMENT = "requirementFulfillment"
    TOOL_USAGE = "toolUsage"
    COST = "costUsd"
    TOKENS = "tokens"
    TURNS = "turns"
    DURATION = "durationSeconds"


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

    def tolerating(self, drop: float | None) -> "Scale":
        """The scale with the user's limit, if there is one."""
        return replace(self, tolerated_drop=drop)


PASS_RATE = Scale("higher", 10.0)
"""Percent of trials: one trial of ten may go either way."""


class StoredMetric(Protocol):
    """As much of a metric's result as its row reads."""

    @property
    def score(self) -> float | None: ...

    @property
    def details(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimit:
    """What the documentation shows as the limits that a suite's gate may set for a score."""

    example_minimum: float
    example_tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSpec:
    """One number: how it is read, judged, named and written."""

    heading: str
    """Its name where a row begins with it."""
    column: str
    """Its name where a column has little room."""
    label: str
    """Its name in a sentence."""
    listed: str | None
    """Its column in a list of stored runs, if it has one there."""
    scale: Scale
    read: Callable[[StoredMetric], float | None]
    """Its value in a stored result; nothing where it was not computed."""
    limit: GateLimit | None
    """Only scores, which are points of 100, have limits."""
    write: Callable[[float], str]
    brief: Callable[[float], str]
    """The value in a narrow column."""
    write_difference: Callable[[float], str]
    """A difference without its sign."""
    relative: bool
    """Whether a change is also given in percent of what it was."""
    brief_relative: bool
    """Whether, in a narrow column, it is given in percent and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One row: how a metric is switched on and computed, and the numbers it gives."""

    module: str
    """In `zelda_ci.metrics`; its function `create` makes the evaluator."""
    switch: str
    """What the documentation says of its switch, in a sentence."""
    judged: bool
    """Whether it asks a judge. These are computed last and side by side, and again by `zelda rejudge`."""
    details: type[Record]
    """What its evaluator stores."""
    measures: Mapping[Measure, MeasureSpec]


def values(evaluations: Mapping[Metric, StoredMetric]) -> dict[Measure, float]:
    """Every number that a run has, without those that cannot be meant."""
    numbers_read = {
        measure: _number(spec, evaluations[METRIC_OF[measure]])
        for measure, spec in MEASURES.items()
        if METRIC_OF[measure] in evaluations
    }
    return {measure: value for measure, value in numbers_read.items() if value is not None}


def own_measure(metric: str) -> MeasureSpec | None:
    """The measure that carries the metric's own key."""
    return next((spec for measure, spec in MEASURES.items() if measure.value == metric), None)


def own_number(metric: Metric, result: StoredMetric) -> float | None:
    """What a metric came to: its score, or its number where it has no scores."""
    spec = own_measure(metric)
    return _number(spec, result) if spec and not spec.limit else result.score


def write_own(metric: Metric, number: float) -> str:
    """That number as the metric's row writes it."""
    spec = own_measure(metric)
    return written(spec.write if spec else numbers.format_score, number)


def _number(spec: MeasureSpec, result: StoredMetric) -> float | None:
    try:
        value = spec.read(result)
        return float(value) if value is not None and abs(value) < MAX_PLAUSIBLE else None
    except Exception:  # noqa: BLE001  # a fault in one row costs this number, not the report of a run that was paid for
        return None


def written(write: Callable[[float], str], value: float) -> str:
    """The value as a row of the registry writes it; as a plain number where that fails."""
    try:
        return str(write(value))
    except Exception:  # noqa: BLE001  # as above
        return f"{value:g}"


def _read_score(result: StoredMetric) -> float | None:
    return result.score


def _read_fulfillment(result: StoredMetric) -> float | None:
    # An older Zelda gave a score to what had been judged.
    try:
        criteria = FulfillmentDetails.model_validate(result.details).criteria
    except ValidationError:
        return result.score
    unjudged = any(criterion.verdict is CriterionVerdict.NOT_JUDGED for criterion in criteria)
    return None if unjudged else result.score


_Details = TypeVar("_Details", bound=Record)


def read_from(kind: type[_Details], number: Callable[[_Details], float]) -> Callable[[StoredMetric], float]:
    """A reader of details; where a result of another Zelda holds others, it fails, and there is no number."""
    return lambda result: number(kind.model_validate(result.details))


def _points(value: float) -> str:
    return f"{numbers.format_score(value)}%"


def _turns(value: float) -> str:
    return f"{numbers.average(value)} {'turn' if value == 1 else 'turns'}"


def _score(
    *,
    label: str,
    column: str,
    listed: str | None,
    scale: Scale,
    limit: GateLimit,
    read: Callable[[StoredMetric], float | None] = _read_score,
) -> MeasureSpec:
    """The score of a metric: points of 100."""
    return MeasureSpec(
        heading=label.capitalize(),
        column=column,
        label=label,
        listed=listed,
        scale=scale,
        read=read,
        limit=limit,
        write=numbers.format_score,
        brief=numbers.format_score,
        write_difference=_points,
        relative=False,
        brief_relative=False,
    )


METRICS: Mapping[Metric, MetricSpec] = {
    Metric.EFFICIENCY: MetricSpec(
        module="efficiency",
        switch="Tokens, cost, turns and time.",
        judged=False,
        details=EfficiencyDetails,
        measures={
            Measure.EFFICIENCY: _score(
                label="efficiency",
                column="Efficiency",
                listed=None,
                scale=Scale("higher", 10.0, varies=True),  # cost, turns and time go into it, so it moves as they do
                limit=GateLimit(example_minimum=50, example_tolerance=10),
            ),
            Measure.COST: MeasureSpec(
                heading="Cost",
                column="Cost",
                label="cost",
                listed=None,
                # Two sessions with the same task differ by a fifth easily; below a cent nobody cares.
                scale=Scale("lower", 0.01, 0.2, varies=True),
                read=read_from(EfficiencyDetails, lambda details: details.cost_usd),
                limit=None,
                write=numbers.money,
                brief=numbers.brief_money,
                write_difference=numbers.money,
                relative=True,
                brief_relative=True,
            ),
            Measure.TOKENS: MeasureSpec(
                heading="Tokens",
                column="Tokens",
                label="tokens",
                listed=None,
                scale=Scale("lower", 1000.0, 0.2, varies=True),
                read=read_from(EfficiencyDetails, lambda details: details.usage.total),
                limit=None,
                write=numbers.whole,
                brief=numbers.brief_count,
                write_difference=numbers.whole,
                relative=True,
                brief_relative=True,
            ),
            Measure.TURNS: MeasureSpec(
                heading="Turns",
                column="Turns",
                label="turns",
                listed=None,
                scale=Scale("lower", 1.0, 0.2, varies=True),
                read=read_from(EfficiencyDetails, lambda details: details.turns),
                limit=None,
                write=numbers.average,
                brief=numbers.average,
                write_difference=_turns,
                relative=True,
                brief_relative=False,
            ),
            Measure.DURATION: MeasureSpec(
                heading="Time",
                column="Duration",
                label="duration",
                listed=None,
                scale=Scale("lower", 10.0, 0.3, varies=True),  # wall time also carries the load of machine and API
                read=read_from(EfficiencyDetails, lambda details: details.wall_seconds),
                limit=None,
                write=numbers.duration,
                brief=numbers.duration,
                write_difference=numbers.duration,
                relative=True,
                brief_relative=True,
            ),
        },
    ),
    Metric.REQUIREMENT_FULFILLMENT: MetricSpec(
        module="requirement_fulfillment",
        switch="A judge rates each acceptance criterion.",
        judged=True,
        details=FulfillmentDetails,
        measures={
            Measure.REQUIREMENT_FULFILLMENT: _score(
                label="requirement fulfillment",
                column="Fulfillment",
                listed="Fulfil %",
                scale=Scale("higher", 5.0),  # less than one criterion of the twenty that a large suite has
                limit=GateLimit(example_minimum=80, example_tolerance=5),
                read=_read_fulfillment,
            ),
        },
    ),
    Metric.TOOL_USAGE: MetricSpec(
        module="tool_usage",
        switch="Which skills, rules, agents and MCP tools were used, missed or misused.",
        judged=True,
        details=ToolUsageDetails,
        measures={
            Measure.TOOL_USAGE: _score(
                label="tool usage",
                column="Tool usage",
                listed="Tools %",
                scale=Scale("higher", 10.0),  # a judge's rating, given in steps of five or ten points
                limit=GateLimit(example_minimum=60, example_tolerance=10),
            ),
        },
    ),
    Metric.FUNCTIONAL_CORRECTNESS: MetricSpec(
        module="functional_correctness",
        switch="The suite's own build, test and coverage commands.",
        judged=False,
        details=CorrectnessDetails,
        measures={
            Measure.FUNCTIONAL_CORRECTNESS: _score(
                label="functional correctness",
                column="Correctness",
                listed="Correct %",
                # Tests of one change share a cause; one flaky test in twenty is not a regression of the steering files.
                scale=Scale("higher", 5.0),
                limit=GateLimit(example_minimum=100, example_tolerance=0),
            ),
        },
    ),
}
"""In the order of the configuration's keys and of the columns of lists."""


MEASURES: Mapping[Measure, MeasureSpec] = {
    measure: spec.measures[measure] for measure in Measure for spec in METRICS.values() if measure in spec.measures
}
METRIC_OF: Mapping[Measure, Metric] = {measure: metric for metric, spec in METRICS.items() for measure in spec.measures}
SCORES: Mapping[Metric, MeasureSpec] = {
    metric: own for metric in METRICS if (own := own_measure(metric)) is not None and own.limit
}
LISTED: Mapping[Measure, str] = {
    measure: spec.listed
    for metric in METRICS.values()
    for measure, spec in metric.measures.items()
    if spec.listed and not spec.limit
}
"""Columns in lists of numbers that are no scores."""
