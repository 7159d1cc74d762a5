"""The one place where an evaluator may fail, and the table of evaluators."""

from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from tests.builders import session, suite
from zelda_ci.domain.base import Record
from zelda_ci.domain.measures import METRICS, EvalResult, Metric
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage
from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import JudgePanel
from zelda_ci.metrics import ask_judge, forms, judged, unjudged, versions
from zelda_ci.metrics.base import CommandRequest, JudgeServices, Outcome, Ran, Scored, Services, Unscored, run_evaluator
from zelda_ci.redact import MASK, Redactor, Secret

redact = Redactor([Secret("hunter22")])
CONTEXT = EvalContext(
    suite=suite(), workspace=None, transcript=session("Read a.py", '"Done."'), api=ApiUsage(), changes=None
)


class Found(Record):
    some_text: str
    absent: str | None = None


@dataclass
class Says:
    """An evaluator that says what it was told to, or fails with it."""

    outcome: Outcome | BaseException
    metric: Metric = Metric.TOOL_USAGE
    version: str = "7"

    async def evaluate(self, context: EvalContext) -> Outcome:
        await anyio.lowlevel.checkpoint()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class NoBench:
    """Where nothing is run."""

    async def run(self, workspace: Workspace, order: CommandRequest) -> Ran:
        raise NotImplementedError


SERVICES = Services(NoBench(), redact)


def evaluated(outcome: Outcome | BaseException) -> EvalResult:
    return anyio.run(run_evaluator, Says(outcome), CONTEXT, redact)


def test_a_score_is_stored_with_its_masked_details() -> None:
    result = evaluated(Scored(50, "because hunter22", Found(some_text="x hunter22")))
    assert (result.metric, result.version, result.score, result.failed) == (Metric.TOOL_USAGE, "7", 50, False)
    assert result.reasoning == f"because {MASK}"
    assert result.details == Found(some_text=f"x {MASK}")


@pytest.mark.parametrize(
    ("failure", "reasoning"),
    [
        (SystemExit(0), "The evaluation failed: SystemExit: 0"),
        (MemoryError(), "The evaluation failed: MemoryError: "),
        (ValueError("no hunter22 today"), f"The evaluation failed: ValueError: no {MASK} today"),
        (JudgeError("The judge is silent.", hint="Ask again."), "The judge is silent."),
        (
            ExceptionGroup("several", [ValueError("a")]),
            "The evaluation failed: ExceptionGroup: several (1 sub-exception)",
        ),
        (Scored(101, "r", Found(some_text="x")), "The evaluation failed: ValueError: a score of 101 is not between"),
        (Scored(float("nan"), "r", Found(some_text="x")), "The evaluation failed: ValueError: a score of nan is not"),
    ],
)
def test_any_failure_becomes_an_unscored_result(failure: Outcome | BaseException, reasoning: str) -> None:
    result = evaluated(failure)
    assert (result.metric, result.score, result.failed) == (Metric.TOOL_USAGE, None, True)
    assert result.reasoning.startswith(reasoning)


def test_cancellation_is_no_failure_of_the_evaluator() -> None:
    async def cancelled() -> bool:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run_evaluator(Says(Unscored("never said")), CONTEXT, redact)
        return scope.cancelled_caught

    assert anyio.run(cancelled)


def test_every_metric_has_an_evaluator_and_the_switches_of_a_suite_choose() -> None:
    services = JudgeServices(JudgePanel(("model",), 1000, lambda _: pytest.fail("asked")), "nonce", redact)
    switches = MetricSwitches()
    made = [unjudged(switches, SERVICES), judged(switches, services)]
    assert [[METRICS[evaluator.metric].judged for evaluator in group] for group in made] == [[False] * 2, [True] * 2]
    assert {evaluator.metric.value: evaluator.version for group in made for evaluator in group} == versions(switches)
    assert set(versions(switches)) == set(Metric)
    assert unjudged(MetricSwitches(efficiency=False, functional_correctness=False), SERVICES) == ()
    without = MetricSwitches(requirement_fulfillment=False, tool_usage=False)
    assert (len(forms(switches)), forms(without)) == (2, ())


@pytest.mark.parametrize(
    ("asked", "is_asked"),
    [
        ({"acceptanceCriteria": ["It works."]}, True),
        ({"acceptanceCriteria": ["It works."], "checks": [{"called": "Read"}]}, True),
        # Tool usage is judged by what the project offers.
        ({}, True),
        ({"metrics": {"toolUsage": False}}, False),
        ({"checks": [{"called": "Read"}]}, False),
        (
            {"acceptanceCriteria": ["It works."], "metrics": {"toolUsage": False, "requirementFulfillment": False}},
            False,
        ),
    ],
)
def test_a_suite_with_checks_and_no_criteria_needs_no_judge(asked: dict[str, Any], *, is_asked: bool) -> None:
    assert ask_judge(suite(**asked)) is is_asked
