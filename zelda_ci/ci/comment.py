"""The one comment that a job keeps: found again, updated in place, and never overwritten by an older run."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.comments import (
    MAX_BODY_LENGTH,
    Comment,
    CommentOrder,
    Thread,
    claiming,
    claims,
    comment_in,
    is_marked,
    length,
    order_in,
    read_thread,
    sealed,
    visible_text,
)
from zelda_ci.github.schemas import WorkflowRun, understand

Action = Literal["created", "updated", "unchanged", "outdated", "taken"]

_GONE = frozenset({"GITHUB_NOT_FOUND", "GITHUB_GONE"})


@dataclass(frozen=True)
class Sharing:
    """What other jobs may have to do with the comment."""

    former: str | None = None
    """The key that versions before gave it, which the jobs of a workflow shared: one of them takes it over."""
    once: bool = False
    """Whether only another job with the same key can have told of this very attempt."""


@dataclass(frozen=True)
class Published:
    """What became of a comment.

    `outdated` where the pull request has moved on, or a newer run was there first; `taken` where another job of the
    same run has written it.
    """

    url: str | None
    action: Action
    left_over: int = 0
    """Further comments of ours that could not be removed."""


def publish_comment(
    api: Api, number: int, *, key: str, order: CommentOrder, body: str, sharing: Sharing | None = None
) -> Published:
    """Make the comment of a pull request tell `body`.

    Args:
        api: Of the repository; the token needs `pull-requests: write`.
        number: Of the pull request.
        key: Tells apart the comments of several jobs.
        order: Of the run that `body` tells of.
        body: Markdown without the hidden lines.
        sharing: With which other jobs.

    Raises:
        GitHubError: `COMMENT_TOO_LONG`, `GITHUB_NOT_PERMITTED`, or what else hindered.
    """
    text = sealed(key, order, body)
    sharing = sharing or Sharing()
    claim = sealed(key, order, claiming(sharing.former, body)) if sharing.former else text
    if length(claim) > MAX_BODY_LENGTH:
        raise _too_long()
    return _Draft(api, number, key, sharing, order, text, claim).publish()


@dataclass(frozen=True)
class _Draft:
    api: Api
    number: int
    key: str
    sharing: Sharing
    order: CommentOrder
    text: str
    claim: str
    """The text with a claim to the comment with the former key."""

    def publish(self) -> Published:
        thread = self._thread()
        ours = thread.marked(*filter(None, (self.key, self.sharing.former)))
        comments, former = self._split(ours)
        # The pull request has a newer commit, whose own run will say what there is to say.
        if self.order.head_sha not in ("", thread.head_sha):
            return Published(next((comment.url for comment in (*comments, *former)), None), "outdated")
        if comments:
            published = self._reconcile(comments)
            # Of a run that was killed before it could go on with it. Whoever else wants it creates one of its own.
            spare = self._remove(former) if published.action in {"updated", "unchanged"} else 0
            return replace(published, left_over=published.left_over + spare)
        if self._is_beaten(former):
            return Published(former[0].url, "outdated")
        return self._take_over() if former else self._create(self.text)

    def _create(self, text: str) -> Published:
        # Another job may do so at this moment: look again, since all see the same comments and all keep the oldest.
        created = self._post_once(text)
        return self._settle(created, self._thread_after(created))

    def _settle(self, created: list[Comment], thread: Thread) -> Published:
        ours, _ = self._split(thread.comments)
        by_id = {comment.id: comment for comment in (*ours, *created)}
        published = self._reconcile([by_id[number] for number in sorted(by_id)], created)
        # Without its claim it was written once more.
        is_new = published.action == "updated" and published.url in {comment.url for comment in created}
        return replace(published, action="created") if is_new or published.action == "unchanged" else published

    def _take_over(self) -> Published:
        """Go on with the comment that had the former key, which other jobs may want at this moment, too.

        GitHub has no conditional writes, but an order in which comments are created. So everybody creates one with a
        claim. All see the same claims, and the oldest gets it.
        """
        created = self._post_once(self.claim)
        thread = self._thread_after(created)
        (_, former), mine = self._split(thread.comments), min((comment.id for comment in created), default=None)
        rivals = [comment.id for comment in thread.comments if claims(comment.body, self.sharing.former or "")]
        if mine is None or not former or min(rivals, default=mine) < mine:
            return self._settle(created, thread)
        try:
            self._write(former[0])
        except GitHubError as error:
            if error.code not in _GONE:
                raise
            return self._settle(created, thread)
        return Published(former[0].url, "updated", self._remove((*former[1:], *created)))

    def _split(self, comments: Iterable[Comment]) -> tuple[list[Comment], list[Comment]]:
        """Those with the key, and those with the former one."""
        former = self.sharing.former
        listed = [*comments]
        ours = [comment for comment in listed if is_marked(comment.body, self.key)]
        return ours, [comment for comment in listed if former and is_marked(comment.body, former)]

    def _post_once(self, text: str) -> list[Comment]:
        """What was created, if anything had to be."""
        try:
            return [self._post(text)]
        except GitHubError as error:
            if error.code != "GITHUB_ANSWER_LOST":
                raise
        # A request whose answer was lost may have been carried out.
        return [] if self._thread().marked(self.key) else [self._post(text)]

    def _thread_after(self, created: list[Comment]) -> Thread:
        # Who we are, GitHub may have told only now.
        return self._thread(created[0].author if created else None)

    def _reconcile(self, comments: list[Comment], created: Sequence[Comment] = ()) -> Published:
        """Tell it in the oldest comment, unless one of them tells of a newer run, or another job has written it."""
        oldest, *others = comments
        if self._is_beaten(comments):
            # Only those of this very run: what others have written is not ours to judge.
            remaining = self._remove(other for other in others if order_in(other.body) == self.order)
            return Published(oldest.url, "outdated", remaining)
        if self._is_taken(oldest, created):
            return Published(oldest.url, "taken", self._remove(other for other in others if other in created))
        try:
            action = self._write(oldest)
        except GitHubError as error:
            if error.code not in _GONE:
                raise
            return self._reconcile(others, created) if others else self._create(self.text)
        return Published(oldest.url, action, self._remove(others))

    def _is_taken(self, comment: Comment, created: Sequence[Comment]) -> bool:
        """Whether another job with our key has told of this attempt, as the jobs of a matrix would."""
        ours = {visible_text(self.text), visible_text(self.claim)}
        is_other = comment.id not in {each.id for each in created} and visible_text(comment.body) not in ours
        return self.sharing.once and is_other and order_in(comment.body) == self.order

    def _is_beaten(self, comments: list[Comment]) -> bool:
        claimed = {order for comment in comments if (order := order_in(comment.body))}
        return any(order.is_after(self.order) and self._exists(order) for order in claimed)

    def _exists(self, claimed: CommentOrder) -> bool:
        # People can write a run into a comment that never was; it must not silence all that come.
        try:
            run = understand(WorkflowRun, self.api.get(f"actions/runs/{claimed.run_id}"))
        except GitHubError as error:
            if error.code not in _GONE | {"GITHUB_NOT_PERMITTED"}:
                raise
            # Where the token may not look, the claim is believed: better an older comment than two that fight.
            return error.code not in _GONE
        return run.run_attempt >= claimed.run_attempt

    def _thread(self, me: str | None = None) -> Thread:
        return read_thread(self.api, self.number, me)

    def _post(self, text: str) -> Comment:
        with _lengths():
            return comment_in(self.api.post(f"issues/{self.number}/comments", {"body": text}))

    def _write(self, comment: Comment) -> Action:
        if visible_text(comment.body) == visible_text(self.text):
            return "unchanged"
        with _lengths():
            self.api.patch(f"issues/comments/{comment.id}", {"body": self.text})
        return "updated"

    def _remove(self, comments: Iterable[Comment]) -> int:
        """Remove comments; returns how many stay."""
        remaining = 0
        for comment in comments:
            # A comment too many is a blemish, no failure.
            try:
                self.api.delete(f"issues/comments/{comment.id}")
            except GitHubError as error:
                remaining += error.code not in _GONE
        return remaining


@contextmanager
def _lengths() -> Iterator[None]:
    try:
        yield
    except GitHubError as error:
        if error.status == 422 and "too long" in error.detail.lower():
            raise _too_long() from error
        raise


def _too_long() -> GitHubError:
    message = f"The comment is longer than the {MAX_BODY_LENGTH} characters that GitHub takes."
    return GitHubError(message, code="COMMENT_TOO_LONG", status=422)
