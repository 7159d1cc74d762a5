"""Stored runs at a glance: what a list of them shows."""

from typing import Literal

from pydantic import AwareDatetime

from zelda_ci.domain.base import Record
from zelda_ci.domain.evaluation import Metric
from zelda_ci.domain.measures import efficiency_details
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus

OutcomeWord = Literal["measured", "passed", "failed", "incomplete", "broken", "interrupted"]


class StoredRun(Record):
    """One stored run, in short; a number that was not computed is absent."""

    run_id: str
    batch_id: str
    suite: str
    trial: int = 1
    status: SessionStatus
    outcome: OutcomeWord
    """What the run means: how its session ended, and what criteria and commands showed."""
    started_at: AwareDatetime
    finished_at: AwareDatetime
    scores: dict[Metric, float] = {}
    """0 to 100, of the metrics that have one."""
    cost_usd: float | None = None
    cost_known: bool = True
    """False where no list price of a model is known and the cost is a guess."""
    turns: int | None = None
    replayed: bool = False
    commit: str | None = None


class SkippedRun(Record):
    """Something in the folder of runs that cannot be listed."""

    name: str
    code: str
    message: str


class History(Record):
    """All stored runs, or those that were asked for, newest first."""

    schema_version: Literal[1] = 1
    runs: tuple[StoredRun, ...] = ()
    skipped: tuple[SkippedRun, ...] = ()
    unfinished: int = 0
    """Runs without a result: under way, or killed and not yet recovered."""


def word_of(outcome: Outcome) -> OutcomeWord:
    """An outcome as lists spell it."""
    words: dict[Outcome, OutcomeWord] = {
        Outcome.MEASURED: "measured",
        Outcome.PASSED: "passed",
        Outcome.FAILED: "failed",
        Outcome.INCOMPLETE: "incomplete",
        Outcome.BROKEN: "broken",
        Outcome.INTERRUPTED: "interrupted",
    }
    return words[outcome]


def at_a_glance(run: RunResult) -> StoredRun:
    """The short form of a result."""
    details = efficiency_details(run)
    requested = run.api.requests > 0
    known = details.cost_known if details else all(model.cost_known for model in run.api.models.values())
    return StoredRun(
        run_id=run.run_id,
        batch_id=run.batch_id,
        suite=run.suite,
        trial=run.trial,
        status=run.status,
        outcome=word_of(run_outcome(run)),
        started_at=run.started_at,
        finished_at=run.finished_at,
        scores={metric: found.score for metric, found in run.evaluations.items() if found.score is not None},
        cost_usd=details.cost_usd if details else run.api.cost_usd if requested else None,
        cost_known=known,
        turns=details.turns if details else None,
        replayed=run.replayed,
        commit=run.source.commit if run.source else None,
    )
