"""The copy of a folder that is not in any repository, made a repository of its own."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.from_thread

from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import bare
from zelda_ci.workspace.changes import Start
from zelda_ci.workspace.folder import Index, RunFolder
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.private_files import Ignored, is_private
from zelda_ci.workspace.store import Store, notes, some
from zelda_ci.workspace.withholding import LARGEST_TEXT

MOST_FILES = 200_000
MOST_BYTES = 4 << 30
TOO_LARGE = "Put the project under Git (git init, .gitignore, one commit): then only the commit is copied."

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Zelda CI"), ("EMAIL", "zelda-ci@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}


@dataclass(frozen=True)
class Order:
    """What is to be copied."""

    project: Path
    results_dir: Path
    finder: SuiteFinder | None = None
    """Finds what to withhold; without it nothing is."""
    whole: bool = False
    """Whether to keep what is withheld, for build and test commands."""


@dataclass
class _Copy:
    """A copy under way."""

    left_out: Path
    """Zelda's own results."""
    files: int = 0
    size: int = 0
    skipped: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def count(self, status: os.stat_result) -> None:
        self.files += 1
        self.size += status.st_size
        if self.files > MOST_FILES or self.size > MOST_BYTES:
            raise WorkspaceError(
                f"The folder is too large to be copied for every run (more than {MOST_FILES} files or 4 GB).",
                hint=TOO_LARGE,
                code="TOO_LARGE",
            )


async def make(folder: RunFolder, order: Order, plumbing: Git) -> Start:
    """Copy the folder without what must stay behind, and commit it.

    Raises:
        WorkspaceError: The folder is too large, or there is no room.
    """
    draft = folder.path / "draft"
    copy = _Copy(left_out=order.results_dir)
    await anyio.to_thread.run_sync(_copy_tree, order.project, draft, copy)
    finder = order.finder
    withheld = await anyio.to_thread.run_sync(_found, draft, finder) if finder else Withheld()
    whole = None
    if order.whole:
        whole = await _commit(Store(folder.path / "whole"), draft, plumbing)
        whole.folder.chmod(0o700)
    await anyio.to_thread.run_sync(_remove, draft, withheld.paths)
    store = Store(folder.path / "store", withheld=withheld, notes=(*_notes(copy), *notes(withheld)))
    store = await _commit(store, draft, plumbing)
    await _hang_up(folder, draft, store, plumbing)
    index = await anyio.to_thread.run_sync(Index.read, folder.session_index)
    return Start(store.commit, index, store, "sha1", {}, whole)


async def _commit(store: Store, tree: Path, plumbing: Git) -> Store:
    bare.create(store.folder)
    git = plumbing.within(tree, GIT_DIR=str(store.folder), GIT_WORK_TREE=str(tree), **IDENTITY)
    await git("add", "-A")
    written = (await git("write-tree")).decode().strip()
    commit = (await git("commit-tree", "-m", "The folder as it was found", written)).decode().strip()
    return replace(store, commit=commit)


def _found(tree: Path, finder: SuiteFinder) -> Withheld:
    files, texts, links = set[str](), dict[str, list[bytes]](), dict[str, list[str]]()
    for folder, names, found in os.walk(tree):
        for name in (*names, *found):
            place = Path(folder, name)
            path = place.relative_to(tree).as_posix()
            if place.is_symlink():
                links[path] = [str(place.readlink())]
            elif name in names:
                continue
            elif finder.reads(name) and place.stat().st_size <= LARGEST_TEXT:
                texts[path] = [place.read_bytes()]
            files.add(path)
    return finder.find(Listing(frozenset(files), texts, links), "")


def _remove(tree: Path, paths: Iterable[str]) -> None:
    for path in paths:
        place = tree / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


async def _hang_up(folder: RunFolder, draft: Path, store: Store, plumbing: Git) -> None:
    """Give the copied files the `.git` of a work tree, with an index that knows them."""
    bare.create(folder.git_dir, borrow=store.objects)
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    options = ("worktree", "add", "-q", "--detach", "--no-checkout")
    await git(*options, str(folder.root), store.commit, inherit=(folder.number,))
    await anyio.to_thread.run_sync(_put_in_place, folder, draft, store)


def _put_in_place(folder: RunFolder, draft: Path, store: Store) -> None:
    (folder.root / ".git").rename(draft / ".git")
    folder.root.rmdir()
    draft.rename(folder.root)
    shutil.copy2(store.folder / "index", folder.session_index)


def _copy_tree(source: Path, target: Path, copy: _Copy) -> None:
    folders = []
    for found, made in _walk(source, target, copy):
        anyio.from_thread.check_cancelled()
        status = found.lstat()
        if stat.S_ISDIR(status.st_mode):
            made.mkdir()
            folders.append((made, status))
        elif stat.S_ISLNK(status.st_mode):
            copy.count(status)
            made.symlink_to(found.readlink())
        elif stat.S_ISREG(status.st_mode):
            copy.count(status)
            _copy_file(found, made, copy)
        else:
            copy.skipped.append(f"{found.relative_to(source)} (not a file)")
    for made, status in reversed(folders):
        os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))


def _walk(source: Path, target: Path, copy: _Copy) -> Iterator[tuple[Path, Path]]:
    """Every entry and its place in the copy, folders before their contents; no `.git`, no results, nothing private."""
    waiting = [(source, target, Ignored())]
    while waiting:
        here, there, above = waiting.pop()
        yield here, there
        try:
            entries = list(os.scandir(here))
        except OSError as error:
            copy.skipped.append(f"{here.relative_to(source)} ({error.strerror})")
            continue
        ignored = above.inside(here)
        for entry in entries:
            place, is_folder = here / entry.name, entry.is_dir(follow_symlinks=False)
            if entry.name in {".git", ".zelda"} or place == copy.left_out:
                continue
            if is_private(place, is_folder=is_folder):
                copy.private.append(str(place.relative_to(source)))
            elif ignored.names(place, is_folder=is_folder):
                copy.ignored.append(str(place.relative_to(source)))
            elif is_folder:
                waiting.append((place, there / entry.name, ignored))
            else:
                yield place, there / entry.name


def _copy_file(source: Path, target: Path, copy: _Copy) -> None:
    try:
        with source.open("rb"):
            pass
    except OSError as error:
        copy.skipped.append(f"{source.name} ({error.strerror})")
        return
    shutil.copy2(source, target, follow_symlinks=False)
    target.chmod(target.stat().st_mode | stat.S_IRUSR | stat.S_IWUSR)


def _notes(copy: _Copy) -> Iterator[str]:
    """What is not in the copy, by its names as far as they are few."""
    if copy.skipped:
        yield f"Left out of the copy: {some(copy.skipped)}."
    if copy.private:
        yield f"Left out of the copy, since credentials may be in them: {some(sorted(copy.private))}."
    if copy.ignored:
        yield f"Left out of the copy, since a .gitignore names them: {some(sorted(copy.ignored))}."
