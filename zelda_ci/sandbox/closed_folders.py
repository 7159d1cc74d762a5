"""Folders that other users may not enter, such as root's home, and how a run's own user reaches toolchains below them.

Where root may mount, an empty folder takes the place of each in the run's mount namespace, and holds only what the run
may read. The steps are found here, and taken by `launcher/inside.py`.
"""

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from zelda_ci.sandbox.readable_paths import PathPolicy

# As many links as the kernel follows in one path.
MAX_LINKS = 40

Act = Literal["empty", "read", "write", "link"]
Step = tuple[Act, str, str]
"""What is put at a path: an empty folder, what lies there to be read or written, or a link with its target."""


@dataclass(frozen=True)
class Way:
    """What a path leads through, as the kernel follows it."""

    end: str
    folders: Sequence[str]
    links: Mapping[str, str]
    """Targets as they are written, by where the links lie."""


def way_to(path: str, mode_of: Callable[[str], int]) -> Way:
    """The way to a path, up to where it breaks off."""
    place, left, hops = "", [*reversed(path.split("/"))], 0
    folders, links = ["/"], dict[str, str]()
    while left and hops <= MAX_LINKS:
        name = left.pop()
        if name in {"", "."}:
            continue
        if name == "..":
            place = place.rpartition("/")[0]
            continue
        mode = mode_of(f"{place}/{name}")
        if stat.S_ISLNK(mode):
            links[f"{place}/{name}"] = target = os.readlink(f"{place}/{name}")  # noqa: PTH115  # of very many
            place, hops = "" if target.startswith("/") else place, hops + 1
            left += reversed(target.split("/"))
            continue
        place = f"{place}/{name}"
        if not stat.S_ISDIR(mode):
            break
        folders.append(place)
    return Way(place or "/", folders, links)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def barrier(path: Path, opened: Path | None = None) -> Path | None:
    """The first folder on the way to a path that other users may not enter.

    Args:
        path: Absolute.
        opened: A folder which Zelda opens to runs itself, with what is in it.
    """
    return next((Path(folder) for folder in way_to(str(path), _mode).folders if _is_closed(folder, opened)), None)


def _is_closed(folder: str, opened: Path | None) -> bool:
    return not _mode(folder) & stat.S_IXOTH and not (opened and Path(folder).is_relative_to(opened))


def is_within_reach(path: Path, grounds: PathPolicy, *, covers: bool) -> bool:
    """Whether a run's own user gets to what it may read at a path.

    Args:
        path: Absolute.
        grounds: What must stay out of reach.
        covers: Whether toolchains below closed folders are shown to it.
    """
    return barrier(path, grounds.base) is None or (covers and not grounds.is_private(path))


def unreachable(files: Iterable[Path]) -> str:
    """Which of the files lies below a closed folder, and what helps, in sentences."""
    found = next((file, folder) for file in files if (folder := barrier(file)))
    return f"{found[0]} lies below {found[1]}, which other users may not enter. {way_out(found[1])}"


def way_out(folder: Path) -> str:
    """What helps where a folder is closed and nothing may be mounted, in a sentence."""
    return f"Let others pass through it (chmod 711 {folder}), install it elsewhere, or install bubblewrap."


def cover(read: Iterable[Path], written: Iterable[Path], ways: Iterable[Path], opened: Path | None) -> list[Step]:
    """The steps that show what a run may read and write below closed folders, and nothing else of these.

    Args:
        read: What may be read, with all that is in it.
        written: What may be written.
        ways: Paths by which it is reached: links on them are needed, too.
        opened: As in `barrier`.
    """
    mode_of = cache(_mode)
    readable, writable = ([way_to(str(path), mode_of) for path in paths] for paths in (read, written))
    shown: dict[str, Act] = {way.end: "read" for way in readable}
    shown.update({way.end: "write" for way in writable})
    every = [*readable, *writable, *(way_to(str(path), mode_of) for path in ways)]
    leading = [way for way in every if _nearest(way.end, shown)]
    links = {link: target for way in leading for link, target in way.links.items()}
    closed = {folder for way in leading for folder in way.folders if _is_closed(folder, opened)}
    for folder in sorted(closed, key=_parts):
        # Of a folder that may be read as a whole, everything: it is only its own mode that is in the way.
        if (above := _nearest(folder, shown)) is not None:
            act = shown[above]
            for entry in _entries(folder, links):
                shown.setdefault(entry, act)
            shown.pop(folder, None)
    layers = {*closed, *shown}

    def lies_in_cover(path: str) -> bool:
        return _nearest(path.rpartition("/")[0] or "/", layers) in closed

    steps: list[Step] = [
        *(("empty", folder, "") for folder in closed if not lies_in_cover(folder)),
        *((act, path, "") for path, act in shown.items() if lies_in_cover(path)),
        *(("link", link, target) for link, target in links.items() if link not in shown and lies_in_cover(link)),
    ]
    return sorted(steps, key=lambda step: _parts(step[1]))


def _entries(folder: str, links: dict[str, str]) -> Iterator[str]:
    """What lies in a folder; its links are added to those that are known."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                links[entry.path] = os.readlink(entry.path)  # noqa: PTH115  # as above
            else:
                yield entry.path


def _parts(path: str) -> list[str]:
    """By which a folder comes before what is in it."""
    return path.split("/")


def _nearest(path: str, places: Container[str]) -> str | None:
    """The innermost of the places in which a path lies, or which it is."""
    while path not in places:
        if path == "/":
            return None
        path = path.rpartition("/")[0] or "/"
    return path
