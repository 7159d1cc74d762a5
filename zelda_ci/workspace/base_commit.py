"""Another commit of the same repository, tested beside the first: found where it lies, or else brought from elsewhere.

What is brought lies in a repository of Zelda's own. A commit is named by its hash, so git checks what it is handed.
"""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.process import removal
from zelda_ci.workspace import repositories
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import Project, Repository, check_committed

UNAVAILABLE = "BASE_UNAVAILABLE"

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

# Fills an empty bare repository, to which the given git is set, with a commit and its files.
Bring = Callable[[Git, str], Awaitable[None]]


@dataclass(frozen=True)
class BaseOrder:
    """Which commit is wanted: a branch, a tag, a commit, or an expression like `HEAD~1`."""

    ref: str
    bring: Bring | None = None
    """Asked where the repository does not hold all of it; raises `WorkspaceError` with the reason."""


async def at(project: Project, order: BaseOrder, home: Path, plumbing: Git) -> Project:
    """The project as it is in the wanted commit.

    Args:
        project: As it lies there.
        order: Which commit.
        home: The project's folder among the workspaces.
        plumbing: Git of Zelda's own.

    Raises:
        WorkspaceError: The commit cannot be had; the message says why.
    """
    repository = project.repository
    if repository is None:
        message = f"{project.folder} is no git repository, so there is no {order.ref} to compare with."
        raise WorkspaceError(message, hint="Make it one with git init, and commit.", code=UNAVAILABLE)
    commit = await _resolve(order, plumbing.within(project.folder))
    source = project.source.replace(commit=commit, branch=None, dirty=False, changed=(), parent=None, left_out=())
    based = replace(project, source=source, objects=None, held=None)
    if not await _is_whole(plumbing, repository.common_dir, commit):
        objects = home / repositories.BASES / commit
        if await _is_whole(plumbing, objects, commit):
            os.utime(objects)
        else:
            await _bring(order, commit, repository, objects, plumbing)
        based = replace(based, objects=objects)
    try:
        await check_committed(based, plumbing)
    except WorkspaceError as problem:
        message = f"The folder {project.prefix}/ is not in {commit[:12]}."
        raise WorkspaceError(message, code=UNAVAILABLE) from problem
    return based


async def _resolve(order: BaseOrder, git: Git) -> str:
    if _COMMIT.fullmatch(order.ref):
        return order.ref
    outcome = await git.attempt("rev-parse", "--verify", "-q", "--end-of-options", f"{order.ref}^{{commit}}")
    if outcome.exit_code != 0:
        hint = "Give a branch, a tag, a commit or HEAD~1; `git fetch` brings what only the server has."
        message = f"There is no commit {git.redact(ascii(order.ref))} in this repository."
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)
    # `--end-of-options` is printed by some versions of git.
    return outcome.stdout.split()[-1].decode()


async def _is_whole(plumbing: Git, place: Path, commit: str) -> bool:
    """Whether a repository has the commit with every file: a shallow or partial clone may know of it and lack them."""
    git = plumbing.within(plumbing.cwd, GIT_DIR=str(place))
    return (await git.attempt("rev-list", "--objects", "--quiet", "--no-walk", commit)).exit_code == 0


async def _bring(order: BaseOrder, commit: str, repository: Repository, objects: Path, plumbing: Git) -> None:
    if order.bring is None:
        hint = "`git fetch` it, or `git fetch --unshallow` in a shallow clone."
        message = f"The commit {commit[:12]} is not in this repository with all its files."
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)
    await removal.discard(objects, objects.parent.parent / "trash")  # where it is damaged
    async with repositories.draft(objects.parent, repository.object_format) as draft:
        await order.bring(plumbing.within(draft, GIT_DIR=str(draft)), commit)
        # Whoever brought it may have been handed less than all.
        if not await _is_whole(plumbing, draft, commit):
            raise WorkspaceError(f"What was fetched of {commit[:12]} is not whole.", code=UNAVAILABLE)
        await anyio.to_thread.run_sync(repositories.keep, draft, objects)
