"""A run's own repository and the work tree that hangs from it."""

import os
from pathlib import Path

import anyio.to_thread

from zelda_ci.workspace import bare
from zelda_ci.workspace.changes import Start
from zelda_ci.workspace.folder import Index, RunFolder
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.store import Order, Store


async def check_out(folder: RunFolder, order: Order, lent: Store, whole: Store | None, plumbing: Git) -> Start:
    """Make the repository, borrowing from the store, and check the commit out.

    Raises:
        WorkspaceError: There is no room, or a name that this file system cannot hold.
    """
    repository = order.repository
    bare.create(
        folder.git_dir,
        object_format=repository.object_format,
        settings=repository.settings,
        borrow=lent.objects,
        shallow=lent.shallow,
    )
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    await git("worktree", "add", "-q", "--detach", str(folder.root), lent.commit, inherit=(folder.number,))
    make_folder(folder.root, order.project)
    index = await anyio.to_thread.run_sync(Index.read, folder.session_index)
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
