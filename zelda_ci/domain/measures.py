"""The registry of metrics: switch, limits, evaluator, and what is compared, listed and shown follow from their rows.

A row has one or several measures: the numbers that runs are compared by. The first carries the metric's own key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import SerializeAsAny, ValidationError, ValidationInfo, WithJsonSchema, field_validator

from zelda_ci.domain import numbers
from zelda_ci.domain.base import Record
from zelda_ci.domain.details import CorrectnessDetails, EfficiencyDetails, FulfillmentDetails, ToolUsageDetails
from zelda_ci.redact import SafeText

# Results may come from strangers; a larger number cannot be meant, and would upset the arithmetic.
MAX_PLAUSIBLE = 1e15


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


@dataclass(frozen=True, slots=True)
class Scale:
    """A change counts when it exceeds the larger of a fixed amount and a share of the baseline mean."""

    better: Literal["higher", "lower"]
    amount: float
    share: float = 0.0
    varies: bool = False
    """True where it differs between any two sessions, changed or not: then a single trial says nothing."""
    of_the_hour: bool = False
    """True where the load of machine and API goes into it: only trials of one job can be compared in it."""
    tolerated_drop: float | None = None
    """The user's own limit for the worse direction, in place of the amount."""

    def threshold(self, baseline: float, change: float) -> float:
        """Largest change from this baseline, in the direction of `change`, that does not matter."""
        if self.tolerated_drop is not None and self.is_worse(change):
            return self.tolerated_drop
        return max(self.amount, self.share * abs(baseline))

    def is_worse(self, change: float) -> bool:
        """True where a change of this sign is for the worse."""
        return change < 0 if self.better == "higher" else change > 0


# Percent of trials: one trial of ten may go either way.
PASS_RATE = Scale("higher", 10.0)


@dataclass(frozen=True, slots=True)
class NumberFormat:
    write: Callable[[float], str]
    brief: Callable[[float], str]
    """Writes a value in a narrow column."""
    difference: Callable[[float], str]
    """A difference without its sign."""
    relative: bool = True
    """True where a change is also given in percent of what it was."""
    brief_relative: bool = True
    """True where a narrow column gives a change in percent and nothing else."""


def _counted(write: Callable[[float], str], noun: str) -> Callable[[float], str]:
    return lambda value: f"{write(value)} {noun if value == 1 else noun + 's'}"


_score = numbers.format_score
POINTS = NumberFormat(_score, _score, _counted(_score, "point"), relative=False, brief_relative=False)
USD = NumberFormat(numbers.money, numbers.brief_money, numbers.money)
COUNT = NumberFormat(numbers.whole, numbers.brief_count, numbers.whole)
SECONDS = NumberFormat(numbers.duration, numbers.duration, numbers.duration)
TURNS = NumberFormat(numbers.average, numbers.average, _counted(numbers.average, "turn"), brief_relative=False)
TESTS = NumberFormat(numbers.average, numbers.whole, numbers.average, brief_relative=False)


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """One number: how it is read, judged, named and written."""

    label: str
    """Its name in a sentence."""
    column: str
    """Its name where a column has little room; empty where it has no column."""
    scale: Scale
    unit: NumberFormat = POINTS
    read: Callable[[Any], float | None] | None = None
    """Reads the value in the metric's details, None where it was not computed; absent for the score."""
    listed: str | None = None
    """Its column in a list of stored runs, if it has one there."""
    limit: tuple[float, float] | None = None
    """Minimum and tolerance of the gate as the documentation shows them; scores alone have them, points of 100."""

    @property
    def heading(self) -> str:
        """Its name where a row begins with it."""
        return self.label.capitalize()

    def number(self, result: "EvalResult") -> float | None:
        """The value in a result; None where it was not computed or is not plausible."""
        try:
            value = self.read(result.details) if self.read else result.score
            return float(value) if value is not None and abs(value) < MAX_PLAUSIBLE else None
        except Exception:  # noqa: BLE001 - details of another Zelda, or a fault in a row, cost this number and no report
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One row: how a metric is switched on and computed, and the numbers it gives."""

    switch: str
    """Sentence of the documentation about its switch."""
    judged: bool
    """True where it asks a judge. These are computed last and side by side, and again by `zelda rejudge`."""
    details: type[Record]
    measures: Mapping[Measure, MeasureSpec]


class EvalResult(Record):
    """One metric of one run. Without a score it is unscored, which is not zero: `reasoning` says why."""

    metric: Metric
    version: str
    """Version of the evaluator; results of different versions are not comparable."""
    score: float | None = None
    """0 to 100."""
    reasoning: SafeText
    details: Annotated[SerializeAsAny[Record], WithJsonSchema({"type": "object"})]
    """Record of the kind that the metric's row names; empty where nothing is known, or another Zelda wrote it."""
    failed: bool = False
    """True where the evaluator could not do its work; being unscored because nothing was configured is no failure."""
    code: str | None = None
    """Code of that failure, like `JUDGE_AUTHENTICATION_FAILED`, where Zelda can explain it."""

    @field_validator("details", mode="before")
    @classmethod
    def _typed(cls, details: Any, others: ValidationInfo) -> Any:
        if not isinstance(details, dict) or "metric" not in others.data:
            return details
        try:
            return METRICS[others.data["metric"]].details.model_validate(details) if details else Record()
        except ValidationError:
            return Record()


def values(evaluations: Mapping[Metric, EvalResult]) -> dict[Measure, float]:
    """All measures of a run; implausible values are left out."""
    known = ((measure, evaluations.get(METRIC_OF[measure]), spec) for measure, spec in MEASURES.items())
    found = {measure: spec.number(result) for measure, result, spec in known if result is not None}
    return {measure: value for measure, value in found.items() if value is not None}


def own_measure(metric: Metric) -> MeasureSpec:
    """The measure that carries the metric's own key: its score, or its number where it has no scores."""
    return MEASURES[Measure(metric.value)]


class NumberDetails(Record):
    """Details of a metric that is one number, as in the example of CONTRIBUTING.md."""

    value: float


# In the order of the configuration's keys and of the columns of lists.
# fmt: off
METRICS: Mapping[Metric, MetricSpec] = {
    Metric.EFFICIENCY: MetricSpec(
        switch="Tokens, cost, turns and time.", judged=False, details=EfficiencyDetails, measures={
        # Cost, turns and time go into it, so it moves as they do.
        Measure.EFFICIENCY: MeasureSpec(
            "efficiency", "Efficiency", Scale("higher", 10.0, varies=True, of_the_hour=True), limit=(50, 10)),
        # Two sessions with the same task differ by a fifth easily; below a cent nobody cares.
        Measure.COST: MeasureSpec(
            "session cost", "Session cost", Scale("lower", 0.01, 0.2, varies=True), USD, lambda it: it.cost_usd),
        Measure.TOKENS: MeasureSpec(
            "tokens", "Tokens", Scale("lower", 1000.0, 0.2, varies=True), COUNT, lambda it: it.usage.total),
        Measure.TURNS: MeasureSpec("turns", "Turns", Scale("lower", 1.0, 0.2, varies=True), TURNS, lambda it: it.turns),
        Measure.DURATION: MeasureSpec(
            "session time", "Session time", Scale("lower", 10.0, 0.3, varies=True, of_the_hour=True),
            SECONDS, lambda it: it.wall_seconds),
    }),
    Metric.REQUIREMENT_FULFILLMENT: MetricSpec(
        switch="A judge rates each acceptance criterion.", judged=True, details=FulfillmentDetails, measures={
        # Less than one criterion of the twenty that a large suite has.
        Measure.REQUIREMENT_FULFILLMENT: MeasureSpec(
            "requirement fulfillment", "Fulfillment", Scale("higher", 5.0), listed="Fulfil %", limit=(80, 5)),
    }),
    Metric.TOOL_USAGE: MetricSpec(
        switch="Which skills, rules, agents and MCP tools were used well, missed, misused or ignored.",
        judged=True, details=ToolUsageDetails, measures={
        # One finding of the ten that a project with some rules and skills has.
        Measure.TOOL_USAGE: MeasureSpec(
            "tool usage", "Tool usage", Scale("higher", 10.0), listed="Tools %", limit=(60, 10)),
    }),
    Metric.FUNCTIONAL_CORRECTNESS: MetricSpec(
        switch="The suite's own build, test and coverage commands.",
        judged=False, details=CorrectnessDetails, measures={
        # Tests of one change share a cause; one flaky test in twenty is not a regression of the steering files.
        Measure.FUNCTIONAL_CORRECTNESS: MeasureSpec(
            "functional correctness", "Correctness", Scale("higher", 5.0), listed="Correct %", limit=(100, 0)),
        # A session that writes tests writes more or fewer each time; that half of all are gone has a cause, and
        # tests that are no longer there cannot fail.
        Measure.TESTS: MeasureSpec(
            "tests run", "", Scale("higher", 3.0, 0.5), TESTS,
            lambda it: it.tests.ran if it.tests and it.tests.recognised else None),
    }),
}
# fmt: on
MEASURES: Mapping[Measure, MeasureSpec] = {
    measure: spec.measures[measure] for measure in Measure for spec in METRICS.values() if measure in spec.measures
}
METRIC_OF: Mapping[Measure, Metric] = {measure: metric for metric, spec in METRICS.items() for measure in spec.measures}
SCORES: Mapping[Metric, MeasureSpec] = {metric: own_measure(metric) for metric in METRICS if own_measure(metric).limit}
# Columns in lists of numbers that are no scores.
LISTED: Mapping[Measure, str] = {it: spec.listed for it, spec in MEASURES.items() if spec.listed and not spec.limit}
