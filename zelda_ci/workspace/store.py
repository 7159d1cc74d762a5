"""The private copy of a tested commit, made once, and the worktree of a run that borrows from it.

One folder per commit, depth and what is withheld, so that a session finds the objects of the commit it works on and no
other. It is renamed into place when it is whole.
"""

import json
import os
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

import anyio
import anyio.to_thread

from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.workspace import SuiteFinder, Withheld
from zelda_ci.errors import LockError, WorkspaceError
from zelda_ci.files import locks, untrusted
from zelda_ci.process import removal
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import contents
from zelda_ci.workspace.folder import claimed
from zelda_ci.workspace.git import Git, TreeFile, borrowing, create_repository
from zelda_ci.workspace.objects import Objects, is_below, newest_commits, rewrite
from zelda_ci.workspace.source import LargeFile, Project, Submodule

# Stores kept per project, beside those in use, and for how long. Systems that tidy temporary folders remove single
# files that are older than ten days.
KEPT = 3
KEPT_SECONDS = 7 * 86_400.0
# How long another run may be at fetching what this one needs too: twice what git may take.
FETCH_SECONDS = 1_800.0

START = "refs/zelda/start"


@dataclass(frozen=True)
class Store:
    """A bare repository with one commit and its files."""

    folder: Path
    commit: str
    """The tested one, or what is left of it without what no session may see."""
    withheld: Withheld = field(default_factory=Withheld)

    @property
    def objects(self) -> Path:
        """What runs borrow; written by nobody after it was made."""
        return self.folder / "objects"

    @property
    def notes(self) -> Sequence[str]:
        """Sentences about what is withheld and is no suite; that suites are goes without saying."""
        beside = self.withheld.beside
        return [f"Not in the workspace, since they lie in a folder of suites: {some_of(beside)}."] if beside else []


@asynccontextmanager
async def borrowed(
    project_home: Path, project: Project, git: Git, depth: int = 1, finder: SuiteFinder | None = None
) -> AsyncIterator[Store]:
    """The store of a commit and those before it, `depth` in all, kept while in use; whole without a finder."""
    stores, name = project_home / "stores", [project.commit, str(depth), project.source.contents.key]
    if finder:
        identity = f"{finder.key} {project.prefix}".encode("utf-8", "surrogateescape")
        name.append(sha256(identity).hexdigest()[:12])
    folder = stores / "-".join(filter(None, name))
    async with _locked(stores) as number:
        if (store := _read(folder)) is None:
            await removal.discard(folder, project_home / "trash")
            async with claimed(project_home) as place:
                await _make(place.path / "store", git, project, depth, finder, number)
                (place.path / "store").rename(folder)
            store = _read(folder)
        if store is None:
            raise WorkspaceError(f"{folder} is incomplete although it was just made.")
        used = locks.try_lock(folder / "used", shared=True)
        # Before stores are retired, or this one could be the one that was used longest ago.
        os.utime(folder / "used")
        await _retire(project_home)
    try:
        yield store
    finally:
        if used is not None:
            os.close(used)


async def prune(project_home: Path) -> None:
    """Remove the stores of one project that are old."""
    if (project_home / "stores").is_dir():
        async with _locked(project_home / "stores"):
            await _retire(project_home)


async def _retire(project_home: Path) -> None:
    """Remove stores that are old, or not among the few that were used last; none that is in use."""
    stores = filter(Path.is_dir, (project_home / "stores").iterdir())
    folders = sorted(stores, key=lambda folder: _time_of(folder / "used"))
    limit, more = time.time() - KEPT_SECONDS, folders[:-KEPT]
    for folder in folders:
        if folder in more or _time_of(folder / "about.json") < limit:
            with suppress(OSError, LockError):  # whoever borrows it next makes it anew
                if (number := locks.try_lock(folder / "used")) is not None:
                    await removal.discard(folder, project_home / "trash")
                    os.close(number)


@asynccontextmanager
async def _locked(stores: Path) -> AsyncIterator[int]:
    os.makedirs(stores, mode=0o700, exist_ok=True)  # noqa: PTH103  # a moment
    wait = partial(locks.wait_for, stores / "lock", patience=FETCH_SECONDS)
    # However many wait, no thread of those that end the wait is taken.
    number = await anyio.to_thread.run_sync(wait, limiter=anyio.CapacityLimiter(1))
    try:
        yield number
    finally:
        os.close(number)


async def _make(folder: Path, git: Git, project: Project, depth: int, finder: SuiteFinder | None, number: int) -> None:
    create_repository(folder, project.commit)
    # What git makes on the way lies beside it.
    made = folder.with_name("objects")
    made.mkdir()
    parts = (it.repository for it in project.parts if isinstance(it, Submodule))
    git = git.within(folder, GIT_DIR=str(folder), GIT_OBJECT_DIRECTORY=str(made))
    git = borrowing(git, project.objects, *parts)
    prefix = "" if project.prefix == Path() else project.prefix.as_posix()
    try:
        async with Objects(git, project.known) as objects:
            commits, cut = await newest_commits(objects, project.commit, depth)
            replacements = await contents.replacements(git, project.parts)
            withheld = await rewrite(git, START, objects, commits, replacements, finder, prefix, cut)
        if not (folder / START).exists():
            (folder / START).parent.mkdir()
            (folder / START).write_text(f"{project.commit}\n")
            if cut:
                (folder / "shallow").write_text("".join(f"{name}\n" for name in sorted(cut)))
        # No `git repack`, which would take over all that a partial clone has fetched, suites too.
        pack = "--delta-base-offset", str(folder / "objects/pack/pack")
        await git("pack-objects", "-q", "--revs", *pack, stdin=f"{START}\n".encode(), inherit=(number,))
    except WorkspaceError as error:
        if error.code == "GIT_FAILED" and [*(project.objects / "objects/pack").glob("*.promisor")]:
            hint = "Clone without --filter (in a workflow: no `filter` for the checkout action)."
            message = "This is a partial clone, and files of the tested commit are not in it."
            raise WorkspaceError(message, hint=hint, code="PARTIAL_CLONE") from error
        raise
    (folder / "about.json").write_text(json.dumps({"paths": sorted(withheld.paths), "beside": withheld.beside}))
    (folder / "used").touch(mode=0o600)


def _read(folder: Path) -> Store | None:
    """A store that is there and not damaged."""
    try:
        about = json.loads(untrusted.read(folder / "about.json"))
        commit = untrusted.read(folder / START).decode().strip()
        withheld = Withheld(frozenset(about["paths"]), tuple(about["beside"]))
        packs = {file.suffix for file in (folder / "objects" / "pack").iterdir()}
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return Store(folder, commit, withheld) if {".pack", ".idx"} <= packs else None


def _time_of(file: Path) -> float:
    with suppress(OSError):
        return file.lstat().st_mtime
    return 0.0


@dataclass(frozen=True)
class TestedFiles:
    """What was tested, and where its contents can be read."""

    __test__ = False  # not a pytest class

    files: Sequence[TreeFile]
    """Without suites and configuration."""
    whole: Sequence[TreeFile]
    """What build and test commands find, where that is more."""
    git: Git
    """In a repository that has all contents."""
    folder: str
    """The project's, from the top; empty at the top."""


def tested_files(project: Project, withheld: Collection[str]) -> Iterator[TreeFile]:
    """The files of the tested commit and of its submodules, without paths that are withheld."""
    # Of a file of Git LFS that is there, the content is the hash by which Git LFS knows it.
    large = {part.path: part.content for part in project.parts if isinstance(part, LargeFile)}
    full = {part.path: part.files for part in project.parts if isinstance(part, Submodule) and part.files}
    inside = (replace(file, path=f"{place}/{file.path}") for place, files in full.items() for file in files)
    for file in chain(project.files, inside):
        if not (is_below(file.path, withheld) or file.path in full):
            yield replace(file, content=large.get(file.path, file.content))


async def add_worktree(folder: WorkspaceFolder, project: Project, store: Store, git: Git) -> None:
    """Make a repository that borrows from a store, and check out the store's commit in a worktree of it."""
    settings, cut = project.repository.settings, store.folder / "shallow"
    create_repository(folder.git_dir, store.commit, settings=settings, borrow=store.objects, cut=cut)
    inside = git.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    await inside("worktree", "add", "-q", "--detach", str(folder.root), store.commit, inherit=(folder.number,))


def make_folder(root: Path, inside: Path) -> None:
    """A project of nothing but suites has no folder in the tree; nothing is made beyond a link."""
    place = root
    for part in inside.parts:
        place /= part
        if not os.path.lexists(place):
            place.mkdir()
        if place.is_symlink() or not place.is_dir():
            return
