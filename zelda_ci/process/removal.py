"""Deleting what a hostile session left: any depth, any mode, no link followed, no mount entered."""

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio

from zelda_ci import process
from zelda_ci.files import moving, untrusted

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 120.0
MAX_ARGUMENTS, MAX_NAMED = 500, 5
# Lets the owner into folders that are closed to everybody.
OPEN = ("-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")


async def discard(path: Path, trash: Path) -> None:
    """Move a file or folder out of the way, then delete it. What cannot be deleted stays in the trash, with a warning.

    Both must lie on the same file system. A missing path is fine.
    """
    if moving.move_to_trash(path, trash):
        await empty(trash)


async def empty(trash: Path) -> None:
    """Delete all that lies in the trash, for a bounded time."""
    try:
        with anyio.fail_after(DEADLINE_SECONDS):
            left = await _emptied(trash)
    except TimeoutError:
        log.warning("deleting %s takes too long; the next start goes on with it", trash)
    except OSError as error:
        log.warning("%s cannot be emptied: %s", trash, error.strerror)
    else:
        if left:
            log.warning("what finished runs left cannot be deleted: %s in %s", ", ".join(left[:MAX_NAMED]), trash)


async def _emptied(trash: Path) -> list[str]:
    """Delete all entries; returns those that stay.

    `rm` and `find` follow no link and go to any depth, and no other thread of Python waits for each of many thousand
    files. But they would enter a mount, so an entry with one stays.
    """
    if untrusted.kind_of(trash) != "a folder":  # a link would lead elsewhere
        return []
    names, mounted = os.listdir(trash), _with_mounts(trash)  # noqa: PTH208  # names only
    chosen = [f"./{name}" for name in names if name not in mounted]
    for start in range(0, len(chosen), MAX_ARGUMENTS):
        some = chosen[start : start + MAX_ARGUMENTS]
        await _ran(trash, "rm", "-rf", "--", *some)
        if closed := _lying(trash, some):
            await _ran(trash, "find", *closed, *OPEN)
            await _ran(trash, "rm", "-rf", "--", *closed)
    return _lying(trash, sorted(names))


def _lying(trash: Path, names: Iterable[str]) -> list[str]:
    return [name for name in names if os.path.lexists(trash / name)]


async def _ran(trash: Path, *argv: str) -> None:
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    await process.capture(argv, cwd=trash, environment=environment, timeout_seconds=DEADLINE_SECONDS)


def _with_mounts(trash: Path) -> set[str]:
    """The entries of the trash in which something is mounted."""
    top = os.path.realpath(trash) + "/"
    with suppress(OSError):  # no /proc: a system on which no session can mount
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        points = (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split(" ")[4]) for line in lines)
        return {point.removeprefix(top).partition("/")[0] for point in points if point.startswith(top)}
    return set()


def older_than(folder: Path, seconds: float) -> Iterator[Path]:
    """The entries of a folder that were changed longer ago; others may remove some of them meanwhile."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            with suppress(FileNotFoundError):
                if time.time() - entry.lstat().st_mtime > seconds:
                    yield entry
