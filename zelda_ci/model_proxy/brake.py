"""The API's rate limits, kept by all sessions and judges of a job together.

Where the API refuses a request for its rate (429), or because it is overloaded (529), whoever asks the same waits until
it may be asked again, and the request is sent anew from here: no session fails, and none makes it worse. Afterwards
fewer requests are under way at once, one more with each round that goes well.
"""

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count

import anyio

from zelda_ci.domain.numbers import duration
from zelda_ci.model_proxy.patience import MAX_WAIT_SECONDS, CallWait, Patience
from zelda_ci.model_proxy.wire import Call, Headers

REASONS = {429: "refuses requests for their rate", 529: "is overloaded"}

# Of one request, until the API is taken to be down. Refusals for the rate are bounded by time alone: where many
# machines share a limit, one may meet many.
MAX_OVERLOADS = 8

# Where the API does not say for how long to wait: doubled with each refusal in a row.
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0

# Of a pause, over which requests are spread after it, so that they do not all return in one instant.
SPREAD, MAX_SPREAD_SECONDS = 0.1, 5.0

# Requests under way from which there is no need to count them any more.
FREE_FROM = 64.0

# Of a pause that is worth a line, the first time, and while refusals go on.
NOTICE_SECONDS, MORE_NOTICE_SECONDS = 1.0, 10.0

# A header that is longer holds no time.
MAX_HEADER_LENGTH = 64

LIMITS = "anthropic-ratelimit-"

# `claude-sonnet-5-5` and `us.anthropic.claude-3-5-sonnet-…` share one limit; other names stand for themselves.
_FAMILY = re.compile(r"claude-(?:\d+-)*([a-z]+)")


def family(model: str) -> str:
    """The models that share a limit with this one: `sonnet`, or the whole name."""
    match = _FAMILY.search(model)
    return match[1] if match else model


@dataclass(frozen=True)
class Throttle:
    """What a refusal says."""

    status: int
    seconds: float | None
    """For which to wait; nothing where it does not say."""
    is_for_model: bool
    """Whether it concerns the model alone."""

    @classmethod
    def of(cls, status: int, headers: Headers, now: datetime) -> "Throttle | None":
        """Read it; nothing for any other answer, and for a refusal that is to last."""
        named = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in headers}
        if status not in REASONS or named.get("x-should-retry") == "false":
            return None
        has_limits = any(name.startswith(LIMITS) for name in named)
        # Whose limit it is, the API says by the headers of its limits, which each model has for itself. Capacity is a
        # model's, too: Claude Code itself turns to another one.
        return cls(status, _said_seconds(named, now), has_limits or status == 529)


def _said_seconds(named: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, by the header that says it best."""
    # Against the server's own clock: ours may differ.
    now = _date(named.get("date", "")) or now
    value = named.get("retry-after", "")
    milliseconds, seconds = _number(named.get("retry-after-ms", "")), _number(value)
    if milliseconds is not None:
        return milliseconds / 1000
    if seconds is not None:
        return seconds
    if date := _date(value):
        return max(0.0, (date - now).total_seconds())
    return _until_reset(named, now)


def _until_reset(named: Mapping[str, str], now: datetime) -> float | None:
    """Until all limits of which nothing is left begin anew; or the first, where none says so."""
    resets: dict[bool, list[float]] = {True: [], False: []}
    for name, value in named.items():
        if not (name.startswith(LIMITS) and name.endswith("-reset")):
            continue
        if date := _date(value, datetime.fromisoformat, _since_1970):
            remaining = _number(named.get(f"{name.removesuffix('-reset')}-remaining", ""))
            resets[remaining == 0].append(max(0.0, (date - now).total_seconds()))
    return max(resets[True]) if resets[True] else min(resets[False], default=None)


def _number(value: str) -> float | None:
    """Seconds, if it is a number of them that makes sense."""
    try:
        number = float(value[: MAX_HEADER_LENGTH + 1]) if len(value) <= MAX_HEADER_LENGTH else math.nan
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def _date(value: str, *readers: Callable[[str], datetime]) -> datetime | None:
    """A moment, as HTTP spells it or one of the readers does."""
    if not value or len(value) > MAX_HEADER_LENGTH:
        return None
    for read in (parsedate_to_datetime, *readers):
        try:
            date = read(value)
        except (ValueError, TypeError, IndexError, OverflowError, OSError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def _since_1970(value: str) -> datetime:
    """Limits of subscriptions are spelled like this."""
    return datetime.fromtimestamp(float(value), UTC)


class Brake:
    """What is known of one limit of the API's. Times are seconds of any clock that never goes back.

    After a refusal half as many requests may be under way as were; with every answer their number grows, by one for as
    many answers as it is.
    """

    def __init__(self) -> None:
        self.active = 0
        """Requests that the API has."""
        self.streak = 0
        """Refusals in a row, those of requests that were under way together counted once."""
        self._window = math.inf
        self._released_at = self._engaged_at = -math.inf
        self._spread = 0.0

    def engage(self, now: float, began: float, said: float | None) -> float | None:
        """A request that was sent at `began` was refused.

        Returns:
            The pause; nothing where the request was under way at an earlier refusal, which has told the same.
        """
        is_news = began >= self._engaged_at
        if is_news:
            self.streak += 1
            self._window = max(1.0, min(self._window, self.active) / 2)
            self._engaged_at = now
        pause = self._pause(said)
        self._released_at = max(self._released_at, now + pause)
        self._spread = min(MAX_SPREAD_SECONDS, SPREAD * (self._released_at - now))
        return pause if is_news else None

    def _pause(self, said: float | None) -> float:
        backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.streak - 1, 30))
        if said is None:
            return backoff
        # Who says 0 again and again does not mean it.
        return said if self.streak <= 1 else max(said, backoff)

    def ease(self, began: float) -> None:
        """A request that was sent at `began` is being answered."""
        if began >= self._engaged_at:
            self.streak = 0
            self._window += 1 / self._window
            if self._window >= FREE_FROM:
                self._window = math.inf

    def delay(self, now: float, luck: float) -> float:
        """Seconds until a request may be sent, by its place from 0 to 1 in the spread."""
        return max(0.0, self._released_at + luck * self._spread - now)

    @property
    def has_room(self) -> bool:
        """Whether one more may be under way."""
        return self.active < int(min(self._window, FREE_FROM)) or self._window == math.inf


class TooLongError(Exception):
    """A request would have to wait for longer than its run may."""


class SpentError(Exception):
    """While a request waited, its run has spent its budget."""


@dataclass(eq=False)
class QueuedCall:
    """One request's way past the brakes; it keeps its place when it is refused."""

    call: Call
    brakes: tuple[Brake, ...]
    number: int
    luck: float
    admitted: anyio.Event = field(default_factory=anyio.Event)
    attempts: int = 0
    began: float = 0.0

    @property
    def wait(self) -> CallWait:
        """How long it waited."""
        return self.call.wait

    @property
    def run(self) -> Patience:
        """Of whom it is a request."""
        return self.call.wait.patience

    def delay(self, now: float) -> float:
        """Seconds until none of the brakes holds it; one that is full may do so longer."""
        return max(brake.delay(now, self.luck) for brake in self.brakes)

    def may_go(self, now: float) -> bool:
        """Whether it may be sent."""
        return all(brake.has_room for brake in self.brakes) and not self.delay(now)


class RequestQueue:
    """All requests for one API and one set of its limits: who may ask now, and who waits."""

    def __init__(self, name: str, notify: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._name = name
        self._notify = notify
        self._clock = clock
        self._whole = Brake()
        self._families: dict[str, Brake] = defaultdict(Brake)
        self._waiting: list[QueuedCall] = []
        self._active: Counter[Patience] = Counter()
        self._numbers = count()

    def queue(self, call: Call) -> QueuedCall:
        """The way of a request that comes now."""
        brakes = (self._whole, self._families[family(str(call.body.get("model", "")))])
        return QueuedCall(call, brakes, next(self._numbers), random.random())  # noqa: S311 - scatter, no secret

    async def enter(self, queued: QueuedCall) -> None:
        """Wait until the request may be sent; whoever enters has to leave.

        Raises:
            TooLongError: That would take longer than its run may wait.
            SpentError: There is no money for it any more.
        """
        self.stand(queued)
        try:
            if not queued.admitted.is_set():
                with queued.wait.pause():
                    await self._wait(queued)
        except BaseException:
            if queued.admitted.is_set():
                self.leave(queued)
            raise
        finally:
            if queued in self._waiting:
                self._waiting.remove(queued)

    def stand(self, queued: QueuedCall) -> None:
        """Have a request wait for its turn, unless it is its turn now."""
        queued.admitted = anyio.Event()
        self._waiting.append(queued)
        self.admit()

    async def _wait(self, queued: QueuedCall) -> None:
        while not queued.admitted.is_set():
            delay, left = queued.delay(self._clock()), queued.run.left
            if delay > left or not left:
                raise TooLongError(
                    f"{self._name} limits requests: this one would wait for longer than the "
                    f"{duration(queued.run.max_seconds)} that one run may"
                )
            # Where a brake is only full, whoever leaves it wakes the next.
            with anyio.move_on_after(min(delay or left, left)):
                await queued.admitted.wait()
            self.admit()
        if queued.run.is_spent():
            raise SpentError

    def admit(self) -> None:
        """Let all go that may: of whom the API has the fewest requests first, so that no run keeps the others away."""
        now = self._clock()
        while free := [queued for queued in self._waiting if queued.may_go(now)]:
            queued = min(free, key=lambda queued: (self._active[queued.run], queued.number))
            self._waiting.remove(queued)
            queued.began = now
            queued.attempts += 1
            self._active[queued.run] += 1
            for brake in queued.brakes:
                brake.active += 1
            queued.admitted.set()

    def leave(self, queued: QueuedCall) -> None:
        """The answer to a request is over, or there is none."""
        self._active -= Counter((queued.run,))
        for brake in queued.brakes:
            brake.active -= 1
        self.admit()

    def ease(self, queued: QueuedCall) -> None:
        """A request is being answered."""
        for brake in queued.brakes:
            brake.ease(queued.began)
        self.admit()

    def throttle(self, queued: QueuedCall, throttle: Throttle) -> bool:
        """Take note of a refusal; the value is whether the request shall be sent again, after it has waited."""
        whole, of_family = queued.brakes
        # Who would have to wait for so long hears it from the API itself: a wrong header would stop everybody.
        if throttle.seconds is not None and throttle.seconds > MAX_WAIT_SECONDS:
            return False
        brake = of_family if throttle.is_for_model else whole
        pause = brake.engage(self._clock(), queued.began, throttle.seconds)
        if pause is not None:
            self._tell(brake, throttle, pause, family(str(queued.call.body.get("model", ""))))
        is_down = throttle.status == 529 and queued.attempts >= MAX_OVERLOADS
        if is_down or queued.delay(self._clock()) > queued.run.left:
            return False
        queued.run.throttled += 1
        return True

    def _tell(self, brake: Brake, throttle: Throttle, pause: float, name: str) -> None:
        if pause >= (NOTICE_SECONDS if brake.streak == 1 else MORE_NOTICE_SECONDS):
            # Names of models may be a session's own.
            whose = f"all requests for {name} models" if throttle.is_for_model and name.isalpha() else "all requests"
            why = f"{self._name} {REASONS[throttle.status]} (HTTP {throttle.status})"
            self._notify(f"{why}: {whose} wait for {duration(pause)}")


class Brakes:
    """The brakes of one job, shared by all proxies of it: sessions and judges may have one limit.

    Args:
        notify: Is told of each pause, once.
        clock: Seconds that never go back.
    """

    def __init__(
        self, notify: Callable[[str], None] = lambda _: None, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        self._notify = notify
        self._clock = clock
        self._queues: dict[Hashable, RequestQueue] = {}

    def queue(self, upstream: Hashable, name: str, call: Call) -> RequestQueue:
        """The queue for a request; counts of tokens have limits of their own."""
        key = upstream, call.counts_tokens
        if key not in self._queues:
            self._queues[key] = RequestQueue(name, self._notify, self._clock)
        return self._queues[key]


@contextmanager
def leaving(queue: RequestQueue, queued: QueuedCall) -> Iterator[None]:
    """For as long as the API has a request that has entered."""
    try:
        yield
    finally:
        queue.leave(queued)
