"""What results mean: for whoever waits for the exit code, and in a list of stored runs."""

from enum import Enum
from functools import total_ordering

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.details import (
    CorrectnessDetails,
    CriterionJudgement,
    CriterionVerdict,
    EfficiencyDetails,
    FulfillmentDetails,
)
from zelda_ci.domain.measures import LISTED, Measure, Metric, values
from zelda_ci.domain.run import BatchResult, RunOutline, RunResult
from zelda_ci.domain.session import SessionStatus


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
        return dict(zip(Outcome, (0, 0, 1, 2, 2, 130), strict=True))[self]

    def __lt__(self, other: "Outcome") -> bool:
        """True where it weighs less."""
        return [*Outcome].index(self) < [*Outcome].index(other)


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
    """Outcome of build, tests and coverage by the commands: a score may be high where one of them failed."""
    result, details = run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS), run.details(CorrectnessDetails)
    if result is None or result.failed:
        return Outcome.MEASURED
    if (details and not details.passed) or (result.score is not None and result.score < 100):
        return Outcome.FAILED
    return Outcome.PASSED if details else Outcome.MEASURED


def failed_criteria(run: RunResult) -> tuple[CriterionJudgement, ...]:
    """The acceptance criteria that count as not met: failed, or undecided where the suite does not ignore that."""
    counted = {CriterionVerdict.FAIL, *([CriterionVerdict.UNDECIDED] if run.config.undecided == "fail" else [])}
    criteria = (run.details(FulfillmentDetails) or FulfillmentDetails()).criteria
    return tuple(criterion for criterion in criteria if criterion.verdict in counted)


def batch_outcome(batch: BatchResult) -> Outcome:
    cut_short = (Outcome.INTERRUPTED,) if batch.interrupted else ()
    # Runs that did not pass have ended it because that was wanted; a refused one is broken itself.
    unpaid = (Outcome.INCOMPLETE,) if batch.unpaid and not batch.ended else ()
    # Where no run was planned, nothing is missing.
    without_runs = Outcome.PASSED if batch.planned == 0 else Outcome.BROKEN
    return max((*map(run_outcome, batch.runs), *unpaid, *cut_short), default=without_runs)


def _criteria_outcome(run: RunResult) -> Outcome:
    verdicts = {it.verdict for it in (run.details(FulfillmentDetails) or FulfillmentDetails()).criteria}
    if CriterionVerdict.NOT_JUDGED in verdicts:
        return Outcome.INCOMPLETE
    if failed_criteria(run):
        return Outcome.FAILED
    return Outcome.PASSED if CriterionVerdict.PASS in verdicts else Outcome.MEASURED


class StoredRun(RunOutline):
    """One stored run, in short; a number that was not computed is absent."""

    outcome: Outcome
    """Meaning of the run: how its session ended, and what criteria and commands showed."""
    scores: dict[Metric, float] = {}
    """0 to 100, of the metrics that have one."""
    cost_usd: float | None = None
    """Cost of the session."""
    judge_cost_usd: float | None = None
    """Cost of the judges; absent where none was asked."""
    cost_known: bool = True
    """False where no list price of a model is known and a cost is a guess."""
    turns: int | None = None
    numbers: dict[Measure, float] | None = None
    """Values of the metrics that are numbers and have no score."""
    commit: str | None = None

    @property
    def whole_cost_usd(self) -> float | None:
        """Cost of session and judges together; absent where neither reached a model."""
        costs = [cost for cost in (self.cost_usd, self.judge_cost_usd) if cost is not None]
        return sum(costs) if costs else None


class SkippedRun(Record):
    """Something in the folder of runs that cannot be listed."""

    name: str
    code: str
    message: str


class History(Document):
    """All stored runs, or those that were asked for, newest first."""

    runs: tuple[StoredRun, ...] = ()
    skipped: tuple[SkippedRun, ...] = ()
    unfinished: int = 0
    """Runs without a result: under way, or killed and not yet recovered."""


def at_a_glance(run: RunResult) -> StoredRun:
    details = run.details(EfficiencyDetails)
    return StoredRun(
        **{name: getattr(run, name) for name in RunOutline.model_fields},
        outcome=run_outcome(run),
        scores={metric: result.score for metric, result in run.evaluations.items() if result.score is not None},
        cost_usd=details.cost_usd if details else run.api.cost_usd if run.api.requests else None,
        judge_cost_usd=run.judge.cost_usd if run.judge else None,
        cost_known=(details or run.api).cost_known and (run.judge is None or run.judge.cost_known),
        turns=details.turns if details else None,
        numbers={measure: value for measure, value in values(run.evaluations).items() if measure in LISTED} or None,
        commit=run.source.commit if run.source else None,
    )
