"""The metrics: one module each, none knowing another, and the table of them."""

from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.judge.base import Judge
from zelda_ci.metrics.base import CommandRunner, Evaluator
from zelda_ci.metrics.efficiency import Efficiency
from zelda_ci.metrics.functional_correctness import FunctionalCorrectness
from zelda_ci.metrics.requirement_fulfillment import RequirementFulfillment
from zelda_ci.metrics.tool_usage import ToolUsage
from zelda_ci.redact import Redactor


def asked_for(metrics: MetricSwitches, bench: CommandRunner, redact: Redactor) -> tuple[Evaluator, ...]:
    """The evaluators without a judge that a suite's switches ask for, in the order in which they run."""
    table: tuple[tuple[bool, Evaluator], ...] = (
        (metrics.efficiency, Efficiency()),
        (metrics.functional_correctness, FunctionalCorrectness(bench, redact)),
    )
    return tuple(evaluator for wanted, evaluator in table if wanted)


def judged(metrics: MetricSwitches, judge: Judge, nonce: str, redact: Redactor) -> tuple[Evaluator, ...]:
    """Those with a judge, which run side by side; `nonce` is that of the run's fences."""
    table: tuple[tuple[bool, Evaluator], ...] = (
        (metrics.requirement_fulfillment, RequirementFulfillment(judge, nonce, redact)),
        (metrics.tool_usage, ToolUsage(judge, nonce, redact)),
    )
    return tuple(evaluator for wanted, evaluator in table if wanted)
