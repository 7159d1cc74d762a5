"""Where the output of a child process goes: sinks that hold no more than they were told to."""

from collections.abc import Callable
from typing import IO

from zelda_ci.redact import Redactor, SafeText, joined

Sink = Callable[[bytes], bool]
"""Takes a chunk of output; false means that enough was read and the process may be ended."""

CHUNK = 1 << 16

SEAM = 8192
"""Characters dropped on each side of a gap: longer than any secret that the gap could have cut in two."""


class Limited:
    """A file that takes bytes up to a limit."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.written = 0
        self.truncated = False
        self._file = file
        self._limit = limit

    def take(self, chunk: bytes) -> bool:
        """Take what fits; false once that is not all."""
        fitting = chunk[: self._limit - self.written]
        self._file.write(fitting)
        self.written += len(fitting)
        self.truncated = self.truncated or len(fitting) < len(chunk)
        return not self.truncated


class Ends:
    """Head and tail of a stream of any length."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._room = keep // 2 + SEAM
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def truncated(self) -> bool:
        """Whether something of the middle is missing."""
        return self.total > 2 * self._room

    def take(self, chunk: bytes) -> bool:
        """Take all, keep the ends."""
        self.total += len(chunk)
        fitting = self._room - len(self._head)
        self._head += chunk[:fitting]
        self._tail += chunk[fitting:]
        if len(self._tail) > 2 * self._room + CHUNK:
            del self._tail[: -self._room]
        return True

    def gap(self, redact: Redactor) -> SafeText | None:
        """The line that stands for what was not kept; none where nothing is missing."""
        return redact(f"[... {self.total} bytes in all, the middle is left out ...]") if self.truncated else None

    def text(self, redact: Redactor) -> SafeText:
        """What was kept. Where there is a gap, its edges go: they may hold half of a secret, which no mask knows."""
        gap = self.gap(redact)
        if gap is None:
            return redact((self._head + self._tail).decode("utf-8", "replace"))
        head = redact(self._head.decode("utf-8", "replace"))[:-SEAM]
        tail = redact(self._tail[-self._room :].decode("utf-8", "replace"))[SEAM:]
        return joined("\n", (redact(head), gap, redact(tail)))
