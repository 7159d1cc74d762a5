"""Files that appear whole or not at all and are the project's owner's, and what to do when they cannot."""

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO

from zelda_ci.errors import StorageError
from zelda_ci.files import untrusted

# Pattern of files that a killed process may leave behind; after so long it has been killed.
TEMPORARY, _LEFT_SECONDS = ".*.tmp", 3600


def write_whole(target: Path, chunks: Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file and the folders above it, chunk by chunk; readers see the old one or the new one, in any case."""
    with storage_errors(target):
        if not target.parent.is_dir():
            make_folder(target.parent)
        with replacing(target, durable=durable) as file:
            file.writelines(chunks)


@contextmanager
def replacing(target: Path, *, durable: bool = True, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `target` at the end of the block, and is gone if the block fails.

    Its folder exists, and what a killed process has left of such a file is removed. One that is `durable` survives a
    loss of power; a killed process harms it in no case. The mode is by default what the umask allows, since results are
    read by other users too. A `StorageError` says that its folder is, or lies behind, a link of a repository.
    """
    untrusted.refuse_links(target.parent)
    for left in target.parent.glob(f".{escape(target.name)}{TEMPORARY}"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > _LEFT_SECONDS:
                left.unlink()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            hand_over(file.fileno(), temporary.parent)
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


def remove_whole(folder: Path) -> None:
    """Remove a folder, first its name: what is removed by halves has that of a temporary file. Raises OSError."""
    gone = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)


def read_file(path: Path | str, max_bytes: int | None = None) -> bytes:
    """Read a regular file of the results, of at most so many bytes, or raise `StorageError`; links are followed."""
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


def hand_over(descriptor: int, folder: Path) -> None:
    """Give a file just made to the owner of the folder it lies in; where Zelda is root, and nowhere else."""
    # It is held open, and was opened without following a link, because the owner of the folder may put anything in the
    # place of a path. Where the file system knows no owners, or root may give nothing away, it stays as it is.
    with suppress(OSError):
        owner, made = folder.stat(), os.fstat(descriptor)
        # A file with a second name was not made here.
        alone = stat.S_ISDIR(made.st_mode) or made.st_nlink == 1
        if os.geteuid() == 0 and alone and made.st_uid == 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, each handed over; a link on the way is a `StorageError`."""
    untrusted.refuse_links(path)
    for folder in reversed([each for each in (path, *path.parents) if not each.is_dir()]):
        try:
            make_new_folder(folder)
        except FileExistsError:
            # Another Zelda was quicker; anything else in its place is an obstacle.
            if not folder.is_dir():
                raise


def make_below(top: Path, folder: Path) -> None:
    """Make a folder like `make_folder`; where that makes `top`, too, git passes over all that will be in it."""
    is_new = not top.is_dir()
    make_folder(folder)
    if is_new:
        write_whole(top / ".gitignore", [b"*\n"], durable=False)


def make_new_folder(path: Path) -> None:
    """Make one folder and hand it over; raises OSError where it exists or cannot be made."""
    path.mkdir()
    with suppress(OSError), untrusted.entered(path) as made:
        hand_over(made, path.parent)
