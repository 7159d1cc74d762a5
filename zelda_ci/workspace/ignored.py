"""Ignored files that a session changed: no patch shows them, and code could work because of them alone.

Paths are relative to the top of the tree; bytes that are no UTF-8 are surrogates in them.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
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


def find_changes(
    root: Path,
    before: Stamps,
    ignored: Collection[str],
    patched: Collection[str],
    keep: PathSpec[Any],
    redact: Redactor,
) -> tuple[IgnoredFiles, tuple[str, ...]]:
    """Find what of the ignored files is not as it was before the session; blocks.

    Args:
        root: The work tree.
        before: Its files after setup, or none where there was no setup.
        ignored: What git ignores now: files, and folders that end with a slash.
        patched: The files that the patch is about.
        keep: The patterns of the files that build and tests are to find.
        redact: Masks the names in the record.

    Returns:
        The record for the result, in which a new folder stands for all that is in it; and the files to keep.
    """
    now = read_stamps(root, ignored)
    kinds = {path: "changed" if path in before else "added" for path, stamp in now.items() if before.get(path) != stamp}
    kept = dict.fromkeys(path for path in kinds if keep.match_file(path))
    # What is there and no longer ignored stands in the patch.
    gone = (path for path in before.keys() - now.keys() - set(patched) if not os.path.lexists(root / path))
    kinds |= dict.fromkeys(gone, "removed")
    old = {folder for path in before for folder in folders_above(path)}
    new = {place for place in ignored if place.endswith("/") and place not in old}
    shown = {path: next((folder for folder in folders_above(path) if folder in new), path) for path in kinds}
    changes = sorted({(shown[path], kind) for path, kind in kinds.items() if path not in kept})
    record = IgnoredFiles(
        changes=tuple(
            TreeChange.model_validate({"path": redact(path), "kind": kind}) for path, kind in changes[:MAX_LISTED]
        ),
        more=max(0, len(changes) - MAX_LISTED),
        kept=tuple(map(redact, sorted({shown[path] for path in kept})[:MAX_LISTED])),
    )
    return record, tuple(kept)
