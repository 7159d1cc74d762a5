"""Artifacts that jobs have stored: their names and contents, the runs that stored them, and which of it is believed."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from zelda_ci.ci.settings import DEFAULT_ARTIFACT, ActionSettings
from zelda_ci.compare.pool import CLOCK_DIFFERENCE
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import BatchResult, Pool, RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.archives import MemberReader
from zelda_ci.github.schemas import Artifact, WorkflowRun, understand
from zelda_ci.storage import codec

PROVENANCE = "zelda-ci.json"
RESULTS = "zelda-results.json"
POOL = "zelda-pool.json"
NIGHTS = "history.json"

# What runs on commits that are already on a branch of this repository; pull requests are not.
TRUSTED_EVENTS = ("push", "schedule", "workflow_dispatch")

# Of 100 each: as many runs of an event as commits that are looked at, and all artifacts that one job may store.
PAGES_OF_RUNS = 3
PAGES_OF_ARTIFACTS = 10

MAX_ARCHIVE_BYTES = 256 << 20
MAX_MEMBER_BYTES = 64 << 20
MAX_MEMBERS = 20_000
MAX_HISTORY_BYTES = 16 << 20


@dataclass(frozen=True)
class JobIdentity:
    """A job whose runs are compared with each other, in whatever file its workflow is written.

    A name that its author has given (`artifact-name`, `comment-id`) is enough. The default name is everybody's, so that
    job and folder count, too.

    Attributes:
        artifact: What the input artifact-name or comment-id says, or the default.
        job: Its id in the workflow; nothing where the runner does not say.
        folder: Of the project, below the workspace.
    """

    artifact: str
    job: str | None = None
    folder: str | None = None

    @property
    def stem(self) -> str:
        """The beginning of all names of its artifacts: no other job's."""
        return f"{self.artifact}.{self.job}" if self.artifact == DEFAULT_ARTIFACT and self.job else self.artifact

    def stored_as(self, attempt: int) -> str:
        """The artifact with the results of an attempt: each attempt has its own, and none replaces another's."""
        return f"{self.stem}.{attempt}"

    def distrust(self, stored: Provenance, run: WorkflowRun, workflow_id: int) -> str | None:
        """Why results are not this job's own; absent where they are."""
        if run.workflow_id != workflow_id and (stored.workflow is None or stored.workflow != run.workflow):
            return "it was stored by another workflow"
        if stored.artifact != self.artifact:
            return "it belongs to another artifact-name or comment-id"
        if self.artifact != DEFAULT_ARTIFACT:
            return None
        is_same = stored.job == self.job if self.job else run.workflow_id == workflow_id
        if not is_same or (run.workflow_id != workflow_id and stored.folder != self.folder):
            return "it was stored by another job (jobs that belong together need one comment-id)"
        return None


def identity_of(settings: ActionSettings, evaluated: Provenance | None = None) -> JobIdentity:
    """Of the job that runs us; or of one that another workflow has evaluated, as its results say."""
    if evaluated:
        return JobIdentity(settings.artifact_name, evaluated.job, evaluated.folder)
    return JobIdentity(settings.artifact_name, settings.context.job or None, settings.folder)


def is_results_name(name: str, artifact: str) -> bool:
    """Whether an artifact may hold the results of a job that stores under `artifact`, whichever job that is."""
    job = r"(\.[^.]+)?" if artifact == DEFAULT_ARTIFACT else ""
    return re.fullmatch(rf"{re.escape(artifact)}{job}\.[0-9]+", name) is not None


@dataclass(frozen=True)
class StoredResults:
    """What one artifact holds."""

    provenance: Provenance
    batch: BatchResult
    pool: Pool
    """Trials of earlier runs."""
    knows_earlier: bool
    """Whether these were known when it was stored: GitHub could be asked for them."""
    stored_at: datetime | None
    nights: NightlyHistory | None
    """What suites showed night by night; absent where no scheduled run was before it."""
    damage: str
    """Why its history cannot be read, if it has one."""

    @property
    def trials(self) -> Iterator[RunResult]:
        """Of the run and of earlier ones, on both sides; none that is newer than the artifact."""
        latest = self.stored_at + CLOCK_DIFFERENCE if self.stored_at else None
        runs = (*self.batch.runs, *self.batch.base_runs, *self.pool.trials)
        return (run for run in runs if latest is None or run.finished_at <= latest)

    @property
    def own_trials(self) -> Iterator[RunResult]:
        """Those of the files that were tested."""
        return (run for run in self.trials if run.side is Side.HEAD)


@dataclass(frozen=True)
class Candidate:
    """An artifact with results, and the run that stored it."""

    artifact: Artifact
    run: WorkflowRun


def runs_of(
    api: Api, branch: str, events: Collection[str], repository_id: int, own: WorkflowRun
) -> Iterator[list[WorkflowRun]]:
    """The newest runs for a branch of the repository itself: of a run's own workflow, then, if need be, of all others.

    Runs are listed by event. So runs of pull requests, which anybody may cause in any number from a branch of the same
    name, push no run of another event out of the list.
    """
    for path in (f"actions/workflows/{own.workflow_id}/runs", "actions/runs"):
        listed = (
            understand(WorkflowRun, entry)
            for event in events
            for entry in api.pages(path, key="workflow_runs", limit=PAGES_OF_RUNS, branch=branch, event=event)
        )
        # GitHub promises neither the order nor that its index is of this moment.
        runs = {run.id: run for run in listed if run.event in events and run.is_of(branch, repository_id)}
        is_own = path != "actions/runs"
        wanted = (run for run in runs.values() if (run.workflow_id == own.workflow_id) == is_own)
        yield sorted(wanted, key=lambda run: run.id, reverse=True)


def artifacts_of_run(api: Api, run_id: int) -> list[Artifact]:
    """The artifacts of a run, of all its attempts, expired or not, the newest first."""
    listed = api.pages(f"actions/runs/{run_id}/artifacts", key="artifacts", limit=PAGES_OF_ARTIFACTS)
    return sorted((understand(Artifact, entry) for entry in listed), key=lambda entry: entry.id, reverse=True)


def results_of_run(api: Api, run: WorkflowRun, job: JobIdentity) -> Iterator[Candidate]:
    """The results that a job has stored in a run, of its newest attempt first."""
    names = {job.stored_as(attempt) for attempt in range(1, run.run_attempt + 1)}
    return (Candidate(artifact, run) for artifact in artifacts_of_run(api, run.id) if artifact.name in names)


def distrust_of_provenance(provenance: Provenance, run: WorkflowRun) -> str | None:
    """Why what an artifact tells of itself, which whoever stored it can choose, is not believed.

    A repository may be renamed: its id tells.
    """
    if provenance.repository_id != run.head_repository_id:
        return "it names another repository than GitHub"
    if provenance.run_id != run.id:
        return "it names another run than GitHub"
    if run.head_sha != provenance.sha:
        return "it names another commit than GitHub"
    if not provenance.complete:
        return "its run was interrupted, or not judged completely"
    return None


def read_stored(api: Api, artifact: Artifact) -> StoredResults:
    """What an artifact tells of itself, and its results, nothing of it believed yet.

    Raises:
        ArtifactError: It holds no such things.
        StorageError: They cannot be read, or hold no run.
        GitHubError: GitHub did not give it.
    """
    blob = api.download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
    members = MemberReader(blob, max_members=MAX_MEMBERS).read(
        (PROVENANCE, RESULTS, POOL, NIGHTS), max_member_bytes=MAX_MEMBER_BYTES, max_total_bytes=4 * MAX_MEMBER_BYTES
    )
    for name in (PROVENANCE, RESULTS):
        refuse(None if name in members else f"it holds no {name}")
    try:
        provenance = Provenance.model_validate_json(members[PROVENANCE])
    except ValidationError:
        raise ArtifactError(f"its {PROVENANCE} cannot be read", code="BASELINE_REFUSED") from None
    batch = codec.decode(BatchResult, members[RESULTS], RESULTS)
    pool = codec.decode(Pool, members[POOL], POOL) if POOL in members else Pool()
    # A push that changed nothing that a suite depends on has run none, and of a pull request all may have run before.
    if not batch.runs and not pool.suites and not pool.trials:
        raise StorageError("it holds no run", code="NO_RUNS")
    nights, damage = None, ""
    try:
        nights = codec.decode(NightlyHistory, members[NIGHTS], NIGHTS) if NIGHTS in members else None
    except StorageError as problem:
        # Results are worth keeping without it.
        damage = problem.message
    return StoredResults(provenance, batch, pool, POOL in members, artifact.created_at, nights, damage)


def refuse(reason: str | None) -> None:
    """End the look at an artifact, where there is a reason to."""
    if reason:
        raise ArtifactError(reason, code="BASELINE_REFUSED")
