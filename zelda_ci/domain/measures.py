"""The registry of metrics: everything that is known of a metric stands in its row.

The switch in the configuration, the limits of the gate, the evaluator, and what is compared, listed and shown follow.

A row has one or several measures: the numbers that runs are compared by. The first carries the metric's own key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from zelda_ci.domain.base import Record
from zelda_ci.domain.details import EfficiencyDetails, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.measure_spec import (
    COUNT,
    POINTS,
    SECONDS,
    TESTS,
    TURNS,
    USD,
    GateLimit,
    MeasureSpec,
    Scale,
    StoredMetric,
    written,
)
from zelda_ci.domain.test_run import CorrectnessDetails


class Metric(StrEnum):
    """The metrics, in the order in which they are computed and shown."""

    EFFICIENCY = "efficiency"
    FUNCTIONAL_CORRECTNESS = "functionalCorrectness"
    REQUIREMENT_FULFILLMENT = "requirementFulfillment"
    TOOL_USAGE = "toolUsage"


class Measure(StrEnum):
    """Every number that is compared, in the order in which they are shown: scores, tests, then resources."""

    EFFICIENCY = "efficiency"
    FUNCTIONAL_CORRECTNESS = "functionalCorrectness"
    REQUIREMENT_FULFILLMENT = "requirementFulfillment"
    TOOL_USAGE = "toolUsage"
    TESTS = "tests"
    COST = "costUsd"
    TOKENS = "tokens"
    TURNS = "turns"
    DURATION = "durationSeconds"


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
        measure: spec.number(evaluations[METRIC_OF[measure]])
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
    return spec.number(result) if spec and not spec.limit else result.score


def write_own(metric: Metric, number: float) -> str:
    """That number as the metric's row writes it."""
    spec = own_measure(metric)
    return written(spec.unit.write if spec else POINTS.write, number)


class NumberDetails(Record):
    """Details of a metric that is one number, and needs no more to be told."""

    value: float


_Details = TypeVar("_Details", bound=Record)


def detail(kind: type[_Details], number: Callable[[_Details], float | None]) -> Callable[[StoredMetric], float | None]:
    """A reader of a number in details of one kind."""
    return lambda result: number(result.details) if isinstance(result.details, kind) else None


def _score(*, label: str, column: str, listed: str | None = None, scale: Scale, limit: GateLimit) -> MeasureSpec:
    """The score of a metric."""
    return MeasureSpec(
        label=label,
        heading=label.capitalize(),
        column=column,
        listed=listed,
        unit=POINTS,
        scale=scale,
        read=lambda result: result.score,
        limit=limit,
    )


# In the order of the configuration's keys and of the columns of lists.
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
                # Cost, turns and time go into it, so it moves as they do.
                scale=Scale("higher", 10.0, varies=True, of_the_hour=True),
                limit=GateLimit(example_minimum=50, example_tolerance=10),
            ),
            Measure.COST: MeasureSpec(
                label="cost",
                heading="Cost",
                column="Cost",
                unit=USD,
                # Two sessions with the same task differ by a fifth easily; below a cent nobody cares.
                scale=Scale("lower", 0.01, 0.2, varies=True),
                read=detail(EfficiencyDetails, lambda details: details.cost_usd),
            ),
            Measure.TOKENS: MeasureSpec(
                label="tokens",
                heading="Tokens",
                column="Tokens",
                unit=COUNT,
                scale=Scale("lower", 1000.0, 0.2, varies=True),
                read=detail(EfficiencyDetails, lambda details: details.usage.total),
            ),
            Measure.TURNS: MeasureSpec(
                label="turns",
                heading="Turns",
                column="Turns",
                unit=TURNS,
                scale=Scale("lower", 1.0, 0.2, varies=True),
                read=detail(EfficiencyDetails, lambda details: details.turns),
            ),
            Measure.DURATION: MeasureSpec(
                label="duration",
                heading="Time",
                column="Duration",
                unit=SECONDS,
                scale=Scale("lower", 10.0, 0.3, varies=True, of_the_hour=True),
                read=detail(EfficiencyDetails, lambda details: details.wall_seconds),
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
            ),
        },
    ),
    Metric.TOOL_USAGE: MetricSpec(
        module="tool_usage",
        switch="Which skills, rules, agents and MCP tools were used well, missed, misused or ignored.",
        judged=True,
        details=ToolUsageDetails,
        measures={
            Measure.TOOL_USAGE: _score(
                label="tool usage",
                column="Tool usage",
                listed="Tools %",
                scale=Scale("higher", 10.0),  # one finding of the ten that a project with some rules and skills has
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
            Measure.TESTS: MeasureSpec(
                label="number of tests that ran",
                heading="Tests run",
                column="",
                unit=TESTS,
                # A session that writes tests writes more or fewer each time; that half of all are gone has a cause,
                # and tests that are no longer there cannot fail.
                scale=Scale("higher", 3.0, 0.5),
                read=detail(
                    CorrectnessDetails,
                    lambda details: details.tests.ran if details.tests and details.tests.recognised else None,
                ),
            ),
        },
    ),
}


MEASURES: Mapping[Measure, MeasureSpec] = {
    measure: spec.measures[measure] for measure in Measure for spec in METRICS.values() if measure in spec.measures
}
METRIC_OF: Mapping[Measure, Metric] = {measure: metric for metric, spec in METRICS.items() for measure in spec.measures}
SCORES: Mapping[Metric, MeasureSpec] = {
    metric: own for metric in METRICS if (own := own_measure(metric)) is not None and own.limit
}
# Columns in lists of numbers that are no scores.
LISTED: Mapping[Measure, str] = {
    measure: spec.listed
    for metric in METRICS.values()
    for measure, spec in metric.measures.items()
    if spec.listed and not spec.limit
}
