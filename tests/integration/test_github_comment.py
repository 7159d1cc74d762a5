"""The comment on a pull request against a server that remembers what was written."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.support.github_clients import api_of
from tests.support.github_server import (
    Comment,
    Failure,
    GitHubServer,
    Pull,
    Run,
    answered,
    lose_answer,
    truncated,
)
from zelda_ci.errors import GitHubError
from zelda_ci.github.kept_text import CommentedJob, CommentOrder, Published, keep_comment, marker, sealed

HEAD = "a" * 40
KEY = "suite"
WORKFLOW = ".github/workflows/zelda.yml"
GRAPHQL = "POST /graphql"
CREATE = "POST */comments"
LARGE_ID = 4_000_000_000
"""Beyond 32 bits, as the ids of comments are by now."""


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


@pytest.fixture
def pull(github: GitHubServer) -> Pull:
    return github.repository.add_pull(head_sha=HEAD)


def run_of(github: GitHubServer, attempt: int = 1) -> Run:
    return github.repository.add_run(HEAD, branch="feature", event="pull_request", attempt=attempt)


def order_of(run: Run, attempt: int | None = None) -> CommentOrder:
    return CommentOrder(run.id, attempt or run.attempt, run.head_sha)


def told(github: GitHubServer, body: str, order: CommentOrder, *, key: str = KEY, once: bool = False) -> Published:
    job = CommentedJob(key, WORKFLOW, "zelda-results.job.{}".format)
    return keep_comment(api_of(github), 1, job, order, body, once=once)


def tell(github: GitHubServer, body: str, run: Run | None = None) -> Published:
    return told(github, body, order_of(run or run_of(github)))


def shown(comment: Comment) -> str:
    return comment.body.split("\n", 2)[2]


def test_the_first_run_creates_the_comment_and_the_next_updates_it_in_place(github: GitHubServer, pull: Pull) -> None:
    run = run_of(github)
    published = tell(github, "one", run)
    assert published.action == "created"
    assert str(published.url).endswith(f"#issuecomment-{pull.comments[0].id}")
    assert pull.bodies == [sealed(KEY, order_of(run), "one")]
    assert tell(github, "same\r\n\r\ntext\n") == Published(published.url, "updated")
    # An unchanged text is not sent again.
    assert tell(github, "same\n\ntext") == Published(published.url, "unchanged")
    assert len(github.calls("PATCH")) == 1


def test_it_is_found_among_250_comments(github: GitHubServer, pull: Pull) -> None:
    for number in range(125):
        github.repository.add_comment(1, f"before {number}")
    ours = github.repository.add_comment(
        1, sealed(KEY, CommentOrder(1, 1, HEAD), "old"), author=github.login, id=LARGE_ID
    )
    for number in range(125):
        github.repository.add_comment(1, f"after {number}", id=LARGE_ID + 1 + number)

    assert tell(github, "new").action == "updated"

    assert len(pull.comments) == 251
    assert shown(ours) == "new"


def test_forged_and_quoted_markers_are_nobodys_comment(github: GitHubServer, pull: Pull) -> None:
    marked = sealed(KEY, CommentOrder(1, 1, HEAD), "forged")
    github.repository.add_comment(1, marked, author="mallory")
    for text in (f"> {marked}", f"\n{marked}", f"Quote: {marker(KEY)}", f"```\n{marked}\n```"):
        github.repository.add_comment(1, text, author=github.login)
    before = list(pull.bodies)

    assert tell(github, "ours").action == "created"

    assert pull.bodies[:-1] == before
    assert shown(pull.comments[-1]) == "ours"


def test_a_persons_token_finds_its_own_comments(github: GitHubServer, pull: Pull) -> None:
    github.login = "alice"
    for author in ("github-actions[bot]", "alice"):
        github.repository.add_comment(1, sealed(KEY, CommentOrder(1, 1, HEAD), "old"), author=author)
    assert tell(github, "new").action == "updated"
    assert [shown(each) for each in pull.comments] == ["old", "new"]


def test_an_older_run_or_attempt_that_finishes_later_changes_nothing(github: GitHubServer, pull: Pull) -> None:
    older, newer = run_of(github), run_of(github, attempt=2)
    first = tell(github, "newer", newer)
    assert tell(github, "older", older) == Published(first.url, "outdated")
    assert told(github, "first", order_of(newer, attempt=1)).action == "outdated"
    # Nor where GitHub may not be asked whether there is such a run.
    github.permissions["actions"] = "none"
    assert tell(github, "older", older).action == "outdated"
    assert [shown(each) for each in pull.comments] == ["newer"]
    newer.attempt = 3
    assert tell(github, "third", newer).action == "updated"


def test_a_run_for_a_head_that_was_left_behind_writes_nothing(github: GitHubServer, pull: Pull) -> None:
    run = run_of(github)
    pull.head_sha = "b" * 40
    assert tell(github, "late", run) == Published(None, "outdated")
    assert pull.comments == []


def test_what_anybody_wrote_in_our_name_silences_nobody(github: GitHubServer, pull: Pull) -> None:
    """Runs that never were, or none of this comment's: people write them, or a workflow posts what a fork wrote."""
    repository, run = github.repository, run_of(github)
    of_pull: Any = {"branch": "feature", "event": "pull_request"}
    ended: Any = {**of_pull, "created_at": datetime(1970, 1, 1, tzinfo=UTC)}
    asked = repository.add_run("c" * 40, event="issue_comment", workflow="zelda-commands.yml")
    runs = [run, asked, repository.add_run(HEAD, **ended), repository.add_run("b" * 40, **of_pull)]
    runs.append(repository.add_run(HEAD, workflow="coverage.yml", **of_pull))
    claims = [CommentOrder(each.id, 1, HEAD, made_at=2_000) for each in runs]
    claims += [CommentOrder(10**17, 1, head, made_at=2_000) for head in (HEAD, "")]
    for claim in (*claims, CommentOrder(run.id, 99, HEAD, made_at=2_000)):
        pull.comments.clear()
        repository.add_comment(1, sealed(KEY, claim, "All is well."), author=github.login)
        assert told(github, "true", replace(order_of(run), made_at=1_000)).action == "updated"
        assert [shown(each) for each in pull.comments] == ["true"]
    # What a comment asked for has the default branch's head, and has stored results.
    repository.add_artifact("zelda-results.job.1", {"a": b""}, run=asked)
    told(github, "asked for", CommentOrder(asked.id, 1, HEAD, made_at=2_000))
    assert told(github, "older", replace(order_of(run), made_at=1_000)).action == "outdated"
    assert [shown(each) for each in pull.comments] == ["asked for"]


def test_what_is_told_last_are_the_newest_results_and_nobody_has_any_of_the_future(
    github: GitHubServer, pull: Pull
) -> None:
    """An old run that is run again, as after an acceptance, turns its check green: the comment must not stay red."""
    old, newer = run_of(github), run_of(github)

    def done(run: Run, body: str, made_at: int) -> str:
        return told(github, body, replace(order_of(run), made_at=made_at)).action

    assert done(newer, "red", 1_000) == "created"
    assert done(old, "of before", 900) == "outdated"
    assert done(old, "green, run again", 2_000) == "updated"
    assert done(newer, "red", 1_000) == "outdated"
    assert [shown(each) for each in pull.comments] == ["green, run again"]
    pull.comments[0].body = sealed(KEY, replace(order_of(newer), made_at=10**11), "for ever")
    assert done(old, "true", 3_000) == "updated"


def test_duplicates_are_folded_into_the_oldest(github: GitHubServer, pull: Pull) -> None:
    kept = github.repository.add_comment(1, sealed(KEY, CommentOrder(1, 1, HEAD), "one"), author=github.login)
    for body in ("two", "three"):
        github.repository.add_comment(1, sealed(KEY, CommentOrder(2, 1, HEAD), body), author=github.login)
    github.repository.add_comment(1, "a person's")
    # One that may not be removed is no failure, and is removed by the next run.
    github.script_failures([answered(403, on="DELETE *")])
    assert tell(github, "new").action == "updated"
    tell(github, "newer")
    assert shown(pull.comments[0]) == "newer"
    assert pull.comments[0] is kept
    assert pull.bodies[1:] == ["a person's"]


def at_once(*jobs: Callable[[], object]) -> None:
    """Several jobs begin at the same moment."""
    start = threading.Barrier(len(jobs))

    def job(do: Callable[[], object]) -> None:
        start.wait()
        do()

    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(job, jobs))


def test_two_jobs_that_create_at_once_leave_one_comment_of_the_newer(github: GitHubServer, pull: Pull) -> None:
    for _ in range(3):
        pull.comments.clear()
        older, newer = run_of(github), run_of(github)
        at_once(partial(tell, github, "older", older), partial(tell, github, "newer", newer))
        assert [shown(each) for each in pull.comments] == ["newer"]


@pytest.mark.parametrize("loss", [lose_answer, truncated])
def test_a_lost_answer_creates_no_second_comment(
    github: GitHubServer, pull: Pull, loss: Callable[..., Failure]
) -> None:
    github.script_failures([loss(on=CREATE)])
    assert tell(github, "once").action == "created"
    assert len(github.calls(CREATE)) == 1
    assert [shown(each) for each in pull.comments] == ["once"]


def refused(github: GitHubServer, body: str = "no") -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        tell(github, body)
    return caught.value


def test_what_github_refuses_has_a_code(github: GitHubServer) -> None:
    assert refused(github).code == "GITHUB_NOT_FOUND"
    github.repository.add_pull(head_sha=HEAD)
    # A text that is too long, and one that GitHub finds so.
    asked = len(github.requests)
    assert refused(github, "\U0001d11e" * 33_000).code == "COMMENT_TOO_LONG"
    assert len(github.requests) == asked
    error = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long"}
    answer = {"message": "Validation Failed", "errors": [error]}
    github.script_failures([answered(422, answer, on=CREATE)])
    assert refused(github).detail == "Validation Failed: Body is too long"
    for permission in ("read", "none"):
        github.permissions["pull_requests"] = permission
        assert refused(github).code == "GITHUB_NOT_PERMITTED"
    github.permissions["pull_requests"] = "read"
    assert "pull_requests: write" in str(refused(github).hint)


# --- jobs that share something ---------------------------------------------------------------------------------------


def test_a_second_job_with_the_same_key_does_not_overwrite_the_first(github: GitHubServer, pull: Pull) -> None:
    """The jobs of a matrix have one id."""
    run = run_of(github)
    first = told(github, "first leg", order_of(run), once=True)
    second = told(github, "second leg", order_of(run), once=True)
    assert (second.action, second.url) == ("taken", first.url)
    assert [shown(each) for each in pull.comments] == ["first leg"]
    assert told(github, "first leg", order_of(run), once=True).action == "unchanged"
    # Another run, another attempt, and whoever tells what others have found, may.
    assert told(github, "next run", order_of(run_of(github)), once=True).action == "updated"
    assert tell(github, "other words").action == "updated"
