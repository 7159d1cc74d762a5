"""Results as a comparison reads them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from zelda_ci.compare.comparison import compare_trials
from zelda_ci.compare.gate import gate
from zelda_ci.compare.schedule import SuiteTrials
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Comparison, GateResult
from zelda_ci.domain.details import (
    CorrectnessDetails,
    CriterionJudgement,
    CriterionVerdict,
    EfficiencyDetails,
    FulfillmentDetails,
    JudgeIdentity,
    ToolRemark,
    ToolUsageDetails,
)
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import BatchResult, RunResult, Versions
from zelda_ci.domain.session import SessionStatus, Usage
from zelda_ci.domain.suite import ExecutionSettings, GateSettings, ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import TestedSource
from zelda_ci.redact import Redactor

redact = Redactor()

START = datetime(2026, 2, 13, 14, 30, tzinfo=UTC)
JUDGE = JudgeIdentity(model="judge-1", prompt_version="1")
VERDICTS = {
    "P": CriterionVerdict.PASS,
    "F": CriterionVerdict.FAIL,
    "U": CriterionVerdict.UNDECIDED,
    "?": CriterionVerdict.NOT_JUDGED,
}


def evaluation(
    metric: Metric,
    details: Record,
    score: float | None,
    version: str = "1",
    reasoning: str = "because",
    *,
    failed: bool = False,
) -> EvalResult:
    return EvalResult(
        metric=metric, version=version, score=score, reasoning=redact(reasoning), details=details, failed=failed
    )


def efficiency(
    score: float = 80.0,
    cost: float = 0.1,
    tokens: int = 10_000,
    turns: int = 8,
    seconds: float = 60.0,
    tools: dict[str, int] | None = None,
    *,
    version: str = "1",
) -> EvalResult:
    details = EfficiencyDetails(
        usage=Usage(input_tokens=tokens),
        models={},
        cost_usd=cost,
        cost_known=True,
        turns=turns,
        subagent_turns=0,
        wall_seconds=seconds,
        api_seconds=seconds / 2,
        tool_calls=tools or {},
        tool_errors=0,
        denied_calls=0,
        api_retries=0,
        parts={},
    )
    return evaluation(Metric.EFFICIENCY, details, score, version)


def fulfillment(
    verdicts: str, criteria: Sequence[str] | None = None, judge: JudgeIdentity | None = JUDGE, version: str = "1"
) -> EvalResult:
    """`verdicts` is a letter per criterion: P, F, U (undecided) or ? (not judged)."""
    names = criteria or [f"criterion {number}" for number in range(1, len(verdicts) + 1)]
    judgements = tuple(
        CriterionJudgement(criterion=redact(name), verdict=VERDICTS[letter], reasoning=redact(f"{name}: {letter}"))
        for name, letter in zip(names, verdicts, strict=True)
    )
    incomplete = "?" in verdicts
    score = None if incomplete else 100 * verdicts.count("P") / len(verdicts)
    details = FulfillmentDetails(judge=judge, criteria=judgements)
    why = "not judged: criterion 2" if incomplete else "because"
    return evaluation(Metric.REQUIREMENT_FULFILLMENT, details, score, version, why, failed=incomplete)


def tool_usage(
    score: float = 90.0,
    used: dict[str, int] | None = None,
    missed: Sequence[str] = (),
    judge: JudgeIdentity | None = JUDGE,
    version: str = "1",
) -> EvalResult:
    details = ToolUsageDetails(
        judge=judge,
        used=used or {},
        missed=tuple(ToolRemark(tool=redact(tool), reasoning=redact("it fits")) for tool in missed),
    )
    return evaluation(Metric.TOOL_USAGE, details, score, version)


def correctness(score: float = 100.0, version: str = "1", *, passed: bool | None = None) -> EvalResult:
    details = CorrectnessDetails(passed=score == 100 if passed is None else passed)
    return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, score, version)


def unscored(metric: Metric, reasoning: str = "the judge did not answer", *, failed: bool = False) -> EvalResult:
    found = evaluation(metric, FulfillmentDetails(), None, reasoning=reasoning)
    return found.model_copy(update={"failed": failed})


def run(
    evaluations: Sequence[EvalResult] = (),
    *,
    suite: str = "alpha",
    run_id: str = "run",
    at: int = 0,
    status: SessionStatus = SessionStatus.COMPLETED,
    replayed: bool = False,
    commit: str = "c0ffee",
    dirty: bool = False,
    cli: str = "2.1.0",
    model: str = "model-1",
    **config: Any,
) -> RunResult:
    moment = START + timedelta(minutes=at)
    return RunResult(
        run_id=run_id,
        batch_id=run_id,
        suite=suite,
        status=status,
        started_at=moment,
        finished_at=moment + timedelta(minutes=1),
        versions=Versions(zelda="0", agent_sdk="0", cli=cli, python="3.11"),
        source=TestedSource(kind="worktree", commit=commit, dirty=dirty),
        config=ResolvedSuite(
            name=suite,
            file=f"zelda/test-{suite}.yaml",
            execution=ExecutionSettings(model=model),
            **({"prompt": "Do it."} | config),
        ),
        evaluations={result.metric: result for result in evaluations},
        replayed=replayed,
    )


def trials(*evaluations: Sequence[EvalResult], label: str = "a", **config: Any) -> list[RunResult]:
    """One run per argument."""
    suite = config.get("suite", "alpha")
    return [
        run(found, run_id=f"{suite}-{label}-{number}", at=number, **config)
        for number, found in enumerate(evaluations, start=1)
    ]


def judged(*verdicts: str, label: str = "a", **config: Any) -> list[RunResult]:
    """One run per argument, with nothing but criteria."""
    return trials(*([fulfillment(letters)] for letters in verdicts), label=label, **config)


def batch(runs: Sequence[RunResult], bases: Sequence[RunResult] = ()) -> BatchResult:
    """A batch whose base ran side by side with it."""
    sides = [run.model_copy(update={"side": Side.BASE, "run_id": f"base-{run.run_id}"}) for run in bases]
    hour = timedelta(hours=1)
    return BatchResult(
        batch_id="b", started_at=START, finished_at=START + hour, runs=tuple(runs), base_runs=tuple(sides)
    )


def gate_of(comparison: Comparison, settings: Mapping[str, GateSettings] | None = None) -> GateResult:
    """What the gate makes of a comparison alone."""
    return gate(batch(()), settings or {}, comparison)


def compare_beside(base: Sequence[RunResult], head: Sequence[RunResult]) -> Comparison:
    """A fixed number of trials of both sides in one job."""
    names = sorted({run.suite for run in (*base, *head)})

    def of(runs: Sequence[RunResult], suite: str) -> tuple[RunMetrics, ...]:
        return tuple(RunMetrics(run) for run in runs if run.suite == suite)

    plan = len(head) // len(names)
    return compare_trials(SuiteTrials(name, of(head, name), of(base, name), plan=plan) for name in names)
