"""The comments of a pull request, and the mark that makes one of them ours."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import quote

from pydantic import AwareDatetime, Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Described, understand

# UTF-16 code units, as GitHub counts.
MAX_BODY_LENGTH = 65_536

_PLAIN_KEY = re.compile(r"[A-Za-z0-9._]([A-Za-z0-9._]|-(?!-)){0,79}")
_ORDER = re.compile(
    r"<!-- zelda-ci:order run=([0-9]{1,18}) attempt=([0-9]{1,9}) head=([0-9a-f]{0,64}) at=([0-9]{1,12}) -->"
)


@dataclass(frozen=True)
class CommentOrder:
    """Which run a comment tells of.

    Attributes:
        run_id: Of the run whose results it tells.
        run_attempt: Grows when the run is run again.
        head_sha: The pull request's head that was tested. Empty where that is not known, as in a merge queue.
        made_at: When the results were made, in seconds since 1970: an old run that is run again has the newer ones.
    """

    run_id: int
    run_attempt: int
    head_sha: str
    made_at: int = 0

    def is_after(self, other: Self) -> bool:
        """Whether this run's results count and the other's do not; those for another head count for nothing."""
        same_head = not self.head_sha or not other.head_sha or self.head_sha == other.head_sha
        ours, theirs = ((it.made_at, it.run_id, it.run_attempt) for it in (self, other))
        return same_head and ours > theirs


def marker(key: str) -> str:
    """The first line of the comment that is kept for `key`.

    A key that could end the HTML comment, or is too long to read, is replaced by its hash.
    """
    shown = key if _PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"<!-- zelda-ci:sticky:v1 id={shown} -->"


def sealed(key: str, order: CommentOrder, body: str) -> str:
    """A body behind its two hidden lines."""
    of = f"run={order.run_id} attempt={order.run_attempt} head={order.head_sha} at={order.made_at}"
    return f"{marker(key)}\n<!-- zelda-ci:order {of} -->\n{body}"


def is_marked(text: str, key: str) -> bool:
    """Whether a comment is the one for `key`; text that quotes the marker anywhere else is not."""
    return text.partition("\n")[0].rstrip() == marker(key)


def order_in(text: str) -> CommentOrder | None:
    """Which run a marked comment claims to tell of; None where somebody spoilt the line."""
    lines = text.split("\n", 2)
    match = _ORDER.fullmatch(lines[1].rstrip()) if len(lines) > 1 else None
    return CommentOrder(int(match[1]), int(match[2]), match[3], int(match[4])) if match else None


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
        nodes { fullDatabaseId url body isMinimized viewerDidAuthor lastEditedAt author { login __typename } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""

FORBIDDEN = 403


@dataclass(frozen=True)
class Comment:
    """A comment; anybody with write access to the repository may have edited its body."""

    id: int
    url: str
    body: str
    author: str | None = None
    """Absent where it is known to be ours, or nobody's any more."""
    is_edited: bool = False
    is_of_person: bool = False
    """Whether a user wrote it, and no program."""

    @property
    def without_author(self) -> Self:
        """As one that is known to be ours."""
        return replace(self, author=None)


@dataclass(frozen=True)
class Thread:
    """A pull request's head and its comments, the oldest first."""

    head_sha: str
    comments: tuple[Comment, ...]
    """Those that we wrote and nobody minimised."""
    is_whole: bool
    """Whether there are no comments beyond those that were read."""
    of_people: tuple[Comment, ...] = ()
    """Those that users wrote."""

    def marked(self, key: str) -> list[Comment]:
        """Our comments for a key.

        Raises:
            GitHubError: There are none among those that were read, but not all were.
        """
        ours = [comment for comment in self.comments if is_marked(comment.body, key)]
        if not ours and not self.is_whole:
            message = f"The pull request has more than {MAX_PAGES * 100} comments: whether one is ours is not known."
            raise GitHubError(message, code="GITHUB_TOO_LARGE")
        return ours


def read_thread(api: Api, number: int) -> Thread:
    """The thread of a pull request, by GraphQL: it tells whether the token's owner wrote a comment, whoever that is.

    Raises:
        GitHubError: The thread could not be read, which must not look like one without our comment.
    """
    pages = list(_pages(api, number))
    nodes = [node for page in pages for node in page.nodes]
    ours = (_comment(node).without_author for node in nodes if node.ours and not node.minimised)
    people = (comment for comment in map(_comment, nodes) if comment.is_of_person)
    return Thread(pages[-1].head_sha, _by_age(ours), pages[-1].next is None, _by_age(people))


class _User(Described):
    login: str
    kind: str = Field("User", alias="type")


class _Commenter(Described):
    login: str
    kind: str = Field(alias="__typename")


class _Node(Described):
    # `databaseId` is an Int of 32 bits, and the ids of comments have outgrown it.
    id: int = Field(alias="fullDatabaseId")
    url: str
    body: str
    minimised: bool = Field(alias="isMinimized")
    ours: bool = Field(alias="viewerDidAuthor")
    user: _Commenter | None = Field(default=None, alias="author")
    """Absent where the account was deleted."""
    edited_at: AwareDatetime | None = Field(default=None, alias="lastEditedAt")

    @property
    def is_edited(self) -> bool:
        return self.edited_at is not None


@dataclass(frozen=True)
class _Page:
    head_sha: str
    nodes: tuple[_Node, ...]
    next: str | None


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


class _IssueComment(Described):
    id: int
    url: str = Field(alias="html_url")
    body: str = ""
    user: _User | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime

    @property
    def is_edited(self) -> bool:
        # To the second: whoever needs more compares texts.
        return self.updated_at != self.created_at


def comment_in(answer: Any) -> Comment:
    """The comment that an answer of the REST API describes."""
    return _comment(understand(_IssueComment, answer))


def _comment(source: _Node | _IssueComment) -> Comment:
    user = source.user
    return Comment(
        id=source.id,
        url=source.url,
        body=source.body,
        author=user.login if user else None,
        is_edited=source.is_edited,
        is_of_person=user is not None and user.kind == "User",
    )


def _by_age(comments: Iterable[Comment]) -> tuple[Comment, ...]:
    return tuple(sorted(comments, key=lambda comment: comment.id))


def own_login(api: Api) -> str:
    """A workflow's token may not ask who it is, and is refused; any other failure says nothing."""
    try:
        return understand(_User, api.get("/user")).login
    except GitHubError as error:
        if error.status != FORBIDDEN or error.code != "GITHUB_NOT_PERMITTED":
            raise
        return ACTIONS_BOT


def read_comment(api: Api, comment_id: int) -> Comment | None:
    """One comment as it is now; absent where it was deleted.

    Raises:
        GitHubError: GitHub did not tell.
    """
    try:
        return comment_in(api.get(f"issues/comments/{comment_id}"))
    except GitHubError as error:
        if error.code not in {"GITHUB_NOT_FOUND", "GITHUB_GONE"}:
            raise
        return None


class _Permission(Described):
    permission: str


def permission_of(api: Api, login: str) -> str:
    """What somebody may do in the repository: `admin`, `write`, `read` or `none`; `maintain` counts as `write`.

    Raises:
        GitHubError: GitHub did not tell.
    """
    try:
        told = api.get(f"collaborators/{quote(login, safe='')}/permission")
    except GitHubError as error:
        if error.code != "GITHUB_NOT_FOUND":
            raise
        return "none"
    return understand(_Permission, told).permission


def react(api: Api, comment_id: int, reaction: str) -> None:
    """Put a reaction such as `eyes` to a comment; a second one of the same kind changes nothing."""
    api.post(f"issues/comments/{comment_id}/reactions", {"content": reaction})
