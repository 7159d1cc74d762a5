"""The REST API: one function per documented request, and a table of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from tests.support.github_server import rendering
from tests.support.github_server.contract import Operation
from tests.support.github_server.replies import RefusedError, Reply, missing_permission, not_found, unprocessable
from tests.support.github_server.specimen import specimen
from tests.support.github_server.world import Artifact, Comment, Commit, Issue, Pull, Repository, Run

if TYPE_CHECKING:
    from tests.support.github_server.server import GitHubServer

LONGEST_COMMENT = 65_536
DEFAULT_PER_PAGE = 30
MOST_COMMITS = 250

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Call:
    """A request that fits GitHub's description."""

    server: "GitHubServer"
    operation: Operation
    path: str
    query: dict[str, str]
    body: Any

    @property
    def method(self) -> str:
        return self.operation.key.split(" ")[0]

    @property
    def repository(self) -> Repository:
        return self.server.repository_called(f"{self.text('owner')}/{self.text('repo')}")

    @property
    def pull(self) -> Pull:
        name = "pull_number" if "pull_number" in self.operation.path else "issue_number"
        return _only(pull for pull in self.repository.pulls if pull.number == self.number(name))

    @property
    def comment(self) -> tuple[Comment, Pull]:
        everything = ((comment, pull) for pull in self.repository.pulls for comment in pull.comments)
        return _only(each for each in everything if each[0].id == self.number("comment_id"))

    def text(self, name: str) -> str:
        return self.operation.path[name]

    def number(self, name: str) -> int:
        return int(self.operation.path[name])

    def page(self, items: Sequence[Any], key: str | None = None) -> Reply:
        """A part of a list, with links to the others."""
        size, page = int(self.query.get("per_page", DEFAULT_PER_PAGE)), int(self.query.get("page", 1))
        part = list(items[(page - 1) * size : page * size])
        links = [("next", page + 1)] if page * size < len(items) else []
        links += [("prev", page - 1)] if page > 1 else []
        link = ", ".join(f'<{self._address(number)}>; rel="{name}"' for name, number in links)
        body = {"total_count": len(items), key: part} if key else part
        return Reply(200, body, {"link": link} if link else {})

    def _address(self, page: int) -> str:
        return f"{self.server.api_url}{self.path}?{urlencode({**self.query, 'page': page})}"


def get_repository(call: Call) -> Reply:
    return Reply(200, rendering.repository(call.repository))


def list_artifacts(call: Call) -> Reply:
    return _artifacts(call, None)


def list_artifacts_of_run(call: Call) -> Reply:
    return _artifacts(call, _run(call))


def _artifacts(call: Call, run: Run | None) -> Reply:
    named = [each for each in call.repository.artifacts if call.query.get("name") in {None, each.name}]
    # GitHub promises no order; newest first is usual.
    found = [each for each in reversed(named) if run is None or each.run is run]
    return call.page([rendering.artifact(each, call.server.api_url) for each in found], "artifacts")


def get_artifact(call: Call) -> Reply:
    return Reply(200, rendering.artifact(_artifact(call), call.server.api_url))


def download_artifact(call: Call) -> Reply:
    artifact = _artifact(call)
    if artifact.expired or artifact.expires_at < datetime.now(UTC):
        return Reply(410, {"message": "Artifact has expired", "documentation_url": "https://docs.github.com"})
    return Reply(302, b"", {"location": call.server.storage.address_of(artifact)})


def _artifact(call: Call) -> Artifact:
    return _only(each for each in call.repository.artifacts if each.id == call.number("artifact_id"))


def get_run(call: Call) -> Reply:
    return Reply(200, rendering.run(_run(call)))


def _run(call: Call) -> Run:
    return _only(each for each in call.repository.runs if each.id == call.number("run_id"))


def run_again(call: Call) -> Reply:
    run = _run(call)
    if run.status != "completed":
        raise RefusedError(403, "This workflow is already running")
    how = call.path.rpartition("/")[2]
    if how == "rerun-failed-jobs" and run.conclusion == "success":
        raise RefusedError(403, "This workflow run has no failed jobs")
    run.repeated.append(how)
    run.status, run.conclusion, run.attempt = "queued", None, run.attempt + 1
    return Reply(201, {})


def list_runs(call: Call) -> Reply:
    wanted = call.operation.path.get("workflow_id")
    newest = reversed(call.repository.runs)
    of_workflow = [each for each in newest if wanted in {None, each.workflow, str(each.workflow_id)}]
    found = [each for each in of_workflow if _is_asked_for(each, call.query)]
    return call.page([rendering.run(each) for each in found], "workflow_runs")


def _is_asked_for(run: Run, query: dict[str, str]) -> bool:
    told = {"branch": run.head_branch, "event": run.event, "head_sha": run.head_sha}
    state = query.get("status") in {None, run.status, run.conclusion}
    return state and all(query.get(name) in {None, value} for name, value in told.items())


def list_commits(call: Call) -> Reply:
    repository = call.repository
    if not repository.commits:
        return Reply(409, {"message": "Git Repository is empty.", "documentation_url": "https://docs.github.com"})
    found = list(repository.ancestors(_commit(call, call.query.get("sha", repository.default_branch)).sha))
    return call.page([rendering.commit(each) for each in found])


def _commit(call: Call, ref: str) -> Commit:
    sha = call.repository.resolve(ref)
    if sha is None:
        raise not_found()
    return call.repository.commits[sha]


def get_git_commit(call: Call) -> Reply:
    commit = _commit(call, call.text("commit_sha"))
    tree, message = (_git(call, "log", "-1", f"--format={what}", commit.sha).decode() for what in ("%T", "%B"))
    told = {"sha": tree.strip(), "url": f"https://example.invalid/trees/{tree.strip()}"}
    return Reply(200, rendering.git_commit(commit, told, message.strip()))


def _git(call: Call, *arguments: str) -> bytes:
    printed = call.repository.git(*arguments)
    if printed is None:
        raise not_found()
    return printed


def compare(call: Call) -> Reply:
    left, _, right = call.text("basehead").partition("...")
    base, head = _commit(call, left), _commit(call, right)
    before = {each.sha: each for each in call.repository.ancestors(base.sha)}
    after = {each.sha: each for each in call.repository.ancestors(head.sha)}
    common = next((each for sha, each in after.items() if sha in before), None)
    if common is None:
        raise not_found()
    ahead, behind = [each for sha, each in after.items() if sha not in before], len(before.keys() - after.keys())
    status = "diverged" if ahead and behind else "ahead" if ahead else "behind" if behind else "identical"
    told = specimen(
        "commit-comparison",
        status=status,
        ahead_by=len(ahead),
        behind_by=behind,
        total_commits=len(ahead),
        base_commit=rendering.commit(base),
        merge_base_commit=rendering.commit(common),
        commits=[rendering.commit(each) for each in ahead[:MOST_COMMITS]],
    )
    return Reply(200, told)


def list_pulls_of_commit(call: Call) -> Reply:
    sha = call.text("commit_sha")
    found = [each for each in call.repository.pulls if _has(each, sha, call.repository)]
    return call.page([rendering.pull(each) for each in found])


def _has(pull: Pull, sha: str, repository: Repository) -> bool:
    if sha in {pull.head_sha, pull.merge_commit_sha}:
        return True
    return sha in {each.sha for each in repository.ancestors(pull.head_sha)} - {
        each.sha for each in repository.ancestors(pull.base_sha)
    }


def list_pulls(call: Call) -> Reply:
    state, head, base = (call.query.get(name, "") for name in ("state", "head", "base"))
    found = [each for each in reversed(call.repository.pulls) if state == "all" or each.state == (state or "open")]
    named = [each for each in found if head in {"", f"{_owner(each)}:{each.head_branch}"}]
    return call.page([rendering.pull(each) for each in named if base in {"", each.base_branch}])


def _owner(pull: Pull) -> str:
    return pull.head_repository.owner if pull.head_repository else "ghost"


def get_pull(call: Call) -> Reply:
    return Reply(200, rendering.pull(call.pull, whole=True))


def list_comments(call: Call) -> Reply:
    comments = sorted(call.pull.comments, key=lambda each: each.id)
    return call.page([_told(call, each, call.pull) for each in comments])


def create_comment(call: Call) -> Reply:
    comment = Comment(_checked(call.body["body"]), call.server.login)
    call.pull.comments.append(comment)
    return Reply(201, _told(call, comment, call.pull))


def get_comment(call: Call) -> Reply:
    return Reply(200, _told(call, *call.comment))


def update_comment(call: Call) -> Reply:
    comment, pull = call.comment
    comment.body = _checked(call.body["body"])
    comment.edits += 1
    comment.updated_at = datetime.now(UTC)
    return Reply(200, _told(call, comment, pull))


def add_reaction(call: Call) -> Reply:
    comment, _ = call.comment
    is_new = call.body["content"] not in comment.reactions
    comment.reactions += [call.body["content"]] if is_new else []
    who = rendering.user(call.server.login)
    return Reply(201 if is_new else 200, specimen("reaction", content=call.body["content"], user=who))


def get_permission(call: Call) -> Reply:
    login = call.text("username")
    role = call.repository.roles.get(login, "none" if call.repository.private else "read")
    permission = {"maintain": "write", "triage": "read"}.get(role, role)
    who = {**rendering.user(login), "role_name": role}
    return Reply(200, {"permission": permission, "role_name": role, "user": who})


def delete_comment(call: Call) -> Reply:
    comment, pull = call.comment
    pull.comments.remove(comment)
    return Reply(204)


def _told(call: Call, comment: Comment, pull: Pull) -> dict[str, Any]:
    return rendering.comment(comment, pull, call.server.api_url)


def _checked(body: str) -> str:
    if not body.strip():
        raise unprocessable("IssueComment", "Body can't be blank")
    if len(body.encode("utf-16-le")) // 2 > LONGEST_COMMENT:
        raise unprocessable("IssueComment", f"Body is too long (maximum is {LONGEST_COMMENT} characters)")
    return body


def list_issues(call: Call) -> Reply:
    """Issues and pull requests together, the newest first, as GitHub lists them."""
    state, creator = call.query.get("state", "open"), call.query.get("creator")
    issues = [each for each in call.repository.issues if creator in {None, each.author}]
    shown = [rendering.issue(each, call.repository, call.server.api_url) for each in issues]
    if creator is None:
        shown += [_pull_as_issue(each, call) for each in call.repository.pulls]
    found = [each for each in shown if state in {"all", each["state"]}]
    return call.page(sorted(found, key=lambda each: int(each["number"]), reverse=True))


def _pull_as_issue(pull: Pull, call: Call) -> dict[str, Any]:
    page = "https://example.invalid/pull"
    links = dict.fromkeys(("diff_url", "html_url", "patch_url", "url"), page)
    issue = Issue(pull.number, "A pull request", "", "dev", pull.state)
    return {**rendering.issue(issue, call.repository, call.server.api_url), "pull_request": links}


def create_issue(call: Call) -> Reply:
    if not call.repository.has_issues:
        raise RefusedError(410, "Issues has been disabled in this repository.")
    issue = call.repository.add_issue(call.body["title"], _checked(call.body["body"]), author=call.server.login)
    return Reply(201, rendering.issue(issue, call.repository, call.server.api_url))


def update_issue(call: Call) -> Reply:
    issue = _only(each for each in call.repository.issues if each.number == call.number("issue_number"))
    issue.title = call.body.get("title", issue.title)
    issue.body = call.body.get("body", issue.body)
    issue.state = call.body.get("state", issue.state)
    issue.reason = call.body.get("state_reason", issue.reason)
    issue.edits += 1
    return Reply(200, rendering.issue(issue, call.repository, call.server.api_url))


def get_user(_: Call) -> Reply:
    raise missing_permission("")


def get_rate_limit(_: Call) -> Reply:
    return Reply(200, specimen("rate-limit-overview"))


Handler = Callable[[Call], Reply]

_REPO = "/repos/{owner}/{repo}"
READ_PULLS = "pull_requests=read; issues=read"
WRITE_PULLS = "pull_requests=write; issues=write"

ROUTES: dict[str, tuple[Handler, str]] = {
    "GET /user": (get_user, ""),
    "GET /rate_limit": (get_rate_limit, ""),
    f"GET {_REPO}": (get_repository, ""),
    f"GET {_REPO}/actions/artifacts": (list_artifacts, "actions=read"),
    f"GET {_REPO}/actions/artifacts/{{artifact_id}}": (get_artifact, "actions=read"),
    f"GET {_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}": (download_artifact, "actions=read"),
    f"GET {_REPO}/actions/runs": (list_runs, "actions=read"),
    f"GET {_REPO}/actions/runs/{{run_id}}": (get_run, "actions=read"),
    f"POST {_REPO}/actions/runs/{{run_id}}/rerun": (run_again, "actions=write"),
    f"POST {_REPO}/actions/runs/{{run_id}}/rerun-failed-jobs": (run_again, "actions=write"),
    f"GET {_REPO}/actions/runs/{{run_id}}/artifacts": (list_artifacts_of_run, "actions=read"),
    f"GET {_REPO}/actions/workflows/{{workflow_id}}/runs": (list_runs, "actions=read"),
    f"GET {_REPO}/commits": (list_commits, "contents=read"),
    f"GET {_REPO}/git/commits/{{commit_sha}}": (get_git_commit, "contents=read"),
    f"GET {_REPO}/compare/{{basehead}}": (compare, "contents=read"),
    f"GET {_REPO}/commits/{{commit_sha}}/pulls": (list_pulls_of_commit, "pull_requests=read"),
    f"GET {_REPO}/pulls": (list_pulls, "pull_requests=read"),
    f"GET {_REPO}/pulls/{{pull_number}}": (get_pull, "pull_requests=read"),
    f"GET {_REPO}/issues/{{issue_number}}/comments": (list_comments, READ_PULLS),
    f"GET {_REPO}/issues/comments/{{comment_id}}": (get_comment, READ_PULLS),
    f"POST {_REPO}/issues/{{issue_number}}/comments": (create_comment, WRITE_PULLS),
    f"PATCH {_REPO}/issues/comments/{{comment_id}}": (update_comment, WRITE_PULLS),
    f"DELETE {_REPO}/issues/comments/{{comment_id}}": (delete_comment, WRITE_PULLS),
    f"POST {_REPO}/issues/comments/{{comment_id}}/reactions": (add_reaction, WRITE_PULLS),
    f"GET {_REPO}/collaborators/{{username}}/permission": (get_permission, ""),
    f"GET {_REPO}/issues": (list_issues, "issues=read; pull_requests=read"),
    f"POST {_REPO}/issues": (create_issue, "issues=write"),
    f"PATCH {_REPO}/issues/{{issue_number}}": (update_issue, "issues=write; pull_requests=write"),
}
"""By documented request: who answers it, and which permissions are enough (any of those between semicolons)."""


def _only(found: Iterator[_Found]) -> _Found:
    for each in found:
        return each
    raise not_found()
