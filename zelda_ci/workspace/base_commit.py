"""Another commit of the same repository, tested beside the first: found where it lies, or else fetched from elsewhere.

What is fetched lies in a repository of Zelda's own. A commit is named by its hash, so git checks what it is handed.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import repositories
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import UNAVAILABLE, Project

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

# Fetches a commit with its files into an empty bare repository, to which the given git is set.
Fetch = Callable[[Git, str], Awaitable[None]]


@dataclass(frozen=True)
class BaseOrder:
    """Which commit is wanted: a branch, a tag, a commit, or an expression like `HEAD~1`."""

    ref: str
    fetch: Fetch | None = None
    """Asked where the repository does not hold all of it; raises `WorkspaceError` with the reason."""


async def at(project: Project, order: BaseOrder, folder: Path, git: Git) -> Project:
    """The project as it is in the wanted commit.

    Args:
        project: As it lies there.
        order: Which commit.
        folder: For a repository of the commit, if it must be fetched; made then.
        git: Git of Zelda's own.

    Raises:
        WorkspaceError: The commit cannot be had; the message says why.
    """
    if project.source.commit is None:
        message = f"{project.folder} is no git repository, so there is no {order.ref} to compare with."
        raise WorkspaceError(message, hint="Make it one with git init, and commit.", code=UNAVAILABLE)
    here = git.within(project.folder)
    commit = await _resolve(order, here)
    source = project.source.replace(commit=commit, branch=None, dirty=False, changed=(), parent=None, left_out=())
    based = replace(project, source=source, commit=commit)
    if await _is_whole(here, commit):
        return based
    if order.fetch is None:
        hint = "`git fetch` it, or `git fetch --unshallow` in a shallow clone."
        message = f"The commit {commit[:12]} is not in this repository with all its files."
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)
    repositories.create(folder, commit)
    there = git.within(folder, GIT_DIR=str(folder))
    await order.fetch(there, commit)
    # A server may have handed over less than all.
    if not await _is_whole(there, commit):
        raise WorkspaceError(f"What was fetched of {commit[:12]} is not whole.", code=UNAVAILABLE)
    return replace(based, objects=folder)


async def _is_whole(git: Git, commit: str) -> bool:
    """Whether all files of a commit are there: a shallow or partial clone may know of it and lack them."""
    return (await git.attempt("rev-list", "--objects", "--quiet", "--no-walk", commit)).exit_code == 0


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
