"""Events as GitHub sends them, cut down to what anybody reads, with the variables that the runner sets beside them."""

from copy import deepcopy
from typing import Any

REPOSITORY_ID = 42
FORK_ID = 99
BASE, HEAD, MERGE, TIP = ("b" * 40, "1" * 40, "c" * 40, "e" * 40)
"""Commits: what a pull request is merged into, its head, the merge of the two, and the tip of the default branch."""

REPOSITORY = {
    "id": REPOSITORY_ID,
    "name": "shop",
    "full_name": "octo/shop",
    "private": False,
    "default_branch": "main",
    "owner": {"login": "octo", "id": 1, "type": "Organization"},
}
FORK = {
    **REPOSITORY,
    "id": FORK_ID,
    "full_name": "mallory/shop",
    "owner": {"login": "mallory", "id": 2, "type": "User"},
}
SENDER = {"login": "dev", "id": 3, "type": "User"}
FROM = {"repository": REPOSITORY, "sender": SENDER}


def pull_request(*, fork: bool = False, number: int = 7, base: str = BASE, head: str = HEAD) -> dict[str, Any]:
    """Opened or pushed to."""
    return {
        "action": "synchronize",
        "number": number,
        "pull_request": {
            "number": number,
            "state": "open",
            "draft": False,
            "merged": False,
            "title": "Say ::error::hello",
            "user": SENDER,
            "base": {"ref": "main", "sha": base, "repo": REPOSITORY},
            "head": {"ref": "topic", "sha": head, "repo": FORK if fork else REPOSITORY},
        },
        **FROM,
    }


def push(*, before: str = BASE, after: str = TIP) -> dict[str, Any]:
    """To the default branch."""
    return {
        "ref": "refs/heads/main",
        "before": before,
        "after": after,
        "created": False,
        "deleted": False,
        "forced": False,
        "base_ref": None,
        "head_commit": {"id": after, "message": "More"},
        "commits": [],
        "pusher": {"name": "dev"},
        **FROM,
    }


def merge_group(*, base: str = BASE, head: str = TIP) -> dict[str, Any]:
    """The merge queue asks for checks."""
    return {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head,
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-7-{base}",
            "base_sha": base,
            "base_ref": "refs/heads/main",
            "head_commit": {"id": head},
        },
        **FROM,
    }


def workflow_run(*, fork: bool = True, run_id: int = 1001, head: str = HEAD) -> dict[str, Any]:
    """A workflow that a pull request had started has ended."""
    return {
        "action": "completed",
        "workflow_run": {
            "id": run_id,
            "name": "Zelda",
            "path": ".github/workflows/zelda.yml",
            "workflow_id": 5,
            "event": "pull_request",
            "status": "completed",
            "conclusion": "failure",
            "run_attempt": 1,
            "head_branch": "topic",
            "head_sha": head,
            "pull_requests": [],
            "repository": REPOSITORY,
            "head_repository": FORK if fork else REPOSITORY,
        },
        "workflow": {"id": 5, "path": ".github/workflows/zelda.yml"},
        **FROM,
    }


def issue_comment(
    body: str = "/zelda help", *, comment: int = 1, login: str = "dev", number: int = 7, **more: Any
) -> dict[str, Any]:
    """Somebody has commented on a pull request; `more` are keys of the payload."""
    user = {"login": login, "id": 3, "type": "Bot" if login.endswith("[bot]") else "User"}
    return {
        "action": "created",
        "issue": {
            "number": number,
            "state": "open",
            "title": "Say ::error::hello",
            "user": SENDER,
            "pull_request": {"url": f"https://api.github.com/repos/octo/shop/pulls/{number}"},
        },
        "comment": {
            "id": comment,
            "html_url": f"https://github.com/octo/shop/pull/{number}#issuecomment-{comment}",
            "body": body,
            "user": user,
            "author_association": "NONE",
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
        },
        "repository": REPOSITORY,
        "sender": user,
        **more,
    }


def payload(name: str, **facts: Any) -> dict[str, Any]:
    """The payload of an event."""
    match name:
        case "pull_request" | "pull_request_target":
            made = pull_request(**facts)
        case "push":
            made = push(**facts)
        case "merge_group":
            made = merge_group(**facts)
        case "workflow_run":
            made = workflow_run(**facts)
        case "issue_comment":
            made = issue_comment(**facts)
        case "schedule":
            made = {"schedule": "0 4 * * *", **FROM}
        case _:
            made = {"inputs": None, "ref": "refs/heads/main", "workflow": ".github/workflows/zelda.yml", **FROM}
    return deepcopy(made)


def variables(name: str, event: dict[str, Any]) -> dict[str, str]:
    """What the runner sets for an event in the repository octo/shop, run 1001."""
    number = event.get("number", 7)
    ref, sha = {
        "pull_request": (f"refs/pull/{number}/merge", MERGE),
        "merge_group": (f"refs/heads/gh-readonly-queue/main/pr-7-{BASE}", TIP),
    }.get(name, ("refs/heads/main", TIP))
    of_pull_request = {"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "topic"} if "pull_request" in name else {}
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "dev",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": "/github/workflow/event.json",
        "GITHUB_JOB": "evaluate",
        "GITHUB_REF": ref,
        "GITHUB_REF_NAME": ref.removeprefix("refs/heads/").removeprefix("refs/pull/"),
        "GITHUB_REF_TYPE": "branch",
        "GITHUB_REPOSITORY": "octo/shop",
        "GITHUB_REPOSITORY_ID": str(REPOSITORY_ID),
        "GITHUB_REPOSITORY_OWNER": "octo",
        "GITHUB_RETENTION_DAYS": "90",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": "1001",
        "GITHUB_RUN_NUMBER": "12",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": sha,
        "GITHUB_WORKFLOW": "Zelda",
        "GITHUB_WORKFLOW_REF": f"octo/shop/.github/workflows/zelda.yml@{ref}",
        "RUNNER_OS": "Linux",
        **of_pull_request,
    }
