"""Which of the paths that may have changed can be read, decided without following a link or opening a file."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

LARGEST_FILE = 10 << 20
LARGEST_SUM = 200 << 20


@dataclass
class Candidates:
    """Paths as bytes, relative to the work tree."""

    present: list[bytes] = field(default_factory=list)
    gone: list[bytes] = field(default_factory=list)
    left_out: dict[bytes, str] = field(default_factory=dict)
    """Changed, but not read: why, in a few words."""


def classify(root: Path, paths: Iterable[bytes]) -> Candidates:
    """Sort out what git may be told to read."""
    top = os.fsencode(root)
    found = Candidates()
    real: dict[bytes, bool] = {b"": True}
    size = 0
    for path in sorted(set(paths)):
        status = _status(top, path, real)
        reason = _objection(top, path, status, LARGEST_SUM - size)
        if reason:
            found.left_out[path.rstrip(b"/")] = reason
        elif status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            found.gone.append(path)
        else:
            size += status.st_size
            found.present.append(path)
    return found


def _status(top: bytes, path: bytes, real: dict[bytes, bool]) -> os.stat_result | None:
    """Of the entry itself; nothing that lies beyond a link belongs to the tree."""
    if not _is_real(top, os.path.dirname(path.rstrip(b"/")), real):  # noqa: PTH120  # bytes: a name need not be UTF-8
        return None
    try:
        return os.lstat(os.path.join(top, path))  # noqa: PTH118  # as above
    except OSError:
        return None


def _is_real(top: bytes, folder: bytes, real: dict[bytes, bool]) -> bool:
    known = real.get(folder)
    if known is None:
        try:
            mode = os.lstat(os.path.join(top, folder)).st_mode  # noqa: PTH118  # as above
        except OSError:
            mode = 0
        known = stat.S_ISDIR(mode) and _is_real(top, os.path.dirname(folder), real)  # noqa: PTH120  # as above
        real[folder] = known
    return known


def _objection(top: bytes, path: bytes, status: os.stat_result | None, room: int) -> str | None:
    if any(part.lower() == b".git" for part in path.split(b"/")):
        return "named like Git's own"
    if path.endswith(b"/"):
        return "a repository"
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    if status.st_size > min(LARGEST_FILE, room):
        return f"{status.st_size} bytes"
    if not os.access(os.path.join(top, path), os.R_OK):  # noqa: PTH118  # as above
        return "unreadable"
    return None
