"""Bare repositories of Zelda's own: made as drafts, kept under a name in one step, and removed when they are old."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.files import locks
from zelda_ci.process import removal
from zelda_ci.workspace.git import Git, alternate

# Snapshots, and commits that were brought for a comparison, in a project's folder among the workspaces.
TREES, BASES = "trees", "bases"
KEPT_SECONDS = 86_400.0
DRAFT = "draft-"


def create(
    folder: Path,
    *,
    object_format: str = "sha1",
    settings: Mapping[str, str] | None = None,
    borrow: Path | None = None,
    shallow: bytes = b"",
) -> None:
    """Make an empty repository in a new folder: no remotes, no hooks, nothing of the user's but checkout settings.

    It may borrow the objects of another object folder, which it never writes.
    """
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "info").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(_configuration(object_format, settings or {}))
    if borrow is not None:
        borrow_from(folder, borrow)
    if shallow:
        (folder / "shallow").write_bytes(shallow)


def borrow_from(folder: Path, objects: Path) -> None:
    """Let a repository of ours find the objects of another, whatever the name of the folder."""
    (folder / "objects" / "info" / "alternates").write_bytes(alternate(objects) + b"\n")


def borrowing(git: Git, repository: Path) -> Git:
    """Git on a repository of ours that also finds the objects of another: its settings and hooks are nothing to it."""
    return git.within(git.cwd, GIT_ALTERNATE_OBJECT_DIRECTORIES=os.fsdecode(alternate(repository / "objects")))


def _configuration(object_format: str, settings: Mapping[str, str]) -> str:
    values = {
        "core.repositoryformatversion": "0" if object_format == "sha1" else "1",
        "core.filemode": "true",
        "core.logallrefupdates": "true",
        "core.hookspath": "/dev/null",
        "gc.auto": "0",
        "maintenance.auto": "false",
        **settings,
        "core.bare": "true",
    }
    if object_format != "sha1":
        values["extensions.objectformat"] = object_format
    return "".join(_line(name, value) for name, value in values.items())


def _line(setting: str, value: str) -> str:
    section, name = setting.split(".", 1)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{name} = "{escaped}"\n'


@asynccontextmanager
async def draft(folder: Path, object_format: str, shallow: bytes = b"") -> AsyncIterator[Path]:
    """An empty repository in a folder of them, locked while it is a draft, removed on leaving unless it was kept."""
    place = folder / f"{DRAFT}{secrets.token_hex(4)}"
    held = ExitStack()

    def make() -> None:
        for above in (folder.parent, folder):
            above.mkdir(mode=0o700, exist_ok=True)
        place.mkdir(mode=0o700)
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        held.callback(os.close, descriptor)
        locks.lock_open(descriptor)
        create(place, object_format=object_format, shallow=shallow)

    try:
        await anyio.to_thread.run_sync(make)
        yield place
    finally:
        held.close()
        with anyio.CancelScope(shield=True):
            await removal.discard(place, folder.parent / "trash")


def keep(place: Path, target: Path) -> None:
    """Give a draft its name, in one step, so that a folder of that name is whole; another process may be first."""
    try:
        place.rename(target)
    except OSError as problem:
        if not target.is_dir():
            raise WorkspaceError(f"{target} could not be made: {problem.strerror}.") from problem
        os.utime(target)


async def prune(home: Path) -> None:
    """Remove those that nobody needs any more, and what killed processes left."""
    for folder in (home / TREES, home / BASES):
        for old in removal.older_than(folder, KEPT_SECONDS):
            await removal.discard(old, home / "trash")
        for abandoned in _abandoned(folder):
            await removal.discard(abandoned, home / "trash")


def _abandoned(folder: Path) -> Iterator[Path]:
    """The drafts of processes that were killed; in its first second a draft may not be locked yet."""
    for place in removal.older_than(folder, 1.0):
        if not place.name.startswith(DRAFT):
            continue
        with suppress(OSError):
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                locks.lock_open(descriptor)
                yield place
            finally:
                os.close(descriptor)
