"""The copy of a folder that is not in any repository, made a repository of its own."""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.from_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import bare
from zelda_ci.workspace.folder import Index, RunFolder
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.store import Store

MOST_FILES = 200_000
MOST_BYTES = 4 << 30
TOO_LARGE = "Put the project under Git (git init, .gitignore, one commit): then only the commit is copied."

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Zelda CI"), ("EMAIL", "zelda-ci@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}


@dataclass
class _Copy:
    """A copy under way."""

    left_out: Path
    """Zelda's own results."""
    files: int = 0
    size: int = 0
    skipped: list[str] = field(default_factory=list)

    def count(self, status: os.stat_result) -> None:
        self.files += 1
        self.size += status.st_size
        if self.files > MOST_FILES or self.size > MOST_BYTES:
            raise WorkspaceError(
                f"The folder is too large to be copied for every run (more than {MOST_FILES} files or 4 GB).",
                hint=TOO_LARGE,
                code="TOO_LARGE",
            )


async def make(folder: RunFolder, project: Path, results_dir: Path, plumbing: Git) -> tuple[str, Store, Index]:
    """Copy the folder and commit what git does not ignore; returns the commit, where its objects are, and the index.

    Raises:
        WorkspaceError: The folder is too large, or there is no room.
    """
    draft = folder.path / "draft"
    copy = _Copy(left_out=results_dir)
    await anyio.to_thread.run_sync(_copy_tree, project, draft, copy)
    store = Store(folder.path / "store", _notes(copy))
    commit = await _commit(store, draft, plumbing)
    await _hang_up(folder, draft, store, commit, plumbing)
    return commit, store, await anyio.to_thread.run_sync(Index.read, folder.session_index)


async def _commit(store: Store, tree: Path, plumbing: Git) -> str:
    bare.create(store.folder)
    git = plumbing.within(tree, GIT_DIR=str(store.folder), GIT_WORK_TREE=str(tree), **IDENTITY)
    await git("add", "-A")
    written = (await git("write-tree")).decode().strip()
    return (await git("commit-tree", "-m", "The folder as it was found", written)).decode().strip()


async def _hang_up(folder: RunFolder, draft: Path, store: Store, commit: str, plumbing: Git) -> None:
    """Give the copied files the `.git` of a work tree, with an index that knows them."""
    bare.create(folder.git_dir, borrow=store.objects)
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    await git("worktree", "add", "-q", "--detach", "--no-checkout", str(folder.root), commit, inherit=(folder.number,))
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
    """Every entry and its place in the copy, folders before their contents; no `.git`, no results."""
    waiting = [(source, target)]
    while waiting:
        here, there = waiting.pop()
        yield here, there
        try:
            entries = list(os.scandir(here))
        except OSError as error:
            copy.skipped.append(f"{here.relative_to(source)} ({error.strerror})")
            continue
        for entry in entries:
            pair = (here / entry.name, there / entry.name)
            if entry.name in {".git", ".zelda"} or pair[0] == copy.left_out:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(pair)
            else:
                yield pair


def _copy_file(source: Path, target: Path, copy: _Copy) -> None:
    try:
        with source.open("rb"):
            pass
    except OSError as error:
        copy.skipped.append(f"{source.name} ({error.strerror})")
        return
    shutil.copy2(source, target, follow_symlinks=False)
    target.chmod(target.stat().st_mode | stat.S_IRUSR | stat.S_IWUSR)


def _notes(copy: _Copy) -> tuple[str, ...]:
    if not copy.skipped:
        return ()
    more = f" and {len(copy.skipped) - 5} more" if len(copy.skipped) > 5 else ""
    return (f"Left out of the copy: {', '.join(copy.skipped[:5])}{more}.",)
