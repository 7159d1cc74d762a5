"""Folders of runs: leases that show which are alive, and the end of what a dead one left, processes included."""

import json
import logging
import os
import re
import secrets
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from zelda_ci.domain.variables import MARKER
from zelda_ci.errors import LockError
from zelda_ci.files import atomic, locks, ownership
from zelda_ci.process import removal
from zelda_ci.sandbox import programs
from zelda_ci.sandbox.run_folder import WorkspaceFolder, read_json_object

TIMEOUT_SECONDS = 2.0
# Longer than any run lives.
DOUBTFUL_SECONDS = 86_400.0
# The name of a link or lease before it is put into its place.
HALF_MADE = re.compile(r"\.[0-9a-f]{8}")


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
async def claimed(project_home: Path, run_id: str, results_dir: Path) -> AsyncIterator[WorkspaceFolder]:
    """A new folder, removed on leaving together with every process that bears its mark."""
    async with locks.locked(_lock(project_home)):
        folder = _create(project_home, run_id, results_dir)
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await _end(folder.path, project_home, run_id, results_dir)
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


@contextmanager
def announced(folder: WorkspaceFolder, run_id: str, results_dir: Path) -> Iterator[bool]:
    """Link to the work tree from the project and hold a lease there; false where the project cannot be written.

    Whoever works on the same project in another container does not see the work tree; the lease's lock it does see.
    """
    listing = results_dir / "workspaces"
    draft = _draft(folder.path, results_dir)
    lease = None
    try:
        ownership.make_folder(listing)
        holder = json.dumps({**_meta(run_id), "folder": str(folder.path), "workspace": str(folder.root)})
        # First: a link without a lease is a dead run's for whoever cannot see the folder.
        lease = locks.lease(listing / f"{run_id}.json", holder, draft)
        atomic.replace_link(listing / run_id, folder.root, draft)
        is_writable = True
    except (OSError, LockError) as error:
        log.info("%s cannot be written: %s", listing, error)
        is_writable = False
    try:
        yield is_writable
    finally:
        if lease is not None:
            os.close(lease)


async def sweep(project_home: Path) -> list[str]:
    """Remove what dead Zelda processes left of their runs; the lock of a living one cannot be taken."""
    swept = []
    for path in _entries(project_home / "runs"):
        async with locks.locked(_lock(project_home)):
            is_dead, number = _claimed_dead_run(path)
        if is_dead:
            try:
                swept += await _end_dead_run(path, project_home)
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


def forget_vanished(results_dir: Path) -> None:
    """Remove links and leases in the project whose folder is gone, for instance with the system's temporary files."""
    listing = results_dir / "workspaces"
    for place in _entries(listing):
        # In another container, the folder of a living run cannot be seen.
        is_dead = not any(locks.is_held(file) for file in (place, listing / f"{place.name}.json") if file.is_file())
        with suppress(OSError):
            folder = _folder_of(place)
            if folder is not None and is_dead and not os.path.lexists(folder):
                place.unlink()


def _folder_of(place: Path) -> Path | None:
    """The folder of the run that a link or lease belongs to; absent for what is none of ours."""
    if place.is_symlink():
        target = place.readlink()
        return target.parent if (target.name, target.parent.parent.name) == ("ws", "runs") else None
    if HALF_MADE.fullmatch(place.name):
        return place / "none"
    named = read_json_object(place).get("folder") if place.suffix == ".json" else None
    return Path(named) if isinstance(named, str) else None


async def _end_dead_run(path: Path, project_home: Path) -> list[str]:
    """Remove one dead run, or nothing but the folder if it is not known whose it was."""
    meta = read_json_object(path / "meta.json")
    run_id, results = meta.get("runId"), meta.get("results")
    is_ours = isinstance(run_id, str) and isinstance(results, str)
    await _end(path, project_home, str(run_id), Path(str(results)) if is_ours else None)
    return [str(run_id)] if is_ours else []


async def _end(path: Path, project_home: Path, run_id: str, results_dir: Path | None) -> None:
    # Processes first: they would write into the folder while it is removed.
    await end_orphans(path)
    if results_dir is not None:
        _retract(path, run_id, results_dir)
    await removal.discard(path, project_home / "trash")


def _create(project_home: Path, run_id: str, results_dir: Path) -> WorkspaceFolder:
    path, number = _claim(project_home)
    try:
        (path / "home").mkdir(mode=0o700)
        (path / "tmp").mkdir(mode=0o700)
        (path / "meta.json").write_text(json.dumps({**_meta(run_id), "results": str(results_dir)}))
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


def _retract(path: Path, run_id: str, results_dir: Path) -> None:
    """Remove link and lease, if they are this run's: what was read from a run's folder is not to be trusted."""
    # It becomes part of a path.
    if not re.fullmatch(r"[\w.-]+", run_id):
        return
    link, lease = (results_dir / "workspaces" / name for name in (run_id, f"{run_id}.json"))
    with suppress(OSError):
        if link.readlink().is_relative_to(path):
            link.unlink()
    with suppress(OSError):
        if read_json_object(lease).get("folder") == str(path):
            lease.unlink()
    with suppress(OSError):
        _draft(path, results_dir).unlink()


def _draft(path: Path, results_dir: Path) -> Path:
    return results_dir / "workspaces" / f".{path.name}"


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
