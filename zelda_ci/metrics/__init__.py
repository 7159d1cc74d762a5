"""The metrics: one module each, none knowing another. The rows of `domain.measures` name them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from types import ModuleType

from pydantic import BaseModel

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.measures import METRICS, Metric
from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.metrics.base import Evaluator, JudgeServices, Outcome, Services

# Version of what stands for an evaluator that could not be made.
UNUSABLE = "0"


def unjudged(switches: MetricSwitches, services: Services) -> tuple[Evaluator, ...]:
    """The evaluators without a judge that a suite's switches ask for, in the order in which they run."""
    return tuple(_created(metric, services) for metric in _switched_on(switches, judged=False))


def judged(switches: MetricSwitches, services: JudgeServices) -> tuple[Evaluator, ...]:
    """Those with a judge, which run side by side."""
    return tuple(_created(metric, services) for metric in _switched_on(switches, judged=True))


def ask_judge(switches: MetricSwitches) -> bool:
    """Whether any of the metrics needs a judge."""
    return any(_switched_on(switches, judged=True))


def forms(switches: MetricSwitches) -> tuple[tuple[type[BaseModel], ...], ...]:
    """In which the judges of a suite answer: all in the end, all on a part; `FORMS` of their modules."""
    modules = map(_module, _switched_on(switches, judged=True))
    groups = zip_longest(*(getattr(module, "FORMS", ()) for module in modules))
    return tuple(tuple(filter(None, group)) for group in groups)


def versions(switches: MetricSwitches) -> dict[str, str]:
    """Of the metrics that are switched on: the evaluator's version, and that of what it asks the judge."""
    return {metric.value: _version(metric) for metric in Metric if switches.is_on(metric)}


def _version(metric: Metric) -> str:
    module = _module(metric)
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type)] if module else []
    version = next((getattr(kind, "version", UNUSABLE) for kind in kinds if _is_of(kind, metric)), UNUSABLE)
    return f"{version} {getattr(module, 'PROMPT_VERSION', '')}".strip()


def _is_of(kind: type, metric: Metric) -> bool:
    return getattr(kind, "metric", None) is metric


def _module(metric: Metric) -> ModuleType | None:
    """Nothing where it cannot be used: `_created` says why."""
    with suppress(Exception):
        return import_module(f"{__name__}.{METRICS[metric].module}")
    return None


def _switched_on(switches: MetricSwitches, *, judged: bool) -> Iterator[Metric]:
    return (metric for metric in Metric if switches.is_on(metric) and METRICS[metric].judged is judged)


def _created(metric: Metric, services: Services | JudgeServices) -> Evaluator:
    """A module that cannot be used costs its metric, and not the run."""
    try:
        evaluator: Evaluator = import_module(f"{__name__}.{METRICS[metric].module}").create(services)
        if (evaluator.metric, type(evaluator.version)) != (metric, str):
            return _Unusable(metric, TypeError(f"its evaluator is that of {evaluator.metric}, or has no version"))
    except Exception as problem:  # noqa: BLE001  # whatever it is: `run_evaluator` tells it in the result
        return _Unusable(metric, problem)
    return evaluator


@dataclass(frozen=True)
class _Unusable:
    metric: Metric
    problem: Exception
    version: str = UNUSABLE

    async def evaluate(self, context: EvalContext) -> Outcome:
        raise self.problem
