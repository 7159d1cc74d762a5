"""Which pull request a run is about, asked of a server that knows several."""

from collections.abc import Iterator

import pytest

from tests.support.github_clients import api_of
from tests.support.github_server import GitHubServer, Repository, answered
from zelda_ci.github.repository import WorkflowRun, compare_commits, of_workflow_run

HEAD, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


@pytest.fixture
def fork(github: GitHubServer) -> Repository:
    return github.add_repository("mallory/zelda", fork_of=github.repository)


def run(head: Repository | None) -> WorkflowRun:
    of = {"id": 1, "workflow_id": 1, "event": "pull_request", "head_sha": HEAD, "head_branch": "feature"}
    where = {"id": head.id, "owner": {"login": head.owner}} if head else None
    return WorkflowRun.model_validate({**of, "head_repository": where})


def test_a_pull_request_of_the_repository_itself_is_found_by_its_branch(github: GitHubServer) -> None:
    github.repository.add_pull(head_sha=HEAD)
    assert of_workflow_run(api_of(github), github.repository.id, run(github.repository), None) == 1


def test_a_forks_pull_request_is_found_by_its_branch(github: GitHubServer, fork: Repository) -> None:
    github.repository.add_pull(head_sha=OTHER)
    github.repository.add_pull(head_sha=HEAD, head_repository=fork)
    assert of_workflow_run(api_of(github), github.repository.id, run(fork), None) == 2


def test_a_renamed_branch_and_a_deleted_fork_are_found_by_their_commit(github: GitHubServer, fork: Repository) -> None:
    github.repository.add_pull(head_sha=HEAD, head="renamed", head_repository=fork)
    assert of_workflow_run(api_of(github), github.repository.id, run(fork), None) == 1
    github.repository.pulls.clear()
    github.repository.add_pull(head_sha=HEAD, deleted_fork=True)
    assert of_workflow_run(api_of(github), github.repository.id, run(None), None) == 1


def test_a_hint_alone_finds_nothing_and_leads_away_from_nothing(github: GitHubServer, fork: Repository) -> None:
    github.repository.add_pull(head_sha=OTHER)
    github.repository.add_pull(head_sha=OTHER, head_repository=fork)
    for hinted in (None, 1, 2, 7):
        assert of_workflow_run(api_of(github), github.repository.id, run(fork), hinted) is None
    github.repository.add_pull(head_sha=HEAD, head_repository=fork)
    assert of_workflow_run(api_of(github), github.repository.id, run(fork), 1) == 3
    # Among those with the same head it chooses.
    github.repository.add_pull(head_sha=HEAD, base="release", head_repository=fork)
    found = [of_workflow_run(api_of(github), github.repository.id, run(fork), hinted) for hinted in (None, 1, 3, 4)]
    assert found == [None, None, 3, 4]


@pytest.mark.parametrize("change", [{"head_sha": OTHER}, {"state": "closed"}])
def test_a_pull_request_that_moved_on_or_was_closed_is_not_meant_any_more(
    github: GitHubServer, change: dict[str, str]
) -> None:
    pull = github.repository.add_pull(head_sha=HEAD)
    told = run(github.repository)
    for name, value in change.items():
        setattr(pull, name, value)
    assert of_workflow_run(api_of(github), github.repository.id, told, 1) is None


def test_the_same_commit_in_another_fork_is_another_pull_request(github: GitHubServer, fork: Repository) -> None:
    other = github.add_repository("eve/zelda", fork_of=github.repository)
    github.repository.add_pull(head_sha=HEAD, head_repository=other)
    assert of_workflow_run(api_of(github), github.repository.id, run(fork), 1) is None


def test_a_pull_request_into_a_fork_is_none_of_ours(github: GitHubServer, fork: Repository) -> None:
    sides = {name: {"sha": HEAD, "repo": {"id": fork.id}} for name in ("head", "base")}
    github.script_failures([answered(200, [{"number": 1, "state": "open", **sides}], on="GET */zelda/pulls")])
    assert of_workflow_run(api_of(github), github.repository.id, run(fork), None) is None


def test_the_merge_base_of_two_branches_is_asked_for(github: GitHubServer) -> None:
    commits = github.repository.add_commits(3)
    head = github.repository.add_commit(parents=[commits[1]], branch="feature/x #1")
    assert compare_commits(api_of(github), "main", head).merge_base == commits[1]
    assert compare_commits(api_of(github), "main", "feature/x #1").merge_base == commits[1]
    assert compare_commits(api_of(github), "feature/x #1", "main").merge_base == commits[1]
