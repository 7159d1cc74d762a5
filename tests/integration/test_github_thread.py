"""What GitHub answers when it is asked for a pull request's comments: told apart, never taken for "there is none"."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.github_clients import Sleeper, api_of, patient_http
from tests.support.github_server import (
    Failure,
    GitHubServer,
    Pull,
    answered,
    primary_limit,
    secondary_limit,
)
from zelda_ci.ci.conversation import may_write
from zelda_ci.errors import GitHubError
from zelda_ci.github.kept_text import CommentedJob, CommentOrder, Published, keep_comment, read_thread, sealed

HEAD = "a" * 40
KEY = "suite"
GRAPHQL = "POST /graphql"
OLD = sealed(KEY, CommentOrder(1, 1, HEAD), "old")


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


@pytest.fixture
def pull(github: GitHubServer) -> Pull:
    pull = github.repository.add_pull(head_sha=HEAD)
    github.repository.add_comment(1, OLD, author=github.login)
    return pull


def tell(github: GitHubServer, sleeper: Sleeper | None = None) -> Published:
    run = github.repository.add_run(HEAD, branch="feature", event="pull_request")
    api, order = api_of(github, patient_http(sleeper)), CommentOrder(run.id, 1, HEAD)
    return keep_comment(api, 1, CommentedJob(KEY, "", str), order, "new")


def shown(pull: Pull) -> list[str]:
    return [each.body.split("\n", 2)[2] for each in pull.comments]


def graphql_error(kind: str | None, message: str, *, data: Any = None, **headers: str) -> Failure:
    """As GitHub does: HTTP 200, whatever went wrong."""
    error = {"message": message, **({"type": kind} if kind else {})}
    return answered(200, {"data": data, "errors": [error]}, on=GRAPHQL, headers=headers)


LIMITED = graphql_error("RATE_LIMITED", "API rate limit exceeded for installation.")


def reset_in(sleeper: Sleeper, seconds: int) -> Failure:
    told = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(sleeper.now) + seconds)}
    return graphql_error("RATE_LIMITED", "API rate limit exceeded for installation.", **told)


# Limits are waited for


@pytest.mark.parametrize(
    "limit",
    [
        LIMITED,
        secondary_limit(on=GRAPHQL),
    ],
    ids=["primary", "403"],
)
def test_a_limit_is_waited_for(github: GitHubServer, pull: Pull, limit: Failure) -> None:
    sleeper = Sleeper()
    github.script_failures([limit])
    assert tell(github, sleeper).action == "updated"
    assert shown(pull) == ["new"]
    assert sleeper.seconds > 0
    assert github.calls("GET *") == []
    # As long as GitHub says.
    slept = sleeper.seconds
    github.script_failures([reset_in(sleeper, 42)])
    assert tell(github, sleeper).action == "unchanged"
    assert sleeper.seconds - slept == pytest.approx(43, abs=2)


@pytest.mark.parametrize("kind", ["reset", "again and again", "http"])
def test_a_limit_that_lasts_is_told_as_one_and_nothing_is_written(github: GitHubServer, pull: Pull, kind: str) -> None:
    sleeper = Sleeper()
    limits = {
        "reset": [reset_in(sleeper, 3600)],
        "again and again": [LIMITED] * 9,
        "http": [primary_limit(reset_in=10**9, on=GRAPHQL)],
    }
    github.script_failures(limits[kind])
    with pytest.raises(GitHubError) as caught:
        tell(github, sleeper)
    assert caught.value.code == "GITHUB_RATE_LIMITED"
    assert sleeper.seconds <= 300
    assert shown(pull) == ["old"]


# Everything else is told


@pytest.mark.parametrize(
    ("failures", "code"),
    [
        ([graphql_error("NOT_FOUND", "Could not resolve to a PullRequest.")], "GITHUB_NOT_FOUND"),
        ([answered(401, {"message": "Bad credentials"}, on=GRAPHQL)], "GITHUB_NOT_PERMITTED"),
        ([graphql_error("FORBIDDEN", "Resource not accessible by integration")], "GITHUB_NOT_PERMITTED"),
        ([graphql_error(None, "Field 'fullDatabaseId' doesn't exist on type 'IssueComment'")], "GITHUB_REFUSED"),
        ([answered(502, on=GRAPHQL)] * 9, "GITHUB_UNREACHABLE"),
        ([graphql_error(None, "Something went wrong while executing your query.")], "GITHUB_REFUSED"),
        ([answered(200, b"<html>", on=GRAPHQL)], "GITHUB_REFUSED"),
        ([answered(200, {"data": {"repository": None}, "errors": "no"}, on=GRAPHQL)], "GITHUB_REFUSED"),
        ([answered(200, {"data": {"repository": {"pullRequest": None}}}, on=GRAPHQL)], "GITHUB_REFUSED"),
    ],
)
def test_what_else_goes_wrong_is_told_apart_and_nothing_is_written(
    github: GitHubServer, pull: Pull, failures: Sequence[Failure], code: str
) -> None:
    github.script_failures(failures)
    with pytest.raises(GitHubError) as caught:
        tell(github)
    assert caught.value.code == code
    assert shown(pull) == ["old"]
    assert github.calls("POST */comments") == []


def page(nodes: list[Any], **info: Any) -> dict[str, Any]:
    comments = {"nodes": nodes, "pageInfo": {"hasNextPage": False, "endCursor": None, **info}}
    return {"repository": {"pullRequest": {"headRefOid": HEAD, "comments": comments}}}


@pytest.mark.parametrize(
    "answer",
    [
        {"data": page([]), "errors": [{"message": "timed out", "path": ["repository", "pullRequest", "comments"]}]},
        {"data": page([None])},
        {"data": page([], hasNextPage=True)},
        {"data": page([{"fullDatabaseId": "1", "url": "u", "body": OLD}])},
    ],
    ids=["with errors", "a comment missing", "no way to the next page", "a field missing"],
)
def test_a_partial_answer_is_not_believed(github: GitHubServer, pull: Pull, answer: dict[str, Any]) -> None:
    github.script_failures([answered(200, answer, on=GRAPHQL)])
    with pytest.raises(GitHubError) as caught:
        tell(github)
    assert caught.value.code == "GITHUB_REFUSED"
    assert shown(pull) == ["old"]


# Around it


def test_a_newer_run_that_github_only_failed_to_tell_of_is_not_taken_for_one(github: GitHubServer, pull: Pull) -> None:
    pull.comments[0].body = sealed(KEY, CommentOrder(10**9, 1, HEAD), "newer?")
    github.script_failures([answered(502, on="GET *actions/runs/*")] * 9)
    with pytest.raises(GitHubError) as caught:
        tell(github)
    assert caught.value.code == "GITHUB_UNREACHABLE"


def test_a_thread_tells_who_wrote_what_and_what_was_edited(github: GitHubServer, pull: Pull) -> None:
    repository = github.repository
    touched = repository.add_comment(1, "one", author="mallory")
    touched.edit("two")
    repository.add_comment(1, "three", author="dependabot[bot]")
    repository.add_comment(1, "four", author="dev", minimized="SPAM")
    repository.add_comment(1, OLD, author=github.login).edit(OLD)
    thread = read_thread(api_of(github), 1)
    people = [(each.author, each.body, each.edited_at is not None) for each in thread.of_people]
    assert people == [("mallory", "two", True), ("dev", "four", False)]
    assert [(each.body, each.edited_at is not None) for each in thread.comments] == [(OLD, False), (OLD, True)]


def test_who_may_write_is_asked_for_by_name(github: GitHubServer) -> None:
    github.repository.roles = {"dev": "maintain", "a/b?c": "admin", "triager": "triage"}
    asked = ("dev", "a/b?c", "triager", "nobody")
    assert [may_write(api_of(github), login) for login in asked] == [True, True, False, False]
