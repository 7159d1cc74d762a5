"""Locks that the kernel releases when their holder dies, however it dies and whatever namespace it lives in."""

import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import anyio
import anyio.from_thread

from zelda_ci.errors import LockError
from zelda_ci.files import untrusted

POLL_SECONDS = 0.02
# For locks that are held for moments.
TIMEOUT_SECONDS = 60.0

# After so much waiting somebody wants to know for whom.
NOTICE_SECONDS = 2.0

# Is given a sentence that says who is waited for.
on_wait: ContextVar[Callable[[str], None]] = ContextVar("on_wait", default=lambda _: None)


def try_lock(path: Path, *, shared: bool = False, mode: int = 0o600) -> int | None:
    """Take the lock if nobody holds it: the descriptor that holds it until it is closed, or None.

    Raises:
        LockError: Something else than a file of ours lies there.
        OSError: The file cannot be made: its folder is gone, closed or full.
    """
    while True:
        descriptor = _opened(path, mode)
        try:
            lock_open(descriptor, shared=shared)
            # Whoever held it may have removed the file meanwhile: that one would keep nobody out.
            if _lies_at(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def lock_open(descriptor: int, *, shared: bool = False) -> None:
    """Take the lock on something that is open already; it is held until that is closed.

    Raises:
        BlockingIOError: Somebody else holds it.
    """
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


@contextmanager
def held(path: Path, *, patience: float = TIMEOUT_SECONDS, mode: int = 0o600) -> Iterator[int]:
    """Hold the lock; for a thread, which leaves off waiting when the task that sent it is cancelled.

    Raises:
        LockError: As `try_lock`; or somebody else has held it for too long.
    """
    waiting = _Waiting(path, patience)
    while (descriptor := try_lock(path, mode=mode)) is None:
        waiting.go_on()
        with suppress(RuntimeError):  # no thread of an event loop
            anyio.from_thread.check_cancelled()
        time.sleep(POLL_SECONDS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@asynccontextmanager
async def locked(path: Path, *, patience: float = TIMEOUT_SECONDS) -> AsyncIterator[int]:
    """The same for a task; the wait can be cancelled."""
    waiting = _Waiting(path, patience)
    while (descriptor := try_lock(path)) is None:
        waiting.go_on()
        await anyio.sleep(POLL_SECONDS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Waiting:
    """For a lock that somebody else holds."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience, self._began, self._announced = path, patience, time.monotonic(), False

    def go_on(self) -> None:
        """Say for whom, once; give up in the end."""
        waited = time.monotonic() - self._began
        if waited > self._patience:
            raise LockError(
                f"{self._path} has been locked by {_holder(self._path)} for more than {self._patience:.0f} s.",
                hint="Wait until that is done, or end it, and start again.",
                code="LOCK_HELD",
            )
        if waited > NOTICE_SECONDS and not self._announced:
            self._announced = True
            _announce(f"waiting for {_holder(self._path)}, which holds {self._path}")


def _announce(sentence: str) -> None:
    listener = on_wait.get()
    try:
        anyio.from_thread.run_sync(listener, sentence)
    except RuntimeError:  # this is the thread of the event loop, or there is none
        listener(sentence)


def _opened(path: Path, mode: int) -> int:
    try:
        return untrusted.open_regular(path, os.O_RDWR | os.O_CREAT, mode)
    except OSError as error:
        kind = untrusted.kind_of(path)
        if kind is None:
            raise
        reason = f"cannot be opened: {error.strerror}" if kind == "a file" else f"is {kind}, not a file"
        raise _in_the_way(path, reason) from error


def _in_the_way(path: Path, reason: str) -> LockError:
    hint = "Move it away and start again: Zelda makes what it needs."
    return LockError(f"Zelda keeps a lock at {path}, which {reason}.", hint=hint, code="LOCK_IN_THE_WAY")


def _lies_at(path: Path, descriptor: int) -> bool:
    with suppress(OSError):
        there, opened = path.lstat(), os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)
    return False


def _holder(path: Path) -> str:
    """Who holds it, as the kernel knows; it does not tell of other namespaces."""
    with suppress(OSError, ValueError, IndexError):
        inode = str(path.lstat().st_ino)
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        held_here = (row for row in rows if "FLOCK" in row and "->" not in row and row[5].rpartition(":")[2] == inode)
        for pid in (row[4] for row in held_here):
            name = Path("/proc", pid, "comm").read_text().strip()
            return f"process {pid} ({name})"
    return "another process, which cannot be seen from here,"
