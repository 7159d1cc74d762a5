"""Stored runs at a glance: what a list of them shows."""

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measures import LISTED, Measure, Metric, values
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunOutline, RunResult


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
