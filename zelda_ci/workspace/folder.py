"""Folders of runs: leases that show which are alive, and the end of what a dead one left, processes included."""

import json
import logging
import os
import secrets
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from zelda_ci.domain.variables import MARKER
from zelda_ci.errors import LockError
from zelda_ci.files import locks
from zelda_ci.process import removal
from zelda_ci.sandbox import programs
from zelda_ci.sandbox.run_folder import WorkspaceFolder, read_json_object

TIMEOUT_SECONDS = 2.0
# Longer than any run lives.
DOUBTFUL_SECONDS = 86_400.0


async def end_orphans(run_folder: Path) -> int:
    """Kill the orphans of one run and wait until they are gone; returns how many there were."""
    killed = 0
    with anyio.move_on_after(TIMEOUT_SECONDS):
        while count := _kill(run_folder):
            killed += count
            await anyio.sleep(0.01)
    return killed


def kill_supervised() -> None:
    """Have every supervisor that this process has started kill at once what it supervises."""
    for process in _processes():
        with suppress(OSError, IndexError):
            handle = os.pidfd_open(int(process.name))
            try:
                if _is_supervisor_of_ours(process):
                    signal.pidfd_send_signal(handle, signal.SIGQUIT)
            finally:
                os.close(handle)


def _is_supervisor_of_ours(process: Path) -> bool:
    parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[1]
    return int(parent) == os.getpid() and os.fsencode(programs.SUPERVISOR) in _argv(process)


def _argv(process: Path) -> list[bytes]:
    return (process / "cmdline").read_bytes().split(b"\0")


def _kill(run_folder: Path) -> int:
    return sum(_killed(process, os.fsencode(f"{MARKER}={run_folder}")) for process in _processes())


def _processes() -> Iterator[Path]:
    with suppress(OSError):  # no /proc: a system without this means
        for name in os.listdir("/proc"):  # noqa: PTH208  # names only, and there may be thousands
            if name.isdecimal() and int(name) != os.getpid():
                yield Path("/proc", name)


def _killed(process: Path, mark: bytes) -> bool:
    """Kill it if it bears the mark. The descriptor, taken before the look, cannot come to mean another process."""
    try:
        if mark not in (process / "environ").read_bytes().split(b"\0"):
            return False
        handle = os.pidfd_open(int(process.name))
    except OSError:
        return False
    try:
        # Once more: the number may have become another process's before the descriptor was taken.
        if mark not in (process / "environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckoutIndex:
    """A git index, with the time at which git wrote it.

    The time matters: git trusts a file's own times only where they are older than the index's.
    """

    content: bytes
    written_ns: int

    @classmethod
    def read(cls, file: Path) -> "CheckoutIndex":
        """The index in a file of ours."""
        return cls(file.read_bytes(), file.stat().st_mtime_ns)

    def write(self, file: Path) -> None:
        """Put it down again as it was."""
        file.write_bytes(self.content)
        os.utime(file, ns=(self.written_ns, self.written_ns))


@asynccontextmanager
async def claimed(project_home: Path, run_id: str) -> AsyncIterator[WorkspaceFolder]:
    """A new folder, removed on leaving together with every process that bears its mark."""
    async with locks.locked(_lock(project_home)):
        folder = _create(project_home, run_id)
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await _end(folder.path, project_home)
        os.close(folder.number)


@asynccontextmanager
async def scratch(project_home: Path) -> AsyncIterator[Path]:
    """A folder for a short while, which no session has ever seen."""
    async with locks.locked(_lock(project_home)):
        path, number = _claim(project_home)
    try:
        yield path
    finally:
        with anyio.CancelScope(shield=True):
            await removal.discard(path, project_home / "trash")
        os.close(number)


async def sweep(project_home: Path) -> list[str]:
    """Remove what dead Zelda processes left of their runs; the lock of a living one cannot be taken."""
    swept = []
    for path in _entries(project_home / "runs"):
        async with locks.locked(_lock(project_home)):
            is_dead, number = _claimed_dead_run(path)
        if is_dead:
            try:
                run_id = read_json_object(path / "meta.json").get("runId")
                await _end(path, project_home)
                swept += [run_id] if isinstance(run_id, str) else []
            finally:
                if number is not None:
                    os.close(number)
    await removal.empty(project_home / "trash")
    return swept


def _claimed_dead_run(path: Path) -> tuple[bool, int | None]:
    """Whether a run is dead, and its lock where it has one; in doubt it lives, but for a day at most."""
    if path.is_symlink() or not path.is_dir():
        return os.path.lexists(path), None
    try:
        number = locks.try_lock(path / "lock")
    except FileNotFoundError:  # another sweep was quicker
        return False, None
    except (OSError, LockError) as error:
        if path in removal.older_than(path.parent, DOUBTFUL_SECONDS):
            return True, None
        log.warning("%s is left as it is for a day, since it is not known whether its run is over: %s", path, error)
        return False, None
    return number is not None, number


async def _end(path: Path, project_home: Path) -> None:
    # Processes first: they would write into the folder while it is removed.
    await end_orphans(path)
    await removal.discard(path, project_home / "trash")


def _create(project_home: Path, run_id: str) -> WorkspaceFolder:
    path, number = _claim(project_home)
    try:
        (path / "home").mkdir(mode=0o700)
        (path / "tmp").mkdir(mode=0o700)
        (path / "meta.json").write_text(json.dumps(_meta(run_id)))
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        os.close(number)
        raise
    return WorkspaceFolder(path, number)


def _claim(project_home: Path) -> tuple[Path, int]:
    """A new folder with a lock in it, and the lock taken."""
    path = project_home / "runs" / secrets.token_hex(4)
    path.mkdir(mode=0o700, parents=True)
    try:
        number = locks.try_lock(path / "lock")
    except OSError:
        path.rmdir()
        raise
    assert number is not None  # noqa: S101  # nobody else knows this name
    return path, number


def _lock(project_home: Path) -> Path:
    project_home.mkdir(mode=0o700, exist_ok=True)
    return project_home / "runs.lock"


def _meta(run_id: str) -> Mapping[str, object]:
    """For people: who holds a run is told by its lock alone."""
    return {"runId": run_id, "pid": os.getpid(), "startedAt": datetime.now(UTC).isoformat(timespec="seconds")}


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
