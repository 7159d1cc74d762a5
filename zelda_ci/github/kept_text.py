"""Texts that are kept: a comment or issue for one subject, found by mark and author, and updated in place."""

import hashlib
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AliasChoices, AliasPath, AwareDatetime, BeforeValidator, Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import ABSENT, Api, Tolerating
from zelda_ci.github.repository import Described, User, artifacts_of_run, read_run

# UTF-16 code units, as GitHub counts.
MAX_BODY_LENGTH, MAX_TITLE_LENGTH = 65_536, 256
# Of 100 issues each, of those that one author has open.
MAX_PAGES = 100
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
        if self.head_sha and other.head_sha and self.head_sha != other.head_sha:
            return False
        if self.run_id == other.run_id:
            return self.run_attempt > other.run_attempt
        return (self.made_at, self.run_id) > (other.made_at, other.run_id)


def marker(key: str) -> str:
    """The first line of the text that is kept for a key; of one that could end the HTML comment, with its hash."""
    shown = key if _PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"<!-- zelda-ci:sticky:v1 id={shown} -->"


def sealed(key: str, order: CommentOrder, body: str) -> str:
    """A body behind its two hidden lines."""
    of = f"run={order.run_id} attempt={order.run_attempt} head={order.head_sha} at={order.made_at}"
    return f"{marker(key)}\n<!-- zelda-ci:order {of} -->\n{body}"


def _lines(text: str) -> tuple[str, str, str]:
    """The two hidden lines, and what readers see, however lines end."""
    first, _, rest = text.replace("\r\n", "\n").partition("\n")
    second, _, shown = rest.partition("\n")
    return first.rstrip(), second.rstrip(), shown.rstrip()


def is_marked(text: str, key: str) -> bool:
    """Whether a text is the one for `key`; text that quotes the marker anywhere else is not."""
    return _lines(text)[0] == marker(key)


def visible_text(text: str) -> str:
    """What readers see of a marked text."""
    return _lines(text)[2]


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


class KeptText(Described):
    """A comment or issue, by REST or GraphQL; anybody with write access to the repository may have edited its body."""

    url: str = Field("", validation_alias=AliasChoices("html_url", "url"))
    body: Annotated[str, BeforeValidator(lambda body: body or "")] = ""
    user: User | None = Field(None, validation_alias=AliasChoices("user", "author"))

    @property
    def author(self) -> str:
        """Login of the author; empty where the account was deleted."""
        return self.user.login if self.user else ""

    @property
    def order(self) -> CommentOrder | None:
        """Which run it claims to tell of; None where somebody spoilt the line."""
        match = _ORDER.fullmatch(_lines(self.body)[1])
        return CommentOrder(int(match[1]), int(match[2]), match[3], int(match[4])) if match else None


class Comment(KeptText):
    # `databaseId` is an Int of 32 bits, and the ids of comments have outgrown it.
    id: int = Field(validation_alias=AliasChoices("fullDatabaseId", "id"))


class ListedComment(Comment):
    minimised: bool = Field(alias="isMinimized")
    ours: bool = Field(alias="viewerDidAuthor")
    edited_at: AwareDatetime | None = Field(None, alias="lastEditedAt")


_PULL = "repository", "pullRequest"


class _ThreadPage(Described):
    head_sha: str = Field(validation_alias=AliasPath(*_PULL, "headRefOid"))
    comments: tuple[ListedComment, ...] = Field(validation_alias=AliasPath(*_PULL, "comments", "nodes"))
    more: bool = Field(validation_alias=AliasPath(*_PULL, "comments", "pageInfo", "hasNextPage"))
    end: str | None = Field(None, validation_alias=AliasPath(*_PULL, "comments", "pageInfo", "endCursor"))


class Thread(NamedTuple):
    """A pull request's head and its comments, the oldest first."""

    head_sha: str
    comments: tuple[ListedComment, ...]
    """Those that we wrote and nobody minimised."""
    of_people: tuple[ListedComment, ...]
    """Those that users wrote, and no program."""

    def marked(self, key: str) -> list[ListedComment]:
        """Our comments for a key."""
        return [comment for comment in self.comments if is_marked(comment.body, key)]


def read_thread(api: Api, number: int) -> Thread:
    """The thread of a pull request, by GraphQL: it tells whether the token's owner wrote a comment, whoever that is."""
    owner, _, name = api.repository.partition("/")
    found, cursor = list[ListedComment](), None
    while True:
        page = _ThreadPage.of(api.graphql(QUERY, owner=owner, name=name, number=number, cursor=cursor))
        found += page.comments
        if not page.more:
            break
        if page.end in {None, cursor}:
            raise GitHubError("An answer of GitHub does not say how it goes on.", code="GITHUB_REFUSED")
        cursor = page.end
    found.sort(key=lambda comment: comment.id)
    ours = tuple(comment for comment in found if comment.ours and not comment.minimised)
    return Thread(page.head_sha, ours, tuple(each for each in found if each.user and each.user.kind == "User"))


def post_once(api: Api, number: int, key: str, text: str) -> Comment:
    """Post a comment for a key; where the answer was lost, it may be there already."""
    path = f"issues/{number}/comments"
    with Tolerating({"GITHUB_ANSWER_LOST"}):
        return Comment.of(api.post(path, {"body": text}))
    posted = read_thread(api, number).marked(key)
    return posted[0] if posted else Comment.of(api.post(path, {"body": text}))


# `outdated` where the pull request has moved on, or a newer run was there first; `taken` where another job of the same
# run has written it.
Action = Literal["created", "updated", "unchanged", "not due", "outdated", "taken"]


class Published(NamedTuple):
    url: str | None
    action: Action


class CommentedJob(NamedTuple):
    """The job of whose runs a comment tells."""

    key: str
    workflow: str
    """Path of its file; empty where nobody says."""
    stored_as: Callable[[int], str]
    """Name of the artifact with the results of an attempt."""


def keep_comment(
    api: Api, number: int, job: CommentedJob, order: CommentOrder, body: str, *, is_due: bool = True, once: bool = False
) -> Published:
    """Make the one comment that a pull request has for a job tell a body, unless it tells of newer results.

    Where that is not due, it only takes the place of an earlier one, which may have ceased to be true. `once` says that
    only another job with the same key can have reported this very attempt. A body may be `COMMENT_TOO_LONG`.
    """
    text = sealed(job.key, order, body)
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 > MAX_BODY_LENGTH:
        message = f"The comment is longer than the {MAX_BODY_LENGTH} characters that GitHub takes."
        raise GitHubError(message, code="COMMENT_TOO_LONG")
    thread = read_thread(api, number)
    ours: list[Comment] = [*thread.marked(job.key)]
    if not ours and not is_due:
        return Published(None, "not due")
    # The pull request has a newer commit, whose own run will say what there is to say.
    if order.head_sha not in ("", thread.head_sha):
        return Published(ours[0].url if ours else None, "outdated")
    action: Action = "unchanged" if ours else "created"
    if not ours:
        created = post_once(api, number, job.key, text)
        # Another job may do so at this moment: look again, since all see the same comments and all keep the oldest.
        by_id = {each.id: each for each in (created, *read_thread(api, number).marked(job.key))}
        ours = [by_id[each] for each in sorted(by_id)]
    oldest, *spare = ours
    is_same, before = visible_text(oldest.body) == visible_text(text), oldest.order
    # Nobody makes results in the future: who says so wants to be the last for ever.
    claims = {claim for each in ours if (claim := each.order) and claim.made_at <= time.time()}
    newer = (claim for claim in claims if claim.is_after(order))
    if any(_is_real(api, claim, thread.head_sha, job) for claim in newer):
        action = "outdated"
    elif once and not is_same and before and (before.run_id, before.run_attempt) == (order.run_id, order.run_attempt):
        action = "taken"
    elif not is_same:
        try:
            api.patch(f"issues/comments/{oldest.id}", {"body": text})
        except GitHubError as error:
            if error.code not in ABSENT:
                raise
            # It was deleted at this moment.
            return Published(post_once(api, number, job.key, text).url, "created")
        action = "updated"
    if action in {"outdated", "taken"}:
        # What others have written is not ours to judge.
        spare = [each for each in spare if _lines(each.body) == _lines(text)]
    for each in spare:
        # A comment too many is a blemish, no failure.
        with suppress(GitHubError):
            api.delete(f"issues/comments/{each.id}")
    return Published(oldest.url, action)


def _is_real(api: Api, claim: CommentOrder, head_sha: str, job: CommentedJob) -> bool:
    """Whether GitHub knows a run as one whose results the comment tells: people, and forks, can write any into it."""
    try:
        run = read_run(api, claim.run_id)
        is_ours = run.head_sha == head_sha and job.workflow in {"", run.workflow}
        if run.event == "issue_comment":
            # Its head is the default branch's. But a fork stores nothing in it, and others have no such artifact.
            name = job.stored_as(claim.run_attempt)
            is_ours = any(each.name == name for each in artifacts_of_run(api, claim.run_id))
    except GitHubError as error:
        if error.code not in ABSENT | {"GITHUB_NOT_PERMITTED"}:
            raise
        # Where the token may not look, the claim is believed: better an older comment than two that fight.
        return error.code not in ABSENT
    # What has ended makes no results any more; clocks differ by a minute at most.
    is_over = run.status == "completed" and run.updated_at and claim.made_at > run.updated_at.timestamp() + 60
    return is_ours and run.run_attempt >= claim.run_attempt and not is_over


class Issue(KeptText):
    number: int
    title: str
    pull_request: dict[str, object] | None = None
    """Present where it is a pull request: GitHub lists both together."""


def find_issues(api: Api, key: str, author: str | None) -> list[Issue]:
    """The open issues with the mark of a key by an author, by default the token's owner, the oldest first."""
    # A workflow's token may not ask who it is, and is refused: this is who it is to the REST API.
    me = author or "github-actions[bot]"
    try:
        me = author or User.of(api.get("/user")).login
    except GitHubError as error:
        if error.status != 403 or error.code != "GITHUB_NOT_PERMITTED":
            raise
    listed = api.pages("issues", limit=MAX_PAGES, state="open", creator=me)
    issues = (Issue.of(each) for each in listed)
    # Anybody can write the mark into an issue; nobody else can be its author.
    ours = (issue for issue in issues if issue.author == me and is_marked(issue.body, key))
    return sorted((issue for issue in ours if issue.pull_request is None), key=lambda issue: issue.number)


def keep_issue(api: Api, issue: Issue | None, key: str, title: str, body: str) -> tuple[Issue, str]:
    """Make an issue tell something, or open one that does; returns it, and in words what was done."""
    # The second line is empty: an issue tells of no single run.
    text = {"title": title[:MAX_TITLE_LENGTH], "body": f"{marker(key)}\n\n{body}"}
    if issue is None:
        return Issue.of(api.post("issues", text)), "opened"
    if (issue.title, visible_text(issue.body)) == (text["title"], visible_text(text["body"])):
        return issue, "left as it is"
    api.patch(f"issues/{issue.number}", text)
    return issue, "updated"


def close_issue(api: Api, issue: Issue, key: str, body: str) -> None:
    text = {"body": f"{marker(key)}\n\n{body}", "state": "closed", "state_reason": "completed"}
    api.patch(f"issues/{issue.number}", text)
