"""Locks that the kernel releases when their holder dies, however it dies and whatever namespace it lives in."""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from pathlib import Path

import anyio.from_thread

from zelda_ci.errors import LockError
from zelda_ci.files import untrusted

POLL_SECONDS = 0.02
# For locks that are held for moments.
TIMEOUT_SECONDS = 60.0
# After so much waiting the user wants to know what for.
NOTICE_SECONDS = 2.0

# Is given a sentence that says what is waited for.
on_wait: ContextVar[Callable[[str], None]] = ContextVar("on_wait", default=lambda _: None)


def try_lock(path: Path, *, shared: bool = False, mode: int = 0o600) -> int | None:
    """Take a lock that is free, and return the descriptor that holds it; raises `LockError` where no file lies."""
    while True:
        with ExitStack() as unless_held:
            try:
                descriptor = untrusted.open_regular(path, os.O_RDWR | os.O_CREAT, mode)
            except OSError as error:
                if (kind := untrusted.kind_of(path)) in {None, untrusted.FILE}:
                    raise
                message = f"Zelda keeps a lock at {path}, which is {kind}, not a file."
                hint = "Move it away and start again: Zelda makes what it needs."
                raise LockError(message, hint=hint, code="LOCK_IN_THE_WAY") from error
            unless_held.callback(os.close, descriptor)
            try:
                lock_open(descriptor, shared=shared)
            except BlockingIOError:
                return None
            # Its last holder may have removed the file meanwhile: that one would keep nobody out.
            with suppress(OSError):
                if os.path.samestat(path.lstat(), os.fstat(descriptor)):
                    unless_held.pop_all()
                    return descriptor


def lock_open(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file until it is closed; raises BlockingIOError where another process has the lock."""
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def wait_for(path: Path, *, patience: float = TIMEOUT_SECONDS, mode: int = 0o600) -> int:
    """Take the lock once it is free, and return its descriptor; raises `LockError` once patience is at its end."""
    # A thread stops waiting when its task is cancelled.
    began, is_announced = time.monotonic(), False
    while (descriptor := try_lock(path, mode=mode)) is None:
        waited = time.monotonic() - began
        if waited > patience:
            message = f"{path} has been locked by another process for more than {patience:.0f} s."
            hint = f"Wait until that is done, or end it, and start again; `fuser {path}` names it."
            raise LockError(message, hint=hint, code="LOCK_HELD")
        if waited > NOTICE_SECONDS and not is_announced:
            is_announced = True
            sentence = f"waiting for another process, which holds {path}"
            try:
                anyio.from_thread.run_sync(on_wait.get(), sentence)
            except RuntimeError:  # this is the thread of the event loop, or there is none
                on_wait.get()(sentence)
        with suppress(RuntimeError):  # the same
            anyio.from_thread.check_cancelled()
        time.sleep(POLL_SECONDS)
    return descriptor
