"""The things that GitHub's answers describe, as far as Zelda reads them."""

from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from zelda_ci.errors import GitHubError


class Described(BaseModel):
    """A thing as GitHub describes it; keys that Zelda does not read are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ArtifactRun(Described):
    """What a list of artifacts tells of the run that stored one."""

    id: int
    repository_id: int | None = None
    head_repository_id: int | None = None
    head_branch: str | None = None
    head_sha: str = ""


class Artifact(Described):
    """A stored artifact."""

    id: int
    size_in_bytes: int
    expired: bool
    created_at: AwareDatetime | None = None
    digest: str | None = None
    """`sha256:` and hex; absent where it was stored in the old way."""
    workflow_run: ArtifactRun | None = None


class Repository(Described):
    """One repository among a network of forks."""

    id: int


class Run(Described):
    """A run of a workflow."""

    id: int
    workflow_id: int
    event: str
    head_branch: str | None = None
    head_sha: str
    head_repository: Repository | None = None
    """Absent where the fork was deleted."""
    run_attempt: int = 1


class Commit(Described):
    """A commit in a list."""

    sha: str


class CommitComparison(Described):
    """How far two commits are apart."""

    behind_by: int
    merge_base_commit: Commit


class Side(Described):
    """Head or base of a pull request."""

    sha: str
    repo: Repository | None = None
    """Absent where the fork was deleted."""


class PullRequest(Described):
    """A pull request in a list or alone."""

    number: int
    state: str
    head: Side
    base: Side


_Described = TypeVar("_Described", bound=Described)


def understand(kind: type[_Described], answer: Any) -> _Described:
    """The thing that a value of an answer describes.

    Raises:
        GitHubError: `GITHUB_REFUSED` where it is something else.
    """
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        message = f"An answer of GitHub cannot be used: it describes no {kind.__name__}."
        raise GitHubError(message, code="GITHUB_REFUSED") from error
