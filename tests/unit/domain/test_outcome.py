import pytest

from tests.builders import START, result, safe
from zelda_ci.domain.evaluation import EvalResult, Metric
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
        metric=Metric.EFFICIENCY, version="1", reasoning=safe("why"), details=safe.json({}), failed=failed
    )
    return {Metric.EFFICIENCY: evaluated}


@pytest.mark.parametrize("status", SessionStatus)
def test_every_status_has_an_exit_code(status: SessionStatus) -> None:
    assert run_outcome(result(status=status)) == EXPECTED[status]


def test_an_evaluator_that_failed_is_our_failure() -> None:
    assert run_outcome(result(evaluations=unscored(failed=True))) is Outcome.BROKEN


def test_a_metric_that_is_not_configured_is_no_failure() -> None:
    assert run_outcome(result(evaluations=unscored(failed=False))) is Outcome.PASSED


def test_a_failed_evaluator_does_not_hide_an_interruption() -> None:
    run = result(status=SessionStatus.INTERRUPTED, evaluations=unscored(failed=True))
    assert run_outcome(run) is Outcome.INTERRUPTED


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
    assert batch_outcome(batch(*(result(status=status) for status in statuses))) == code


def test_no_run_at_all_is_never_green() -> None:
    assert batch_outcome(batch()) is Outcome.BROKEN
