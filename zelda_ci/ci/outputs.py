"""A run in CI as step outputs and as files below `.zelda/ci/`."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean

from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.stored_artifacts import NIGHTS, POOL, PROVENANCE, RESULTS
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.report.text import json_text


def step_outputs(result: CiResult) -> dict[str, str]:
    """The figures among the action's outputs; one that is not known is left out."""
    score = mean_score(result.batch)
    outputs = {
        "verdict": verdict(result),
        "score": None if score is None else f"{score:.1f}",
        "cost-usd": f"{result.batch.cost_usd:.4f}",
        "artifact-id": str(result.artifact_id) if result.artifact_id else None,
        "transcripts-artifact-id": str(result.transcripts_id) if result.transcripts_id else None,
        "report-artifact-id": str(result.report_id) if result.report_id else None,
        "baseline-sha": result.baseline.commit,
    }
    if result.comparison:
        counts = result.comparison.counts
        found = {"regressions": counts[Verdict.REGRESSED], "improvements": counts[Verdict.IMPROVED]}
        outputs |= {name: str(count) for name, count in found.items()}
    return {name: value for name, value in outputs.items() if value}


def verdict(result: CiResult) -> str:
    """In one word: how the run compares, or without a comparison how it went. Nothing beside a red gate looks green."""
    outcome, compared = result.outcome, result.comparison
    if outcome is Outcome.INTERRUPTED:
        return "cancelled"
    if outcome >= Outcome.INCOMPLETE:
        return outcome.name.lower()
    if compared and (outcome is not Outcome.FAILED or compared.verdict is Verdict.REGRESSED):
        return compared.verdict.value
    return outcome.name.lower()


def mean_score(batch: BatchResult) -> float | None:
    """The mean over the suites of the mean of their scores.

    Absent where nothing was scored, and where not everything was judged: the rest must not speak for what is missing.
    """
    if any(run_outcome(run) is Outcome.INCOMPLETE for run in batch.runs):
        return None
    by_suite = defaultdict(list)
    for run in batch.runs:
        if scores := [each.score for each in run.evaluations.values() if each.score is not None]:
            by_suite[run.suite].append(fmean(scores))
    return fmean(map(fmean, by_suite.values())) if by_suite else None


COMPARISON = "comparison.json"
REPORT = "report.html"
JUNIT = "junit.xml"
FOLDER = "ci"


class Files:
    """Where everything lies; a file that was not written does not exist."""

    def __init__(self, case: CiContext) -> None:
        """In the project's results, and the JUnit XML where the workflow wants it."""
        folder = case.results_dir / FOLDER
        names = (RESULTS, POOL, NIGHTS, PROVENANCE, COMPARISON, REPORT)
        self.results, self.pool, self.nights, self.provenance, self.comparison, self.report = (
            folder / name for name in names
        )
        self.junit = case.settings.junit_path or folder / JUNIT
        for path in (self.results, self.junit):
            with storage_errors(path):
                untrusted.refuse_links(path.parent)

    def clear(self) -> None:
        """Remove what an earlier step left: a file that is there is of this run."""
        for path in vars(self).values():
            with storage_errors(path):
                path.unlink(missing_ok=True)


def write(path: Path, data: bytes) -> None:
    """Write a file whole, with the folders that it needs."""
    write_whole(path, [data], durable=False)


def json_of(record: Record) -> bytes:
    """As people and programs read it."""
    return (json_text(record.model_dump_json(by_alias=True, exclude_none=True, indent=2)) + "\n").encode()
