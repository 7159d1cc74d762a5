"""Deleting what a hostile session left: any depth, any mode, no link followed, no mount entered."""

import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio

from zelda_ci.files import untrusted

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 120.0


async def discard(path: Path, trash: Path) -> None:
    """Move a file or folder out of the way, then delete it. What cannot be deleted stays in the trash, with a warning.

    Both must lie on the same file system. A missing path is fine.
    """
    if _moved(path, trash):
        await empty(trash)


def _moved(path: Path, trash: Path) -> bool:
    """Whether there is something in the trash now."""
    try:
        _make(trash)
        with _entered(path.parent) as parent, _entered(trash) as top:
            move(path.name, parent, _name(), top)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error.strerror)
        return False
    return True


@contextmanager
def _entered(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make(trash: Path) -> None:
    """The trash, also where something else lies in its place, which is trash then."""
    with suppress(OSError):
        if not stat.S_ISDIR(trash.lstat().st_mode):
            trash.unlink()
    trash.mkdir(mode=0o700, exist_ok=True)


async def empty(trash: Path) -> None:
    """Delete all that lies in the trash, for a bounded time."""
    with anyio.move_on_after(DEADLINE_SECONDS):
        left = await anyio.to_thread.run_sync(empty_now, trash, abandon_on_cancel=True)
        if left:
            log.warning("%d files of finished runs cannot be deleted; they lie in %s", left, trash)
        return
    log.warning("deleting %s takes too long; the next start goes on with it", trash)


def empty_now(trash: Path) -> int:
    """Delete all that lies in the trash; returns how many entries stay.

    Every folder is first moved to the top of the trash: so no path grows long however deep a tree is, and a mount,
    which cannot be moved, is never entered.
    """
    try:
        top = untrusted.open_folder(trash)
    except FileNotFoundError:
        return 0
    except OSError:  # no folder of ours, or a closed one
        return 1
    try:
        waiting = os.listdir(top)  # noqa: PTH208  # a descriptor, not a path
        stuck = 0
        while waiting:
            stuck += _delete(waiting.pop(), top, waiting)
        return stuck
    finally:
        os.close(top)


def _delete(name: str, top: int, waiting: list[str]) -> int:
    """Delete one entry of the trash; its subfolders are moved beside it, and return to `waiting` with it."""
    try:
        folder = _opened(name, top)
    except FileNotFoundError:  # another process empties the same trash
        return 0
    except NotADirectoryError:
        return _unlink(name, top)
    except OSError:
        return 1
    try:
        moved, stuck = _emptied(folder, top)
    finally:
        os.close(folder)
    waiting += moved
    if stuck:
        return stuck
    try:
        os.rmdir(name, dir_fd=top)
    except OSError as error:
        return 0 if isinstance(error, FileNotFoundError) else 1
    return 0


def _emptied(folder: int, top: int) -> tuple[list[str], int]:
    """Unlink the files of a folder and move its subfolders to the top of the trash."""
    moved, stuck = [], 0
    with os.scandir(folder) as listing:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    for name, is_folder in entries:
        if not is_folder:
            stuck += _unlink(name, folder)
            continue
        fresh = _name()
        try:
            move(name, folder, fresh, top)
            moved.append(fresh)
        except FileNotFoundError:
            continue
        except OSError:
            stuck += 1
    return moved, stuck


def move(name: str, folder: int, fresh: str, top: int) -> None:
    """Move an entry of one folder to another; of a folder this writes its `..`, which its own mode may forbid."""
    try:
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:
        unlock(name, folder)
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)


def _unlink(name: str, folder: int) -> int:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return 0
    except OSError:
        return 1
    return 0


def _opened(name: str, parent: int) -> int:
    """A descriptor of a real folder, made accessible to its owner."""
    try:
        folder = untrusted.open_folder(name, folder=parent)
    except PermissionError:
        unlock(name, parent)
        folder = untrusted.open_folder(name, folder=parent)
    if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(folder, stat.S_IRWXU)
    return folder


def unlock(name: str, parent: int | None = None) -> None:
    """Change the mode of a folder that cannot be opened, never of what a link in its place points to."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(stat.S_IRWXU)
    finally:
        os.close(handle)


def _name() -> str:
    return secrets.token_hex(8)
