"""Where the proxy's socket lies: in a folder of its own, short enough for a kernel, and gone with the process."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "zelda-api-"
NAME = "s"
LONGEST_ADDRESS = 103
"""Bytes of a socket's path that every kernel takes; Linux takes four more."""

ATTEMPTS = 3


@contextmanager
def place() -> Iterator[Path | None]:
    """A path for a socket, in a folder that only this user can list; None where every such path is too long."""
    folder, number = _first_claimed()
    try:
        yield folder and folder / NAME
    finally:
        if folder and number is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(number)


def _first_claimed() -> tuple[Path | None, int | None]:
    for top in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - mkdtemp makes a private folder in it
        if len(os.fsencode(top)) + len(f"/{PREFIX}12345678/{NAME}") <= LONGEST_ADDRESS:
            _sweep(Path(top))
            for _ in range(ATTEMPTS):
                with suppress(OSError):
                    return _claimed(top)
    return None, None


def _claimed(top: str) -> tuple[Path, int]:
    """A new folder, and a lock on it that the kernel takes back when this process ends, however it ends."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=top))
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A session may run as another user, whom its token admits: those who know the name may pass. Where somebody
        # has swept the folder before it was locked, this fails.
        folder.chmod(0o711)
    except OSError:
        os.close(number)
        raise
    return folder, number


def _sweep(top: Path) -> None:
    """Remove the folders of processes that were killed; the lock of a living one cannot be taken."""
    for folder in top.glob(f"{PREFIX}*"):
        with suppress(OSError):
            number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(number).st_uid == os.geteuid():
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(number)
