"""A regular tick in a thread of its own, for what must be shown while nothing happens."""

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType


class Ticker:
    """Calls `tick` every so many seconds while it is entered; a screen that has gone ends it quietly."""

    def __init__(self, seconds: float, tick: Callable[[], None]) -> None:
        self._seconds = seconds
        self._tick = tick
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="zelda-ticker", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError, ValueError):
            while not self._over.wait(self._seconds):
                self._tick()
