"""What can go wrong with a request, to be scripted: each failure happens once, to the next request that it fits."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

FAKE_DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True)
class Failure:
    """A failure that waits for its request."""

    on: str
    """A pattern for `METHOD /path` with `*` and `?`; the path is the one that GitHub's documentation shows."""
    kind: Literal["answer", "hang up", "lose answer", "truncate", "slow"]
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0

    def fits(self, asked: str) -> bool:
        return fnmatchcase(asked, self.on)


def answered(status: int, body: Any = None, *, on: str = "*", headers: Mapping[str, str] | None = None) -> Failure:
    """Any answer instead of the right one; a body that is no bytes is sent as JSON."""
    told = {"message": f"scripted {status}", "documentation_url": FAKE_DOCS} if body is None else body
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    return Failure(on, "answer", status, {"content-type": "application/json", **(headers or {})}, data)


def too_many_requests(*, retry_after: int = 0, on: str = "*") -> Failure:
    """429 with Retry-After."""
    return answered(429, {"message": "Too many requests"}, on=on, headers={"retry-after": str(retry_after)})


def primary_limit(*, reset_in: float, on: str = "*") -> Failure:
    """403 because the hour's requests are used up."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time() + reset_in))}
    return answered(403, {"message": "API rate limit exceeded for installation."}, on=on, headers=headers)


def secondary_limit(*, on: str = "*") -> Failure:
    """403 because of too much at once, without a word on how long to wait."""
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    return answered(403, {"message": message}, on=on)


def hang_up(*, on: str = "*") -> Failure:
    """The connection breaks off, and nothing has happened."""
    return Failure(on, "hang up")


def lose_answer(*, on: str = "*") -> Failure:
    """What was asked for is done, and the connection breaks off before the answer."""
    return Failure(on, "lose answer")


def truncated(*, on: str = "*") -> Failure:
    """What was asked for is done, and half of the answer arrives."""
    return Failure(on, "truncate")


def slow(seconds: float, *, on: str = "*") -> Failure:
    """The answer takes its time."""
    return Failure(on, "slow", seconds=seconds)
