from typing import Any

import pytest

from tests.builders import START, result, safe, suite
from zelda_ci.domain.base import Record
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus

EXPECTED = {
    SessionStatus.COMPLETED: 0,
    SessionStatus.MAX_TURNS: 1,
    SessionStatus.BUDGET_EXCEEDED: 1,
    SessionStatus.TIMED_OUT: 1,
    SessionStatus.FAILED: 2,
    SessionStatus.INTERRUPTED: 130,
}


def batch(*runs: RunResult) -> BatchResult:
    return BatchResult(batch_id="b", started_at=START, finished_at=START, runs=runs)


def unscored(*, failed: bool) -> dict[Metric, EvalResult]:
    evaluated = EvalResult(
        metric=Metric.EFFICIENCY, version="1", reasoning=safe("why"), details=Record(), failed=failed
    )
    return {Metric.EFFICIENCY: evaluated}


@pytest.mark.parametrize("status", SessionStatus)
def test_every_status_has_an_exit_code(status: SessionStatus) -> None:
    assert run_outcome(result(status=status)).exit_code == EXPECTED[status]


@pytest.mark.parametrize(
    ("verdicts", "undecided", "outcome"),
    [
        ([], "fail", Outcome.MEASURED),
        (["PASS", "PASS"], "fail", Outcome.PASSED),
        (["PASS", "FAIL"], "ignore", Outcome.FAILED),
        (["PASS", "undecided"], "fail", Outcome.FAILED),
        (["PASS", "undecided"], "ignore", Outcome.PASSED),
        (["PASS", "notJudged"], "fail", Outcome.INCOMPLETE),
        (["FAIL", "notJudged"], "ignore", Outcome.INCOMPLETE),
    ],
)
def test_criteria_decide_together_and_one_that_nobody_judged_leaves_the_run_incomplete(
    verdicts: list[str], undecided: str, outcome: Outcome
) -> None:
    criteria = [{"criterion": "c", "verdict": verdict, "reasoning": "why"} for verdict in verdicts]
    # With a score, as an older Zelda stored it: the criteria themselves tell.
    evaluations = graded(Metric.REQUIREMENT_FULFILLMENT, criteria=criteria)
    assert run_outcome(result(config=suite(undecided=undecided), evaluations=evaluations)) is outcome


@pytest.mark.parametrize(
    ("metric", "details", "outcome"),
    [
        (Metric.FUNCTIONAL_CORRECTNESS, {"passed": True}, Outcome.MEASURED),
        (Metric.FUNCTIONAL_CORRECTNESS, {"passed": False}, Outcome.FAILED),
        (Metric.FUNCTIONAL_CORRECTNESS, {}, Outcome.MEASURED),
        (Metric.FUNCTIONAL_CORRECTNESS, {"passed": "perhaps"}, Outcome.MEASURED),
        (Metric.TOOL_USAGE, {"passed": False}, Outcome.MEASURED),
        (Metric.TOOL_USAGE, {"passed": True}, Outcome.MEASURED),
    ],
)
def test_code_that_is_not_correct_fails_the_run(metric: Metric, details: dict[str, Any], outcome: Outcome) -> None:
    assert run_outcome(result(evaluations=graded(metric, **details))) is outcome


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([SessionStatus.COMPLETED, SessionStatus.COMPLETED], 0),
        ([SessionStatus.COMPLETED, SessionStatus.TIMED_OUT], 1),
        ([SessionStatus.FAILED, SessionStatus.TIMED_OUT], 2),
        ([SessionStatus.INTERRUPTED, SessionStatus.FAILED, SessionStatus.MAX_TURNS], 130),
    ],
)
def test_the_gravest_run_decides(statuses: list[SessionStatus], code: int) -> None:
    assert batch_outcome(batch(*(result(status=status) for status in statuses))).exit_code == code


def graded(metric: Metric, score: float = 100, **details: Any) -> dict[Metric, EvalResult]:
    stored = {"metric": metric, "version": "1", "score": score, "reasoning": "why", "details": details}
    return {metric: EvalResult.model_validate(stored)}


def test_what_weighs_more_decides_for_a_run_and_for_a_batch() -> None:
    assert run_outcome(result(evaluations=unscored(failed=True))) is Outcome.INCOMPLETE
    assert run_outcome(result(evaluations=unscored(failed=False))) is Outcome.MEASURED
    incorrect = graded(Metric.FUNCTIONAL_CORRECTNESS, 0, passed=False)
    assert run_outcome(result(status=SessionStatus.FAILED, evaluations=incorrect)) is Outcome.BROKEN
    cut = result(status=SessionStatus.INTERRUPTED, evaluations=unscored(failed=True))
    assert run_outcome(cut) is max(Outcome) is Outcome.INTERRUPTED
    assert [outcome.exit_code for outcome in sorted(Outcome)] == [0, 0, 1, 2, 2, 130]
    tested = result(evaluations=graded(Metric.FUNCTIONAL_CORRECTNESS, passed=True))
    assert batch_outcome(batch(tested, result())) is Outcome.MEASURED
    assert batch_outcome(batch(result(), result())) is Outcome.MEASURED
    assert batch_outcome(batch()) is Outcome.BROKEN
