"""Ignored files that a session changed: no patch shows them, and code could work because of them alone.

Paths are relative to the top of the tree; bytes that are no UTF-8 are surrogates in them.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathspec import PathSpec

from zelda_ci.domain.workspace import IgnoredFiles, TreeChange
from zelda_ci.redact import Redactor

MAX_LISTED = 50

# Inode, mode, owner, group, links, size and times of an entry.
Stamp = tuple[int, ...]
# The stamps of files and links by their paths.
Stamps = Mapping[str, Stamp]

# What setup commands install dependencies into. Programs write caches there later, which are nobody's work.
INSTALLED = frozenset({".venv", "node_modules"})
# What git takes for something else in a pattern.
GLOB_SIGNS = re.compile(r"[\\*?\[\]! #]")


def read_stamps(root: Path, places: Iterable[str] = ("",)) -> dict[str, Stamp]:
    """Read the stamps of all files and links at places of a tree or below them, without its `.git`; blocks.

    Links are not followed, and what cannot be read is passed over.
    """
    top = f"{root}/"
    found: dict[str, Stamp] = {}
    # Without recursion: a tree may be deeper than the stack.
    waiting = [(top + place).rstrip("/") for place in places]
    while waiting:
        path = waiting.pop()
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if entry.path != f"{top}.git"]
                continue
        except OSError:
            continue
        kind = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size)
        found[path.removeprefix(top)] = (*kind, status.st_mtime_ns, status.st_ctime_ns)
    return found


def folders_above(path: str) -> Iterator[str]:
    """The folders that a path lies in, outermost first, each with a slash at its end."""
    return (path[:end] for end, sign in enumerate(path, 1) if sign == "/")


def is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of the places, or lies in one that is a folder."""
    return path in places or any(folder in places for folder in folders_above(path))


def installed(paths: Iterable[str]) -> set[str]:
    """The outermost folders for dependencies that paths lie in."""
    above = ([folder for folder in folders_above(path) if folder.split("/")[-2] in INSTALLED] for path in paths)
    return {folders[0] for folders in above if folders}


def exclude_patterns(paths: Iterable[str]) -> bytes:
    """Lines for git's list of ignored files; a name with a line break cannot be written as one."""
    names = (GLOB_SIGNS.sub(r"\\\g<0>", path) for path in sorted(paths) if "\n" not in path)
    return os.fsencode("".join(f"/{name}\n" for name in names))


@dataclass(frozen=True)
class IgnoredChanges:
    """Ignored files that are not as they were after setup, with the kind of the difference."""

    files: Mapping[str, str] = field(default_factory=dict)
    new_folders: frozenset[str] = frozenset()
    """Ignored folders that were not there before; outermost only."""

    def chosen(self, spec: PathSpec[Any]) -> list[str]:
        """The files that are there and that the patterns name."""
        return [path for path, kind in self.files.items() if kind != "removed" and spec.match_file(path)]

    def summary(self, kept: Sequence[str], redact: Redactor) -> IgnoredFiles:
        """The record for the result: a new folder stands for all that is in it."""
        others = self.files.keys() - set(kept)
        changes = sorted({(self._place(path), self.files[path]) for path in others})
        return IgnoredFiles(
            changes=tuple(
                TreeChange.model_validate({"path": redact(path), "kind": kind}) for path, kind in changes[:MAX_LISTED]
            ),
            more=max(0, len(changes) - MAX_LISTED),
            kept=tuple(map(redact, sorted({*map(self._place, kept)})[:MAX_LISTED])),
        )

    def _place(self, path: str) -> str:
        return next((folder for folder in folders_above(path) if folder in self.new_folders), path)


def find_changes(root: Path, before: Stamps, ignored: Collection[str], patched: Collection[str]) -> IgnoredChanges:
    """Find what of the ignored files is not as it was before the session; blocks.

    Args:
        root: The work tree.
        before: Its files after setup, or none where there was no setup.
        ignored: What git ignores now: files, and folders that end with a slash.
        patched: The files that the patch is about.
    """
    now = read_stamps(root, ignored)
    files = {path: "changed" if path in before else "added" for path, stamp in now.items() if before.get(path) != stamp}
    # What is there and no longer ignored stands in the patch.
    gone = (path for path in before.keys() - now.keys() - set(patched) if not os.path.lexists(root / path))
    old = {folder for path in before for folder in folders_above(path)}
    new = (place for place in ignored if place.endswith("/") and place not in old)
    return IgnoredChanges(files | dict.fromkeys(gone, "removed"), frozenset(new))
