"""The metrics: one module each, none knowing another, and the table of them."""

from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.evaluators.base import Evaluator
from zelda_ci.evaluators.efficiency import Efficiency
from zelda_ci.evaluators.tool_usage import ToolUsage
from zelda_ci.judge.base import Judge
from zelda_ci.redact import Redactor


def asked_for(metrics: MetricSwitches) -> tuple[Evaluator, ...]:
    """The evaluators without a judge that a suite's switches ask for, in the order in which they run."""
    table: tuple[tuple[bool, Evaluator], ...] = ((metrics.efficiency, Efficiency()),)
    return tuple(evaluator for wanted, evaluator in table if wanted)


def judged(metrics: MetricSwitches, judge: Judge, nonce: str, redact: Redactor) -> tuple[Evaluator, ...]:
    """Those with a judge, which run side by side; `nonce` is that of the run's fences."""
    table: tuple[tuple[bool, Evaluator], ...] = ((metrics.tool_usage, ToolUsage(judge, nonce, redact)),)
    return tuple(evaluator for wanted, evaluator in table if wanted)
