"""The one comment that a job keeps: found again, updated in place, and never overwritten by an older run."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.comments import (
    MAX_BODY_LENGTH,
    Comment,
    CommentOrder,
    Thread,
    comment_in,
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
class Published:
    """What became of a comment.

    `outdated` where the pull request has moved on, or a newer run was there first; `taken` where another job of the
    same run has written it.
    """

    url: str | None
    action: Action


def publish_comment(
    api: Api, number: int, *, key: str, order: CommentOrder, body: str, once: bool = False
) -> Published:
    """Make the comment of a pull request tell `body`.

    Args:
        api: Of the repository; the token needs `pull-requests: write`.
        number: Of the pull request.
        key: Tells apart the comments of several jobs.
        order: Of the run that `body` tells of.
        body: Markdown without the hidden lines.
        once: Whether only another job with the same key can have told of this very attempt.

    Raises:
        GitHubError: `COMMENT_TOO_LONG`, `GITHUB_NOT_PERMITTED`, or what else hindered.
    """
    text = sealed(key, order, body)
    if length(text) > MAX_BODY_LENGTH:
        raise _too_long()
    return _Draft(api, number, key, order, text, once=once).publish()


@dataclass(frozen=True)
class _Draft:
    api: Api
    number: int
    key: str
    order: CommentOrder
    text: str
    once: bool

    def publish(self) -> Published:
        thread = self._thread()
        ours = thread.marked(self.key)
        # The pull request has a newer commit, whose own run will say what there is to say.
        if self.order.head_sha not in ("", thread.head_sha):
            return Published(next((comment.url for comment in ours), None), "outdated")
        return self._reconcile(ours) if ours else self._create()

    def _create(self) -> Published:
        # Another job may do so at this moment: look again, since all see the same comments and all keep the oldest.
        created = self._post_once(self.text)
        ours = self._thread().marked(self.key)
        by_id = {comment.id: comment for comment in (*ours, *created)}
        published = self._reconcile([by_id[number] for number in sorted(by_id)], created)
        return replace(published, action="created") if published.action == "unchanged" else published

    def _post_once(self, text: str) -> list[Comment]:
        """What was created, if anything had to be."""
        try:
            return [self._post(text)]
        except GitHubError as error:
            if error.code != "GITHUB_ANSWER_LOST":
                raise
        # A request whose answer was lost may have been carried out.
        return [] if self._thread().marked(self.key) else [self._post(text)]

    def _reconcile(self, comments: list[Comment], created: Sequence[Comment] = ()) -> Published:
        """Tell it in the oldest comment, unless one of them tells of a newer run, or another job has written it."""
        oldest, *others = comments
        if self._is_beaten(comments):
            # Only those of this very run: what others have written is not ours to judge.
            self._remove(other for other in others if self._is_of_this_attempt(other))
            return Published(oldest.url, "outdated")
        if self._is_taken(oldest, created):
            self._remove(other for other in others if other in created)
            return Published(oldest.url, "taken")
        try:
            action = self._write(oldest)
        except GitHubError as error:
            if error.code not in _GONE:
                raise
            return self._reconcile(others, created) if others else self._create()
        self._remove(others)
        return Published(oldest.url, action)

    def _is_taken(self, comment: Comment, created: Sequence[Comment]) -> bool:
        """Whether another job with our key has told of this attempt, as the jobs of a matrix would."""
        is_ours = comment in created or visible_text(comment.body) == visible_text(self.text)
        return self.once and not is_ours and self._is_of_this_attempt(comment)

    def _is_of_this_attempt(self, comment: Comment) -> bool:
        told = order_in(comment.body)
        return told is not None and replace(told, made_at=self.order.made_at) == self.order

    def _is_beaten(self, comments: list[Comment]) -> bool:
        claimed = {order for comment in comments if (order := order_in(comment.body))}
        # Nobody makes results in the future: who says so wants to be the last for ever.
        past = (order for order in claimed if order.made_at <= time.time())
        return any(order.is_after(self.order) and self._exists(order) for order in past)

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

    def _thread(self) -> Thread:
        return read_thread(self.api, self.number)

    def _post(self, text: str) -> Comment:
        with _lengths():
            return comment_in(self.api.post(f"issues/{self.number}/comments", {"body": text}))

    def _write(self, comment: Comment) -> Action:
        if visible_text(comment.body) == visible_text(self.text):
            return "unchanged"
        with _lengths():
            self.api.patch(f"issues/comments/{comment.id}", {"body": self.text})
        return "updated"

    def _remove(self, comments: Iterable[Comment]) -> None:
        for comment in comments:
            # A comment too many is a blemish, no failure.
            with suppress(GitHubError):
                self.api.delete(f"issues/comments/{comment.id}")


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
