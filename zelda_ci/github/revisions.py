"""Commits, and the pull request that a run belongs to."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pydantic import Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import (
    BranchHead,
    Commit,
    CommitComparison,
    Described,
    GitHubRepository,
    PullRequest,
    WorkflowRun,
    understand,
)

_PARENT = re.compile(rb"parent ([0-9a-f]{40}|[0-9a-f]{64})")


class _Named(Described):
    number: int
    base: BranchHead


class _Owner(Described):
    login: str


class _HeadRepository(GitHubRepository):
    owner: _Owner


class _TriggeringRun(Described):
    head_sha: str
    head_branch: str | None = None
    head_repository: _HeadRepository | None = None
    pull_requests: tuple[_Named | None, ...] | None = None


class _WorkflowRunEvent(Described):
    repository: GitHubRepository
    run: _TriggeringRun = Field(alias="workflow_run")


def of_workflow_run(api: Api, event: Mapping[str, Any], hinted: int | None) -> int | None:
    """The open pull request that a finished run was for, or None where it moved on, was closed or is not clear.

    GitHub names none for a fork's run, and for others some that merely have its branch or commit. So what it names, and
    what it lists for branch and commit, are candidates only: head commit and head repository decide.

    Args:
        api: Of the repository in which the event happened.
        event: The payload of a `workflow_run` event.
        hinted: A number from the run's artifact, which the author of a pull request can choose; it decides only among
            several that have the same head.

    Raises:
        GitHubError: GitHub did not tell, or the payload is of another event.
    """
    triggering = understand(_WorkflowRunEvent, event)
    for source in (_named, _of_branch, _of_commit):
        fitting = {pull_request.number for pull_request in source(api, triggering) if _fits(pull_request, triggering)}
        if fitting:
            return _only(fitting, hinted)
    return None


def of_commit(api: Api, sha: str) -> int | None:
    """The open pull request whose head a commit of this repository is; None where there are several or none."""
    listed = _understood(api.pages(f"commits/{sha}/pulls", limit=1))
    matching = (pull for pull in listed if pull.state == "open" and pull.head.sha == sha)
    return _only({pull.number for pull in matching}, None)


def merge_parents(commit_object: bytes) -> tuple[str, ...]:
    """The parents of a commit, from what `git cat-file commit` prints: of a pull request's merge commit, base and head.

    In a clone of depth 1 this is the only way to them: for git, the commit has no parents there.
    """
    header, _, _ = commit_object.partition(b"\n\n")
    parents = (_PARENT.fullmatch(line) for line in header.split(b"\n"))
    return tuple(parent[1].decode() for parent in parents if parent)


def tree_in(commit_object: bytes) -> str | None:
    """The tree of a commit, from what `git cat-file commit` prints."""
    first, _, _ = commit_object.partition(b"\n")
    kind, _, name = first.partition(b" ")
    return name.decode("ascii", "replace") if kind == b"tree" else None


def _named(api: Api, triggering: _WorkflowRunEvent) -> Iterator[PullRequest]:
    """The payload does not tell whether they are open, and may name some of other repositories."""
    for named in triggering.run.pull_requests or ():
        if named and _id(named.base.repo) == triggering.repository.id:
            yield understand(PullRequest, api.get(f"pulls/{named.number}"))


def _of_branch(api: Api, triggering: _WorkflowRunEvent) -> Iterator[PullRequest]:
    repository, branch = triggering.run.head_repository, triggering.run.head_branch
    if repository and branch:
        yield from _understood(api.pages("pulls", limit=1, state="open", head=f"{repository.owner.login}:{branch}"))


def _of_commit(api: Api, triggering: _WorkflowRunEvent) -> Iterator[PullRequest]:
    yield from _understood(api.pages(f"commits/{triggering.run.head_sha}/pulls", limit=1))


def _understood(listed: Iterable[Any]) -> Iterator[PullRequest]:
    return (understand(PullRequest, item) for item in listed)


def _fits(pull_request: PullRequest, triggering: _WorkflowRunEvent) -> bool:
    """A deleted fork is no repository on either side."""
    return (
        pull_request.state == "open"
        and pull_request.head.sha == triggering.run.head_sha
        and _id(pull_request.head.repo) == _id(triggering.run.head_repository)
        and _id(pull_request.base.repo) == triggering.repository.id
    )


def _id(repository: GitHubRepository | None) -> int | None:
    return repository.id if repository else None


def _only(numbers: set[int], hinted: int | None) -> int | None:
    if hinted in numbers:
        return hinted
    return numbers.pop() if len(numbers) == 1 else None


# Of 100 commits each.
PAGES_OF_ANCESTORS = 3


def ancestors(api: Api, start: str) -> Iterator[str]:
    """The commit that `start`, a commit or branch, names, and then those before it, newest first, within reason.

    None where GitHub does not know it, like what was on a branch before its history was rewritten.
    """
    try:
        for commit in api.pages("commits", limit=PAGES_OF_ANCESTORS, sha=start):
            yield understand(Commit, commit).sha
    except GitHubError as error:
        if error.code != "GITHUB_NOT_FOUND":
            raise


def behind(api: Api, commit: str, wanted: str) -> int:
    """How many commits `wanted` has that `commit` has not."""
    return 0 if commit == wanted else _compare(api, wanted, commit).behind_by


def merge_base(api: Api, base: str, head: str) -> str:
    """The newest commit that two commits or branches have in common.

    Raises:
        GitHubError: `GITHUB_NOT_FOUND` where they have none, or GitHub does not know one of them.
    """
    return _compare(api, base, head).merge_base_commit.sha


def _compare(api: Api, base: str, head: str) -> CommitComparison:
    path = f"compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # The changed files come with the first page whatever its size; commits need not.
    return understand(CommitComparison, api.get(path, per_page=1))


def newest_run(api: Api, workflow: str, pull_request: PullRequest) -> WorkflowRun | None:
    """The newest run of a workflow for the head of a pull request.

    Args:
        api: Of the repository.
        workflow: The name of its file, without folders.
        pull_request: As GitHub describes it.

    Raises:
        GitHubError: `GITHUB_NOT_FOUND` where there is no such workflow, or what else hindered.
    """
    path = f"actions/workflows/{quote(workflow, safe='')}/runs"
    sha = pull_request.head.sha
    runs = (
        understand(WorkflowRun, each)
        for event in ("pull_request", "pull_request_target")
        for each in api.pages(path, key="workflow_runs", limit=1, event=event, head_sha=sha)
    )
    # Another repository may have a pull request with the very same head.
    own = (run for run in runs if _id(run.head_repository) == _id(pull_request.head.repo))
    return max(own, key=lambda run: run.id, default=None)


def run_again(api: Api, run_id: int, *, only_failed: bool) -> None:
    """Have a finished run run again as its next attempt: the jobs that failed with those that need them, or all.

    Raises:
        GitHubError: `GITHUB_NOT_PERMITTED` without `actions: write`, or where it runs already, is too old or was run
            too often; `detail` says which.
    """
    api.post(f"actions/runs/{run_id}/{'rerun-failed-jobs' if only_failed else 'rerun'}", {})
