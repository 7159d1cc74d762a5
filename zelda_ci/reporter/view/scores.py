"""The table of metrics."""

from collections.abc import Mapping

from zelda_ci.domain.evaluation import EvalResult, Metric
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence
from zelda_ci.reporter.view.nouns import Cell, MetricRow, Tone

LABELS = {
    Metric.EFFICIENCY: "Efficiency",
    Metric.FUNCTIONAL_CORRECTNESS: "Functional correctness",
    Metric.REQUIREMENT_FULFILLMENT: "Requirement fulfillment",
    Metric.TOOL_USAGE: "Tool usage",
}

GOOD_FROM = 80.0
FAIR_FROM = 50.0
LONGEST_NOTE = 200


def metric_rows(evaluations: Mapping[Metric, EvalResult]) -> tuple[MetricRow, ...]:
    """The metrics that were evaluated, in the order of `Metric`; any other comes last."""
    order = list(Metric)
    ranked = sorted(evaluations, key=lambda metric: (order.index(metric) if metric in order else len(order), metric))
    return tuple(_row(metric, evaluations[metric]) for metric in ranked)


def label(metric: Metric | str) -> str:
    """The metric's name in words; one that only a newer Zelda knows is spelled out from its key."""
    known = LABELS.get(Metric(metric)) if metric in list(Metric) else None
    return known or sentence("".join(f" {char.lower()}" if char.isupper() else char for char in metric)).capitalize()


def _row(metric: Metric, result: EvalResult) -> MetricRow:
    note = Cell(sentence(result.reasoning, LONGEST_NOTE), Tone.DIM)
    return MetricRow(label(metric), _score(result), note)


def _score(result: EvalResult) -> Cell:
    if result.score is None:
        return Cell("unscored", Tone.BAD if result.failed else Tone.DIM)
    return Cell(numbers.score(result.score), _tone(result.score))


def _tone(score: float) -> Tone:
    if score >= GOOD_FROM:
        return Tone.GOOD
    return Tone.WARN if score >= FAIR_FROM else Tone.BAD
