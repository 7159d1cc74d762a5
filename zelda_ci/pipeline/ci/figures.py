"""A run in CI in a few figures and sentences, for outputs and log; pure."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.pipeline.ci.case import INTERRUPTED, Findings

MEASURED = "The runs are measured: no suite has criteria or commands, and nothing could pass or fail."


def outputs(found: Findings) -> dict[str, str]:
    """The figures among the action's outputs; one that is not known is left out."""
    given = {
        "verdict": verdict(found),
        "score": _one_decimal(score(found.batch)),
        "cost-usd": f"{cost_usd(found.batch):.4f}",
        "artifact-id": str(found.artifact_id) if found.artifact_id else None,
        "baseline-sha": found.baseline.commit,
    }
    if found.comparison:
        counts = found.comparison.counts
        given |= {"regressions": str(counts.regressed), "improvements": str(counts.improved)}
    return {name: value for name, value in given.items() if value}


def verdict(found: Findings) -> str:
    """In one word: how the run compares, or without a comparison how it went. Nothing beside a red gate looks green."""
    if found.exit_code == INTERRUPTED:
        return "cancelled"
    outcome = batch_outcome(found.batch)
    if outcome >= Outcome.INCOMPLETE:
        return "incomplete" if outcome is Outcome.INCOMPLETE else "broken"
    if found.comparison and (not found.gate.reasons or found.comparison.verdict is Verdict.REGRESSED):
        return found.comparison.verdict.value
    if found.gate.reasons:
        return "failed"
    return "measured" if outcome is Outcome.MEASURED else "passed"


def score(batch: BatchResult) -> float | None:
    """The mean over the suites of the mean of their scores.

    Absent where nothing was scored, and where not everything was judged: the rest must not speak for what is missing.
    """
    if any(run_outcome(run) is Outcome.INCOMPLETE for run in batch.runs):
        return None
    by_suite = defaultdict(list)
    for run in batch.runs:
        if (mean := _scored(run)) is not None:
            by_suite[run.suite].append(mean)
    return fmean(fmean(means) for means in by_suite.values()) if by_suite else None


def cost_usd(batch: BatchResult) -> float:
    """Of sessions and judges together."""
    return sum(run.api.cost_usd + (run.judge.cost_usd if run.judge else 0.0) for run in batch.runs)


def sentences(found: Findings) -> Iterator[str]:
    """What a reader of the log wants to know besides the verdict."""
    replayed = " (of the recording; nothing was spent)" if any(run.replayed for run in found.batch.runs) else ""
    yield f"Cost of this run: ${cost_usd(found.batch):.4f}{replayed}"
    levels = {run.isolation.level for run in found.batch.runs if run.isolation}
    yield f"Isolation: {', '.join(sorted(levels)) or 'not known'}"
    for reason in found.gate.reasons:
        yield f"gate: {reason.sentence}"


def ending(found: Findings) -> str:
    """Why the step ends as it does."""
    match found.exit_code:
        case 0:
            asked = batch_outcome(found.batch) is not Outcome.MEASURED
            return "The gate passes." if asked or found.comparison else MEASURED
        case 1:
            count = len(found.gate.reasons)
            return f"The gate does not pass: {count} finding{'' if count == 1 else 's'}. Exit code 1."
        case code if code == INTERRUPTED:
            return "The run was cancelled; what it had found is kept. Exit code 130."
        case code if batch_outcome(found.batch) is Outcome.INCOMPLETE:
            return f"INCOMPLETE: not everything could be judged, so nothing vouches for it. Exit code {code}."
        case code:
            return f"Some runs are broken and say nothing of the files they were to test. Exit code {code}."


def _scored(run: RunResult) -> float | None:
    scores = [result.score for result in run.evaluations.values() if result.score is not None]
    return fmean(scores) if scores else None


def _one_decimal(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"
