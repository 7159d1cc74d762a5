"""Artifacts that jobs have stored: their names and contents, the runs that stored them, and which of it is believed."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.compare.pool import CLOCK_DIFFERENCE
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import BatchResult, Pool, RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.archives import MemberReader
from zelda_ci.github.repository import Artifact, WorkflowRun, artifacts_of_run
from zelda_ci.storage import codec

PROVENANCE = "zelda-ci.json"
RESULTS = "zelda-results.json"
POOL = "zelda-pool.json"
NIGHTS = "history.json"

# Of 100 runs each: as many of an event as commits that are looked at.
PAGES_OF_RUNS = 3

MAX_FILE_BYTES = 64 << 20
MAX_MEMBERS = 20_000

# What an artifact tells of itself, which its author can choose, and what is said where it is not as expected.
# A repository may be renamed: its id tells.
CLAIMS = {
    "repository_id": "it names another repository than GitHub",
    "run_id": "it names another run than GitHub",
    "sha": "it names another commit than GitHub",
    "head_sha": "it names another commit than GitHub",
    "complete": "its run was interrupted, or not judged completely",
    "pull_request": "it is of another pull request",
    "workflow": "it was stored by another workflow",
    "artifact": "it belongs to another artifact-name or comment-id",
    "job": "it was stored by another job (jobs that belong together need one comment-id)",
    "folder": "it is of a project in another folder (jobs that belong together need one comment-id)",
}
Claims = Mapping[str, object]
"""Values that what an artifact tells of itself must have, by the names of `CLAIMS`."""


def distrust(provenance: Provenance, expected: Claims) -> str | None:
    """Why something of what an artifact tells of itself is not believed; absent where all is as expected."""
    return next((CLAIMS[it] for it in CLAIMS if it in expected and getattr(provenance, it) != expected[it]), None)


@dataclass(frozen=True)
class JobIdentity:
    """A job whose runs are compared with each other, in whatever file its workflow is written."""

    artifact: str
    """What the input artifact-name or comment-id says, or the default, which is everybody's."""
    job: str | None
    """Its id in the workflow; absent where the runner does not say."""
    folder: str | None
    """Of the project, below the workspace."""

    @property
    def stem(self) -> str:
        """The beginning of all names of its artifacts: no other job's."""
        return f"{self.artifact}.{self.job}" if self.artifact == DEFAULT_ARTIFACT and self.job else self.artifact

    def stored_as(self, attempt: int) -> str:
        """The artifact with the results of an attempt: each attempt has its own, and none replaces another's."""
        return f"{self.stem}.{attempt}"

    def claims(self, run: WorkflowRun, own: WorkflowRun) -> Claims:
        """What its results in a run of any workflow say. A name that its author has given them is enough."""
        is_elsewhere, claims = run.workflow_id != own.workflow_id, {"artifact": self.artifact}
        if is_elsewhere:
            claims["workflow"] = run.workflow
        if self.artifact != DEFAULT_ARTIFACT:
            return claims
        return {**claims, "job": self.job, **({"folder": self.folder} if is_elsewhere else {})}


def is_results_name(name: str, artifact: str) -> bool:
    """Whether an artifact may hold the results of a job that stores under `artifact`, whichever job that is."""
    job = r"(\.[^.]+)?" if artifact == DEFAULT_ARTIFACT else ""
    return re.fullmatch(rf"{re.escape(artifact)}{job}\.[0-9]+", name) is not None


def runs_of(
    api: Api, branch: str, events: Collection[str], repository_id: int, own: WorkflowRun
) -> Iterator[list[WorkflowRun]]:
    """The newest runs for a branch of the repository itself: of a run's own workflow, then, if need be, of all others.

    Runs are listed by event. So runs of pull requests, which anybody may cause in any number from a branch of the same
    name, push no run of another event out of the list.
    """
    for path, is_own in ((f"actions/workflows/{own.workflow_id}/runs", True), ("actions/runs", False)):
        listed = (
            WorkflowRun.of(entry)
            for event in events
            for entry in api.pages(path, key="workflow_runs", limit=PAGES_OF_RUNS, branch=branch, event=event)
        )
        # GitHub promises neither the order nor that its index is of this moment.
        runs = {run.id: run for run in listed if run.event in events and run.is_of(branch, repository_id)}
        wanted = (run for run in runs.values() if (run.workflow_id == own.workflow_id) == is_own)
        yield sorted(wanted, key=lambda run: run.id, reverse=True)


def results_of_run(api: Api, run_id: int, job: JobIdentity, attempts: int) -> Iterator[Artifact]:
    """The artifacts with the results of a job in the first attempts of a run, of its newest attempt first."""
    names = {job.stored_as(attempt) for attempt in range(1, attempts + 1)}
    return (artifact for artifact in (artifacts_of_run(api, run_id) if names else ()) if artifact.name in names)


def results_by_job(api: Api, run_id: int, artifact: str) -> dict[str, Artifact]:
    """Of each job of a run that stores under `artifact`, by its stem, the results of its newest attempt."""
    listed = (it for it in artifacts_of_run(api, run_id) if not it.expired and is_results_name(it.name, artifact))
    return {it.name.rpartition(".")[0]: it for it in reversed([*listed])}


@dataclass(frozen=True)
class StoredResults:
    """What one artifact holds."""

    artifact: Artifact
    provenance: Provenance
    batch: BatchResult
    pool: Pool
    """Trials of earlier runs."""
    knows_earlier: bool
    """Whether these were known when it was stored: GitHub could be asked for them."""
    nights: NightlyHistory
    """What suites showed in the scheduled runs before."""
    damage: str
    """Why its history cannot be read, if it has one."""

    @property
    def trials(self) -> Iterator[RunResult]:
        """Of the run and of earlier ones, on both sides; none that is newer than the artifact."""
        stored_at, runs = self.artifact.created_at, (*self.batch.runs, *self.batch.base_runs, *self.pool.trials)
        return (run for run in runs if stored_at is None or run.finished_at <= stored_at + CLOCK_DIFFERENCE)

    @property
    def own_trials(self) -> Iterator[RunResult]:
        """Those of the files that were tested."""
        return (run for run in self.trials if run.side is Side.HEAD)


def read_members(api: Api, artifact: Artifact, names: Collection[str], max_bytes: int) -> dict[str, bytes]:
    """What an artifact holds under these names, each of so many bytes at most, and all of four times as many."""
    with api.download(artifact.id, digest=artifact.digest, max_bytes=4 * max_bytes) as file:
        archive = MemberReader(file, max_members=MAX_MEMBERS)
        return archive.read(names, max_member_bytes=max_bytes, max_total_bytes=4 * max_bytes)


def read_stored(api: Api, artifact: Artifact, expected: Claims) -> StoredResults:
    """The results in an artifact that tells of itself what is expected.

    Raises:
        ArtifactError: It does not, has expired, or holds no such things.
        StorageError: They cannot be read, or hold no run.
        GitHubError: GitHub did not give it.
    """
    if artifact.expired:
        raise ArtifactError("The artifact has expired.", code="ARTIFACT_EXPIRED")
    members = read_members(api, artifact, (PROVENANCE, RESULTS, POOL, NIGHTS), MAX_FILE_BYTES)
    for name in (PROVENANCE, RESULTS):
        if name not in members:
            raise ArtifactError(f"it holds no {name}", code="BASELINE_REFUSED")
    provenance = codec.decode(Provenance, members[PROVENANCE], PROVENANCE)
    if why := distrust(provenance, expected):
        raise ArtifactError(why, code="BASELINE_REFUSED")
    batch = codec.decode(BatchResult, members[RESULTS], RESULTS)
    pool = codec.decode(Pool, members[POOL], POOL) if POOL in members else Pool()
    # A push that changed nothing that a suite depends on has run none, and of a pull request all may have run before.
    # Of a fork without a key there is only what its change takes of the context, which is nobody's baseline.
    is_context = provenance.context_size is not None and expected.get("complete") is None
    if not batch.runs and not pool.suites and not pool.trials and not is_context:
        raise StorageError("it holds no run", code="NO_RUNS")
    nights, damage = NightlyHistory(), ""
    try:
        nights = codec.decode(NightlyHistory, members[NIGHTS], NIGHTS) if NIGHTS in members else nights
    except StorageError as problem:
        # Results are worth keeping without it.
        damage = problem.message
    return StoredResults(artifact, provenance, batch, pool, POOL in members, nights, damage)
