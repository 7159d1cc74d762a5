"""What results mean for whoever waits for the exit code."""

from enum import Enum
from functools import total_ordering

from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.test_run import CorrectnessDetails

FULL_SCORE = 100.0


@total_ordering
class Outcome(Enum):
    """Outcome of a run. Of several the greatest holds: what weighs more hides what weighs less.

    | run                                                             | outcome     | exit code |
    |-----------------------------------------------------------------|-------------|-----------|
    | completed, and no criterion asked anything of it                | measured    | 0         |
    | completed, and criteria showed that it is right                 | passed      | 0         |
    | out of turns, budget or time, or a criterion is not met         | failed      | 1         |
    | build, tests or coverage are not as the suite wants them        | failed      | 1         |
    | a criterion was not judged, or an evaluator failed              | incomplete  | 2         |
    | the budget ended before all that was wanted had run             | incomplete  | 2         |
    | session failed, or what it changed could not be captured        | broken      | 2         |
    | interrupted, or the invocation was before all runs had begun    | interrupted | 130       |
    | no run at all: nothing was shown, and that must not look green  | broken      | 2         |
    """

    MEASURED = "measured"
    PASSED = "passed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    BROKEN = "broken"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self]

    def __lt__(self, other: "Outcome") -> bool:
        """True where it weighs less."""
        return ORDER[self] < ORDER[other]


ORDER = {outcome: place for place, outcome in enumerate(Outcome)}
EXIT_CODES = dict(zip(Outcome, (0, 0, 1, 2, 2, 130), strict=True))
# Of sessions that did not end at a limit of their suite.
ENDINGS = {
    SessionStatus.COMPLETED: Outcome.MEASURED,
    SessionStatus.FAILED: Outcome.BROKEN,
    SessionStatus.INTERRUPTED: Outcome.INTERRUPTED,
}


def run_outcome(run: RunResult) -> Outcome:
    """Outcome of one run: the worst of how its session ended and its evaluation went. A pass needs a met criterion."""
    incomplete = (Outcome.INCOMPLETE for result in run.evaluations.values() if result.failed)
    criteria = _criteria_outcome(run)
    worst = max(ENDINGS.get(run.status, Outcome.FAILED), correctness_outcome(run), criteria, *incomplete)
    return Outcome.MEASURED if worst is Outcome.PASSED and criteria is Outcome.MEASURED else worst


def correctness_outcome(run: RunResult) -> Outcome:
    """Outcome of build, tests and coverage: everybody who calls a run good or bad asks here.

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
    counted = {CriterionVerdict.FAIL, *([CriterionVerdict.UNDECIDED] if run.config.undecided == "fail" else [])}
    details = run.details(FulfillmentDetails)
    return tuple(criterion for criterion in details.criteria if criterion.verdict in counted) if details else ()


def batch_outcome(batch: BatchResult) -> Outcome:
    cut_short = (Outcome.INTERRUPTED,) if batch.interrupted else ()
    # Runs that did not pass have ended it because that was wanted; a refused one is broken itself.
    unpaid = (Outcome.INCOMPLETE,) if batch.unpaid and not batch.ended else ()
    # Where no run was planned, nothing is missing.
    without_runs = Outcome.PASSED if batch.planned == 0 else Outcome.BROKEN
    return max((*map(run_outcome, batch.runs), *unpaid, *cut_short), default=without_runs)


def _criteria_outcome(run: RunResult) -> Outcome:
    details = run.details(FulfillmentDetails)
    verdicts = {criterion.verdict for criterion in details.criteria} if details else set()
    if CriterionVerdict.NOT_JUDGED in verdicts:
        return Outcome.INCOMPLETE
    if failed_criteria(run):
        return Outcome.FAILED
    return Outcome.PASSED if CriterionVerdict.PASS in verdicts else Outcome.MEASURED
