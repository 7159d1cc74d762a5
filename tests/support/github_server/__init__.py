"""GitHub on loopback, with a memory: what a job in GitHub Actions talks to, for tests.

    with GitHubServer() as github:
        shas = github.repository.add_commits(4)                         # on main, oldest first
        run = github.repository.add_run(shas[1])                        # a push to main
        github.repository.add_artifact("zelda", {"a.json": b"{}"}, run=run)
        pull = github.repository.add_pull(head_sha="f" * 40)
        github.script_failures([too_many_requests(retry_after=0)])      # for the next request only
        subprocess.run([..., "ci"], env=github.environment(run=...))
        assert [comment.body for comment in pull.comments] == [...]
        assert github.calls("POST") == ["POST /repos/octo/zelda/issues/1/comments"]

Every request and every answer is checked against GitHub's own OpenAPI description
(`tests/data/github-rest-subset.json`). A violation is answered with 599 and fails the test when the `with` block ends;
a test that expects one empties `github.violations`. What is not of the REST API (GraphQL, artifact service, storage) is
checked by hand as strictly.

`github.token` is what a workflow calls `github.token`; `github.permissions` is what it may do.
"""

from tests.support.github_server.failures import (
    Failure,
    answered,
    hang_up,
    lose_answer,
    primary_limit,
    secondary_limit,
    slow,
    too_many_requests,
    truncated,
)
from tests.support.github_server.seen import Seen
from tests.support.github_server.server import GitHubServer
from tests.support.github_server.tokens import runtime_token
from tests.support.github_server.world import Artifact, Comment, Commit, Pull, Repository, Run

__all__ = [
    "Artifact",
    "Comment",
    "Commit",
    "Failure",
    "GitHubServer",
    "Pull",
    "Repository",
    "Run",
    "Seen",
    "answered",
    "hang_up",
    "lose_answer",
    "primary_limit",
    "runtime_token",
    "secondary_limit",
    "slow",
    "too_many_requests",
    "truncated",
]
