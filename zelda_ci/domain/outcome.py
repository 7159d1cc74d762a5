"""What results mean for whoever waits for the exit code."""

from enum import IntEnum

from pydantic import ValidationError

from zelda_ci.domain.evaluation import EvalResult, Metric
from zelda_ci.domain.judgement import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus


class Outcome(IntEnum):
    """The exit codes. Of several the greatest holds: what weighs more hides what weighs less.

    | run                                                             | outcome     | exit code |
    |-----------------------------------------------------------------|-------------|-----------|
    | completed                                                       | passed      | 0         |
    | out of turns, budget or time, or an acceptance criterion failed | failed      | 1         |
    | build, tests or coverage are not as the suite wants them        | failed      | 1         |
    | session failed, or an evaluator could not do its work           | broken      | 2         |
    | what the session changed could not be captured                  | broken      | 2         |
    | interrupted, or the invocation was before all runs had begun    | interrupted | 130       |
    | no run at all: nothing was shown, and that must not look green  | broken      | 2         |
    """

    PASSED = 0
    FAILED = 1
    BROKEN = 2
    INTERRUPTED = 130


def run_outcome(run: RunResult) -> Outcome:
    """What one run means: the worse of how its session ended and how its evaluation went."""
    fulfilled = Outcome.FAILED if failed_criteria(run) else Outcome.PASSED
    return max(_status_outcome(run.status), *map(_evaluated, run.evaluations.values()), fulfilled)


def failed_criteria(run: RunResult) -> tuple[CriterionJudgement, ...]:
    """The acceptance criteria that the judge found not met."""
    details = fulfillment(run)
    criteria = details.criteria if details else ()
    return tuple(criterion for criterion in criteria if criterion.verdict is CriterionVerdict.FAIL)


def fulfillment(run: RunResult) -> FulfillmentDetails | None:
    """What the judge said of the acceptance criteria; a file of another Zelda may hold what cannot be read."""
    result = run.evaluations.get(Metric.REQUIREMENT_FULFILLMENT)
    try:
        return FulfillmentDetails.model_validate(result.details) if result else None
    except ValidationError:
        return None


def batch_outcome(batch: BatchResult) -> Outcome:
    """What an invocation means as a whole."""
    cut_short = (Outcome.INTERRUPTED,) if batch.interrupted else ()
    return max((*map(run_outcome, batch.runs), *cut_short), default=Outcome.BROKEN)


def _evaluated(result: EvalResult) -> Outcome:
    if result.failed:
        return Outcome.BROKEN
    wrong = result.metric is Metric.FUNCTIONAL_CORRECTNESS and result.details.get("passed") is False
    return Outcome.FAILED if wrong else Outcome.PASSED


def _status_outcome(status: SessionStatus) -> Outcome:
    match status:
        case SessionStatus.COMPLETED:
            return Outcome.PASSED
        case SessionStatus.MAX_TURNS | SessionStatus.BUDGET_EXCEEDED | SessionStatus.TIMED_OUT:
            return Outcome.FAILED
        case SessionStatus.FAILED:
            return Outcome.BROKEN
        case SessionStatus.INTERRUPTED:
            return Outcome.INTERRUPTED
