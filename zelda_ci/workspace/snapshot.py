"""Files as they lie there, as a commit in a repository of Zelda's own: a working tree, or a folder without Git.

Nothing of the user's changes: git reads the objects of a repository and writes new ones elsewhere, with a copy of the
index.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from zelda_ci.domain.numbers import some_of
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import credential_files, large_files, repositories, source
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import Project, Repository

MAX_FILES = 200_000
MAX_BYTES = 4 << 30
# Neither hooks nor files beside the index that git would share between indexes.
OVERRIDES = {"core.hooksPath": os.devnull, "core.splitIndex": "false", "core.untrackedCache": "false"}
IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Zelda CI"), ("EMAIL", "zelda-ci@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
# Every byte as it is.
RAW = "* -text -ident -filter -working-tree-encoding\n"


async def of_working_tree(
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
    file, trees = repository.common_dir / "shallow", home / repositories.TREES
    shallow = file.read_bytes() if file.exists() else b""
    async with repositories.draft(trees, repository.object_format, shallow) as draft:
        git = await source.without_commands(ask.within(repository.top), OVERRIDES)
        prefix = "" if project.prefix == Path() else f"{project.prefix.as_posix()}/"
        kept = [f":(top,exclude,literal){prefix}{name}" for name in sorted(own)]
        places = [*source.all_but(results_dir, repository.top), *kept]
        private = await _stage(git, draft, repository, places)
        zelda_git = plumbing.within(draft, GIT_DIR=str(draft), GIT_INDEX_FILE=str(draft / "staged"), **IDENTITY)
        reading = repositories.borrowing(zelda_git, repository.common_dir)
        left_out = tuple(sorted({*private, *await _restore_filtered(reading, head, repository.top)}))
        tree = (await zelda_git("write-tree", "--missing-ok")).decode().strip()
        # Not earlier, for the same reason as in `_stage`.
        repositories.borrow_from(draft, repository.common_dir / "objects")
        if tree == (await zelda_git("rev-parse", f"{head}^{{tree}}")).decode().strip():
            return replace(project, source=project.source.replace(dirty=False, changed=(), left_out=left_out))
        message = "The working tree as it was found"
        commit = (await zelda_git("commit-tree", "-p", head, "-m", message, tree)).decode().strip()
        tested = project.source.replace(commit=commit, parent=head, dirty=False, left_out=left_out)
        await anyio.to_thread.run_sync(repositories.keep, draft, trees / commit)
        return replace(project, source=tested, objects=trees / commit)


async def of_folder(project: Project, results_dir: Path, home: Path, plumbing: Git) -> Project:
    """A folder without Git as a commit, repositories inside as the files that they hold.

    Raises:
        WorkspaceError: The folder is too large, or there is no room.
    """
    top, trees = project.folder, home / repositories.TREES
    async with repositories.draft(trees, "sha1") as draft:
        (draft / "info" / "attributes").write_text(RAW)
        git = plumbing.within(top, GIT_DIR=str(draft), **IDENTITY)
        listed = await _listed(git, top, "--directory", "--ignored")
        ignored = sorted(name.rstrip("/") for name in listed if not _is_results(top / name, results_dir))
        names = [name for name in await _listed(git, top) if not _is_results(top / name, results_dir)]
        chosen, private = await anyio.to_thread.run_sync(_chosen, top, names)
        skipped = [name for name in chosen if not os.access(top / name, os.R_OK, follow_symlinks=False)]
        staging = git.within(top, GIT_WORK_TREE=str(top))
        await _add(staging, [name for name in chosen if name not in skipped])
        tree = (await staging("write-tree")).decode().strip()
        commit = (await staging("commit-tree", "-m", "The folder as it was found", tree)).decode().strip()
        await anyio.to_thread.run_sync(repositories.keep, draft, trees / commit)
    left_out = {" (unreadable)": skipped, ", since credentials may be in them": private}
    left_out[", since a .gitignore names them"] = ignored
    notes = (f"Left out of the copy{why}: {some_of(files)}." for why, files in left_out.items() if files)
    held = Repository(trees / commit, top, "sha1", {})
    return replace(project, repository=held, objects=trees / commit, held=commit, notes=tuple(notes))


async def _listed(git: Git, top: Path, *options: str, below: str = "") -> list[str]:
    """Files of a folder that Git does not know, those of repositories inside it too."""
    here = git.within(top / below, GIT_WORK_TREE=str(top / below))
    printed = (await here("ls-files", "--others", "-z", "--exclude-standard", *options)).split(b"\0")[:-1]
    names = [below + os.fsdecode(name) for name in printed]
    if "--ignored" in options:
        return names
    inside = [name for name in names if name.endswith("/")]
    files = [name for name in names if not name.endswith("/")]
    for folder in inside:
        files += await _listed(git, top, *options, below=folder)
    return files


def _is_results(place: Path, results_dir: Path) -> bool:
    return ".zelda" in place.parts or place.is_relative_to(results_dir)


async def _stage(git: Git, draft: Path, repository: Repository, places: list[str]) -> list[str]:
    """Fill a copy of the index with the files as they are; returns what may hold credentials, which stays out."""
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
    untracked = [os.fsdecode(name) for name in listed.split(b"\0") if name and not name.endswith(b"/")]
    chosen, private = await anyio.to_thread.run_sync(_chosen, repository.top, untracked)
    await _add(staging, chosen)
    return private


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


def _chosen(top: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files that no commit has and that belong into one, and what of the others may hold credentials.

    Raises:
        WorkspaceError: There are too many: nobody would commit them.
    """
    private = {name: part for name in names if (part := credential_files.private_part(top, Path(name)))}
    chosen = [name for name in names if name not in private and not credential_files.is_report(top / name)]
    size = sum((top / name).lstat().st_size for name in chosen)
    if len(chosen) > MAX_FILES or size > MAX_BYTES:
        raise WorkspaceError(
            f"{len(chosen)} uncommitted files with {size >> 20} MB are too large to be copied.",
            hint="Name in .gitignore what does not belong to the project, and commit the rest (first `git init`).",
            code="TOO_LARGE",
        )
    return chosen, sorted({str(part) for part in private.values()})


async def _add(git: Git, names: Iterable[str]) -> None:
    if names:
        await git("update-index", "--add", "-z", "--stdin", stdin=b"".join(os.fsencode(name) + b"\0" for name in names))


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
