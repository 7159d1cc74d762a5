"""A user of its own for each run, where Zelda is root: files and processes of others are closed to it."""

import os
import pwd
import random
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from zelda_ci import process
from zelda_ci.errors import LockError, WorkspaceError
from zelda_ci.files import locks
from zelda_ci.process import removal
from zelda_ci.sandbox import programs
from zelda_ci.sandbox.launcher import leftovers
from zelda_ci.sandbox.levels import USERS
from zelda_ci.sandbox.run_folder import WorkspaceFolder

ATTEMPTS = 100


@asynccontextmanager
async def borrowed(base: Path) -> AsyncIterator[int]:
    """A user id that is nobody's, for as long as this process lives or the context lasts; an error if none is free."""
    claims = base / "users"
    claims.mkdir(mode=0o700, exist_ok=True)
    # At random, so that runs of several Zeldas (in containers that share no locks, too) seldom try the same one.
    for uid in random.sample(USERS, ATTEMPTS):
        with suppress(KeyError):
            pwd.getpwuid(uid)
            continue
        file = claims / str(uid)
        # A Zelda that shares no locks with this one may have it.
        if not leftovers.running(uid) and (number := _claim(file)) is not None:
            try:
                yield uid
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(_release, file, number)
            return
    raise WorkspaceError("There is no free user id for a run.", code="NO_USER")


def _claim(file: Path) -> int | None:
    """The descriptor of a claim to a user; None where another run has it, or no file lies there."""
    with suppress(LockError):
        return locks.try_lock(file)
    return None


def _release(file: Path, number: int) -> None:
    remove_leftovers(int(file.name))
    file.unlink(missing_ok=True)
    os.close(number)


def sweep(base: Path) -> None:
    """Remove what the users of killed runs have left, and their claims; the lock of a living run cannot be taken."""
    with suppress(OSError):
        for file in list((base / "users").iterdir()):
            is_claim = file.name.isdecimal() and int(file.name) in USERS
            if is_claim and (number := _claim(file)) is not None:
                _release(file, number)


def remove_leftovers(uid: int) -> None:
    """End and remove what a run's user has left: build and tests have the number, and another run may."""
    # Others make and remove files there meanwhile, and a hostile tree may be deeper than Python's stack.
    places = [*map(str, programs.TEMPORARY), "-mindepth", "1", "-maxdepth", "1", "-user", str(uid)]
    removals = [["find", *places, "-exec", "rm", "-rf", "--", "{}", "+"]]
    if leftovers.running(uid) or leftovers.owned(uid):
        # Becomes the user itself: Python may lie where the user cannot start it.
        removals.insert(0, [*programs.python(), str(programs.START), "leftovers", str(uid)])
    for argv in removals:
        with suppress(OSError, TimeoutError):
            process.answer(argv, timeout_seconds=removal.DEADLINE_SECONDS)


def chown_to_run_user(run: WorkspaceFolder, base: Path, objects: Sequence[Path], uid: int) -> None:
    """Make the run's folders the user's, and let it read the objects and pass through the folders above both."""
    _change(["chmod", "-R", "a+rX"], [*objects, run.path / "inner"])
    for folder in (folder for place in (run.path.parent, *objects) for folder in (place, *place.parents)):
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & stat.S_IXOTH:
            continue
        if not folder.is_relative_to(base):
            message = f"The run's own user cannot reach its workspace: {folder} is closed to others."
            hint = "Set ZELDA_WORKSPACES to a folder that every user may pass through, such as /var/tmp/zelda."
            raise WorkspaceError(message, hint=hint, code="WORKSPACE_LOCATION")
        folder.chmod(mode | stat.S_IXOTH)
    # No other run's user comes through here, whatever it knows of the path; and the run itself cannot rename or replace
    # what lies in its own folder, whose owner stays root.
    os.chown(run.path, -1, uid)
    run.path.chmod(0o710)
    _change(["chown", "-hR", f"{uid}:{uid}"], [run.root, run.git_dir, run.home, run.tmp, run.private])


def _change(argv: Sequence[str], places: Sequence[Path]) -> None:
    words = [*argv, "--", *map(str, filter(Path.exists, places))]
    done = process.answer(words, timeout_seconds=removal.DEADLINE_SECONDS)
    if done.exit_code:
        raise OSError(done.stderr.decode("utf-8", "replace").strip())
