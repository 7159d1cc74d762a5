"""An append-only file whose lock tells whether the process that writes it is alive."""

import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from zelda_ci import ownership
from zelda_ci.storage.atomic import storage_errors


class Journal:
    """Lines that survive a kill as soon as they are appended, and a lock that ends with the process.

    The lock belongs to the open file, which no child process inherits.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle: int | None = handle
        self._torn = False

    @classmethod
    def create(cls, path: Path) -> "Journal":
        """Begin a journal and lock it."""
        with storage_errors(path):
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            ownership.hand_over(handle, path.parent)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(path, handle)

    @classmethod
    def claim(cls, path: Path) -> "Journal | None":
        """Lock the journal of a dead process; nothing where there is none, or where its writer lives."""
        try:
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its writer may have finished, and removed it, between opening and locking.
            if os.fstat(handle).st_nlink:
                return cls(path, handle)
        except OSError:
            pass
        os.close(handle)
        return None

    def append(self, line: bytes) -> None:
        """Hand a line to the operating system, which keeps it if this process is killed the next moment.

        Raises:
            StorageError: It could not be written whole; the lines before it are kept.
        """
        rest = memoryview(b"\n" + line if self._torn else line)
        self._torn = True
        with storage_errors(self.path):
            while rest:
                rest = rest[os.write(self._open, rest) :]
        self._torn = False

    def lines(self) -> Iterator[bytes]:
        """All lines, even where the file was deleted meanwhile. Not to be mixed with appending."""
        with storage_errors(self.path), os.fdopen(os.dup(self._open), "rb") as file:
            file.seek(0)
            yield from file

    def is_empty(self) -> bool:
        """Whether nothing was ever appended."""
        return os.fstat(self._open).st_size == 0

    def written_at(self) -> datetime:
        """When the last line was appended."""
        return datetime.fromtimestamp(os.fstat(self._open).st_mtime, UTC)

    def close(self) -> None:
        """Let go of the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @property
    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("the journal is closed")
        return self._handle
