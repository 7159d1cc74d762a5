"""The API's rate limits, kept by all sessions and judges of a job together.

Where the API refuses a request for its rate (429), or because it is overloaded (529), all requests to it pause until it
may be asked again, and the refused one is sent anew from here: no session fails, and none makes it worse.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from time import monotonic, time

import anyio

from zelda_ci.domain.numbers import duration
from zelda_ci.model_proxy.wire import ApiAnswer, RefusedHereError

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


def is_throttled(answer: ApiAnswer) -> bool:
    """Whether an answer refuses the request for now, and not for good."""
    return answer.status in REASONS and (b"x-should-retry", b"false") not in answer.headers


def asked_seconds(answer: ApiAnswer) -> float | None:
    """Return for how long a refusal asks to wait; None where it does not say."""
    asked = dict(answer.headers).get(b"retry-after", b"").decode("latin-1")
    with suppress(ValueError, OverflowError):
        seconds = max(0.0, parsedate_to_datetime(asked).timestamp() - time()) if ":" in asked else float(asked)
        return seconds if 0 <= seconds < math.inf else None
    return None


class RateLimitWait:
    """How long a run waits for rate limits, in all up to a maximum; its time limits stand still meanwhile."""

    def __init__(self, max_seconds: float = MAX_WAIT_SECONDS) -> None:
        self.max_seconds = max_seconds
        """At 0 every refusal is passed on."""
        self.refused_for: float | None = None
        """Seconds for which the API asked to wait, where that is longer than any request waits."""
        self.throttled = 0
        """Refusals after which a request was sent again, without the session's knowledge."""
        self._waiting = 0
        self._since = self._before = 0.0
        self._limits: set[anyio.CancelScope] = set()
        """Time limits of the run; while it waits, all are later by what it may still wait."""

    @property
    def seconds(self) -> float:
        """In which at least one request waited."""
        return self._before + (monotonic() - self._since if self._waiting else 0.0)

    @property
    def left(self) -> float:
        """Seconds that it may still wait."""
        return max(0.0, self.max_seconds - self.seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """One of the run's requests waits."""
        if not self._waiting:
            self._postpone(self.left)
            self._since = monotonic()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._before += monotonic() - self._since
                self._postpone(-self.left)

    def _postpone(self, seconds: float) -> None:
        for scope in self._limits:
            scope.deadline += seconds

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Like `anyio.move_on_after`, without the time in which the run waits; in the proxy's own event loop only."""
        with anyio.move_on_after(seconds + (self.left if self._waiting else 0.0)) as scope:
            self._limits.add(scope)
            try:
                yield scope
            finally:
                self._limits.remove(scope)


class UpstreamPause:
    """The pause of all requests for one API and one key; `notify` is called once for each with a sentence about it."""

    address = "the API"  # as messages name it

    def __init__(self, notify: Callable[[str], None] = lambda _: None) -> None:
        self._notify = notify
        self._ends_at = self._refused_at = -math.inf
        self._in_a_row = 0
        """Refusals; those of requests that were under way together count once."""
        self._is_down = False
        """Whether a request was given up because the API is overloaded, and none has been answered since."""

    async def wait(self, run: RateLimitWait) -> float:
        """Wait for the end of the pause, unless that would take longer than the run may wait; the value is when."""
        if self._ends_at > monotonic():
            with run.waiting():
                while (seconds := self._ends_at - monotonic()) > 0:
                    if seconds > run.left:
                        most = duration(run.max_seconds)
                        why = f"this request would wait for longer than the {most} that one run may"
                        raise RefusedHereError(429, "rate_limit_error", f"The API limits requests: {why}")
                    jitter = random.random() * min(MAX_JITTER_SECONDS, JITTER * seconds)  # noqa: S311 - no secret
                    await anyio.sleep(min(seconds + jitter, run.left))
        return monotonic()

    def refused(self, refusal: ApiAnswer, run: RateLimitWait, attempts: int, sent_at: float) -> bool:
        """Pause for a refusal of a request; whether to send it again after that."""
        now, asked = monotonic(), asked_seconds(refusal)
        # A request that would have to wait for so long gets the refusal itself: a wrong header would stop all others.
        if asked is not None and asked > MAX_WAIT_SECONDS:
            run.refused_for = asked
            return False
        is_news = sent_at >= self._refused_at
        if is_news:
            self._in_a_row, self._refused_at = self._in_a_row + 1, now
        backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._in_a_row - 1, 30))
        # An API that says 0 again and again does not mean it.
        seconds = max(asked or 0.0, backoff if asked is None or self._in_a_row > 1 else 0.0)
        self._ends_at = max(self._ends_at, now + seconds)
        if is_news and seconds >= NOTICE_SECONDS:
            reason = f"{self.address} {REASONS[refusal.status]} (HTTP {refusal.status})"
            self._notify(f"{reason}: all requests wait for {duration(seconds)}")
        is_overload = refusal.status == 529
        self._is_down |= is_overload and attempts >= MAX_OVERLOADS
        if (is_overload and self._is_down) or self._ends_at - now > run.left:
            return False
        run.throttled += 1
        return True

    def answered(self, sent_at: float) -> None:
        """Note that a request was answered."""
        if sent_at >= self._refused_at:
            self._in_a_row, self._is_down = 0, False
