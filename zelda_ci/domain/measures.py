"""The registry of metrics: everything that is known of a metric stands in its row.

The switch in the configuration, the limits of the gate, the evaluator, and what is compared, listed and shown follow.

A row has one or several measures: the numbers that runs are compared by. The first carries the metric's own key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import ValidationError

from zelda_ci.domain import numbers
from zelda_ci.domain.base import Record
from zelda_ci.domain.details import (
    CriterionVerdict,
    EfficiencyDetails,
    FulfillmentDetails,
    NumberDetails,
    ToolUsageDetails,
)
from zelda_ci.domain.measure_spec import GateLimit, MeasureSpec, Scale, StoredMetric, written
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
    return written(spec.write if spec else numbers.format_score, number)


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


def _tests_run(details: CorrectnessDetails) -> float:
    """Tests that ran, passed or not. Where nobody counted them there is no number."""
    if details.tests is None or not details.tests.recognised:
        raise ValueError
    return details.tests.ran


read_number = read_from(NumberDetails, lambda details: details.value)


def _points(value: float) -> str:
    return f"{numbers.format_score(value)} {'point' if value == 1 else 'points'}"


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
                listed=None,
                # Cost, turns and time go into it, so it moves as they do.
                scale=Scale("higher", 10.0, varies=True, of_the_hour=True),
                limit=GateLimit(example_minimum=50, example_tolerance=10),
            ),
            Measure.COST: MeasureSpec(
                heading="Session cost",
                column="Session cost",
                label="session cost",
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
                heading="Session time",
                column="Session time",
                label="session time",
                listed=None,
                scale=Scale("lower", 10.0, 0.3, varies=True, of_the_hour=True),
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
                heading="Tests run",
                column="",
                label="number of tests that ran",
                listed=None,
                # A session that writes tests writes more or fewer each time; that half of all are gone has a cause,
                # and tests that are no longer there cannot fail.
                scale=Scale("higher", 3.0, 0.5),
                read=read_from(CorrectnessDetails, _tests_run),
                limit=None,
                write=numbers.average,
                brief=numbers.whole,
                write_difference=numbers.average,
                relative=True,
                brief_relative=False,
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
