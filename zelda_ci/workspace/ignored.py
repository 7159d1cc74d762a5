"""What a session left in files that git ignores: no patch shows it, and code could work because of it alone."""

import os
import re
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pathspec import PathSpec

from zelda_ci.domain.workspace import IgnoredFiles, TreeChange
from zelda_ci.redact import Redactor

MAX_LISTED = 50


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


# The stamps of all files of a tree, by their path below its top.
Stamps = Mapping[bytes, TreeStamp]


def stamps(root: Path) -> Stamps:
    """Every file and link of a work tree as it is now; blocks while it looks."""
    top = os.fsencode(root) + b"/"
    found = stamped_below(top[:-1], frozenset({top + b".git"}))
    return {path.removeprefix(top): stamp for path, stamp in found if not stat.S_ISDIR(stamp.mode)}


# What setup commands install dependencies into. Programs write caches there later, which are nobody's work.
INSTALLED = frozenset({b".venv", b"node_modules"})
# What git takes for something else in a pattern.
GLOB_SIGNS = re.compile(rb"[\\*?\[\]! #]")


def exclude_installed(repository: Path, before: Stamps) -> None:
    """Have git ignore the folders into which setup installed dependencies, although the project's own lists do not.

    Args:
        repository: The one that measures; what a session writes has no say in it.
        before: The tree's files after setup.
    """
    folders = {_installed_in(path) for path in before} - {None}
    patterns = sorted(b"/" + GLOB_SIGNS.sub(rb"\\\g<0>", folder) + b"/\n" for folder in folders if folder)
    info = repository / "info"
    info.mkdir(exist_ok=True)
    (info / "exclude").write_bytes(b"".join(patterns))


def _installed_in(path: bytes) -> bytes | None:
    """The outermost folder for dependencies that a path lies in."""
    parts = path.split(b"/")
    at = next((number for number, part in enumerate(parts[:-1], 1) if part in INSTALLED), None)
    # A name with a line break cannot be written as a pattern.
    return None if at is None or b"\n" in path else b"/".join(parts[:at])


def unlike(root: Path, names: Iterable[bytes], before: Stamps) -> list[bytes]:
    """The names, but for files that are as they were before; blocks while it looks."""
    top = os.fsencode(root) + b"/"
    return [name for name in names if name not in before or stamp_of(top + name) != before[name]]


@dataclass(frozen=True)
class IgnoredChanges:
    """Single files, by their path below the top of the tree, and how each is not as it was after setup."""

    files: Mapping[bytes, str] = field(default_factory=dict)
    new_folders: frozenset[bytes] = frozenset()
    """Ignored folders that were not there before, ending with a slash; outermost only."""

    def chosen(self, spec: PathSpec[Any]) -> list[bytes]:
        """Those that are there and that the patterns name."""
        there = (path for path, kind in self.files.items() if kind != "removed")
        return [path for path in there if spec.match_file(os.fsdecode(path))]

    def told(self, kept: Sequence[bytes], redact: Redactor) -> IgnoredFiles:
        """For the result: a new folder stands for all that is in it."""
        through = set(kept)
        others = {path: kind for path, kind in self.files.items() if path not in through}
        changes = sorted({(self._place(path), kind) for path, kind in others.items()})
        return IgnoredFiles(
            changes=tuple(
                TreeChange.model_validate({"path": redact(os.fsdecode(path)), "kind": kind})
                for path, kind in changes[:MAX_LISTED]
            ),
            more=max(0, len(changes) - MAX_LISTED),
            kept=tuple(redact(os.fsdecode(path)) for path in sorted({*map(self._place, kept)})[:MAX_LISTED]),
        )

    def _place(self, path: bytes) -> bytes:
        ends = (place for place, sign in enumerate(path, 1) if sign == ord("/"))
        return next((path[:end] for end in ends if path[:end] in self.new_folders), path)


def changed(root: Path, before: Stamps, ignored: Iterable[bytes], known: Iterable[bytes]) -> IgnoredChanges:
    """What of the ignored files is not as it was before the session; blocks while it looks.

    Args:
        root: The work tree.
        before: Its files after setup, or none where there was no setup.
        ignored: What git ignores now: files, and folders that end with a slash.
        known: The files that the patch is about, and those of the tested commit.
    """
    names = sorted(set(ignored))
    now = dict(_files(root, names))
    files = {path: "changed" if path in before else "added" for path, stamp in now.items() if before.get(path) != stamp}
    patched = set(known)
    top = os.fsencode(root)
    gone = (path for path in before if path not in now and path not in patched)
    # What is there and no longer ignored stands in the patch.
    files |= {path: "removed" for path in gone if not os.path.lexists(os.path.join(top, path))}  # noqa: PTH118  # bytes: a name need not be UTF-8
    old = sorted(before)
    new = (name for name in names if name.endswith(b"/") and not _any_below(name, old))
    return IgnoredChanges(files, frozenset(new))


def stamped_below(folder: bytes, without: frozenset[bytes] = frozenset()) -> Iterator[tuple[bytes, TreeStamp]]:
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
    kind = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size)
    yield path, TreeStamp(*kind, status.st_mtime_ns, status.st_ctime_ns)


def _any_below(folder: bytes, paths: Sequence[bytes]) -> bool:
    place = bisect_left(paths, folder)
    return place < len(paths) and paths[place].startswith(folder)


def _files(root: Path, names: Iterable[bytes]) -> Iterator[tuple[bytes, TreeStamp]]:
    top = os.fsencode(root) + b"/"
    for name in names:
        for path, stamp in stamped_below(top + name.rstrip(b"/")):
            if not stat.S_ISDIR(stamp.mode):
                yield path.removeprefix(top), stamp
