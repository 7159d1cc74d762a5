"""Artifacts that jobs have stored: their names and contents, whose they are, and what of it is believed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from pydantic import ValidationError

from zelda_ci.ci.settings import DEFAULT_ARTIFACT, ActionSettings
from zelda_ci.domain.ci import Provenance
from zelda_ci.errors import ArtifactError
from zelda_ci.github import schemas
from zelda_ci.github.api import Api
from zelda_ci.github.archives import artifact_name, read_members
from zelda_ci.github.schemas import Artifact, ArtifactRun, WorkflowRun, understand

PROVENANCE = "zelda-ci.json"
RESULTS = "zelda-results.json"
POOL = "zelda-pool.json"
NIGHTS = "history.json"

# What runs on commits that are already on a branch of this repository; pull requests are not.
TRUSTED_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})

# At the end of the name of an artifact with transcripts.
TRANSCRIPTS = ".transcripts"

# The code of the error for results that may count nevertheless, by what they say of themselves.
OTHER_WORKFLOW = "OTHER_WORKFLOW"

# Of 100 each: every pull request stores one under the same name, and GitHub cannot filter by branch.
PAGES_OF_ARTIFACTS = 5

MAX_ARCHIVE_BYTES = 256 << 20
MAX_MEMBER_BYTES = 64 << 20
MAX_MEMBERS = 20_000


def transcripts_name(name: str) -> str:
    """The artifact with the transcripts that belong to the results in `name`; nobody who looks for results lists it."""
    return artifact_name(f"{name}{TRANSCRIPTS}")


@dataclass(frozen=True)
class JobIdentity:
    """A job whose runs are compared with each other, in whatever file its workflow is written.

    A name that its author has given (`artifact-name`, `comment-id`) is enough. The default name is everybody's, so that
    job and folder count, too.

    Attributes:
        artifact: The name under which it looks for results.
        job: Its id in the workflow; nothing where the runner does not say.
        folder: Of the project, below the workspace.
    """

    artifact: str
    job: str | None = None
    folder: str | None = None

    @property
    def second_name(self) -> str | None:
        """Under which it stores where another job of the run has taken the default name."""
        has_default = self.artifact == DEFAULT_ARTIFACT and self.job
        return artifact_name(f"{DEFAULT_ARTIFACT}-{self.job}") if has_default else None

    @property
    def names(self) -> tuple[str, ...]:
        """Under which its artifacts may lie; first the one that no other job uses."""
        return tuple(name for name in (self.second_name, self.artifact) if name)

    def distrust(self, stored: Provenance, run: WorkflowRun, workflow_id: int) -> str | None:
        """Why results are not this job's own; absent where they are.

        Args:
            stored: What they say of themselves.
            run: What GitHub says of the run that stored them.
            workflow_id: Of the job's own workflow.
        """
        if run.workflow_id != workflow_id:
            return self._distrust_elsewhere(stored, run)
        # Versions before this one did not say.
        if stored.artifact not in {None, self.artifact}:
            return "it belongs to another artifact-name or comment-id"
        if self.second_name and stored.job not in {None, self.job}:
            return "it was stored by another job of this workflow (jobs that belong together need one comment-id)"
        return None

    def _distrust_elsewhere(self, stored: Provenance, run: WorkflowRun) -> str | None:
        if stored.workflow is None or stored.workflow != run.workflow:
            return "it was stored by another workflow"
        if stored.artifact != self.artifact:
            return "it was stored by another workflow, for another artifact-name or comment-id"
        is_same = bool(self.job) and (stored.job, stored.folder) == (self.job, self.folder)
        if self.artifact == DEFAULT_ARTIFACT and not is_same:
            return "it was stored by another job of another workflow (jobs that belong together need one comment-id)"
        return None


def identity_of(settings: ActionSettings, evaluated: Provenance | None = None) -> JobIdentity:
    """Of the job that runs us; or of one that another workflow has evaluated, as its results say."""
    if evaluated:
        return JobIdentity(settings.artifact_name, evaluated.job, evaluated.folder)
    return JobIdentity(settings.artifact_name, settings.context.job or None, settings.folder)


@dataclass(frozen=True)
class Opened:
    """What an artifact holds, as bytes."""

    provenance: Provenance
    results: bytes
    pool: bytes | None = None
    """Trials of earlier runs; absent in artifacts of older versions."""
    stored_at: datetime | None = None
    nights: bytes | None = None
    """What suites showed night by night; absent where no scheduled run was before it."""


@dataclass(frozen=True)
class Candidate:
    """An artifact that a run for the branch stored, as far as a list tells."""

    artifact: Artifact
    run: ArtifactRun

    @property
    def commit(self) -> str:
        """The commit that it is about."""
        return self.run.head_sha


def candidates(api: Api, names: Sequence[str], branch: str, repository_id: int) -> list[Candidate]:
    """What runs for a branch stored, expired or not; the newest run first, since GitHub promises no order.

    Of one run, what lies under the first name: the other is likely to be another job's.
    """
    found = [_candidates(api, name, branch, repository_id) for name in names]
    newest: dict[int, int] = {}
    for candidate in chain(*found):
        newest[candidate.run.id] = max(newest.get(candidate.run.id, 0), candidate.artifact.id)
    # Sorting keeps the order of names within a run.
    return sorted(chain(*found), key=lambda candidate: newest[candidate.run.id], reverse=True)


def _candidates(api: Api, name: str, branch: str, repository_id: int) -> list[Candidate]:
    listed = api.pages("actions/artifacts", key="artifacts", limit=PAGES_OF_ARTIFACTS, name=name)
    artifacts = sorted((understand(Artifact, entry) for entry in listed), key=lambda entry: entry.id, reverse=True)
    return [
        Candidate(artifact, run)
        for artifact in artifacts
        if (run := artifact.workflow_run) and is_of_branch(run, branch, repository_id)
    ]


def is_of_branch(run: ArtifactRun, branch: str, repository_id: int) -> bool:
    """Whether a run was for this repository's own branch, as far as a list of artifacts tells."""
    return run.repository_id == run.head_repository_id == repository_id and run.head_branch == branch


def distrust_of_run(run: WorkflowRun, listed: ArtifactRun) -> str | None:
    """Why the results of a run are nobody's baseline; absent where they may be one."""
    if run.event not in TRUSTED_EVENTS:
        return f"it was stored by a {run.event} run"
    return distrust_of_origin(run, listed)


def distrust_of_origin(run: WorkflowRun, listed: ArtifactRun) -> str | None:
    """Why a run is not what a list says of it."""
    if run.head_repository is None or run.head_repository.id != listed.repository_id:
        return "it was stored by a run for another repository"
    if (run.id, run.head_branch, run.head_sha) != (listed.id, listed.head_branch, listed.head_sha):
        return "GitHub gives contradicting data on its run"
    return None


def distrust_of_provenance(provenance: Provenance, run: WorkflowRun) -> str | None:
    """Why what an artifact tells of itself, which whoever stored it can choose, is not believed.

    A repository may be renamed: its id tells.
    """
    if run.head_repository is None or provenance.repository_id != run.head_repository.id:
        return "it names another repository than GitHub"
    if provenance.run_id != run.id:
        return "it names another run than GitHub"
    if run.head_sha != provenance.sha:
        return "it names another commit than GitHub"
    if not provenance.complete:
        return "its run was interrupted, or not judged completely"
    return None


def opened(api: Api, artifact: Artifact) -> Opened:
    """What an artifact tells of itself, and its results, nothing of it believed yet.

    Raises:
        ArtifactError: It holds no such things.
        GitHubError: GitHub did not give it.
    """
    members = _members(api, artifact, (PROVENANCE, RESULTS), (POOL, NIGHTS))
    origin = _provenance(members[PROVENANCE])
    return Opened(origin, members[RESULTS], members.get(POOL), artifact.created_at, members.get(NIGHTS))


def provenance_in(api: Api, artifact: Artifact) -> Provenance:
    """What an artifact tells of itself, nothing of it believed yet.

    Raises:
        ArtifactError: It tells nothing.
        GitHubError: GitHub did not give it.
    """
    return _provenance(_members(api, artifact, (PROVENANCE,))[PROVENANCE])


def _members(api: Api, artifact: Artifact, needed: Collection[str], further: Collection[str] = ()) -> dict[str, bytes]:
    blob = api.download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
    members = read_members(
        blob,
        {*needed, *further},
        max_member_bytes=MAX_MEMBER_BYTES,
        max_total_bytes=4 * MAX_MEMBER_BYTES,
        max_members=MAX_MEMBERS,
    )
    for name in needed:
        refuse(None if name in members else f"it holds no {name}")
    return members


def _provenance(data: bytes) -> Provenance:
    try:
        return Provenance.model_validate(schemas.parse_strict(data))
    except (schemas.NotStrictJsonError, ValidationError):
        raise ArtifactError(f"its {PROVENANCE} cannot be read", code="BASELINE_REFUSED") from None


def refuse(reason: str | None, code: str = "BASELINE_REFUSED") -> None:
    """End the look at an artifact, where there is a reason to.

    Raises:
        ArtifactError: With the reason.
    """
    if reason:
        raise ArtifactError(reason, code=code)
