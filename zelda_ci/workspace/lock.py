"""Locks that the kernel releases when their holder dies, however it dies."""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

POLL_SECONDS = 0.02


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Take the lock if nobody holds it: the descriptor that holds it until it is closed, or None."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[int]:
    """Hold the lock, waiting for it in a way that can be cancelled; yields its descriptor."""
    while (descriptor := try_lock(path)) is None:  # noqa: ASYNC110  # the kernel has no event for it
        await anyio.sleep(POLL_SECONDS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
