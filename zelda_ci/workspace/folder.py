"""One run's own folder: claimed by a lock that dies with its holder, announced in the project, removed at the end."""

import json
import logging
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from zelda_ci import locks, ownership
from zelda_ci.errors import LockError
from zelda_ci.workspace import removal, strays

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Index:
    """A git index, with the time at which git wrote it.

    The time matters: git trusts a file's own times only where they are older than the index's.
    """

    content: bytes
    written_ns: int

    @classmethod
    def read(cls, file: Path) -> "Index":
        """The index in a file of ours."""
        return cls(file.read_bytes(), file.stat().st_mtime_ns)

    def write(self, file: Path) -> None:
        """Put it down again as it was."""
        file.write_bytes(self.content)
        os.utime(file, ns=(self.written_ns, self.written_ns))


@dataclass(frozen=True)
class RunFolder:
    """Names of what lies in a run's folder. `number` is the descriptor of the lock that keeps it alive."""

    path: Path
    number: int

    @property
    def root(self) -> Path:
        """The work tree."""
        return self.path / "ws"

    @property
    def git_dir(self) -> Path:
        """The run's own repository, from which the work tree hangs."""
        return self.path / "git"

    @property
    def session_index(self) -> Path:
        """The work tree's own index, which is the session's to change."""
        return self.git_dir / "worktrees" / self.root.name / "index"

    @property
    def home(self) -> Path:
        """HOME of the session."""
        return self.path / "home"

    @property
    def tmp(self) -> Path:
        """TMPDIR of the session."""
        return self.path / "tmp"

    @property
    def private(self) -> Path:
        """What the session finds as the system's temporary folders."""
        return self.path / "private"

    @property
    def limit_report(self) -> Path:
        """Where a supervisor says which bound was reached; beyond the session's reach."""
        return self.path / "limit.json"

    def limit(self) -> str | None:
        """The sentence that a supervisor left, once."""
        self._open_again()
        sentence = _read(self.limit_report).get("sentence")
        with suppress(OSError):  # nothing, or something that a session has put there
            self.limit_report.unlink()
        return sentence if isinstance(sentence, str) else None

    def is_intact(self) -> bool:
        """Whether the work tree is still the folder that was made, and not a link to somewhere else."""
        self._open_again()
        return is_there(self.root)

    def _open_again(self) -> None:
        """Take the way in back, where a session of the same user has closed it."""
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            with suppress(OSError):
                removal.unlock(str(self.path))


@asynccontextmanager
async def claimed(project_home: Path, run_id: str, results_dir: Path) -> AsyncIterator[RunFolder]:
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
def announced(folder: RunFolder, run_id: str, results_dir: Path) -> Iterator[bool]:
    """Link to the work tree from the project and hold a lease there; false where the project cannot be written.

    Whoever works on the same project in another container does not see the work tree; the lease's lock it does see.
    """
    shown = results_dir / "workspaces"
    draft = _draft(folder.path, results_dir)
    lease = None
    try:
        ownership.make_folder(shown)
        draft.symlink_to(folder.root)
        draft.replace(shown / run_id)
        lease = locks.try_lock(draft, mode=0o666)
        draft.write_text(json.dumps({**_meta(run_id), "folder": str(folder.path), "workspace": str(folder.root)}))
        draft.replace(shown / f"{run_id}.json")
        written = True
    except (OSError, LockError) as error:
        log.info("%s cannot be written: %s", shown, error)
        written = False
    try:
        yield written
    finally:
        if lease is not None:
            os.close(lease)


async def sweep(project_home: Path) -> list[str]:
    """Remove what dead Zelda processes left of their runs; the lock of a living one cannot be taken."""
    swept = []
    for path in _entries(project_home / "runs"):
        async with locks.locked(_lock(project_home)):
            number = _claimed_remains(path)
        if number is not None or path.is_symlink():
            try:
                swept += await _end_remains(path, project_home)
            finally:
                if number is not None:
                    os.close(number)
    await removal.empty(project_home / "trash")
    return swept


def _claimed_remains(path: Path) -> int | None:
    """The lock of a dead run; nothing where its process lives, or where nobody can tell."""
    try:
        return None if path.is_symlink() else locks.try_lock(path / "lock")
    except FileNotFoundError:  # another sweep was quicker
        return None
    except (OSError, LockError) as error:
        log.warning("%s is left as it is, since nobody can tell whether its run is over: %s", path, error)
        return None


def is_there(place: Path) -> bool:
    """Whether a folder is where it should be; a link there would lead a command out of the workspace."""
    try:
        return place.is_dir() and os.path.realpath(place) == str(place)
    except OSError:  # a folder above it is closed
        return False


def forget_vanished(results_dir: Path) -> None:
    """Remove links and leases in the project whose folder is gone, for instance with the system's temporary files."""
    for lease in _entries(results_dir / "workspaces"):
        folder = _read(lease).get("folder") if lease.suffix == ".json" else None
        if isinstance(folder, str) and not os.path.lexists(folder) and not locks.is_held(lease):
            _retract(Path(folder), lease.stem, results_dir)


async def _end_remains(path: Path, project_home: Path) -> list[str]:
    """Remove one dead run, or nothing but the folder if it is not known whose it was."""
    meta = _read(path / "meta.json")
    run_id, results = meta.get("runId"), meta.get("results")
    known = isinstance(run_id, str) and isinstance(results, str)
    await _end(path, project_home, str(run_id), Path(str(results)) if known else None)
    return [str(run_id)] if known else []


async def _end(path: Path, project_home: Path, run_id: str, results_dir: Path | None) -> None:
    await strays.end(path)
    if results_dir is not None:
        _retract(path, run_id, results_dir)
    await removal.discard(path, project_home / "trash")


def _create(project_home: Path, run_id: str, results_dir: Path) -> RunFolder:
    path, number = _claim(project_home)
    try:
        (path / "home").mkdir(mode=0o700)
        (path / "tmp").mkdir(mode=0o700)
        (path / "meta.json").write_text(json.dumps({**_meta(run_id), "results": str(results_dir)}))
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        os.close(number)
        raise
    return RunFolder(path, number)


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
    if not re.fullmatch(r"[\w.-]+", run_id):
        return
    link, lease = (results_dir / "workspaces" / name for name in (run_id, f"{run_id}.json"))
    with suppress(OSError):
        if link.readlink().is_relative_to(path):
            link.unlink()
    with suppress(OSError):
        if _read(lease).get("folder") == str(path):
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


def _read(file: Path) -> dict[str, object]:
    """A small JSON object, or nothing; a session may have put anything in its place."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  # a descriptor
            found = json.loads(opened.read(1 << 16))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
