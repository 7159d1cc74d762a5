"""The metrics: one module each, none knowing another, and the table of them."""

from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.evaluators.base import Evaluator
from zelda_ci.evaluators.efficiency import Efficiency


def asked_for(metrics: MetricSwitches) -> tuple[Evaluator, ...]:
    """The evaluators that a suite's switches ask for, in the order in which they run."""
    table: tuple[tuple[bool, Evaluator], ...] = ((metrics.efficiency, Efficiency()),)
    return tuple(evaluator for wanted, evaluator in table if wanted)
