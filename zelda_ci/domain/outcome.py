"""What results mean for whoever waits for the exit code."""

from enum import Enum
from functools import total_ordering

from pydantic import ValidationError

from zelda_ci.domain.evaluation import EvalResult, Metric
from zelda_ci.domain.judgement import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus


@total_ordering
class Outcome(Enum):
    """What a run comes to. Of several the greatest holds: what weighs more hides what weighs less.

    | run                                                             | outcome     | exit code |
    |-----------------------------------------------------------------|-------------|-----------|
    | completed                                                       | passed      | 0         |
    | out of turns, budget or time, or a criterion is not met         | failed      | 1         |
    | build, tests or coverage are not as the suite wants them        | failed      | 1         |
    | a criterion was not judged, or an evaluator failed              | incomplete  | 2         |
    | session failed                                                  | broken      | 2         |
    | interrupted, or the invocation was before all runs had begun    | interrupted | 130       |
    | no run at all: nothing was shown, and that must not look green  | broken      | 2         |
    """

    PASSED = 0
    FAILED = 1
    INCOMPLETE = 2
    BROKEN = 3
    INTERRUPTED = 4

    @property
    def exit_code(self) -> int:
        """Of a command that ends with it."""
        return 130 if self is Outcome.INTERRUPTED else min(self.value, 2)

    def __lt__(self, other: "Outcome") -> bool:
        """Whether it weighs less."""
        return bool(self.value < other.value)


def run_outcome(run: RunResult) -> Outcome:
    """What one run means: the worst of how its session ended and how its evaluation went."""
    return max(_status_outcome(run.status), *map(_evaluated, run.evaluations.values()), _fulfilled(run))


def failed_criteria(run: RunResult) -> tuple[CriterionJudgement, ...]:
    """The acceptance criteria that count as not met: failed, or undecided where the suite does not ignore that."""
    counted = {CriterionVerdict.FAIL} | ({CriterionVerdict.UNDECIDED} if run.config.undecided == "fail" else set())
    return tuple(criterion for criterion in _criteria(run) if criterion.verdict in counted)


def unjudged_criteria(run: RunResult) -> tuple[CriterionJudgement, ...]:
    """The acceptance criteria on which there is no verdict."""
    return tuple(criterion for criterion in _criteria(run) if criterion.verdict is CriterionVerdict.NOT_JUDGED)


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


def _criteria(run: RunResult) -> tuple[CriterionJudgement, ...]:
    details = fulfillment(run)
    return details.criteria if details else ()


def _fulfilled(run: RunResult) -> Outcome:
    if unjudged_criteria(run):
        return Outcome.INCOMPLETE
    return Outcome.FAILED if failed_criteria(run) else Outcome.PASSED


def _evaluated(result: EvalResult) -> Outcome:
    if result.failed:
        return Outcome.INCOMPLETE
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
