"""What GitHub answers, checked as far as Zelda reads it."""

from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, AliasPath, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from zelda_ci.errors import GitHubError

Commit = Annotated[str, Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")]


class Described(BaseModel):
    """A thing as GitHub describes it; keys that Zelda does not read are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Artifact(Described):
    id: int
    name: str = ""
    size_in_bytes: int
    expired: bool
    created_at: AwareDatetime | None = None
    digest: str | None = None
    """`sha256:` and hex; absent where it was stored in the old way."""


class User(Described):
    login: str
    kind: str = Field("User", validation_alias=AliasChoices("__typename", "type"))


class Revision(Described):
    """A commit, such as head and base of a pull request."""

    ref: str = ""
    sha: Commit
    repository_id: int | None = Field(None, validation_alias=AliasPath("repo", "id"))
    """Absent where the fork was deleted."""

    def is_of(self, repository_id: int) -> bool:
        """Whether it is of that repository, and no fork's."""
        return self.repository_id == repository_id


class PullRequest(Described):
    """A pull request in a list, alone, or in an event."""

    number: int
    state: str
    head: Revision
    base: Revision
    labels: tuple[dict[str, Any], ...] = ()


class WorkflowRun(Described):
    """A run of a workflow."""

    id: int
    workflow_id: int
    path: str = ""
    """Of the workflow's file, in some answers with `@` and the ref behind it."""
    event: str
    head_branch: str | None = None
    head_sha: str
    head_repository_id: int | None = Field(None, validation_alias=AliasPath("head_repository", "id"))
    """Absent where the fork was deleted, like its owner."""
    head_owner: str = Field("", validation_alias=AliasPath("head_repository", "owner", "login"))
    run_attempt: int = 1
    status: str | None = None
    conclusion: str | None = None
    """Absent as long as it runs."""
    updated_at: AwareDatetime | None = None
    url: str = Field("", alias="html_url")

    @property
    def workflow(self) -> str:
        """Path of the workflow's file."""
        return self.path.partition("@")[0]

    def is_of(self, branch: str, repository_id: int) -> bool:
        """Whether it was for a branch of the repository itself, and not for a fork's of the same name."""
        return (self.head_repository_id, self.head_branch) == (repository_id, branch)


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
