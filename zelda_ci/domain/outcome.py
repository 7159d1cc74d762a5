"""What results mean for whoever waits for the exit code."""

from enum import Enum
from functools import total_ordering
from typing import Literal, cast

from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.test_run import CorrectnessDetails

# An outcome as files spell it.
OutcomeWord = Literal["measured", "passed", "failed", "incomplete", "broken", "interrupted"]

# What a criterion counts as that the evidence cannot decide.
Undecided = Literal["fail", "ignore"]

FULL_SCORE = 100.0


@total_ordering
class Outcome(Enum):
    """What a run comes to. Of several the greatest holds: what weighs more hides what weighs less.

    | run                                                             | outcome     | exit code |
    |-----------------------------------------------------------------|-------------|-----------|
    | completed, and nothing was asked of it that can pass or fail    | measured    | 0         |
    | completed, and criteria or commands showed that it is right     | passed      | 0         |
    | out of turns, budget or time, or a criterion is not met         | failed      | 1         |
    | build, tests or coverage are not as the suite wants them        | failed      | 1         |
    | a criterion was not judged, or an evaluator failed              | incomplete  | 2         |
    | the budget ended before all that was wanted had run           | incomplete  | 2         |
    | session failed, or what it changed could not be captured        | broken      | 2         |
    | interrupted, or the invocation was before all runs had begun    | interrupted | 130       |
    | no run at all: nothing was shown, and that must not look green  | broken      | 2         |
    """

    MEASURED = -1
    PASSED = 0
    FAILED = 1
    INCOMPLETE = 2
    BROKEN = 3
    INTERRUPTED = 4

    @property
    def word(self) -> OutcomeWord:
        """As files spell it."""
        return cast("OutcomeWord", self.name.lower())

    @property
    def exit_code(self) -> int:
        """Of a command that ends with it."""
        return 130 if self is Outcome.INTERRUPTED else min(max(self.value, 0), 2)

    def __lt__(self, other: "Outcome") -> bool:
        """Whether it weighs less."""
        return bool(self.value < other.value)


def run_outcome(run: RunResult) -> Outcome:
    """What one run means: the worst of how its session ended and how its evaluation went. A pass needs evidence."""
    incomplete = (Outcome.INCOMPLETE for result in run.evaluations.values() if result.failed)
    return max(_status_outcome(run.status), correctness_outcome(run), _criteria_outcome(run), *incomplete)


def correctness_outcome(run: RunResult) -> Outcome:
    """What build, tests and coverage showed: everybody who calls a run good or bad asks here.

    The commands decide. A score says how much of the code is right, and may be high where a command failed.
    """
    result, details = run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS), run.details(CorrectnessDetails)
    if result is None or result.failed:
        return Outcome.MEASURED
    if (details and not details.passed) or (result.score is not None and result.score < FULL_SCORE):
        return Outcome.FAILED
    return Outcome.PASSED if details else Outcome.MEASURED


def failed_criteria(run: RunResult) -> tuple[CriterionJudgement, ...]:
    """The acceptance criteria that count as not met: failed, or undecided where the suite does not ignore that."""
    counted = _not_met(run.config.undecided)
    details = run.details(FulfillmentDetails)
    return tuple(criterion for criterion in details.criteria if criterion.verdict in counted) if details else ()


def only_measures(suite: ResolvedSuite) -> bool:
    """Whether nothing is asked of a suite's runs that could pass or fail."""
    judged = suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) and suite.criteria
    commands = suite.build_command or suite.test_command
    tested = suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS) and commands
    return not (judged or tested)


def batch_outcome(batch: BatchResult) -> Outcome:
    """What an invocation means as a whole."""
    cut_short = (Outcome.INTERRUPTED,) if batch.interrupted else ()
    # Runs that did not pass have ended it because that was wanted; a refused one is broken itself.
    unpaid = (Outcome.INCOMPLETE,) if batch.unpaid and not batch.ended else ()
    # Where no run was planned, nothing is missing.
    without_runs = Outcome.PASSED if batch.planned == 0 else Outcome.BROKEN
    return max((*map(run_outcome, batch.runs), *unpaid, *cut_short), default=without_runs)


def _not_met(undecided: Undecided) -> set[CriterionVerdict]:
    return {CriterionVerdict.FAIL} | ({CriterionVerdict.UNDECIDED} if undecided == "fail" else set())


def _criteria_outcome(run: RunResult) -> Outcome:
    details = run.details(FulfillmentDetails)
    verdicts = {criterion.verdict for criterion in details.criteria} if details else set()
    if CriterionVerdict.NOT_JUDGED in verdicts:
        return Outcome.INCOMPLETE
    if verdicts & _not_met(run.config.undecided):
        return Outcome.FAILED
    return Outcome.PASSED if CriterionVerdict.PASS in verdicts else Outcome.MEASURED


def _status_outcome(status: SessionStatus) -> Outcome:
    match status:
        case SessionStatus.COMPLETED:
            return Outcome.MEASURED
        case SessionStatus.MAX_TURNS | SessionStatus.BUDGET_EXCEEDED | SessionStatus.TIMED_OUT:
            return Outcome.FAILED
        case SessionStatus.FAILED:
            return Outcome.BROKEN
        case SessionStatus.INTERRUPTED:
            return Outcome.INTERRUPTED
