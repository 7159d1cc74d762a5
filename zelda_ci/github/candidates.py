"""Artifacts that may be a branch's baseline, and the results in one of them once it has proved what it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from zelda_ci.domain.ci import Provenance
from zelda_ci.errors import ArtifactError
from zelda_ci.github import strict_json, trust
from zelda_ci.github.api import Api
from zelda_ci.github.archive import read_members
from zelda_ci.github.schemas import Artifact, ArtifactRun, Run, understand

PROVENANCE = "zelda-ci.json"
RESULTS = "zelda-results.json"

PAGES_OF_ARTIFACTS = 5
"""Of 100 each: every pull request stores one under the same name, and GitHub cannot filter by branch."""

LARGEST_ARCHIVE = 256 << 20
LARGEST_MEMBER = 64 << 20
MOST_MEMBERS = 20_000

T = TypeVar("T")


@dataclass(frozen=True)
class Candidate:
    """An artifact that a run for the branch stored, as far as a list tells."""

    artifact: Artifact
    run: ArtifactRun

    @property
    def commit(self) -> str:
        """The commit that it is about."""
        return self.run.head_sha


def candidates(api: Api, name: str, branch: str, repository_id: int) -> list[Candidate]:
    """What runs for a branch stored, expired or not; the newest first, since GitHub promises no order."""
    listed = api.pages("actions/artifacts", key="artifacts", limit=PAGES_OF_ARTIFACTS, name=name)
    artifacts = sorted((understand(Artifact, each) for each in listed), key=lambda each: each.id, reverse=True)
    return [
        Candidate(artifact, run)
        for artifact in artifacts
        if (run := artifact.workflow_run) and trust.is_of_branch(run, branch, repository_id)
    ]


def results_of(api: Api, candidate: Candidate, workflow_id: int, read: Callable[[bytes], T]) -> T:
    """The results in a candidate.

    Raises:
        ArtifactError: It is no baseline, or damaged; the message says which condition failed.
        StorageError: `read` could not read the results.
        GitHubError: GitHub did not give it.
    """
    run = understand(Run, api.get(f"actions/runs/{candidate.run.id}"))
    _refuse(trust.distrust_of_run(run, candidate.run, workflow_id))
    told, results = opened(api, candidate.artifact)
    _refuse(trust.distrust_of_provenance(told, run))
    return read(results)


def _members(api: Api, artifact: Artifact) -> dict[str, bytes]:
    blob = api.download(artifact.id, digest=artifact.digest, max_bytes=LARGEST_ARCHIVE)
    members = read_members(
        blob,
        {PROVENANCE, RESULTS},
        max_member_bytes=LARGEST_MEMBER,
        max_total_bytes=2 * LARGEST_MEMBER,
        max_members=MOST_MEMBERS,
    )
    for name in (PROVENANCE, RESULTS):
        _refuse(None if name in members else f"it holds no {name}")
    return members


def _provenance(data: bytes) -> Provenance:
    try:
        return Provenance.model_validate(strict_json.read(data))
    except (strict_json.NotStrictJsonError, ValidationError):
        raise ArtifactError(f"its {PROVENANCE} cannot be read", code="BASELINE_REFUSED") from None


def _refuse(reason: str | None) -> None:
    if reason:
        raise ArtifactError(reason, code="BASELINE_REFUSED")


def opened(api: Api, artifact: Artifact) -> tuple[Provenance, bytes]:
    """What an artifact tells of itself, and its results, neither of them believed yet.

    Raises:
        ArtifactError: It holds no such things.
        GitHubError: GitHub did not give it.
    """
    members = _members(api, artifact)
    return _provenance(members[PROVENANCE]), members[RESULTS]
