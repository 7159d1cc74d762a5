"""The working tree as a commit of Zelda's own: tracked and untracked files as they are, in a repository of Zelda's.

Nothing of the user's repository changes: git reads its objects and writes new ones elsewhere, with a copy of the index.
"""

import os
import secrets
import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.process import removal
from zelda_ci.workspace import large_files, source, store
from zelda_ci.workspace.copy import IDENTITY, MAX_BYTES, MAX_FILES, is_private, is_report
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.grafting import borrowing
from zelda_ci.workspace.source import Project, Repository

FOLDER = "trees"
MESSAGE = "The working tree as it was found"
# After this they are removed; they hold only what no commit of the user's holds.
KEPT_SECONDS = 86_400.0
# Neither hooks nor files beside the index that git would share between indexes.
OVERRIDES = {"core.hooksPath": os.devnull, "core.splitIndex": "false", "core.untrackedCache": "false"}


async def committed(
    project: Project, results_dir: Path, home: Path, plumbing: Git, ask: Git, own: Collection[str] = ()
) -> Project:
    """The project with its working tree in place of its last commit, where they differ.

    Args:
        project: As its last commit has it.
        results_dir: Zelda's own, which is no part of it.
        home: The project's folder among the workspaces.
        plumbing: Git of Zelda's own.
        ask: Git as the user has configured it, which says what is ignored.
        own: Files of the project that no session sees: they stay as they were committed.

    Raises:
        WorkspaceError: A file cannot be read, or there is no room.
    """
    repository, head = project.repository, project.source.commit
    if repository is None or head is None or not project.source.changed:
        return project
    trees = home / FOLDER
    draft = trees / f"draft-{secrets.token_hex(4)}"
    try:
        await anyio.to_thread.run_sync(_create, draft, repository)
        git = await source.without_commands(ask.within(repository.top), OVERRIDES)
        prefix = "" if project.prefix == Path() else f"{project.prefix.as_posix()}/"
        kept = [f":(top,exclude,literal){prefix}{name}" for name in sorted(own)]
        places = [*source.all_but(results_dir, repository.top), *kept]
        left_out = await _stage(git, draft, repository, places)
        zelda_git = plumbing.within(draft, GIT_DIR=str(draft), GIT_INDEX_FILE=str(draft / "staged"), **IDENTITY)
        reading = borrowing(zelda_git, repository.common_dir)
        left_out = tuple(sorted({*left_out, *await _restore_filtered(reading, head, repository.top)}))
        tree = (await zelda_git("write-tree", "--missing-ok")).decode().strip()
        # Not earlier, for the same reason as below.
        store.borrow_from(draft, repository.common_dir / "objects")
        if tree == (await zelda_git("rev-parse", f"{head}^{{tree}}")).decode().strip():
            return replace(project, source=replace(project.source, dirty=False, changed=(), left_out=left_out))
        commit = (await zelda_git("commit-tree", "-p", head, "-m", MESSAGE, tree)).decode().strip()
        tested = replace(project.source, commit=commit, parent=head, dirty=False, left_out=left_out)
        await anyio.to_thread.run_sync(_keep, draft, trees / commit)
        return replace(project, source=tested, objects=trees / commit)
    finally:
        with anyio.CancelScope(shield=True):
            await removal.discard(draft, home / "trash")


async def prune(home: Path) -> None:
    """Remove those that nobody needs any more, and what killed processes left."""
    for tree in removal.older_than(home / FOLDER, KEPT_SECONDS):
        await removal.discard(tree, home / "trash")


def _create(draft: Path, repository: Repository) -> None:
    draft.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shallow = repository.common_dir / "shallow"
    store.create(
        draft,
        object_format=repository.object_format,
        shallow=shallow.read_bytes() if shallow.exists() else b"",
    )


async def _stage(git: Git, draft: Path, repository: Repository, places: list[str]) -> tuple[str, ...]:
    """Fill a copy of the index with the files as they are; returns those that may hold credentials, which stay out."""
    index = repository.top / os.fsdecode((await git("rev-parse", "--git-path", "index")).removesuffix(b"\n"))
    with suppress(FileNotFoundError):
        # With its times, by which git knows what has not changed.
        await anyio.to_thread.run_sync(shutil.copy2, index, draft / "staged")
    # Of no other object folder: what git would write, and finds there, it gives a new time.
    objects = str(draft / "objects")
    staging = git.within(repository.top, GIT_INDEX_FILE=str(draft / "staged"), GIT_OBJECT_DIRECTORY=objects)
    await _stage_tracked(staging, places)
    listed = await staging("ls-files", "-o", "-z", "--exclude-standard", "--", *places)
    # A repository inside this one is none of its files.
    untracked = [name for name in listed.split(b"\0") if name and not name.endswith(b"/")]
    private = await anyio.to_thread.run_sync(_private, repository.top, untracked)
    await anyio.to_thread.run_sync(_check_size, repository.top, untracked)
    chosen = [name for name in untracked if name not in private]
    chosen = await anyio.to_thread.run_sync(_without_reports, repository.top, chosen)
    if chosen:
        options = ("update-index", "--add", "-z", "--stdin")
        outcome = await staging.attempt(*options, stdin=b"".join(name + b"\0" for name in chosen))
        if outcome.exit_code != 0:
            raise staging.failure(options, outcome)
    return tuple(sorted(map(os.fsdecode, private)))


async def _stage_tracked(git: Git, places: list[str]) -> None:
    """Stage changes of tracked files.

    In each submodule `git add` would run `git status`, and so what the submodule's own configuration says: of these
    only the commit is noted.
    """
    listed = (await git("ls-files", "-s", "-z", "--", *places)).split(b"\0")
    submodules = [entry.partition(b"\t")[2] for entry in listed if entry.startswith(b"160000 ")]
    others = [f":(top,exclude,literal){os.fsdecode(name)}" for name in submodules]
    await git("add", "-u", "--", *places, *others)
    if submodules:
        names = b"".join(name + b"\0" for name in submodules)
        await git("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=names)


async def _restore_filtered(git: Git, head: str, top: Path) -> list[str]:
    """Stage again as committed what differs only because no filter was run, and what a filter had decrypted.

    Returns the latter.
    """
    changed = (await git("diff-index", "--cached", "-z", "--name-only", "--diff-filter=M", head)).split(b"\0")[:-1]
    if not changed:
        return []
    answer = await git("check-attr", "--cached", "-z", "--stdin", "filter", stdin=b"\0".join([*changed, b""]))
    fields = answer.split(b"\0")
    decrypted = [path for path, value in zip(fields[::3], fields[2::3], strict=False) if b"crypt" in value]
    pointers = await large_files.pointers(git, head, git.cwd / "pointers")
    same = [pointer for pointer in pointers if os.fsencode(pointer.path) in changed]
    same = await anyio.to_thread.run_sync(lambda: [each for each in same if large_files.is_content(each, top)])
    if restored := [*decrypted, *(os.fsencode(pointer.path) for pointer in same)]:
        entries = await git("ls-tree", "-z", "--full-tree", "-r", head, "--", *map(os.fsdecode, restored))
        await git("update-index", "-z", "--index-info", stdin=entries)
    return [*map(os.fsdecode, decrypted)]


def _check_size(top: Path, names: list[bytes]) -> None:
    """What nobody has committed may be what nobody would: dependencies, data."""
    size = sum((top / os.fsdecode(name)).lstat().st_size for name in names)
    if len(names) > MAX_FILES or size > MAX_BYTES:
        raise WorkspaceError(
            f"{len(names)} untracked files with {size >> 20} MB are too many for a commit of the working tree.",
            hint="Name what does not belong to the project in .gitignore, or test the last commit with --commit.",
            code="TOO_LARGE",
        )


def _without_reports(top: Path, names: list[bytes]) -> list[bytes]:
    return [name for name in names if not is_report(top / os.fsdecode(name))]


def _private(top: Path, names: list[bytes]) -> set[bytes]:
    return {name for name in names if _may_hold_credentials(top, Path(os.fsdecode(name)))}


def _may_hold_credentials(top: Path, path: Path) -> bool:
    folders = [parent for parent in path.parents if parent != Path()]
    return is_private(top / path, is_folder=False) or any(is_private(top / each, is_folder=True) for each in folders)


def _keep(draft: Path, target: Path) -> None:
    """In one step, so that a folder of that name is whole; another process may have been first with the same."""
    try:
        draft.rename(target)
    except OSError as problem:
        if not target.is_dir():
            raise WorkspaceError(f"{target} could not be made: {problem.strerror}.") from problem
        os.utime(target)
