"""How long the requests of a run wait for the API's rate limits, and the clocks of the run, which stand still then."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

# Of one run, in all. The API's own limits are counted by the minute.
MAX_WAIT_SECONDS = 900.0


class Patience:
    """One run's. Its time limits stand still while any of its requests waits: waiting is none of its doing.

    Args:
        max_seconds: How long it may wait in all; at 0 every refusal is passed on.
        header_seconds: How long the API may take for the head of an answer.
        is_spent: Whether the run may ask nothing more.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        max_seconds: float = MAX_WAIT_SECONDS,
        header_seconds: float = math.inf,
        is_spent: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_seconds = max_seconds
        self.header_seconds = header_seconds
        self.is_spent = is_spent
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
    def pause(self) -> Iterator[None]:
        """One of its requests waits."""
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


@dataclass
class CallWait:
    """How long one request has waited, on its way through the proxy."""

    patience: Patience = field(default_factory=Patience)
    seconds: float = 0.0
    is_with_api: bool = True
    """Whether it is past the waiting, so that the API may ask a price for it."""

    @contextmanager
    def pause(self) -> Iterator[None]:
        """It waits; where it is given up meanwhile, the API does not have it."""
        began, self.is_with_api = time.monotonic(), False
        try:
            with self.patience.pause():
                yield
        finally:
            self.seconds += time.monotonic() - began
        self.is_with_api = True
