"""The conversation of a pull request: which comments in it are our own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Described, PullRequest, understand

MOST_PAGES = 50
"""Of 100 comments each."""

ACTIONS_BOT = "github-actions[bot]"
"""Who the token of a workflow is to the REST API."""

QUERY = """
query($owner: String!, $name: String!, $number: Int!, $cursor: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      headRefOid
      comments(first: 100, after: $cursor) {
        nodes { fullDatabaseId url body isMinimized viewerDidAuthor }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""


@dataclass(frozen=True)
class Comment:
    """A comment; anybody with write access to the repository may have edited its body."""

    id: int
    url: str
    body: str


@dataclass(frozen=True)
class Thread:
    """A pull request's head and those of its comments that we wrote and nobody minimised, the oldest first."""

    head_sha: str
    comments: tuple[Comment, ...]


def read_thread(api: Api, number: int) -> Thread:
    """The thread of a pull request.

    GraphQL tells whether the token's owner wrote a comment, whoever that is; where it cannot be asked, a name must do.

    Raises:
        GitHubError: Neither way led to it.
    """
    try:
        return _by_graphql(api, number)
    except GitHubError:
        return _by_rest(api, number)


class _Node(Described):
    # `databaseId` is an Int of 32 bits, and the ids of comments have outgrown it.
    id: int = Field(alias="fullDatabaseId")
    url: str
    body: str
    minimised: bool = Field(alias="isMinimized")
    ours: bool = Field(alias="viewerDidAuthor")


@dataclass(frozen=True)
class _Page:
    head_sha: str
    nodes: tuple[_Node, ...]
    next: str | None


def _by_graphql(api: Api, number: int) -> Thread:
    pages = list(_pages(api, number))
    nodes = (node for page in pages for node in page.nodes)
    return _thread(pages[-1].head_sha, (node for node in nodes if node.ours and not node.minimised))


def _pages(api: Api, number: int) -> Iterator[_Page]:
    owner, _, name = api.repository.partition("/")
    cursor = None
    for _ in range(MOST_PAGES):
        page = _page(api.graphql(QUERY, owner=owner, name=name, number=number, cursor=cursor))
        yield page
        cursor = page.next
        if cursor is None:
            return


def _page(data: Any) -> _Page:
    match data:
        case {
            "repository": {
                "pullRequest": {
                    "headRefOid": str(head_sha),
                    "comments": {"nodes": list(nodes), "pageInfo": {"hasNextPage": bool(more), "endCursor": end}},
                }
            }
        }:
            return _Page(head_sha, tuple(understand(_Node, each) for each in nodes), end if more else None)
        case _:
            raise GitHubError("An answer of GitHub describes no pull request.", code="GITHUB_REFUSED")


class _User(Described):
    login: str


class _IssueComment(Described):
    id: int
    url: str = Field(alias="html_url")
    body: str = ""
    user: _User | None = None
    minimised: dict[str, object] | None = Field(default=None, alias="minimized")


def comment_in(answer: Any) -> Comment:
    """The comment that an answer of the REST API describes."""
    told = understand(_IssueComment, answer)
    return Comment(told.id, told.url, told.body)


def _by_rest(api: Api, number: int) -> Thread:
    head_sha = understand(PullRequest, api.get(f"pulls/{number}")).head.sha
    me = _own_login(api)
    listed = api.pages(f"issues/{number}/comments", limit=MOST_PAGES)
    comments = [understand(_IssueComment, each) for each in listed]
    return _thread(head_sha, [each for each in comments if each.user and each.user.login == me and not each.minimised])


def _thread(head_sha: str, ours: Iterable[_Node | _IssueComment]) -> Thread:
    comments = (Comment(each.id, each.url, each.body) for each in ours)
    return Thread(head_sha, tuple(sorted(comments, key=lambda each: each.id)))


def _own_login(api: Api) -> str:
    """A workflow's token may not ask who it is."""
    try:
        return understand(_User, api.get("/user")).login
    except GitHubError:
        return ACTIONS_BOT
