"""Temporary folders with a lock, by which those of processes that were killed are found and removed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from zelda_ci.files import locks

PREFIX = "zelda-temp-"
# Where the usual place makes the path of a socket too long.
SHORT = "/tmp"  # noqa: S108 - the folders are private


@contextmanager
def folder(place: str | None = None) -> Iterator[Path]:
    """Make a private folder among the system's temporary ones, or in another place; on leaving it is gone."""
    with ExitStack() as stack:
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            with suppress(BlockingIOError, FileNotFoundError):  # a sweep took it for a dead one, before the lock
                stack.enter_context(_held(path))
                break
        yield path


def sweep() -> None:
    """Remove what processes have left that were killed; the living hold their locks."""
    for place in {tempfile.gettempdir(), SHORT}:
        for path in Path(place).glob(f"{PREFIX}*"):
            with suppress(OSError), _held(path):
                pass


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Lock a folder, and remove it in the end; raises OSError where it is locked, gone, a link, or not to be read."""
    with ExitStack() as stack:
        stack.callback(os.close, number := os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        locks.lock_open(number)
        path.lstat()
        stack.callback(_remove, path)
        yield


def _remove(path: Path) -> None:
    try:
        path.rmdir()  # a moment, where a server on the event loop has left it empty
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
