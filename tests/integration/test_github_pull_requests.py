"""Which pull request a run is about, asked of a server that knows several."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.github_clients import api_of
from tests.support.github_server import GitHubServer, Pull, Repository, answered
from zelda_ci.errors import GitHubError
from zelda_ci.github.revisions import merge_base, merge_parents, of_commit, of_workflow_run

HEAD, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


@pytest.fixture
def fork(github: GitHubServer) -> Repository:
    return github.add_repository("mallory/zelda", fork_of=github.repository)


def event(
    github: GitHubServer, head: Repository | None, *, sha: str = HEAD, branch: str = "feature", named: Any = ()
) -> dict[str, Any]:
    """The part of a `workflow_run` event that is read; `named` are its `pull_requests`."""
    repository = {"id": head.id, "owner": {"login": head.owner}} if head else None
    run = {"head_sha": sha, "head_branch": branch, "head_repository": repository, "pull_requests": named}
    return {"repository": {"id": github.repository.id}, "workflow_run": run}


def named(pull: Pull) -> dict[str, Any]:
    """As an event names a pull request."""
    sides = {
        "head": {"ref": pull.head_branch, "sha": pull.head_sha, "repo": {"id": pull.repository.id}},
        "base": {"ref": pull.base_branch, "sha": pull.base_sha, "repo": {"id": pull.repository.id}},
    }
    return {"id": pull.id, "number": pull.number, **sides}


def test_the_pull_request_that_the_event_names_is_confirmed(github: GitHubServer) -> None:
    pull = github.repository.add_pull(head_sha=HEAD)
    told = event(github, github.repository, named=[named(pull)])
    assert of_workflow_run(api_of(github), told, None) == 1
    assert github.calls("GET") == ["GET /repos/octo/zelda/pulls/1"]


def test_a_forks_pull_request_is_found_by_its_branch(github: GitHubServer, fork: Repository) -> None:
    github.repository.add_pull(head_sha=OTHER)
    github.repository.add_pull(head_sha=HEAD, head_repository=fork)
    assert of_workflow_run(api_of(github), event(github, fork), None) == 2


def test_a_renamed_branch_is_found_by_its_commit(github: GitHubServer, fork: Repository) -> None:
    github.repository.add_pull(head_sha=HEAD, head="renamed", head_repository=fork)
    assert of_workflow_run(api_of(github), event(github, fork), None) == 1


def test_a_deleted_forks_pull_request_is_found_by_its_commit(github: GitHubServer) -> None:
    github.repository.add_pull(head_sha=HEAD, deleted_fork=True)
    assert of_workflow_run(api_of(github), event(github, None), None) == 1


@pytest.mark.parametrize("hinted", [None, 1, 2, 7])
def test_a_hint_alone_finds_nothing(github: GitHubServer, fork: Repository, hinted: int | None) -> None:
    github.repository.add_pull(head_sha=OTHER)
    github.repository.add_pull(head_sha=OTHER, head_repository=fork)
    assert of_workflow_run(api_of(github), event(github, fork), hinted) is None


@pytest.mark.parametrize(("hinted", "number"), [(None, None), (1, 1), (2, 2), (3, None)])
def test_a_hint_chooses_among_those_with_the_same_head(
    github: GitHubServer, fork: Repository, hinted: int | None, number: int | None
) -> None:
    for base in ("main", "release"):
        github.repository.add_pull(head_sha=HEAD, base=base, head_repository=fork)
    github.repository.add_pull(head_sha=OTHER)
    assert of_workflow_run(api_of(github), event(github, fork), hinted) == number


def test_a_false_hint_does_not_lead_away_from_the_only_one(github: GitHubServer, fork: Repository) -> None:
    github.repository.add_pull(head_sha=OTHER)
    github.repository.add_pull(head_sha=HEAD, head_repository=fork)
    assert of_workflow_run(api_of(github), event(github, fork), 1) == 2


def test_a_pull_request_that_moved_on_is_not_meant_any_more(github: GitHubServer) -> None:
    pull = github.repository.add_pull(head_sha=HEAD)
    told = event(github, github.repository, named=[named(pull)])
    pull.head_sha = OTHER
    assert of_workflow_run(api_of(github), told, 1) is None


def test_a_closed_pull_request_is_not_meant_any_more(github: GitHubServer) -> None:
    pull = github.repository.add_pull(head_sha=HEAD, state="closed")
    told = event(github, github.repository, named=[named(pull)])
    assert of_workflow_run(api_of(github), told, 1) is None


def test_the_same_commit_in_another_fork_is_another_pull_request(github: GitHubServer, fork: Repository) -> None:
    other = github.add_repository("eve/zelda", fork_of=github.repository)
    github.repository.add_pull(head_sha=HEAD, head_repository=other)
    assert of_workflow_run(api_of(github), event(github, fork), 1) is None


def test_pull_requests_of_other_repositories_are_not_asked_for(github: GitHubServer, fork: Repository) -> None:
    elsewhere = fork.add_pull(head_sha=HEAD, number=77)
    told = event(github, github.repository, named=[named(elsewhere), None])
    assert of_workflow_run(api_of(github), told, 77) is None
    assert github.calls("GET */pulls/77") == []


def test_a_pull_request_into_a_fork_is_none_of_ours(github: GitHubServer, fork: Repository) -> None:
    sides = {name: {"sha": HEAD, "repo": {"id": fork.id}} for name in ("head", "base")}
    github.script_failures([answered(200, [{"number": 1, "state": "open", **sides}], on="GET */zelda/pulls")])
    assert of_workflow_run(api_of(github), event(github, fork), None) is None


@pytest.mark.parametrize("payload", [{}, {"workflow_run": None}, {"workflow_run": {}, "repository": {"id": "x"}}])
def test_an_event_of_another_kind_is_refused(github: GitHubServer, payload: dict[str, Any]) -> None:
    with pytest.raises(GitHubError, match="cannot be used"):
        of_workflow_run(api_of(github), payload, None)


def test_a_pushed_commit_belongs_to_the_open_pull_request_whose_head_it_is(github: GitHubServer) -> None:
    github.repository.add_pull(head_sha=HEAD, state="closed")
    github.repository.add_pull(head_sha=OTHER, merge_commit_sha=HEAD)
    github.repository.add_pull(head_sha=HEAD)
    assert of_commit(api_of(github), HEAD) == 3


def test_a_commit_of_two_pull_requests_belongs_to_neither(github: GitHubServer) -> None:
    for base in ("main", "release"):
        github.repository.add_pull(head_sha=HEAD, base=base)
    assert of_commit(api_of(github), HEAD) is None


def test_a_commit_of_none_belongs_to_none(github: GitHubServer) -> None:
    assert of_commit(api_of(github), HEAD) is None


def test_the_merge_base_of_two_branches_is_asked_for(github: GitHubServer) -> None:
    commits = github.repository.add_commits(3)
    head = github.repository.add_commit(parents=[commits[1]], branch="feature/x #1")
    assert merge_base(api_of(github), "main", head) == commits[1]
    assert merge_base(api_of(github), "main", "feature/x #1") == commits[1]
    assert merge_base(api_of(github), "feature/x #1", "main") == commits[1]


def test_an_unknown_commit_has_no_merge_base(github: GitHubServer) -> None:
    github.script_failures([answered(404, on="GET */compare/*")])
    with pytest.raises(GitHubError) as caught:
        merge_base(api_of(github), "main", HEAD)
    assert caught.value.code == "GITHUB_NOT_FOUND"


def test_git_tells_the_parents_of_a_merge_even_in_a_shallow_clone(tmp_path: Path) -> None:
    def git(*arguments: str, folder: str = "full") -> bytes:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
        command = ["git", "-C", str(tmp_path / folder), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    (tmp_path / "full").mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "base")
    git("checkout", "-q", "-b", "feature")
    git("commit", "-q", "--allow-empty", "-m", "head")
    git("checkout", "-q", "main")
    git("commit", "-q", "--allow-empty", "-m", "base moved")
    git("merge", "-q", "--no-ff", "-m", "Merge\n\nparent 0000", "feature")
    git("clone", "-q", "--depth", "1", f"file://{tmp_path}/full", str(tmp_path / "shallow"))

    parents = merge_parents(git("cat-file", "commit", "HEAD", folder="shallow"))

    assert parents == tuple(git("rev-parse", "HEAD^1", "HEAD^2").decode().split())
