from typing import Any

import pytest

from tests.builders import START, result, safe, suite
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import Metric
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
    assert run_outcome(result(status=status)).exit_code == EXPECTED[status]


def test_an_evaluator_that_failed_is_our_failure() -> None:
    assert run_outcome(result(evaluations=unscored(failed=True))) is Outcome.INCOMPLETE


@pytest.mark.parametrize(
    ("verdicts", "undecided", "outcome"),
    [
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
    metric = Metric.REQUIREMENT_FULFILLMENT
    # With a score, as an older Zelda stored it: the criteria themselves tell.
    found = EvalResult(
        metric=metric, version="1", score=100, reasoning=safe("why"), details=safe.json({"criteria": criteria})
    )
    run = result(config=suite(undecided=undecided), evaluations={metric: found})
    assert run_outcome(run) is outcome


def test_outcomes_are_ordered_by_what_weighs_more_and_some_share_an_exit_code() -> None:
    assert max(Outcome) is Outcome.INTERRUPTED
    assert [outcome.exit_code for outcome in sorted(Outcome)] == [0, 0, 1, 2, 2, 130]
    assert Outcome.BROKEN > Outcome.INCOMPLETE > Outcome.FAILED


def test_a_run_that_was_asked_for_nothing_is_measured_and_neither_passed_nor_failed() -> None:
    run = result(evaluations=unscored(failed=False))
    assert run_outcome(run) is Outcome.MEASURED
    assert run_outcome(run).exit_code == 0


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([CriterionVerdict.PASS], Outcome.PASSED),
        ([CriterionVerdict.PASS, CriterionVerdict.FAIL], Outcome.FAILED),
        ([], Outcome.MEASURED),
    ],
)
def test_criteria_that_were_judged_decide(verdicts: list[CriterionVerdict], outcome: Outcome) -> None:
    judgements = tuple(
        CriterionJudgement(criterion=safe(f"{n}"), verdict=verdict, reasoning=safe("why"))
        for n, verdict in enumerate(verdicts)
    )
    details = safe.json(FulfillmentDetails(criteria=judgements).model_dump(mode="json", by_alias=True))
    metric = Metric.REQUIREMENT_FULFILLMENT
    found = EvalResult(metric=metric, version="1", score=50, reasoning=safe("why"), details=details)
    assert run_outcome(result(evaluations={metric: found})) is outcome


@pytest.mark.parametrize(
    ("metric", "details", "outcome"),
    [
        (Metric.FUNCTIONAL_CORRECTNESS, {"passed": True}, Outcome.PASSED),
        (Metric.FUNCTIONAL_CORRECTNESS, {"passed": False}, Outcome.FAILED),
        (Metric.FUNCTIONAL_CORRECTNESS, {}, Outcome.MEASURED),
        (Metric.FUNCTIONAL_CORRECTNESS, {"passed": "yes"}, Outcome.MEASURED),
        (Metric.TOOL_USAGE, {"passed": False}, Outcome.MEASURED),
        (Metric.TOOL_USAGE, {"passed": True}, Outcome.MEASURED),
    ],
)
def test_code_that_is_not_correct_fails_the_run(metric: Metric, details: dict[str, Any], outcome: Outcome) -> None:
    found = EvalResult(metric=metric, version="1", score=100, reasoning=safe("why"), details=safe.json(details))
    assert run_outcome(result(evaluations={metric: found})) is outcome


def test_one_suite_that_passed_speaks_for_a_batch_in_which_others_are_only_measured() -> None:
    metric = Metric.FUNCTIONAL_CORRECTNESS
    details = safe.json({"passed": True})
    found = EvalResult(metric=metric, version="1", score=100, reasoning=safe("why"), details=details)
    passed = result(evaluations={metric: found})
    assert batch_outcome(batch(passed, result())) is Outcome.PASSED
    assert batch_outcome(batch(result(), result())) is Outcome.MEASURED


def test_a_session_that_failed_weighs_more_than_its_tests() -> None:
    metric = Metric.FUNCTIONAL_CORRECTNESS
    details = safe.json({"passed": False})
    found = EvalResult(metric=metric, version="1", score=0, reasoning=safe("why"), details=details)
    assert run_outcome(result(status=SessionStatus.FAILED, evaluations={metric: found})) is Outcome.BROKEN


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
    assert batch_outcome(batch(*(result(status=status) for status in statuses))).exit_code == code


def test_no_run_at_all_is_never_green() -> None:
    assert batch_outcome(batch()) is Outcome.BROKEN
