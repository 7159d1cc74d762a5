"""A run's own repository and the work tree that hangs from it."""

import anyio.to_thread

from zelda_ci.workspace import bare
from zelda_ci.workspace.folder import Index, RunFolder
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import Repository
from zelda_ci.workspace.store import Store


async def check_out(folder: RunFolder, repository: Repository, commit: str, store: Store, plumbing: Git) -> Index:
    """Make the repository, borrowing from the store, and check the commit out; returns the index of the fresh tree.

    Raises:
        WorkspaceError: There is no room, or a name that this file system cannot hold.
    """
    bare.create(
        folder.git_dir,
        object_format=repository.object_format,
        settings=repository.settings,
        borrow=store.objects,
        shallow=store.shallow,
    )
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    await git("worktree", "add", "-q", "--detach", str(folder.root), commit, inherit=(folder.number,))
    return await anyio.to_thread.run_sync(Index.read, folder.session_index)
