"""Files that appear whole or not at all, and what to do when they cannot."""

import errno
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO

from zelda_ci.errors import StorageError
from zelda_ci.files import ownership, untrusted

# Pattern of files that a killed process may leave behind.
TEMPORARY = ".*.tmp"

# After so long its process has been killed.
_LEFT_SECONDS = 3600


def write_whole(target: Path, chunks: Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file and the folders above it, one chunk in memory at a time; readers see the old one or the new one.

    A StorageError says that it could not be written, and is as it was before; `durable` is explained at `replacing`.
    """
    with storage_errors(target):
        ownership.make_folder(target.parent)
        with replacing(target, durable=durable) as file:
            file.writelines(chunks)


@contextmanager
def replacing(target: Path, *, durable: bool = True, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `target` at the end of the block, and is gone if the block fails.

    What a killed process has left of such a file is removed.

    Args:
        target: The file; its folder exists.
        durable: Whether it must survive a loss of power; a killed process harms it in no case.
        mode: Its permissions; by default what the umask allows, since results are read by other users too.

    Raises:
        StorageError: Its folder is, or lies behind, a link of a repository.
        OSError: It could not be written; `target` is as it was.
    """
    untrusted.refuse_links(target.parent)
    for left in target.parent.glob(f".{escape(target.name)}{TEMPORARY}"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > _LEFT_SECONDS:
                left.unlink()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            ownership.hand_over(file.fileno(), temporary.parent)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    if durable:
        # Some file systems cannot sync a folder; the file itself is safe by then.
        with suppress(OSError), untrusted.entered(target.parent.resolve()) as folder:
            os.fsync(folder)


def read_file(path: Path | str, max_bytes: int | None = None) -> bytes:
    """Read a regular file of the results, of at most so many bytes; links are followed.

    Raises:
        StorageError: It cannot be read, or is larger.
    """
    try:
        return untrusted.read(path, max_bytes, follow_link=True)
    except OSError as problem:
        is_told = isinstance(problem, untrusted.NotRegularError | untrusted.TooLargeError)
        sentence = f"{path} {'is' if is_told else 'cannot be read:'} {problem.strerror}."
        raise StorageError(sentence, code="STORAGE_UNREADABLE") from problem


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Translate what the operating system says of `path` into what the user can do."""
    try:
        yield
    except OSError as problem:
        hint, code = None, None
        match problem.errno:
            case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
                message, code = f"There is no space left to write {path}.", "STORAGE_FULL"
                hint = "Free some space and start zelda again; what a run had captured becomes a result."
            case errno.EACCES | errno.EPERM | errno.EROFS:
                message, code = f"{path} may not be written: {problem.strerror}.", "STORAGE_FORBIDDEN"
                hint = "Make its folder writable. Results can go elsewhere: resultsDir in zelda.config.yaml."
            case errno.ENOTDIR | errno.EEXIST | errno.EISDIR | errno.ELOOP:
                message, code = f"{path} cannot be made: {problem.strerror}.", "STORAGE_IN_THE_WAY"
                hint = "Move away what is in its place. Results can go elsewhere: resultsDir in zelda.config.yaml."
            case _:
                message = f"{path} could not be written: {problem.strerror or problem}."
        raise StorageError(message, hint=hint, code=code) from problem
