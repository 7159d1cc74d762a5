"""The API's rate limits, kept by all sessions and judges of a job together.

Where the API refuses a request for its rate (429), or because it is overloaded (529), all requests to it pause until it
may be asked again, and the refused one is sent anew from here: no session fails, and none makes it worse.
"""

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import anyio

from zelda_ci.domain.numbers import duration
from zelda_ci.model_proxy.wire import Headers

# Of one run, in all. The API's own limits are counted by the minute.
MAX_WAIT_SECONDS = 900.0

REASONS = {429: "refuses requests for their rate", 529: "is overloaded"}

# Attempts of one request, until the API is taken to be down. Refusals for the rate are bounded by time alone: where
# many machines share a limit, one may meet many.
MAX_OVERLOADS = 8

# Where the API does not say for how long to wait: doubled with each refusal in a row.
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0

# Share of a pause over which requests return after it, so that they do not all come in one instant.
JITTER, MAX_JITTER_SECONDS = 0.2, 10.0

# Length of a pause that is worth a line.
NOTICE_SECONDS = 1.0

RateLimits = defaultdict[Hashable, "UpstreamPause"]
"""The pauses of one job, by upstream: shared by all proxies, since sessions and judges may have one limit."""


class Throttled(Exception):  # noqa: N818 - an answer, and no error of ours
    """The API's refusal of a request that may be sent again; nothing was passed on to the session."""

    def __init__(self, address: str, status: int, headers: Headers, body: bytes) -> None:
        super().__init__(f"{address} {REASONS[status]} (HTTP {status})")
        self.status, self.headers, self.body = status, headers, body
        self.seconds = _seconds(headers)
        """For which the API asks to wait; None where it does not say."""


def is_throttled(status: int, headers: Headers) -> bool:
    """Whether an answer refuses the request for now, and not for good."""
    return status in REASONS and (b"x-should-retry", b"false") not in headers


def _seconds(headers: Headers) -> float | None:
    try:
        seconds = float(dict(headers)[b"retry-after"])
    except (KeyError, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None


class RateLimitWait:
    """How long a run waits for rate limits. Its time limits stand still meanwhile: waiting is none of its doing.

    Args:
        max_seconds: How long it may wait in all; at 0 every refusal is passed on.
        clock: Seconds that never go back.
    """

    def __init__(self, max_seconds: float = MAX_WAIT_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_seconds = max_seconds
        self.throttled = 0
        """Refusals after which a request was sent again, without the session's knowledge."""
        self._clock = clock
        self._waiting = 0
        self._since = 0.0
        self._before = 0.0
        self._remaining: dict[anyio.CancelScope, float] = {}
        """Time limits of the run, with what was left of them when the waiting began."""

    @property
    def seconds(self) -> float:
        """In which at least one request waited."""
        return self._before + (self._clock() - self._since if self._waiting else 0.0)

    @property
    def left(self) -> float:
        """Seconds that it may still wait."""
        return max(0.0, self.max_seconds - self.seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """One of the run's requests waits."""
        if not self._waiting:
            self._since = self._clock()
            for scope in self._remaining:
                self._halt(scope)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._before += self._clock() - self._since
                for scope, remaining in self._remaining.items():
                    scope.deadline = anyio.current_time() + remaining

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Like `anyio.move_on_after`, without the time in which the run waits; in the proxy's own event loop only."""
        with anyio.move_on_after(seconds) as scope:
            self._remaining[scope] = seconds
            if self._waiting:
                self._halt(scope)
            try:
                yield scope
            finally:
                del self._remaining[scope]

    def _halt(self, scope: anyio.CancelScope) -> None:
        self._remaining[scope] = scope.deadline - anyio.current_time()
        # The waiting itself has a limit.
        scope.deadline = math.inf


class TooLongError(Exception):
    """A request would have to wait for longer than its run may."""


class UpstreamPause:
    """The pause of all requests for one API and one key.

    Args:
        notify: Called once for each pause with a sentence about it.
        clock: Seconds that never go back.
    """

    def __init__(
        self, notify: Callable[[str], None] = lambda _: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._notify = notify
        self._clock = clock
        self._ends_at = self._refused_at = -math.inf
        self._in_a_row = 0
        """Refusals; those of requests that were under way together count once."""

    async def wait(self, run: RateLimitWait) -> float:
        """Wait for the end of the pause; the value is when.

        Raises:
            TooLongError: That would take longer than the run may wait.
        """
        if self._ends_at > self._clock():
            with run.waiting():
                while (seconds := self._ends_at - self._clock()) > 0:
                    if seconds > run.left:
                        most = duration(run.max_seconds)
                        why = f"this request would wait for longer than the {most} that one run may"
                        raise TooLongError(f"The API limits requests: {why}")
                    jitter = random.random() * min(MAX_JITTER_SECONDS, JITTER * seconds)  # noqa: S311 - no secret
                    await anyio.sleep(min(seconds + jitter, run.left))
        return self._clock()

    def refused(self, refusal: Throttled, run: RateLimitWait, attempts: int, sent_at: float) -> bool:
        """Pause for a refusal of a request; whether to send it again after that."""
        now = self._clock()
        # A request that would have to wait for so long gets the refusal itself: a wrong header would stop all others.
        if refusal.seconds is not None and refusal.seconds > MAX_WAIT_SECONDS:
            return False
        is_news = sent_at >= self._refused_at
        if is_news:
            self._in_a_row, self._refused_at = self._in_a_row + 1, now
        backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._in_a_row - 1, 30))
        # An API that says 0 again and again does not mean it.
        least = backoff if refusal.seconds is None or self._in_a_row > 1 else 0.0
        seconds = max(refusal.seconds or 0.0, least)
        self._ends_at = max(self._ends_at, now + seconds)
        if is_news and seconds >= NOTICE_SECONDS:
            self._notify(f"{refusal}: all requests wait for {duration(seconds)}")
        is_down = refusal.status == 529 and attempts >= MAX_OVERLOADS
        if is_down or self._ends_at - now > run.left:
            return False
        run.throttled += 1
        return True

    def answered(self, sent_at: float) -> None:
        """Note that a request was answered."""
        if sent_at >= self._refused_at:
            self._in_a_row = 0
