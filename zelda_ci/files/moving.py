"""Moving what a session left, of which any folder may be closed."""

import logging
import os
import secrets
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

log = logging.getLogger(__name__)


def move_to_trash(path: Path, trash: Path) -> bool:
    """Move an entry into the trash, made where it is missing; false where there was nothing, or it cannot be moved."""
    try:
        _make(trash)
        with ExitStack() as stack:
            folders = []
            for place in (path.parent, trash):
                folders.append(os.open(place, os.O_RDONLY | os.O_DIRECTORY))
                stack.callback(os.close, folders[-1])
            move(path.name, folders[0], secrets.token_hex(8), folders[1])
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error.strerror)
        return False
    return True


def _make(trash: Path) -> None:
    """The trash, also where something else lies in its place, which is trash then."""
    with suppress(OSError):
        if not stat.S_ISDIR(trash.lstat().st_mode):
            trash.unlink()
    trash.mkdir(mode=0o700, exist_ok=True)


def move(name: str, folder: int, fresh: str, top: int) -> None:
    """Move an entry of one folder to another; of a folder this writes its `..`, which its own mode may forbid."""
    try:
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:
        unlock(name, folder)
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)


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
