"""What a session left in files that git ignores: no patch shows it, and code could work because of it alone."""

import os
import re
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathspec import PathSpec

from zelda_ci.domain.workspace import IgnoredFiles, TreeChange
from zelda_ci.redact import Redactor

MAX_LISTED = 50


# What the file system knows of an entry: inode, mode, owner, group, links, size, times.
Stamp = tuple[int, ...]
# The stamps of all files of a tree, by their path below its top.
Stamps = Mapping[bytes, Stamp]


def stamps(root: Path) -> Stamps:
    """Every file and link of a work tree as it is now; blocks while it looks."""
    top = os.fsencode(root)
    return {path.removeprefix(top + b"/"): stamp for path, stamp in _files(top, without=top + b"/.git")}


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
    return [name for name in names if name not in before or [(top + name, before[name])] != [*_files(top + name)]]


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
    top = os.fsencode(root)
    places = (os.path.join(top, name).rstrip(b"/") for name in names)  # noqa: PTH118  # bytes: a name need not be UTF-8
    now = {path.removeprefix(top + b"/"): stamp for place in places for path, stamp in _files(place)}
    files = {path: "changed" if path in before else "added" for path, stamp in now.items() if before.get(path) != stamp}
    patched = set(known)
    gone = (path for path in before if path not in now and path not in patched)
    # What is there and no longer ignored stands in the patch.
    files |= {path: "removed" for path in gone if not os.path.lexists(os.path.join(top, path))}  # noqa: PTH118  # as above
    old = sorted(before)
    new = (name for name in names if name.endswith(b"/") and not _any_below(name, old))
    return IgnoredChanges(files, frozenset(new))


def _files(place: bytes, without: bytes = b"") -> Iterator[tuple[bytes, Stamp]]:
    """Every file and link at a place or below it, links not followed; what cannot be looked at is passed over."""
    # Without recursion: a tree may be deeper than the stack.
    waiting = [place]
    while waiting:
        path = waiting.pop()
        try:
            status = os.lstat(path)
            if is_folder := stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if entry.path != without]
        except OSError:
            continue
        if not is_folder:
            kind = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size)
            yield path, (*kind, status.st_mtime_ns, status.st_ctime_ns)


def _any_below(folder: bytes, paths: Sequence[bytes]) -> bool:
    place = bisect_left(paths, folder)
    return place < len(paths) and paths[place].startswith(folder)
