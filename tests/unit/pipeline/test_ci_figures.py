"""Outputs, exit code and last words of a run in CI, and what of the runs goes into its artifacts."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.builders import START, result, safe, suite
from zelda_ci.ci import publish
from zelda_ci.ci.context import CiResult
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import (
    CommandsFailed,
    Comparison,
    CriterionFailed,
    FamilySize,
    GateReason,
    GateResult,
    Verdict,
)
from zelda_ci.domain.details import CorrectnessDetails
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import BatchResult, Failure, JudgeUsage, RunResult
from zelda_ci.domain.session import ApiUsage, ModelUsage, SessionStatus
from zelda_ci.pipeline.comparing import Compared
from zelda_ci.pipeline.shards import FILES, run_files
from zelda_ci.report.comment.view import closing_line
from zelda_ci.storage.result_store import RESULT

CASE: Any = MagicMock()
RED = CommandsFailed(suite="t", trials=1, of=1)
WORSE = CriterionFailed(suite="a", criterion="It answers.", trials=1, of=1)


def scored(name: str, *scores: float | None) -> RunResult:
    metrics = zip(Metric, scores, strict=False)
    found = {
        metric: EvalResult(metric=metric, version="1", score=score, reasoning=safe("because"), details=Record())
        for metric, score in metrics
    }
    return result(f"{name}-1", suite=name, config=suite(name), evaluations=found)


def commands_ended(*, passed: bool) -> RunResult:
    """A test command that printed that all is well, and ended as it did."""
    metric = Metric.FUNCTIONAL_CORRECTNESS
    details = CorrectnessDetails(passed=passed)
    found = EvalResult(metric=metric, version="1", score=100, reasoning=safe("because"), details=details)
    return result("t-1", suite="t", config=suite("t"), evaluations={metric: found})


def batch(*runs: RunResult, interrupted: bool = False) -> BatchResult:
    return BatchResult(batch_id="b", started_at=START, finished_at=START, interrupted=interrupted, runs=runs)


def failed(status: SessionStatus = SessionStatus.FAILED) -> RunResult:
    return result(status=status, failure=Failure(code="SESSION_FAILED", message=safe("It broke.")))


def incomplete() -> RunResult:
    run = scored("b", 100, 100, None)
    metric = Metric.REQUIREMENT_FULFILLMENT
    unjudged = run.evaluations[metric].model_copy(update={"failed": True})
    return run.model_copy(update={"evaluations": run.evaluations | {metric: unjudged}})


def compared(verdict: Verdict, *reasons: GateReason) -> Compared:
    counts = {Verdict.REGRESSED: 2, Verdict.IMPROVED: 1}
    family = FamilySize(hypotheses=1, testable=1, alpha=0.05)
    comparison = Comparison(verdict=verdict, counts=counts, single_trial=True, family=family, suites=())
    return Compared(comparison, GateResult(reasons=reasons))


def test_the_score_is_the_mean_of_suites_whatever_their_trials_and_metrics() -> None:
    runs = scored("a", 100, 50), scored("a", 100, None), scored("b", 0), scored("c", None)
    assert publish.mean_score(batch(*runs)) == pytest.approx((87.5 + 0) / 2)
    assert publish.mean_score(batch(scored("c", None))) is None
    assert publish.mean_score(batch()) is None


def test_sessions_and_judges_cost_together() -> None:
    spent = {"m": ModelUsage(cost_usd=0.25)}
    run = result(api=ApiUsage(models=spent), judge=JudgeUsage(models=spent))
    assert publish.step_outputs(CiResult(CASE, batch(run)))["cost-usd"] == "0.5000"


@pytest.mark.parametrize(
    ("found", "code", "verdict"),
    [
        (CiResult(CASE, batch(scored("a", 100))), 0, "measured"),
        (CiResult(CASE, batch(commands_ended(passed=True), scored("a", 100))), 0, "measured"),
        (CiResult(CASE, batch(commands_ended(passed=False))), 1, "failed"),
        (CiResult(CASE, batch(commands_ended(passed=False)), compared=compared(Verdict.IMPROVED, RED)), 1, "failed"),
        (CiResult(CASE, batch(commands_ended(passed=True)), compared=compared(Verdict.IMPROVED)), 0, "improved"),
        (CiResult(CASE, batch(failed())), 2, "broken"),
        (CiResult(CASE, batch()), 2, "broken"),
        (CiResult(CASE, batch(incomplete(), scored("a", 100))), 2, "incomplete"),
        (CiResult(CASE, batch(incomplete()), compared=compared(Verdict.UNCHANGED)), 2, "incomplete"),
        (CiResult(CASE, batch(incomplete(), failed())), 2, "broken"),
        (CiResult(CASE, batch(failed(SessionStatus.INTERRUPTED), interrupted=True)), 130, "cancelled"),
        (CiResult(CASE, batch(scored("a", 100)), cancelled=True), 130, "cancelled"),
        (CiResult(CASE, batch(scored("a", 1)), compared=compared(Verdict.REGRESSED, WORSE)), 1, "regressed"),
        (CiResult(CASE, batch(scored("a", 1)), compared=compared(Verdict.REGRESSED)), 0, "regressed"),
        (CiResult(CASE, batch(failed()), compared=compared(Verdict.UNCHANGED)), 2, "broken"),
    ],
)
def test_the_exit_code_is_the_gates_unless_the_run_is_broken_or_cancelled(
    found: CiResult, code: int, verdict: str
) -> None:
    assert (found.report.outcome.exit_code, publish.verdict(found)) == (code, verdict)
    assert str(code) in closing_line(found.report) or code == 0


IMAGE = f"images/{'ab' * 32}.png"


def batch_in(folder: Path, *names: str) -> BatchResult:
    run = result()
    place = folder / "runs" / run.run_id
    (place / "images").mkdir(parents=True)
    for name in names:
        (place / name).write_text("x")
    return BatchResult(batch_id="b", started_at=run.started_at, finished_at=run.finished_at, runs=(run,))


def test_everything_that_people_read_of_a_run_goes_with_its_transcript(tmp_path: Path) -> None:
    batch = batch_in(tmp_path, "result.json", "transcript.json", "test.log", IMAGE, "images/notes.txt")
    (folder,) = (tmp_path / "runs").iterdir()
    (folder / f"images/{'cd' * 32}.png").symlink_to(folder / "result.json")
    published = dict(run_files(tmp_path, batch.runs, (RESULT, *FILES)))
    of_run = {f"runs/{folder.name}/{name}" for name in ("result.json", "transcript.json", "test.log", IMAGE)}
    assert published.keys() == of_run
