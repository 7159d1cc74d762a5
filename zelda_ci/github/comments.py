"""The comments of a pull request, and the mark that makes one of them ours."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Described, PullRequest, understand

# UTF-16 code units, as GitHub counts.
MAX_BODY_LENGTH = 65_536

_PLAIN_KEY = re.compile(r"[A-Za-z0-9._]([A-Za-z0-9._]|-(?!-)){0,79}")
_ORDER = re.compile(r"<!-- zelda-ci:order run=([0-9]{1,18}) attempt=([0-9]{1,9}) head=([0-9a-f]{0,64}) -->")


@dataclass(frozen=True)
class CommentOrder:
    """Which run a comment tells of.

    Attributes:
        run_id: Of the run whose results it tells; later runs have larger ones.
        run_attempt: Grows when the run is run again.
        head_sha: The pull request's head that was tested. Empty where that is not known, as in a merge queue.
    """

    run_id: int
    run_attempt: int
    head_sha: str

    def is_after(self, other: Self) -> bool:
        """Whether this run's results count and the other's do not; those for another head count for nothing."""
        same_head = not self.head_sha or not other.head_sha or self.head_sha == other.head_sha
        return same_head and (self.run_id, self.run_attempt) > (other.run_id, other.run_attempt)


def marker(key: str) -> str:
    """The first line of the comment that is kept for `key`.

    A key that could end the HTML comment, or is too long to read, is replaced by its hash.
    """
    shown = key if _PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"<!-- zelda-ci:sticky:v1 id={shown} -->"


def sealed(key: str, order: CommentOrder, body: str) -> str:
    """A body behind its two hidden lines."""
    hidden = f"<!-- zelda-ci:order run={order.run_id} attempt={order.run_attempt} head={order.head_sha} -->"
    return f"{marker(key)}\n{hidden}\n{body}"


def is_marked(text: str, key: str) -> bool:
    """Whether a comment is the one for `key`; text that quotes the marker anywhere else is not."""
    return text.partition("\n")[0].rstrip() == marker(key)


def order_in(text: str) -> CommentOrder | None:
    """Which run a marked comment claims to tell of; None where somebody spoilt the line."""
    lines = text.split("\n", 2)
    match = _ORDER.fullmatch(lines[1].rstrip()) if len(lines) > 1 else None
    return CommentOrder(int(match[1]), int(match[2]), match[3]) if match else None


_CLAIM = re.compile(r"<!-- zelda-ci:claims id=([A-Za-z0-9._-]{1,80}) -->")


def claiming(former: str, body: str) -> str:
    """A body whose writer wants to go on with the comment for another key, until it is known who may."""
    return f"<!-- zelda-ci:claims id={former} -->\n{body}"


def claims(text: str, former: str) -> bool:
    """Whether the writer of a sealed comment wants to go on with that for `former`."""
    lines = text.split("\n", 3)
    match = _CLAIM.fullmatch(lines[2].rstrip()) if len(lines) > 2 else None
    return match is not None and match[1] == former


def visible_text(text: str) -> str:
    """What readers see of a marked comment, however its lines end."""
    lines = text.replace("\r\n", "\n").split("\n", 2)
    return lines[2].rstrip() if len(lines) > 2 else ""


def length(text: str) -> int:
    """In UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# Of 100 comments each.
MAX_PAGES = 50

# Who the token of a workflow is to the REST API.
ACTIONS_BOT = "github-actions[bot]"

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


# Refusals that say: not this way. Others would be the same by the other way, or pass.
_WITHOUT_GRAPHQL = frozenset({"GITHUB_NOT_PERMITTED", "GITHUB_NOT_OFFERED"})

UNAUTHORISED, FORBIDDEN, NOT_FOUND = 401, 403, 404


@dataclass(frozen=True)
class Comment:
    """A comment; anybody with write access to the repository may have edited its body."""

    id: int
    url: str
    body: str
    author: str | None = None
    """Absent where it is known to be ours."""


@dataclass(frozen=True)
class Thread:
    """A pull request's head and those of its comments that we wrote and nobody minimised, the oldest first."""

    head_sha: str
    comments: tuple[Comment, ...]
    is_whole: bool
    """Whether there are no comments beyond those that were read."""

    def marked(self, *keys: str) -> list[Comment]:
        """Our comments for any of these keys.

        Raises:
            GitHubError: There are none among those that were read, but not all were.
        """
        ours = [comment for comment in self.comments if any(is_marked(comment.body, key) for key in keys)]
        if not ours and not self.is_whole:
            message = f"The pull request has more than {MAX_PAGES * 100} comments: whether one is ours is not known."
            raise GitHubError(message, code="GITHUB_TOO_LARGE")
        return ours


def read_thread(api: Api, number: int, me: str | None = None) -> Thread:
    """The thread of a pull request.

    GraphQL tells whether the token's owner wrote a comment, whoever that is. Where it cannot be asked at all, a name
    must do: `me`, or what GitHub or else the kind of job says. Any other failure is one: a thread that could not be
    read must not look like one without our comment.

    Raises:
        GitHubError: GitHub did not tell.
    """
    try:
        return _by_graphql(api, number)
    except GitHubError as error:
        has_none = error.code == "GITHUB_NOT_FOUND" and error.status == NOT_FOUND
        if error.status == UNAUTHORISED or not (has_none or error.code in _WITHOUT_GRAPHQL):
            raise
        return _by_rest(api, number, me)


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
    ours = (node for node in nodes if node.ours and not node.minimised)
    return _thread(pages[-1].head_sha, ours, is_whole=pages[-1].next is None)


def _pages(api: Api, number: int) -> Iterator[_Page]:
    owner, _, name = api.repository.partition("/")
    cursor = None
    for _ in range(MAX_PAGES):
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
            if more == isinstance(end, str) or not more:
                return _Page(head_sha, tuple(understand(_Node, node) for node in nodes), end if more else None)
            raise GitHubError("An answer of GitHub does not say how it goes on.", code="GITHUB_REFUSED")
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
    return _comment(understand(_IssueComment, answer))


def _comment(source: _Node | _IssueComment) -> Comment:
    author = source.user.login if isinstance(source, _IssueComment) and source.user else None
    return Comment(source.id, source.url, source.body, author)


def _by_rest(api: Api, number: int, me: str | None) -> Thread:
    head_sha = understand(PullRequest, api.get(f"pulls/{number}")).head.sha
    me = me or own_login(api)
    comments, is_whole = _listed(api, number)
    ours = [comment for comment in comments if comment.user and comment.user.login == me and not comment.minimised]
    return _thread(head_sha, ours, is_whole=is_whole)


def _listed(api: Api, number: int) -> tuple[list[_IssueComment], bool]:
    """The comments, and whether these are all."""
    comments: list[_IssueComment] = []
    try:
        for comment in api.pages(f"issues/{number}/comments", limit=MAX_PAGES, whole=True):
            comments.append(understand(_IssueComment, comment))  # noqa: PERF401 - what came before the error counts
    except GitHubError as error:
        if error.code != "GITHUB_TOO_LARGE":
            raise
        return comments, False
    return comments, True


def _thread(head_sha: str, ours: Iterable[_Node | _IssueComment], *, is_whole: bool) -> Thread:
    return Thread(head_sha, tuple(sorted(map(_comment, ours), key=lambda comment: comment.id)), is_whole)


def own_login(api: Api) -> str:
    """A workflow's token may not ask who it is, and is refused; any other failure says nothing."""
    try:
        return understand(_User, api.get("/user")).login
    except GitHubError as error:
        if error.status != FORBIDDEN or error.code != "GITHUB_NOT_PERMITTED":
            raise
        return ACTIONS_BOT
