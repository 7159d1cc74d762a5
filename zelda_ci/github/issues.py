"""The one issue that is kept for a subject: found by its mark and by who wrote it, opened, rewritten, closed."""

from dataclasses import dataclass

from pydantic import Field

from zelda_ci.github.api import Api
from zelda_ci.github.comments import is_marked, marker, own_login, visible_text
from zelda_ci.github.schemas import Described, understand

# Of 100 issues each, of those that one author has open.
MAX_PAGES = 10
MAX_TITLE_LENGTH = 256


class _Author(Described):
    login: str


class _Issue(Described):
    number: int
    state: str
    title: str
    url: str = Field(alias="html_url")
    body: str | None = None
    user: _Author | None = None
    pull_request: dict[str, object] | None = None
    """Present where it is a pull request: GitHub lists both together."""


@dataclass(frozen=True)
class KeptIssue:
    """An issue of ours."""

    number: int
    url: str
    author: str
    title: str
    body: str


def find_issues(api: Api, key: str, author: str | None) -> list[KeptIssue]:
    """The open issues that have the mark of `key` and were written by us, the oldest first; usually one.

    Args:
        api: Of the repository; the token needs `issues: write`, or to read a public one nothing.
        key: Tells apart the issues of several jobs.
        author: Who wrote it, as far as an earlier run was told; otherwise whoever the token is.

    Raises:
        GitHubError: GitHub did not tell.
    """
    me = author or own_login(api)
    listed = api.pages("issues", limit=MAX_PAGES, whole=True, state="open", creator=me)
    issues = [understand(_Issue, each) for each in listed]
    ours = (_kept(each, me) for each in issues if _is_ours(each, key, me))
    return sorted(ours, key=lambda issue: issue.number)


def _is_ours(issue: _Issue, key: str, me: str) -> bool:
    is_issue = issue.pull_request is None and issue.state == "open"
    # Anybody can write the mark into an issue; nobody else can be its author.
    return is_issue and issue.user is not None and issue.user.login == me and is_marked(issue.body or "", key)


def _kept(issue: _Issue, author: str) -> KeptIssue:
    return KeptIssue(issue.number, issue.url, author, issue.title, issue.body or "")


def open_issue(api: Api, key: str, title: str, body: str) -> KeptIssue:
    """Open it.

    Raises:
        GitHubError: `GITHUB_NOT_PERMITTED`, or what else hindered.
    """
    issue = understand(_Issue, api.post("issues", {"title": title[:MAX_TITLE_LENGTH], "body": _marked(key, body)}))
    return _kept(issue, issue.user.login if issue.user else "")


def update_issue(api: Api, issue: KeptIssue, key: str, title: str, body: str) -> bool:
    """Make it say something else; whether it did not say so already. Errors as of `open_issue`."""
    text, title = _marked(key, body), title[:MAX_TITLE_LENGTH]
    is_same = issue.title == title and visible_text(issue.body) == visible_text(text)
    if is_same and is_marked(issue.body, key):
        return False
    api.patch(f"issues/{issue.number}", {"title": title, "body": text})
    return True


def close_issue(api: Api, issue: KeptIssue, key: str, body: str) -> None:
    """Say why it is over, and close it. Errors as of `open_issue`."""
    change = {"body": _marked(key, body), "state": "closed", "state_reason": "completed"}
    api.patch(f"issues/{issue.number}", change)


def _marked(key: str, body: str) -> str:
    """The second line is empty: an issue tells of no single run."""
    return f"{marker(key)}\n\n{body}"
