"""The private copy of a tested commit, made once, and the worktree of a run that borrows from it.

One folder per commit, depth and what is withheld, so that a session finds the objects of the commit it works on and no
other. It is renamed into place when it is whole.
"""

import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import anyio.to_thread

from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.workspace import SuiteFinder, Withheld
from zelda_ci.errors import LockError, WorkspaceError
from zelda_ci.files import locks, untrusted
from zelda_ci.process import removal
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import contents, history, repositories
from zelda_ci.workspace.folder import CheckoutIndex
from zelda_ci.workspace.git import FETCH, Git, TreeFile, list_tree
from zelda_ci.workspace.source import Repository, TreeParts

# Commits kept per project, beside those in use.
KEPT = 3

KEPT_SECONDS = 14 * 86_400.0
# How long another run may be at fetching what this one needs too: twice what git may take.
FETCH_SECONDS = 1_800.0

START = "refs/zelda/start"
LFS = "lfs"
# A partial clone would otherwise fetch what it lacks: over the network, into the user's repository.
UPLOAD_PACK = "GIT_ALLOW_PROTOCOL=none git upload-pack"


@dataclass(frozen=True)
class Store:
    """A bare repository with one commit and its files."""

    folder: Path
    commit: str = ""
    """The tested one, or what is left of it without what no session may see."""
    withheld: Withheld = field(default_factory=Withheld)
    notes: tuple[str, ...] = ()
    """What a checkout of it cannot show, in sentences."""
    submodules: tuple[str, ...] = ()

    @property
    def objects(self) -> Path:
        """What runs borrow; written by nobody after it was made."""
        return self.folder / "objects"

    @property
    def shallow(self) -> bytes:
        """Where history was cut."""
        file = self.folder / "shallow"
        return file.read_bytes() if file.exists() else b""


@dataclass(frozen=True)
class CheckoutOrder:
    """What a store is to hold."""

    repository: Repository
    commit: str
    depth: int = 1
    finder: SuiteFinder | None = None
    """Finds what to withhold; without it nothing is."""
    project: Path = Path()
    """The folder that is tested, from the top of the tree."""
    parts: TreeParts | None = None
    """What the checkout has of submodules and of Git LFS."""
    pointers: tuple[str, ...] = ()
    """Files of Git LFS of which it has no content."""

    @property
    def name(self) -> str:
        parts = f"-{self.parts.key}" if self.parts and self.parts.key else ""
        if self.finder is None:
            return f"{self.commit}-{self.depth}{parts}"
        identity = f"{self.finder.key} {self.project}".encode("utf-8", "surrogateescape")
        return f"{self.commit}-{self.depth}-{sha256(identity).hexdigest()[:12]}{parts}"


@asynccontextmanager
async def borrowed(project_home: Path, order: CheckoutOrder, plumbing: Git) -> AsyncIterator[Store]:
    """The store of a commit, kept from removal while in use.

    Raises:
        WorkspaceError: The user's repository lacks objects of the commit, or there is no room.
    """
    stores = project_home / "stores"
    folder = stores / order.name
    async with locks.locked(_lock(stores), patience=FETCH_SECONDS) as number:
        store = await anyio.to_thread.run_sync(_complete, folder)
        if store is None:
            await anyio.to_thread.run_sync(_clear, stores)
            await removal.discard(folder, project_home / "trash")
            await _fetch(order, folder, plumbing, number)
            store = await anyio.to_thread.run_sync(_complete, folder)
        if store is None:
            raise WorkspaceError(f"{folder} is incomplete although it was just made.")
        used = locks.try_lock(folder / "used", shared=True)
        # Before stores are retired, or this one could be the one that was used longest ago.
        os.utime(folder / "used")
        await anyio.to_thread.run_sync(_retire, stores, KEPT)
    try:
        yield store
    finally:
        if used is not None:
            os.close(used)


async def prune(project_home: Path) -> None:
    """Remove what killed processes left of a fetch, and the stores of one project that nobody used for two weeks."""
    stores = project_home / "stores"
    if stores.is_dir():  # a moment
        async with locks.locked(_lock(stores), patience=FETCH_SECONDS):
            await anyio.to_thread.run_sync(_clear, stores)
            await anyio.to_thread.run_sync(_retire, stores, KEPT, time.time() - KEPT_SECONDS)


async def _fetch(order: CheckoutOrder, folder: Path, plumbing: Git, number: int) -> None:
    async with repositories.draft(folder.parent, order.repository.object_format) as draft:
        git = plumbing.within(draft, GIT_DIR=str(draft))
        await _fetch_objects(git, order, number)
        commit, withheld = await _rewrite(git, order)
        about = {
            "filters": await _filters(git),
            "pointers": sorted(order.pointers),
            "submodules": [path for path, _ in await contents.gitlinks(git, START)],
            "commit": commit,
            "paths": sorted(withheld.paths),
            "beside": withheld.beside,
        }
        await anyio.to_thread.run_sync(_seal, draft, about)
        await anyio.to_thread.run_sync(repositories.keep, draft, folder)


async def _rewrite(git: Git, order: CheckoutOrder) -> tuple[str, Withheld]:
    """Put in what the checkout has of what commits only name, and take out what no session may see."""
    replacements = await contents.replacements(git, order.parts) if order.parts else {}
    if not (replacements or order.finder):
        return order.commit, Withheld()
    project = "" if order.project == Path() else order.project.as_posix()
    return await history.rewrite(git, START, replacements, order.finder, project)


async def _fetch_objects(git: Git, order: CheckoutOrder, number: int) -> None:
    arguments = (*FETCH, f"--depth={order.depth}", "--upload-pack", UPLOAD_PACK, "--")
    refspec = f"{order.commit}:{START}"
    outcome = await git.attempt(*arguments, str(order.repository.common_dir), refspec, inherit=(number,))
    if b"promisor remote" in outcome.stderr or b"lazy fetching disabled" in outcome.stderr:
        raise WorkspaceError(
            "This is a partial clone, and files of the tested commit are not in it.",
            hint="Clone without --filter (in a workflow: no `filter` for the checkout action).",
            code="PARTIAL_CLONE",
        )
    if outcome.exit_code != 0:
        raise git.failure(arguments, outcome)


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


async def files_of(store: Store | None, plumbing: Git) -> list[TreeFile]:
    """List the files of its commit from a repository that no session can write."""
    return await list_tree(plumbing.within(store.folder, GIT_DIR=str(store.folder)), store.commit) if store else []


async def _filters(git: Git) -> list[str]:
    """Content filters run commands of the user's configuration, which no run has."""
    pattern = r"^[^#].*[[:space:]]filter=[^[:space:]]+"
    outcome = await git.attempt("grep", "-I", "-h", "-o", "-E", pattern, START, "--", ":(glob)**/.gitattributes")
    return sorted({line.rpartition("filter=")[2] for line in os.fsdecode(outcome.stdout).splitlines()})


def notes(withheld: Withheld) -> Iterator[str]:
    """What nobody may expect to be gone; that suites are is no news."""
    if withheld.beside:
        yield f"Not in the workspace, since they lie in a folder of suites: {some_of(withheld.beside)}."


def _notes(filters: Sequence[str], submodules: Sequence[str], pointers: Sequence[str]) -> Iterator[str]:
    if submodules:
        yield f"Submodules are empty folders in the workspace: {some_of(submodules)}."
    if pointers:
        yield f"Files of Git LFS are pointers in the workspace: {some_of(pointers)}."
    others = [name for name in filters if name != LFS]
    if others:
        yield f"Files with the content filter {some_of(others)} are as Git stores them."


def _seal(draft: Path, contents: Mapping[str, str | Sequence[str]]) -> None:
    """List what belongs to the store: a system that tidies temporary folders may later remove single files."""
    sizes = {str(file.relative_to(draft)): file.stat().st_size for file in draft.rglob("*") if file.is_file()}
    (draft / "used").touch(mode=0o600)
    (draft / "contents.json").write_text(json.dumps({"sizes": sizes, **contents}))


def _complete(folder: Path) -> Store | None:
    try:
        contents = json.loads(untrusted.read(folder / "contents.json"))
        whole = all((folder / name).stat().st_size == size for name, size in contents["sizes"].items())
        whole = whole and untrusted.is_regular((folder / "used").lstat())
        submodules, commit = tuple(contents["submodules"]), contents["commit"]
        pointers = tuple(contents["pointers"])
        withheld = Withheld(frozenset(contents["paths"]), tuple(contents["beside"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    if not whole:
        return None
    sentences = (*_notes(contents["filters"], submodules, pointers), *notes(withheld))
    return Store(folder, commit, withheld, sentences, submodules)


def _clear(stores: Path) -> None:
    """Remove drafts of killed processes, and stores that lost their mark of use: who makes one holds the lock."""
    for folder in filter(Path.is_dir, stores.iterdir()):
        with suppress(OSError):
            is_draft = folder.name.startswith(repositories.DRAFT)
            if not is_draft and untrusted.is_regular((folder / "used").lstat()):
                continue
        shutil.rmtree(folder, ignore_errors=True)


def _retire(stores: Path, limit: int, older_than: float | None = None) -> None:
    """Remove the stores that were used longest ago and are not in use."""
    by_use = sorted((_used_at(used), used) for used in stores.glob("*/used"))
    for used_at, used in by_use[: max(0, len(by_use) - limit)] if older_than is None else by_use:
        if older_than is not None and used_at > older_than:
            continue
        number = None
        with suppress(LockError):  # whoever borrows it next makes it anew
            number = locks.try_lock(used)
        if number is not None:
            shutil.rmtree(used.parent, ignore_errors=True)
            os.close(number)


def _used_at(used: Path) -> float:
    with suppress(OSError):
        return used.lstat().st_mtime
    return 0.0


def _lock(stores: Path) -> Path:
    stores.mkdir(mode=0o700, parents=True, exist_ok=True)
    return stores / "lock"


@dataclass(frozen=True)
class Start:
    """The state before the session, beyond its reach."""

    commit: str
    index: CheckoutIndex
    """Of the fresh work tree. It tells unchanged files by their times, so that only the others are read."""
    store: Store
    object_format: str
    settings: Mapping[str, str]
    whole: Store | None = None
    """With what the session does not see, where build and test commands do."""


async def check_out(
    folder: WorkspaceFolder, order: CheckoutOrder, lent: Store, whole: Store | None, plumbing: Git
) -> Start:
    """Make the repository, borrowing from the store, and check the commit out.

    Raises:
        WorkspaceError: There is no room, or a name that this file system cannot hold.
    """
    repository = order.repository
    repositories.create(
        folder.git_dir,
        object_format=repository.object_format,
        settings=repository.settings,
        borrow=lent.objects,
        shallow=lent.shallow,
    )
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    await git("worktree", "add", "-q", "--detach", str(folder.root), lent.commit, inherit=(folder.number,))
    make_folder(folder.root, order.project)
    index = await anyio.to_thread.run_sync(CheckoutIndex.read, folder.session_index)
    return Start(lent.commit, index, lent, repository.object_format, repository.settings, whole)


def make_folder(root: Path, inside: Path) -> None:
    """A project of nothing but suites has no folder in the tree; nothing is made beyond a link."""
    place = root
    for part in inside.parts:
        place /= part
        if not os.path.lexists(place):
            place.mkdir()
        if place.is_symlink() or not place.is_dir():
            return
