"""A run in CI as step outputs and as files below `.zelda/ci/`."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import fmean

from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.event import number
from zelda_ci.ci.inputs import Mode
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.ci.stored_artifacts import NIGHTS, POOL, PROVENANCE, RESULTS
from zelda_ci.domain.base import Record
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.pipeline.parts import FILES, run_files
from zelda_ci.report.text import json_text
from zelda_ci.storage import run_folder


def step_outputs(result: CiResult) -> dict[str, str]:
    """The figures among the action's outputs; one that is not known is left out."""
    outputs = {
        "verdict": verdict(result),
        "score": _one_decimal(mean_score(result.batch)),
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


def skipped_outputs(settings: ActionSettings) -> dict[str, str]:
    """The outputs of a step that has nothing to do; of one that plans, that there is nothing to share."""
    return {"verdict": "skipped"} | ({"shards": "0", "matrix": "[]"} if settings.mode is Mode.PLAN else {})


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
        if (mean := _scored(run)) is not None:
            by_suite[run.suite].append(mean)
    return fmean(fmean(means) for means in by_suite.values()) if by_suite else None


def _scored(run: RunResult) -> float | None:
    scores = [result.score for result in run.evaluations.values() if result.score is not None]
    return fmean(scores) if scores else None


def _one_decimal(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"


COMPARISON = "comparison.json"
REPORT = "report.html"
JUNIT = "junit.xml"
FOLDER = "ci"


@dataclass(frozen=True)
class Files:
    """Where everything lies; a file that was not written does not exist."""

    results: Path
    pool: Path
    nights: Path
    provenance: Path
    comparison: Path
    report: Path
    junit: Path

    @classmethod
    def of(cls, case: CiContext) -> "Files":
        """In the project's results, and the JUnit XML where the workflow wants it.

        Raises:
            StorageError: A link leads to their place.
        """
        folder = case.results_dir / FOLDER
        junit = case.settings.junit_path or folder / JUNIT
        for path in (folder / RESULTS, junit):
            with storage_errors(path):
                untrusted.refuse_links(path.parent)
        return cls(
            results=folder / RESULTS,
            pool=folder / POOL,
            nights=folder / NIGHTS,
            provenance=folder / PROVENANCE,
            comparison=folder / COMPARISON,
            report=folder / REPORT,
            junit=junit,
        )

    def clear(self) -> None:
        """Remove what an earlier step left: a file that is there is of this run.

        Raises:
            StorageError: It cannot be removed.
        """
        for path in astuple(self):
            with storage_errors(path):
                path.unlink(missing_ok=True)


def write(path: Path, data: bytes) -> None:
    """Write a file whole, with the folders that it needs.

    Raises:
        StorageError: There was no room or no permission.
    """
    write_whole(path, [data], durable=False)


def json_of(record: Record) -> bytes:
    """As people and programs read it."""
    return (json_text(record.model_dump_json(by_alias=True, exclude_none=True, indent=2)) + "\n").encode()


def provenance(case: CiContext, batch: BatchResult, base_commit: str | None) -> Provenance:
    """Where the results come from."""
    context, decision = case.settings.context, case.decision
    return Provenance(
        repository=context.repository,
        repository_id=context.repository_id,
        sha=case.commit,
        head_sha=decision.head_sha or case.commit,
        base_sha=base_commit,
        base_branch=decision.target.branch if decision.target else None,
        event=context.event_name,
        run_id=context.run_id,
        run_attempt=context.run_attempt,
        pull_request=decision.pull_request or number(case.settings.event, "pull_request", "number"),
        workflow=context.workflow or None,
        job=context.job or None,
        artifact=case.settings.artifact_name,
        folder=case.settings.folder,
        batch_id=batch.batch_id,
        complete=_is_complete(batch),
        created_at=case.now(),
        refused=case.refused,
    )


def _is_complete(batch: BatchResult) -> bool:
    """Whether the results may be a baseline: nothing was cut short, something is valid, all of it was judged."""
    valid = batch.planned == 0 or any(run.status.is_valid for run in batch.runs)
    judged = all(run_outcome(run) is not Outcome.INCOMPLETE for run in batch.runs)
    return valid and judged and not batch.interrupted and not batch.ended


def result_members(
    files: Files, batch: BatchResult, origin: Provenance, trials: Mapping[str, bytes]
) -> Mapping[str, Path | bytes]:
    """What a later run reads, by path within the artifact; what makes it a baseline comes from us, not from disk."""
    contents: dict[str, Path | bytes] = {PROVENANCE: json_of(origin), RESULTS: json_of(batch), **trials}
    return contents | ({COMPARISON: files.comparison} if files.comparison.is_file() else {})


def transcript_members(case: CiContext, batch: BatchResult, origin: Provenance) -> Mapping[str, Path | bytes]:
    """What people read: of every run its result, transcript, patch, logs and images; nothing where nothing ran."""
    found = dict(run_files(case.results_dir, batch.runs, (run_folder.RESULT, *FILES)))
    return {PROVENANCE: json_of(origin), **found} if found else {}
