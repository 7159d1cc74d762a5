"""Tells whether the developer's tree changed while a run was under way. It repairs nothing and judges nothing.

Every entry is looked at with lstat, its content is not read: whoever writes, renames, relinks, sets modes, owners,
times or extended attributes moves the change time, which no call can set back. What it cannot tell is who did it:
the developer's own work shows as well.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_IFMT, S_IFREG, S_ISDIR
from time import monotonic
from typing import NamedTuple

from zelda_ci.domain.workspace import CheckoutReport, TreeChange
from zelda_ci.redact import Redactor

MAX_LISTED = 50

# Git renews the time of such a file whenever it reads it, Zelda's own reading included, lest it expire.
SHARED_INDEX = b"sharedindex."


class TreeStamp(NamedTuple):
    """What the file system knows of one entry."""

    inode: int
    mode: int
    owner: int
    group: int
    links: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def lasting(self) -> tuple[int, ...]:
        """Of a folder: what does not move when entries come and go in it."""
        return self[:4]


class WatchedCheckout:
    """The state of folders at one moment, to be compared with a later one."""

    def __init__(self, folders: Sequence[Path], without: Sequence[Path]) -> None:
        """Look at everything in `folders` (absolute), but not in `without`; blocks while it does."""
        self._folders, self._without = _outermost(folders), frozenset(map(os.fsencode, without))
        self._outputs = frozenset(_outputs())
        self._before = self._scan()

    def compare(self, redact: Redactor) -> CheckoutReport:
        """What is different now; blocks while it looks."""
        began = monotonic()
        now = self._scan()
        changes = sorted(_differences(self._before, now))
        return CheckoutReport(
            entries=len(now),
            seconds=round(monotonic() - began, 3),
            changes=tuple(
                TreeChange.model_validate({"path": redact(self._named(path)), "kind": kind})
                for path, kind in changes[:MAX_LISTED]
            ),
            more=max(0, len(changes) - MAX_LISTED),
        )

    def _scan(self) -> dict[bytes, TreeStamp]:
        stamps: dict[bytes, TreeStamp] = {}
        for folder in self._folders:
            stamps |= stamped_below(os.fsencode(folder), self._without)
        # What Zelda prints grows where it was told to print it.
        return {path: stamp for path, stamp in stamps.items() if stamp.inode not in self._outputs}

    def _named(self, path: bytes) -> str:
        """Relative to the first folder: the others lie outside it only where a work tree is linked."""
        place = os.fsdecode(path)
        first = os.fspath(self._folders[0])
        return os.path.relpath(place, first) if place == first or place.startswith(first + os.sep) else place


def _outputs() -> Iterator[int]:
    """The files that standard output and error of this process go to."""
    for number in (1, 2):
        with suppress(OSError):
            status = os.fstat(number)
            if S_IFMT(status.st_mode) == S_IFREG:
                yield status.st_ino


def _outermost(folders: Sequence[Path]) -> Sequence[Path]:
    """Without those that lie in another."""
    return [folder for folder in folders if not any(other in folder.parents for other in folders)]


def stamped_below(folder: bytes, without: frozenset[bytes]) -> Iterator[tuple[bytes, TreeStamp]]:
    """A folder and every entry below it, links not followed; what cannot be looked at is passed over."""
    # Without recursion: a tree may be deeper than the stack.
    waiting = [folder]
    yield from _stamped(folder)
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.path in without:
                    continue
                yield from _stamped(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def stamp_of(path: bytes) -> TreeStamp | None:
    """Of one entry, links not followed; nothing where it cannot be looked at."""
    return next((stamp for _, stamp in _stamped(path)), None)


def _stamped(path: bytes) -> Iterator[tuple[bytes, TreeStamp]]:
    """Nothing for what vanished meanwhile: then it is not there."""
    try:
        status = os.lstat(path)
    except OSError:
        return
    times = (status.st_mtime_ns, status.st_ctime_ns)
    if os.path.basename(path).startswith(SHARED_INDEX):  # noqa: PTH119 - pathlib has no bytes
        times = (0, 0)
    kind = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size)
    yield path, TreeStamp(*kind, *times)


def _differences(before: Mapping[bytes, TreeStamp], now: Mapping[bytes, TreeStamp]) -> Iterator[tuple[bytes, str]]:
    added, removed = now.keys() - before.keys(), before.keys() - now.keys()
    replaced = {path for path in before.keys() & now.keys() if before[path].inode != now[path].inode}
    # A folder in which something came or went is not told of again, unless its own mode or owner changed.
    explained = {os.path.dirname(path) for path in added | removed | replaced}  # noqa: PTH120 - pathlib has no bytes
    for path in added:
        yield path, "added"
    for path in removed:
        yield path, "removed"
    for path, old in before.items():
        new = now.get(path)
        if new is None or new == old:
            continue
        if path in explained and S_ISDIR(new.mode) and new.lasting == old.lasting:
            continue
        yield path, "changed"
