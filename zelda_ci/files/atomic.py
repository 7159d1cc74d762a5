"""Files that appear whole or not at all, and what to do when they cannot."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zelda_ci import ownership
from zelda_ci.errors import StorageError

TEMPORARY = ".*.tmp"
"""Pattern of files that a killed process may leave behind."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP}


def write_whole(target: Path, chunks: Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file; readers see the old one or the new one, never half of either.

    Args:
        target: The file; its folder exists.
        chunks: Its content, held in memory one chunk at a time.
        durable: Whether it must survive a loss of power; a killed process harms it in no case.

    Raises:
        StorageError: It could not be written, and is as it was before.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    with storage_errors(target):
        try:
            _write(temporary, chunks, durable=durable)
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        if durable:
            _sync_folder(target.parent)


def read_file(path: Path | str, most: int | None = None) -> bytes:
    """A regular file, at most so many bytes of it; nothing is opened that could block.

    Raises:
        StorageError: It cannot be read, or is larger.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode) and (most is None or status.st_size <= most):
                return b"".join(iter(lambda: os.read(handle, status.st_size + 1), b""))
        finally:
            os.close(handle)
    except OSError as problem:
        raise StorageError(f"{path} cannot be read: {problem.strerror}.", code="STORAGE_UNREADABLE") from problem
    raise StorageError(f"{path} is no regular file, or too large.", code="STORAGE_UNREADABLE")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Translate what the operating system says of `path` into what the user can do."""
    try:
        yield
    except OSError as problem:
        raise _explained(problem, path) from problem


def _explained(problem: OSError, path: Path) -> StorageError:
    match problem.errno:
        case code if code in _FULL:
            hint = "Free some space and start zelda again: what was captured is saved and becomes a result."
            return StorageError(f"There is no space left to write {path}.", hint=hint, code="STORAGE_FULL")
        case code if code in _FORBIDDEN:
            hint = "Make its folder writable, or set resultsDir in zelda.config.yaml to one that is."
            return StorageError(f"{path} may not be written: {problem.strerror}.", hint=hint, code="STORAGE_FORBIDDEN")
        case code if code in _IN_THE_WAY:
            hint = "Move away what is in its place, or set resultsDir in zelda.config.yaml to another folder."
            return StorageError(f"{path} cannot be made: {problem.strerror}.", hint=hint, code="STORAGE_IN_THE_WAY")
        case _:
            return StorageError(f"{path} could not be written: {problem.strerror or problem}.")


def _write(temporary: Path, chunks: Iterable[bytes], *, durable: bool) -> None:
    # Not a private temporary file: results are read by other users too, as the umask allows.
    with temporary.open("xb") as file:
        ownership.hand_over(file.fileno(), temporary.parent)
        file.writelines(chunks)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some file systems cannot sync a folder; the file itself is safe by then.
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
