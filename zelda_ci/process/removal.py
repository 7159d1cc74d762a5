"""Deletes what a hostile session left: any depth, any mode, no link followed, no mount entered."""

import logging
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio

from zelda_ci import process
from zelda_ci.files import untrusted

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 120.0
MAX_NAMED = 5
# Lets the owner into folders that are closed to everybody.
OPEN = ("-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")


async def discard(path: Path, trash: Path) -> None:
    """Move a file or folder, if it is there, to a trash on its file system, and delete that; warn of what stays."""
    try:
        if untrusted.kind_of(trash) not in {None, "a folder"}:
            trash.unlink()  # noqa: ASYNC240 - a moment
        trash.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240 - as above
        name = secrets.token_hex(8)
        with untrusted.entered(path.parent) as folder, untrusted.entered(trash) as top:
            untrusted.move(path.name, folder, name, top)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error.strerror)
    else:
        # What others have moved there they delete themselves, at this moment.
        await empty(trash, name)


async def empty(trash: Path, only: str | None = None) -> None:
    """Delete all that lies in the trash, or one entry of it, for a bounded time."""

    def entries() -> list[str]:
        return [name for name in sorted(os.listdir(trash)) if only in (None, name)]  # noqa: PTH208  # names only

    # `rm` and `find` follow no link and go to any depth, and no other thread of Python waits for each of many thousand
    # files. But they would enter a mount, so an entry with one stays.
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    try:
        if untrusted.kind_of(trash) != "a folder":  # a link would lead elsewhere
            return
        mounted = _with_mounts(trash)
        with anyio.fail_after(DEADLINE_SECONDS):
            for program, *words in (("rm", "-rf", "--"), ("find", *OPEN), ("rm", "-rf", "--")):
                if names := [f"./{name}" for name in entries() if name not in mounted]:
                    argv = [program, *names, *words] if program == "find" else [program, *words, *names]
                    await process.capture(argv, trash, environment, DEADLINE_SECONDS)
        if left := entries():
            log.warning("what finished runs left cannot be deleted: %s in %s", ", ".join(left[:MAX_NAMED]), trash)
    except TimeoutError:
        log.warning("deleting %s takes too long; the next start goes on with it", trash)
    except OSError as error:
        log.warning("%s cannot be emptied: %s", trash, error.strerror)


def _with_mounts(trash: Path) -> set[str]:
    """Return the entries of the trash in which something is mounted."""
    top = os.path.realpath(trash) + "/"
    with suppress(OSError):  # no /proc: a system on which no session can mount
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        points = (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split(" ")[4]) for line in lines)
        return {point.removeprefix(top).partition("/")[0] for point in points if point.startswith(top)}
    return set()


def older_than(folder: Path, seconds: float) -> Iterator[Path]:
    """Yield the entries of a folder that were changed longer ago; others may remove some of them meanwhile."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            with suppress(FileNotFoundError):
                if time.time() - entry.lstat().st_mtime > seconds:
                    yield entry
