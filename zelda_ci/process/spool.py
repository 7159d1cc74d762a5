"""All that a program prints, on disk, so that it is held in memory only while it is read."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

# Of a stream: as much as can be read in a few seconds.
MAX_SPOOLED_BYTES = 8 << 20


class Spool:
    """A stream in a file without a name: nobody else can open it, and it is gone with the process that holds it.

    Of a stream longer than `max_bytes`, the first half of that and the last half are kept. Where the disk is full,
    nothing is: the room is given back at once, and whoever wants to read finds `lost`.
    """

    def __init__(self, file: IO[bytes], max_bytes: int = MAX_SPOOLED_BYTES) -> None:
        self.total = 0
        self.lost = False
        self._file = file
        self._half = max_bytes // 2

    def feed(self, chunk: bytes) -> bool:
        """Take all, keep what fits."""
        try:
            for place, piece in self._places(chunk):
                _write(self._file.fileno(), piece, place)
        except OSError:
            self.lost = True
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), 0)
        self.total += len(chunk)
        return True

    def contents(self) -> list[bytes]:
        """The whole stream, or its head and its tail.

        Raises:
            OSError: The disk does not give it back.
        """
        if not self.truncated:
            return [self._piece(0, self.total)]
        half, oldest = self._half, self._half + (self.total - self._half) % self._half
        return [self._piece(0, half), self._piece(oldest, 2 * half) + self._piece(half, oldest)]

    @property
    def truncated(self) -> bool:
        """Whether something of the middle is missing."""
        return self.total > 2 * self._half

    def _piece(self, start: int, end: int) -> bytes:
        pieces = []
        while start < end and (piece := os.pread(self._file.fileno(), end - start, start)):
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)

    def _places(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Where each piece of a chunk goes: the second half of the file is written again and again."""
        at, rest = self.total, memoryview(chunk)
        while rest and not self.lost:
            if at < self._half:
                place, room = at, self._half - at
            else:
                place = self._half + (at - self._half) % self._half
                room = 2 * self._half - place
            yield place, bytes(rest[:room])
            at, rest = at + len(rest[:room]), rest[room:]


@contextmanager
def spooled(folder: Path, max_bytes: int = MAX_SPOOLED_BYTES) -> Iterator[Spool | None]:
    """A spool on the disk of a folder, as long as the block runs; none where there is no room for a file."""
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed below
    except OSError:
        yield None
        return
    with file:
        yield Spool(file, max_bytes)


def _write(descriptor: int, data: bytes, place: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, place)
        data, place = data[written:], place + written
