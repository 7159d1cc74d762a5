"""What GitHub tells of a repository, checked as far as Zelda reads it: commits, pull requests, runs and artifacts."""

from collections.abc import Iterator
from typing import Annotated, Any, Self
from urllib.parse import quote

from pydantic import AliasChoices, AliasPath, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api, Tolerating

# Of 100 each; of artifacts, all that one job may store.
PAGES_OF_ANCESTORS, PAGES_OF_ARTIFACTS = 3, 10
# What a workflow that tests pull requests is triggered by.
EVENTS = frozenset({"pull_request", "pull_request_target"})
Commit = Annotated[str, Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")]


class Described(BaseModel):
    """A thing as GitHub describes it; keys that Zelda does not read are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    @classmethod
    def of(cls, answer: Any) -> Self:
        """What a value of an answer describes; raises `GitHubError` (`GITHUB_REFUSED`) where that is something else."""
        try:
            return cls.model_validate(answer)
        except ValidationError as error:
            message = f"An answer of GitHub cannot be used: it describes no {cls.__name__}."
            raise GitHubError(message, code="GITHUB_REFUSED") from error


class Artifact(Described):
    id: int
    name: str = ""
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


class PullRequest(Described):
    number: int
    state: str
    head: Revision
    base: Revision
    labels: tuple[dict[str, Any], ...] = ()


class WorkflowRun(Described):
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


def of_workflow_run(api: Api, own: int, run: WorkflowRun, hinted: int | None) -> int | None:
    """The open pull request of the repository `own` that a finished run was for; None where none is clear.

    Those that GitHub lists for branch and commit are candidates only: head commit and head repository decide. The
    hint comes from the run's artifact, which the author of a pull request can choose; it decides only among several
    that have the same head.
    """
    of_branch = api.pages("pulls", limit=1, state="open", head=f"{run.head_owner}:{run.head_branch}")
    of_head = api.pages(f"commits/{run.head_sha}/pulls", limit=1)
    # A deleted fork is no repository on either side.
    wanted = ("open", run.head_sha, run.head_repository_id, own)
    for source in (of_branch if run.head_owner and run.head_branch else (), of_head):
        pulls = [PullRequest.of(each) for each in source]
        facts = {it.number: (it.state, it.head.sha, it.head.repository_id, it.base.repository_id) for it in pulls}
        if fitting := {number for number, each in facts.items() if each == wanted}:
            return hinted if hinted in fitting else _only(fitting)
    return None


def of_commit(api: Api, sha: str) -> int | None:
    """The open pull request whose head a commit of this repository is; None where there are several or none."""
    pulls = (PullRequest.of(each) for each in api.pages(f"commits/{sha}/pulls", limit=1))
    return _only({pull.number for pull in pulls if pull.state == "open" and pull.head.sha == sha})


def _only(numbers: set[int]) -> int | None:
    return numbers.pop() if len(numbers) == 1 else None


def ancestors(api: Api, start: str) -> Iterator[str]:
    """The commit that `start`, a commit or branch, names, and its ancestors, newest first; none if GitHub has none."""
    with Tolerating({"GITHUB_NOT_FOUND"}):
        for commit in api.pages("commits", limit=PAGES_OF_ANCESTORS, sha=start):
            yield Revision.of(commit).sha


class CommitComparison(Described):
    """How two commits or branches, a base and a head, lie to each other."""

    behind_by: int
    """How many commits the base has that the head has not."""
    merge_base: str = Field(validation_alias=AliasPath("merge_base_commit", "sha"))
    """The newest that they have in common."""


def compare_commits(api: Api, base: str, head: str) -> CommitComparison:
    """Compare them; `GITHUB_NOT_FOUND` where they have nothing in common, or GitHub does not know one of them."""
    path = f"compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # The changed files come with the first page whatever its size; commits need not.
    return CommitComparison.of(api.get(path, per_page=1))


def read_run(api: Api, run_id: int) -> WorkflowRun:
    return WorkflowRun.of(api.get(f"actions/runs/{run_id}"))


def newest_run(api: Api, workflow: str, pull_request: PullRequest) -> WorkflowRun | None:
    """The newest run of a workflow, by the name of its file (`GITHUB_NOT_FOUND`), for the head of a pull request."""
    path = f"actions/workflows/{quote(workflow, safe='')}/runs"
    listed = api.pages(path, key="workflow_runs", limit=1, head_sha=pull_request.head.sha)
    runs = (WorkflowRun.of(each) for each in listed)
    # Another repository may have a pull request with the very same head.
    own = (it for it in runs if it.event in EVENTS and it.head_repository_id == pull_request.head.repository_id)
    return max(own, key=lambda run: run.id, default=None)


def artifacts_of_run(api: Api, run_id: int) -> list[Artifact]:
    """The artifacts of a run, of all its attempts, expired or not, the newest first."""
    listed = api.pages(f"actions/runs/{run_id}/artifacts", key="artifacts", limit=PAGES_OF_ARTIFACTS)
    return sorted((Artifact.of(entry) for entry in listed), key=lambda entry: entry.id, reverse=True)
