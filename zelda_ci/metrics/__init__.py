"""The metrics: one evaluator each, none knowing another."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from zelda_ci.domain.measures import METRICS, Metric
from zelda_ci.domain.suite import MetricSwitches, ResolvedSuite
from zelda_ci.metrics.base import Evaluator, JudgeServices, Services
from zelda_ci.metrics.efficiency import Efficiency
from zelda_ci.metrics.functional_correctness import FunctionalCorrectness
from zelda_ci.metrics.requirement_fulfillment import RequirementFulfillment
from zelda_ci.metrics.tool_usage import ToolUsage

# In the order in which they run; those with a judge run side by side.
EVALUATORS: Mapping[Metric, Any] = {
    Metric.EFFICIENCY: Efficiency,
    Metric.FUNCTIONAL_CORRECTNESS: FunctionalCorrectness,
    Metric.REQUIREMENT_FULFILLMENT: RequirementFulfillment,
    Metric.TOOL_USAGE: ToolUsage,
}


def _switched_on(switches: MetricSwitches, *, judged: bool) -> Sequence[Any]:
    return [it for it in EVALUATORS.values() if switches.is_on(it.metric) and METRICS[it.metric].judged is judged]


def unjudged(switches: MetricSwitches, services: Services) -> tuple[Evaluator, ...]:
    return tuple(kind(services) for kind in _switched_on(switches, judged=False))


def judged(switches: MetricSwitches, services: JudgeServices) -> tuple[Evaluator, ...]:
    return tuple(kind(services) for kind in _switched_on(switches, judged=True))


def ask_judge(suite: ResolvedSuite) -> bool:
    """Whether any of a suite's metrics needs a judge. One that has checks and no criteria asks for none."""
    if not suite.criteria and suite.checks:
        return False
    asking = _switched_on(suite.metrics, judged=True)
    return any(kind is not RequirementFulfillment or suite.criteria for kind in asking)


def forms(switches: MetricSwitches) -> tuple[type[BaseModel], ...]:
    return tuple(kind.form for kind in _switched_on(switches, judged=True))


def versions(switches: MetricSwitches) -> dict[str, str]:
    """Of the metrics that are switched on: the evaluator's version, with that of what it asks the judge."""
    return {kind.metric.value: kind.version for kind in EVALUATORS.values() if switches.is_on(kind.metric)}
