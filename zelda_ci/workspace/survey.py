"""A look over a work tree that a session has left, before git reads it: what could hold git up is moved aside."""

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

READ_BY_GIT = frozenset({b".gitignore", b".gitattributes", b".gitmodules"})
LARGEST_SETTINGS = 1 << 20


@dataclass
class Survey:
    """What git must not meet. Paths are bytes, relative to the work tree."""

    traps: list[bytes] = field(default_factory=list)
    """Files that git reads by their name and that are a pipe, a device or huge."""
    nested: list[bytes] = field(default_factory=list)
    """The `.git` of every repository inside: without it, its files count as what they are."""
    closed: list[bytes] = field(default_factory=list)
    """Folders that cannot be listed."""


def look_over(root: Path) -> Survey:
    """Walk the tree once, opening no file; a folder deeper than a path may be long counts as closed."""
    found = Survey()
    waiting = [b""]
    top = os.fsencode(root)
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(os.path.join(top, here)) as entries:  # noqa: PTH118  # bytes: a name need not be UTF-8
                waiting += _folders(here, list(entries), found)
        except OSError:
            found.closed.append(here)
    return found


@contextmanager
def set_aside(root: Path, paths: Sequence[bytes], shelf: Path) -> Iterator[None]:
    """Move these out of the tree for a while, and back."""
    shelf.mkdir(mode=0o700, exist_ok=True)
    moved = []
    try:
        for path in paths:
            at, place = os.path.join(os.fsencode(root), path), shelf / secrets.token_hex(8)  # noqa: PTH118  # as above
            with suppress(OSError):
                os.rename(at, place)  # noqa: PTH104  # as above
                moved.append((at, place))
        yield
    finally:
        for at, place in reversed(moved):
            with suppress(OSError):
                os.rename(place, at)  # noqa: PTH104  # as above


def _folders(here: bytes, entries: Sequence[os.DirEntry[bytes]], found: Survey) -> Iterator[bytes]:
    for entry in entries:
        path = os.path.join(here, entry.name)  # noqa: PTH118  # as above
        if entry.name == b".git":
            if here:
                found.nested.append(path)
        elif entry.is_dir(follow_symlinks=False):
            yield path
        elif entry.name in READ_BY_GIT and _is_trap(entry):
            found.traps.append(path)


def _is_trap(entry: os.DirEntry[bytes]) -> bool:
    """Git follows a link only from `.gitmodules`."""
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return entry.name == b".gitmodules"
    return not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_SETTINGS
