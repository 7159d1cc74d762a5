"""Commits, runs, and the pull request that a run belongs to."""

from collections.abc import Iterator
from urllib.parse import quote

from pydantic import AliasPath, Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Described, PullRequest, Revision, WorkflowRun, understand

# Of 100 commits each.
PAGES_OF_ANCESTORS = 3
# What a workflow that tests pull requests is triggered by.
EVENTS = frozenset({"pull_request", "pull_request_target"})


def of_workflow_run(api: Api, own: int, run: WorkflowRun, hinted: int | None) -> int | None:
    """The open pull request of the repository `own` that a finished run was for; None where none is clear.

    Those that GitHub lists for branch and commit are candidates only: head commit and head repository decide. The
    hint comes from the run's artifact, which the author of a pull request can choose; it decides only among several
    that have the same head.

    Raises:
        GitHubError: A request failed.
    """
    of_branch = api.pages("pulls", limit=1, state="open", head=f"{run.head_owner}:{run.head_branch}")
    of_head = api.pages(f"commits/{run.head_sha}/pulls", limit=1)
    # A deleted fork is no repository on either side.
    wanted = ("open", run.head_sha, run.head_repository_id, own)
    for source in (of_branch if run.head_owner and run.head_branch else (), of_head):
        pulls = [understand(PullRequest, each) for each in source]
        told = {it.number: (it.state, it.head.sha, it.head.repository_id, it.base.repository_id) for it in pulls}
        if fitting := {number for number, each in told.items() if each == wanted}:
            return hinted if hinted in fitting else _only(fitting)
    return None


def of_commit(api: Api, sha: str) -> int | None:
    """The open pull request whose head a commit of this repository is; None where there are several or none."""
    pulls = (understand(PullRequest, each) for each in api.pages(f"commits/{sha}/pulls", limit=1))
    return _only({pull.number for pull in pulls if pull.state == "open" and pull.head.sha == sha})


def _only(numbers: set[int]) -> int | None:
    return numbers.pop() if len(numbers) == 1 else None


def ancestors(api: Api, start: str) -> Iterator[str]:
    """The commit that `start`, a commit or branch, names, and then those before it, newest first, within reason.

    None where GitHub does not know it, like what was on a branch before its history was rewritten.
    """
    try:
        for commit in api.pages("commits", limit=PAGES_OF_ANCESTORS, sha=start):
            yield understand(Revision, commit).sha
    except GitHubError as error:
        if error.code != "GITHUB_NOT_FOUND":
            raise


class _Comparison(Described):
    behind_by: int
    merge_base: str = Field(validation_alias=AliasPath("merge_base_commit", "sha"))


def _compare(api: Api, base: str, head: str) -> _Comparison:
    path = f"compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # The changed files come with the first page whatever its size; commits need not.
    return understand(_Comparison, api.get(path, per_page=1))


def behind(api: Api, commit: str, wanted: str) -> int:
    """How many commits `wanted` has that `commit` has not."""
    return 0 if commit == wanted else _compare(api, wanted, commit).behind_by


def merge_base(api: Api, base: str, head: str) -> str:
    """The newest commit that two commits or branches have in common.

    Raises:
        GitHubError: `GITHUB_NOT_FOUND` where they have none, or GitHub does not know one of them.
    """
    return _compare(api, base, head).merge_base


def read_run(api: Api, run_id: int) -> WorkflowRun:
    return understand(WorkflowRun, api.get(f"actions/runs/{run_id}"))


def newest_run(api: Api, workflow: str, pull_request: PullRequest) -> WorkflowRun | None:
    """The newest run of a workflow, by the name of its file, for the head of a pull request.

    Raises:
        GitHubError: `GITHUB_NOT_FOUND` where there is no such workflow, or what else hindered.
    """
    path = f"actions/workflows/{quote(workflow, safe='')}/runs"
    listed = api.pages(path, key="workflow_runs", limit=1, head_sha=pull_request.head.sha)
    runs = (understand(WorkflowRun, each) for each in listed)
    # Another repository may have a pull request with the very same head.
    own = (it for it in runs if it.event in EVENTS and it.head_repository_id == pull_request.head.repository_id)
    return max(own, key=lambda run: run.id, default=None)
