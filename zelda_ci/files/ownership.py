"""Owners of the files that root writes: in a container Zelda is root, and the mounted project is somebody's."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from zelda_ci.files import untrusted

_ROOT = 0


def hand_over(descriptor: int, folder: Path) -> None:
    """Give a file just made to the owner of the folder it lies in; where Zelda is root, and nowhere else.

    It is held open, and was opened without following a link, because the owner of the folder may put anything in the
    place of a path. Where the file system knows no owners, or root may give nothing away, it stays as it is.
    """
    if os.geteuid() != _ROOT:
        return
    with suppress(OSError):
        owner, made = folder.stat(), os.fstat(descriptor)
        # A file with a second name was not made here.
        alone = stat.S_ISDIR(made.st_mode) or made.st_nlink == 1
        if alone and made.st_uid == _ROOT and (owner.st_uid, owner.st_gid) != (_ROOT, _ROOT):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, each handed over; one that exists is left as it is.

    Raises:
        StorageError: A link of a repository is on the way.
        OSError: It cannot be made, or something else is in its place.
    """
    untrusted.refuse_links(path)
    for folder in reversed([each for each in (path, *path.parents) if not each.is_dir()]):
        try:
            make_new_folder(folder)
        except FileExistsError:
            # Another Zelda was quicker; anything else in its place is an obstacle.
            if not folder.is_dir():
                raise


def make_new_folder(path: Path) -> None:
    """Make one folder and hand it over; raises OSError where it exists or cannot be made."""
    path.mkdir()
    with suppress(OSError), untrusted.entered(path) as made:
        hand_over(made, path.parent)
