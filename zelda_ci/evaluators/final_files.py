"""Final content of changed files.

The session may have left traps: only regular files are read, and no link is followed.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci.redact import Redactor, SafeText

LARGEST_FILE = 1_000_000
LARGEST_TOTAL = 8_000_000
MOST_FILES = 500

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class FinalFiles:
    """Texts by path, and why other files are not among them; deleted files are in neither."""

    texts: dict[str, SafeText] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def read_files(root: Path, names: Sequence[str], redact: Redactor) -> FinalFiles:
    """Read files of a work tree.

    Args:
        root: Top of the tree; must not be a link itself.
        names: Paths relative to it, with forward slashes.
        redact: Masks what is read.
    """
    found = FinalFiles()
    total = 0
    for name in names:
        if len(found.texts) >= MOST_FILES or total >= LARGEST_TOTAL:
            found.left_out[name] = "too many files were changed"
            continue
        try:
            data = _read(root, name)
        except FileNotFoundError:
            continue
        except OSError as problem:
            found.left_out[name] = problem.strerror or "cannot be read"
            continue
        total += len(data)
        if why := _unfit(data):
            found.left_out[name] = why
        else:
            found.texts[name] = redact(data.decode("utf-8", "replace"))
    return found


def _unfit(data: bytes) -> str | None:
    if len(data) > LARGEST_FILE:
        return "larger than 1 MB"
    return "binary" if b"\0" in data else None


def _read(root: Path, name: str) -> bytes:
    """The file's bytes, at most one more than a file may have."""
    *folders, last = name.split("/")
    if any(step in {"", ".", ".."} for step in (*folders, last)) or "\0" in name:
        raise OSError(0, "not a path inside the work tree")
    with _opened(root, folders) as folder:
        handle = os.open(last, _FILE, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "not a regular file")
        return file.read(LARGEST_FILE + 1)


@contextmanager
def _opened(root: Path, folders: Sequence[str]) -> Iterator[int]:
    """A handle of the folder, reached step by step, so that none of the steps can be a link."""
    handle = os.open(root, _FOLDER)
    try:
        for step in folders:
            below = os.open(step, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)
