"""The world as GitHub's JSON."""

from datetime import datetime
from typing import Any

from tests.support.github_server.specimen import specimen
from tests.support.github_server.world import Artifact, Comment, Commit, Issue, Pull, Repository, Run

SITE = "https://github.com"


def moment(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


def user(login: str) -> dict[str, Any]:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return specimen("simple-user", login=login, type=kind, id=sum(login.encode()))


def small_repository(repository: Repository) -> dict[str, Any]:
    return specimen("minimal-repository", **_identity(repository))


def repository(repository: Repository) -> dict[str, Any]:
    return specimen("full-repository", **_identity(repository), default_branch=repository.default_branch)


def _identity(repository: Repository) -> dict[str, Any]:
    return {
        "id": repository.id,
        "full_name": repository.full_name,
        "name": repository.full_name.split("/")[1],
        "owner": user(repository.owner),
        "private": repository.private,
        "fork": repository.fork_of is not None,
        "html_url": f"{SITE}/{repository.full_name}",
    }


def artifact(artifact: Artifact, base: str) -> dict[str, Any]:
    run, url = artifact.run, f"{base}/repos/{artifact.repository.full_name}/actions/artifacts/{artifact.id}"
    return specimen(
        "artifact",
        id=artifact.id,
        name=artifact.name,
        size_in_bytes=artifact.size,
        url=url,
        archive_download_url=f"{url}/zip",
        expired=artifact.expired,
        digest=artifact.digest,
        created_at=moment(artifact.created_at),
        updated_at=moment(artifact.created_at),
        expires_at=moment(artifact.expires_at),
        workflow_run=run and _run_of_artifact(run),
    )


def _run_of_artifact(run: Run) -> dict[str, Any]:
    head = run.head_repository.id if run.head_repository else 0
    told = {"id": run.id, "repository_id": run.repository.id, "head_repository_id": head, "head_sha": run.head_sha}
    return {**told, **({"head_branch": run.head_branch} if run.head_branch is not None else {})}


def run(run: Run) -> dict[str, Any]:
    return specimen(
        "workflow-run",
        id=run.id,
        name=run.workflow,
        event=run.event,
        status=run.status,
        conclusion=run.conclusion,
        head_sha=run.head_sha,
        head_branch=run.head_branch,
        path=f".github/workflows/{run.workflow}",
        workflow_id=run.workflow_id,
        run_attempt=run.attempt,
        repository=small_repository(run.repository),
        head_repository=small_repository(run.head_repository) if run.head_repository else None,
        created_at=moment(run.created_at),
        updated_at=moment(run.created_at),
        html_url=f"{SITE}/{run.repository.full_name}/actions/runs/{run.id}",
        pull_requests=[],
    )


def commit(commit: Commit) -> dict[str, Any]:
    made = specimen("commit", sha=commit.sha, parents=[_parent(sha) for sha in commit.parents])
    who = {"name": "Dev", "email": "dev@example.com", "date": moment(commit.date)}
    made["commit"] = {**made["commit"], "message": commit.message, "author": who, "committer": who}
    return made


def git_commit(commit: Commit, tree: dict[str, str], message: str) -> dict[str, Any]:
    who = {"name": "Dev", "email": "dev@example.com", "date": moment(commit.date)}
    parents = [{**_parent(sha), "html_url": f"{SITE}/commit/{sha}"} for sha in commit.parents]
    return specimen(
        "git-commit", sha=commit.sha, tree=tree, message=message, author=who, committer=who, parents=parents
    )


def _parent(sha: str) -> dict[str, str]:
    return {"sha": sha, "url": f"https://example.invalid/commits/{sha}"}


def comment(comment: Comment, pull: Pull, base: str) -> dict[str, Any]:
    name = pull.repository.full_name
    return specimen(
        "issue-comment",
        id=comment.id,
        node_id=comment.node_id,
        body=comment.body,
        user=user(comment.author),
        author_association="NONE",
        url=f"{base}/repos/{name}/issues/comments/{comment.id}",
        issue_url=f"{base}/repos/{name}/issues/{pull.number}",
        html_url=comment_page(comment, pull),
        minimized=comment.minimized and {"reason": comment.minimized.lower()},
        created_at=moment(comment.created_at),
        updated_at=moment(comment.updated_at),
    )


def issue(issue: Issue, repository: Repository, base: str) -> dict[str, Any]:
    return specimen(
        "issue",
        id=issue.id,
        number=issue.number,
        title=issue.title,
        body=issue.body,
        state=issue.state,
        state_reason=issue.reason,
        user=user(issue.author),
        labels=[],
        url=f"{base}/repos/{repository.full_name}/issues/{issue.number}",
        html_url=f"{SITE}/{repository.full_name}/issues/{issue.number}",
        closed_at=None if issue.state == "open" else "2026-01-01T00:00:00Z",
    )


def comment_page(comment: Comment, pull: Pull) -> str:
    return f"{SITE}/{pull.repository.full_name}/pull/{pull.number}#issuecomment-{comment.id}"


def pull(pull: Pull, *, whole: bool = False) -> dict[str, Any]:
    made = specimen(
        "pull-request" if whole else "pull-request-simple",
        id=pull.id,
        number=pull.number,
        state=pull.state,
        merge_commit_sha=pull.merge_commit_sha,
        html_url=f"{SITE}/{pull.repository.full_name}/pull/{pull.number}",
    )
    made["head"] = _side(made["head"], pull.head_repository, pull.head_branch, pull.head_sha)
    made["base"] = _side(made["base"], pull.repository, pull.base_branch, pull.base_sha)
    return {**made, "merged": pull.merged} if whole else made


def _side(made: dict[str, Any], of: Repository | None, branch: str, sha: str) -> dict[str, Any]:
    owner = of.owner if of else "ghost"
    repo = {**specimen("repository"), **_identity(of), "default_branch": of.default_branch} if of else None
    return {**made, "label": f"{owner}:{branch}", "ref": branch, "sha": sha, "repo": repo, "user": user(owner)}
