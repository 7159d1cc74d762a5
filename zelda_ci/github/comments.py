"""The comments of a pull request, and the mark that makes one of them ours."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from pydantic import AliasChoices, AliasPath, AwareDatetime, Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Described, User, understand

# UTF-16 code units, as GitHub counts.
MAX_BODY_LENGTH = 65_536

_PLAIN_KEY = re.compile(r"[A-Za-z0-9._]([A-Za-z0-9._]|-(?!-)){0,79}")
_ORDER = re.compile(
    r"<!-- zelda-ci:order run=([0-9]{1,18}) attempt=([0-9]{1,9}) head=([0-9a-f]{0,64}) at=([0-9]{1,12}) -->"
)


@dataclass(frozen=True)
class CommentOrder:
    """Which run a comment tells of."""

    run_id: int
    run_attempt: int
    head_sha: str
    """The pull request's head that was tested. Empty where that is not known, as in a merge queue."""
    made_at: int = 0
    """When the results were made, in seconds since 1970: an old run that is run again has the newer ones."""

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


class Comment(Described):
    """A comment, by REST or GraphQL; anybody with write access to the repository may have edited its body."""

    # `databaseId` is an Int of 32 bits, and the ids of comments have outgrown it.
    id: int = Field(validation_alias=AliasChoices("fullDatabaseId", "id"))
    url: str = Field(validation_alias=AliasChoices("html_url", "url"))
    body: str
    user: User | None = Field(None, validation_alias=AliasChoices("user", "author"))
    """Absent where the account was deleted."""

    @property
    def author(self) -> str | None:
        return self.user.login if self.user else None


class ListedComment(Comment):
    """A comment of a thread."""

    minimised: bool = Field(alias="isMinimized")
    ours: bool = Field(alias="viewerDidAuthor")
    edited_at: AwareDatetime | None = Field(None, alias="lastEditedAt")


def _pull(*keys: str) -> AliasPath:
    return AliasPath("repository", "pullRequest", *keys)


class _ThreadPage(Described):
    head_sha: str = Field(validation_alias=_pull("headRefOid"))
    comments: tuple[ListedComment, ...] = Field(validation_alias=_pull("comments", "nodes"))
    more: bool = Field(validation_alias=_pull("comments", "pageInfo", "hasNextPage"))
    end: str | None = Field(None, validation_alias=_pull("comments", "pageInfo", "endCursor"))


@dataclass(frozen=True)
class Thread:
    """A pull request's head and its comments, the oldest first."""

    head_sha: str
    comments: tuple[ListedComment, ...]
    """Those that we wrote and nobody minimised."""
    of_people: tuple[ListedComment, ...]
    """Those that users wrote, and no program."""

    def marked(self, key: str) -> list[Comment]:
        """Our comments for a key."""
        return [comment for comment in self.comments if is_marked(comment.body, key)]


def read_thread(api: Api, number: int) -> Thread:
    """The thread of a pull request, by GraphQL: it tells whether the token's owner wrote a comment, whoever that is.

    Raises:
        GitHubError: The thread could not be read, which must not look like one without our comment.
    """
    owner, _, name = api.repository.partition("/")
    found: list[ListedComment] = []
    cursor = None
    while True:
        page = understand(_ThreadPage, api.graphql(QUERY, owner=owner, name=name, number=number, cursor=cursor))
        found += page.comments
        if not page.more:
            break
        if page.end in {None, cursor}:
            raise GitHubError("An answer of GitHub does not say how it goes on.", code="GITHUB_REFUSED")
        cursor = page.end
    found.sort(key=lambda comment: comment.id)
    ours = tuple(comment for comment in found if comment.ours and not comment.minimised)
    return Thread(page.head_sha, ours, tuple(each for each in found if each.user and each.user.kind == "User"))


def comment_in(answer: Any) -> Comment:
    """The comment that an answer of the REST API describes."""
    return understand(Comment, answer)


def own_login(api: Api) -> str:
    """A workflow's token may not ask who it is, and is refused; any other failure says nothing."""
    try:
        return understand(User, api.get("/user")).login
    except GitHubError as error:
        if error.status != 403 or error.code != "GITHUB_NOT_PERMITTED":
            raise
        return ACTIONS_BOT


def read_comment(api: Api, comment_id: int) -> Comment | None:
    """One comment as it is now; absent where it was deleted."""
    try:
        return comment_in(api.get(f"issues/comments/{comment_id}"))
    except GitHubError as error:
        if error.code not in {"GITHUB_NOT_FOUND", "GITHUB_GONE"}:
            raise
        return None


def permission_of(api: Api, login: str) -> str:
    """What somebody may do in the repository: `admin`, `write`, `read` or `none`; `maintain` counts as `write`."""
    try:
        return understand(_Permission, api.get(f"collaborators/{quote(login, safe='')}/permission")).permission
    except GitHubError as error:
        if error.code != "GITHUB_NOT_FOUND":
            raise
        return "none"


class _Permission(Described):
    permission: str


def react(api: Api, comment_id: int, reaction: str) -> None:
    """Put a reaction such as `eyes` to a comment; a second one of the same kind changes nothing."""
    api.post(f"issues/comments/{comment_id}/reactions", {"content": reaction})
