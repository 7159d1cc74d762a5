"""The one comment that a pull request gets: found again, updated in place, and never overwritten by an older run."""

from dataclasses import dataclass
from typing import Literal

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Run, understand
from zelda_ci.github.sticky import LONGEST_BODY, Order, is_marked, length, order_in, sealed, visible
from zelda_ci.github.thread import Comment, read_thread

Action = Literal["created", "updated", "unchanged", "outdated"]

_GONE = frozenset({"GITHUB_NOT_FOUND", "GITHUB_GONE"})


@dataclass(frozen=True)
class Published:
    """What became of a comment; `outdated` where the pull request, or a newer run's comment, has moved on."""

    url: str | None
    action: Action


def publish(api: Api, number: int, *, key: str, order: Order, body: str) -> Published:
    """Make the comment of a pull request tell `body`.

    Args:
        api: Of the repository; the token needs `pull-requests: write`.
        number: Of the pull request.
        key: Tells apart the comments of several jobs.
        order: Of the run that `body` tells of.
        body: Markdown without the hidden lines.

    Raises:
        GitHubError: `COMMENT_TOO_LONG`, `GITHUB_NOT_PERMITTED`, or what else hindered.
    """
    text = sealed(key, order, body)
    if length(text) > LONGEST_BODY:
        raise _too_long()
    return _Desk(api, number, key, order, text).publish()


@dataclass(frozen=True)
class _Desk:
    api: Api
    number: int
    key: str
    order: Order
    text: str

    def publish(self) -> Published:
        thread = read_thread(self.api, self.number)
        found = self._marked(thread.comments)
        if self.order.head_sha not in ("", thread.head_sha):
            return Published(found[0].url if found else None, "outdated")
        if found:
            return self._settle(found)
        return self._create()

    def _marked(self, comments: tuple[Comment, ...]) -> list[Comment]:
        return [each for each in comments if is_marked(each.body, self.key)]

    def _create(self) -> Published:
        """Another job may be creating its own at this moment; both look again, and both keep the older one."""
        try:
            created = self._post()
        ...

    def _settle(self, found: list[Comment]) -> Published:
        kept, *others = found
        ...
