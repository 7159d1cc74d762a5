"""How much the proxy takes: of one request or answer, of all that one run has under way, and of all runs together."""

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, Headers, OverLimitError, Sink

MAX_RECORDING_BYTES = 256 << 20

# What a value of JSON costs as an object of Python, however short it is: an empty list has two bytes of text.
VALUE_BYTES = 64

MIB = 1 << 20
MINUTE = 60.0

# Large requests that are read at a time, of one run and of all: each takes a moment, and a few times its size.
MAX_READING_OF_A_RUN, MAX_READING = 1, 2


@dataclass(frozen=True)
class Limits:
    """Bytes and seconds; the defaults are far beyond what Claude Code and the API do."""

    request_bytes: int = 64 * MIB
    """Twice what the API takes."""
    answer_bytes: int = 64 * MIB
    """Three times the longest stream: 128,000 tokens, each in an event of its own."""
    error_bytes: int = MIB
    run_bytes: int = 384 * MIB
    """In memory for one run's requests and answers: one of the largest requests with as many values as it can have."""
    total_bytes: int = 768 * MIB
    """In memory for all runs, so that one of them cannot have it all."""
    recording_bytes: int = MAX_RECORDING_BYTES
    request_seconds: float = 120.0
    """For a request to arrive in full, from a process on the same machine."""
    connect_seconds: float = 10.0
    silence_seconds: float = 600.0
    """Without a byte from the API; Claude Code's own patience is shorter."""
    answer_seconds: float = 3600.0
    """For an answer to arrive in full: 128,000 tokens at 40 a second are 53 minutes."""


class RefusedHereError(Exception):
    """The proxy does not take a request; what is told instead of an answer."""

    def __init__(self, status: int, kind: str, message: str, headers: Headers) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.headers = status, kind, message, headers


def refused_for_good(status: int, kind: str, message: str) -> RefusedHereError:
    """A refusal after which the connection is closed: the rest of the request is not read."""
    return RefusedHereError(status, kind, message, [(b"connection", b"close"), *DO_NOT_RETRY])


class MemoryLimit:
    """Bytes that are held, up to a limit, as a part of a larger one's."""

    def __init__(self, limit: int, whose: str, larger: "MemoryLimit | None" = None) -> None:
        self._limit = limit
        self._whose = whose
        self._larger = larger
        self.held = 0

    @contextmanager
    def share(self) -> Iterator["LimitShare"]:
        """A share that grows, and is given back as a whole."""
        share = LimitShare(self)
        try:
            yield share
        finally:
            self._add(-share.held)

    def missing(self, count: int, own: int) -> RefusedHereError | None:
        """Why there is no room for so many more bytes, where `own` are held by whoever wants them."""
        room = f"{in_mib(self._limit)} in memory for {self._whose}"
        if own + count > self._limit:
            message = f"this takes more than Zelda's model proxy has: {room}"
            return refused_for_good(413, "request_too_large", message)
        if self.held + count > self._limit:
            message = f"Zelda's model proxy is full: it has {room}, and other requests hold them"
            return RefusedHereError(503, "overloaded_error", message, [(b"connection", b"close")])
        return self._larger.missing(count, own) if self._larger else None

    def _add(self, count: int) -> None:
        self.held += count
        if self._larger:
            self._larger._add(count)  # noqa: SLF001 - another of this class


class RateLimit:
    """So many requests a minute."""

    def __init__(self, most: int) -> None:
        self._times: deque[float] = deque(maxlen=most)

    def count(self) -> None:
        """One more.

        Raises:
            RefusedHereError: There were too many; it says for how long to wait.
        """
        now = time.monotonic()
        if len(self._times) == self._times.maxlen and (remaining := self._times[0] + MINUTE - now) > 0:
            message = f"Zelda's model proxy takes {self._times.maxlen} requests a minute from one run"
            raise RefusedHereError(429, "rate_limit_error", message, [(b"retry-after", b"%d" % math.ceil(remaining))])
        self._times.append(now)


class LimitShare:
    """What one request or answer holds."""

    def __init__(self, memory: MemoryLimit) -> None:
        self._memory = memory
        self.held = 0

    def grow(self, count: int) -> None:
        """Hold more.

        Raises:
            RefusedHereError: There is no room, now or at all.
        """
        if refusal := self._memory.missing(count, self.held):
            raise refusal
        self._memory._add(count)  # noqa: SLF001 - the other half of this class
        self.held += count


class Bounded:
    """A sink that takes no more of an answer than the limits say."""

    def __init__(self, sink: Sink, limits: Limits, share: LimitShare, *, keeps: bool) -> None:
        self._sink = sink
        self._most = limits.answer_bytes
        self._share = share
        self._keeps = keeps
        """Whether what passes is held until the answer has ended."""
        self._size = 0
        self._is_blank = True
        """Whether nothing has come that tells what the answer is."""

    async def start(self, status: int, headers: Headers) -> None:
        """Status and headers; a length that is announced is believed."""
        length = dict(headers).get(b"content-length", b"")
        # Fifteen digits are more than any limit; Python takes long over numbers of a million digits.
        self._check(int(length[:15]) if length.isdigit() else 0)
        await self._sink.start(status, headers)

    async def chunk(self, data: bytes) -> None:
        """The next bytes of the body."""
        # A stream is read event by event, an object is metered as a whole.
        self._keeps = self._keeps or (self._is_blank and wire.begins_object(data))
        self._is_blank = self._is_blank and data.isspace()
        self._size += len(data)
        self._check(self._size)
        if self._keeps:
            try:
                self._share.grow(len(data))
            except RefusedHereError as exc:
                raise OverLimitError(exc.message) from exc
        await self._sink.chunk(data)

    def _check(self, size: int) -> None:
        if size > self._most:
            raise OverLimitError(f"The API's answer is larger than the {in_mib(self._most)} that Zelda passes on")


def in_mib(count: int) -> str:
    """A number of bytes for people."""
    return f"{count // MIB} MiB" if count >= MIB and count % MIB == 0 else f"{count} bytes"
