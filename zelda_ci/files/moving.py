"""Moving what a session left, of which any folder may be closed."""

import logging
import os
import secrets
import stat
from pathlib import Path

from zelda_ci.files import untrusted

log = logging.getLogger(__name__)


def move_to_trash(path: Path, trash: Path) -> bool:
    """Move an entry into the trash, made where it is missing; false where there was nothing, or it cannot be moved."""
    try:
        if untrusted.kind_of(trash) not in {None, "a folder"}:
            trash.unlink()
        trash.mkdir(mode=0o700, exist_ok=True)
        with untrusted.entered(path.parent) as folder, untrusted.entered(trash) as top:
            move(path.name, folder, secrets.token_hex(8), top)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error.strerror)
        return False
    return True


def move(name: str, folder: int, fresh: str, top: int) -> None:
    """Move an entry of one folder to another; of a folder this writes its `..`, which its own mode may forbid."""
    try:
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:
        unlock(name, folder)
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)


def unlock(name: str, parent: int | None = None) -> None:
    """Change the mode of a folder that cannot be opened, never of what a link in its place points to."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(stat.S_IRWXU)
    finally:
        os.close(handle)
