"""The one issue that is kept for a subject: found by its mark and by who wrote it, opened, rewritten, closed."""

from typing import Any

from pydantic import Field

from zelda_ci.github.api import Api
from zelda_ci.github.comments import is_marked, marker, own_login, visible_text
from zelda_ci.github.schemas import Described, User, understand

# Of 100 issues each, of those that one author has open.
MAX_PAGES = 100
MAX_TITLE_LENGTH = 256


class Issue(Described):
    number: int
    state: str
    title: str
    url: str = Field(alias="html_url")
    body: str | None = None
    user: User | None = None
    pull_request: dict[str, object] | None = None
    """Present where it is a pull request: GitHub lists both together."""

    @property
    def author(self) -> str:
        return self.user.login if self.user else ""


def find_issues(api: Api, key: str, author: str | None) -> list[Issue]:
    """The open issues that have the mark of `key` and were written by us, the oldest first; usually one.

    We are the author whom an earlier run was told, otherwise whoever the token is.
    """
    me = author or own_login(api)
    listed = api.pages("issues", limit=MAX_PAGES, state="open", creator=me)
    issues = (understand(Issue, each) for each in listed)
    # Anybody can write the mark into an issue; nobody else can be its author.
    ours = (issue for issue in issues if issue.author == me and is_marked(issue.body or "", key))
    is_open = (issue for issue in ours if issue.state == "open" and issue.pull_request is None)
    return sorted(is_open, key=lambda issue: issue.number)


def open_issue(api: Api, key: str, title: str, body: str) -> Issue:
    """Open an issue with the mark of `key`."""
    return understand(Issue, api.post("issues", _text(key, title, body)))


def update_issue(api: Api, issue: Issue, key: str, title: str, body: str) -> bool:
    """Make it say something else; whether it did not say so already."""
    text = _text(key, title, body)
    if (issue.title, visible_text(issue.body or "")) == (text["title"], visible_text(text["body"])):
        return False
    api.patch(f"issues/{issue.number}", text)
    return True


def close_issue(api: Api, issue: Issue, key: str, body: str) -> None:
    """Say why it is over, and close it."""
    text = _text(key, issue.title, body)
    api.patch(f"issues/{issue.number}", {"body": text["body"], "state": "closed", "state_reason": "completed"})


def _text(key: str, title: str, body: str) -> dict[str, Any]:
    # The second line is empty: an issue tells of no single run.
    return {"title": title[:MAX_TITLE_LENGTH], "body": f"{marker(key)}\n\n{body}"}
