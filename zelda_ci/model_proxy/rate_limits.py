"""The API's rate limits, kept by all sessions and judges of a job together.

Where the API refuses a request for its rate (429), or because it is overloaded (529), all requests to it pause until it
may be asked again, and the refused one is sent anew from here: no session fails, and none makes it worse.
"""

import math
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio

from zelda_ci.domain.numbers import duration
from zelda_ci.model_proxy.patience import MAX_WAIT_SECONDS
from zelda_ci.model_proxy.wire import Call, Headers

REASONS = {429: "refuses requests for their rate", 529: "is overloaded"}

# Attempts of one request, until the API is taken to be down. Refusals for the rate are bounded by time alone: where
# many machines share a limit, one may meet many.
MAX_OVERLOADS = 8

# Where the API does not say for how long to wait: doubled with each refusal in a row.
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0

# Share of a pause over which requests return after it, so that they do not all come in one instant.
JITTER, MAX_JITTER_SECONDS = 0.2, 10.0

# Length of a pause that is worth a line, the first time, and while refusals go on.
NOTICE_SECONDS, MORE_NOTICE_SECONDS = 1.0, 10.0

# A header that is longer holds no time.
MAX_HEADER_LENGTH = 64


@dataclass(frozen=True)
class Throttle:
    """A refusal that is to pass, with the seconds for which it asks to wait, where it says so."""

    status: int
    seconds: float | None

    @classmethod
    def of(cls, status: int, headers: Headers, now: datetime) -> "Throttle | None":
        """Read it; None for any other answer, and for a refusal that is to last."""
        named = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in headers}
        if status not in REASONS or named.get("x-should-retry") == "false":
            return None
        milliseconds, value = _number(named.get("retry-after-ms", "")), named.get("retry-after", "")
        if milliseconds is not None:
            return cls(status, milliseconds / 1000)
        if (seconds := _number(value)) is not None:
            return cls(status, seconds)
        # Against the server's own clock: ours may differ.
        date, now = _date(value), _date(named.get("date", "")) or now
        return cls(status, max(0.0, (date - now).total_seconds()) if date else None)


def _number(value: str) -> float | None:
    """Seconds, if it is a number of them that makes sense."""
    try:
        number = float(value) if len(value) <= MAX_HEADER_LENGTH else math.nan
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value[:MAX_HEADER_LENGTH])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


class TooLongError(Exception):
    """A request would have to wait for longer than its run may."""


class SpentError(Exception):
    """While a request waited, its run has spent its budget."""


class UpstreamPause:
    """The pause of all requests for one API and one key. Times are seconds of any clock that never goes back."""

    def __init__(self, name: str, notify: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._name = name
        self._notify = notify
        self._clock = clock
        self._ends_at = self._refused_at = -math.inf
        self._in_a_row = 0
        """Refusals; those of requests that were under way together count once."""

    async def wait(self, call: Call) -> float:
        """Wait for the end of the pause; the value is when.

        Raises:
            TooLongError: That would take longer than the run may wait.
            SpentError: There is no money for the request any more.
        """
        run = call.wait.patience
        if self._ends_at > self._clock():
            with call.wait.pause():
                while (seconds := self._ends_at - self._clock()) > 0:
                    if seconds > run.left:
                        most = duration(run.max_seconds)
                        raise TooLongError(
                            f"{self._name} limits requests: this one would wait for longer than the {most} that one "
                            "run may"
                        )
                    jitter = random.random() * min(MAX_JITTER_SECONDS, JITTER * seconds)  # noqa: S311 - no secret
                    await anyio.sleep(min(seconds + jitter, run.left))
                if run.is_spent():
                    raise SpentError
        return self._clock()

    def refuse(self, call: Call, throttle: Throttle, attempts: int, began: float) -> bool:
        """Pause for a refusal of a request that was sent at `began`; whether to send it again after that."""
        run, now = call.wait.patience, self._clock()
        # A request that would have to wait for so long gets the refusal itself: a wrong header would stop all others.
        if throttle.seconds is not None and throttle.seconds > MAX_WAIT_SECONDS:
            return False
        is_news = began >= self._refused_at
        if is_news:
            self._in_a_row, self._refused_at = self._in_a_row + 1, now
        backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._in_a_row - 1, 30))
        # An API that says 0 again and again does not mean it.
        least = backoff if throttle.seconds is None or self._in_a_row > 1 else 0.0
        seconds = max(throttle.seconds or 0.0, least)
        self._ends_at = max(self._ends_at, now + seconds)
        if is_news and seconds >= (NOTICE_SECONDS if self._in_a_row == 1 else MORE_NOTICE_SECONDS):
            why = f"{self._name} {REASONS[throttle.status]} (HTTP {throttle.status})"
            self._notify(f"{why}: all requests wait for {duration(seconds)}")
        is_down = throttle.status == 529 and attempts >= MAX_OVERLOADS
        if is_down or self._ends_at - now > run.left:
            return False
        run.throttled += 1
        return True

    def answered(self, began: float) -> None:
        """Note that a request that was sent at `began` is being answered."""
        if began >= self._refused_at:
            self._in_a_row = 0


class RateLimits:
    """The pauses of one job, shared by all proxies of it: sessions and judges may have one limit.

    Args:
        notify: Is told of each pause, once.
        clock: Seconds that never go back.
    """

    def __init__(
        self, notify: Callable[[str], None] = lambda _: None, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        self._notify = notify
        self._clock = clock
        self._pauses: dict[Hashable, UpstreamPause] = {}

    def pause(self, upstream: Hashable, name: str, call: Call) -> UpstreamPause:
        """The pause that holds a request; counts of tokens have limits of their own."""
        key = upstream, call.counts_tokens
        if key not in self._pauses:
            self._pauses[key] = UpstreamPause(name, self._notify, self._clock)
        return self._pauses[key]
