"""The files of a run in CI: results, comparison and JUnit XML on disk, and what goes into the artifact."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.domain.base import Record
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import StorageError
from zelda_ci.github.candidates import PROVENANCE, RESULTS
from zelda_ci.ownership import make_folder
from zelda_ci.pipeline.ci.case import Case
from zelda_ci.storage import run_folder
from zelda_ci.storage.atomic import storage_errors, write_whole
from zelda_ci.storage.result_store import RUNS

COMPARISON = "comparison.json"
JUNIT = "junit.xml"
FOLDER = "ci"
LOGS = ("setup", "setup-again", "build", "test")
INVALID = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}


@dataclass(frozen=True)
class Files:
    """Where everything lies; a file that was not written does not exist."""

    results: Path
    provenance: Path
    comparison: Path
    junit: Path

    @classmethod
    def of(cls, case: Case) -> "Files":
        """In the project's results, and the JUnit XML where the workflow wants it.

        Raises:
            StorageError: The tested commit holds a link in their place.
        """
        folder = case.results_dir / FOLDER
        if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(case.root)):
            message = f"{folder} leads out of the project through a symbolic link."
            raise StorageError(message, hint="Remove the link.", code="STORAGE_IN_THE_WAY")
        return cls(
            folder / RESULTS, folder / PROVENANCE, folder / COMPARISON, case.settings.junit_path or folder / JUNIT
        )

    def clear(self) -> None:
        """Remove what an earlier step left: a file that is there is of this run.

        Raises:
            StorageError: It cannot be removed.
        """
        for path in (self.results, self.provenance, self.comparison, self.junit):
            with storage_errors(path):
                path.unlink(missing_ok=True)


def write(path: Path, data: bytes) -> None:
    """Write a file whole, with the folders that it needs.

    Raises:
        StorageError: There was no room or no permission.
    """
    with storage_errors(path):
        make_folder(path.parent)
    write_whole(path, [data], durable=False)


def json_of(record: Record) -> bytes:
    """As people and programs read it."""
    return (record.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n").encode()


def provenance(case: Case, batch: BatchResult, wanted: str | None) -> Provenance:
    """Where the results come from."""
    context, decision = case.settings.context, case.decision
    return Provenance(
        repository=context.repository,
        repository_id=context.repository_id,
        sha=case.commit,
        head_sha=decision.head_sha or case.commit,
        base_sha=wanted,
        base_branch=decision.wanted.branch if decision.wanted else None,
        event=context.event_name,
        run_id=context.run_id,
        run_attempt=context.run_attempt,
        pull_request=decision.pull_request,
        batch_id=batch.batch_id,
        complete=_is_complete(batch),
        created_at=case.now(),
    )


def _is_complete(batch: BatchResult) -> bool:
    """Whether the results may be a baseline: nothing was cut short, something is valid, all of it was judged."""
    valid = any(run.status not in INVALID for run in batch.runs)
    judged = all(run_outcome(run) is not Outcome.INCOMPLETE for run in batch.runs)
    return valid and judged and not batch.interrupted


def members(case: Case, files: Files, batch: BatchResult, origin: Provenance) -> Mapping[str, Path | bytes]:
    """What goes into the artifact, by path within it; what makes it a baseline comes from us, not from disk."""
    found: dict[str, Path | bytes] = {PROVENANCE: json_of(origin), RESULTS: json_of(batch)}
    if files.comparison.is_file():
        found[COMPARISON] = files.comparison
    names = [run_folder.RESULT]
    if case.settings.include_transcripts:
        names += [run_folder.TRANSCRIPT, run_folder.PATCH, run_folder.MANIFEST, *map(run_folder.log_name, LOGS)]
    return found | dict(_of_runs(case.results_dir / RUNS, batch, names))


def _of_runs(runs: Path, batch: BatchResult, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for run in batch.runs:
        for name in names:
            path = runs / run.run_id / name
            if path.is_file() and not path.is_symlink():
                yield f"{RUNS}/{run.run_id}/{name}", path
