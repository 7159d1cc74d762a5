"""Bare repositories of Zelda's own, which may borrow the objects of others."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from zelda_ci.workspace.git import Git, alternate


def create(
    folder: Path,
    commit: str,
    *,
    settings: Mapping[str, str] | None = None,
    borrow: Path | None = None,
    shallow: bytes = b"",
) -> None:
    """Make an empty repository in a new folder: no remotes, no hooks, nothing of the user's but checkout settings.

    Args:
        folder: Of the repository.
        commit: One that it will hold; its length tells the format of names. Empty for the usual one.
        settings: Of the checkout.
        borrow: Another object folder, which is never written.
        shallow: Where the history is cut.
    """
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "info").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(_configuration(commit, settings or {}))
    if borrow is not None:
        borrow_from(folder, borrow)
    if shallow:
        (folder / "shallow").write_bytes(shallow)


def borrow_from(folder: Path, objects: Path) -> None:
    """Let a repository of ours find the objects of another, whatever the name of the folder."""
    (folder / "objects" / "info" / "alternates").write_bytes(alternate(objects) + b"\n")


def borrowing(git: Git, *repositories: Path) -> Git:
    """Git on a repository of ours that also finds the objects of others: their settings and hooks are nothing to it."""
    folders = dict.fromkeys(alternate(repository / "objects") for repository in repositories)
    return git.within(git.cwd, GIT_ALTERNATE_OBJECT_DIRECTORIES=os.fsdecode(b":".join(folders)))


@asynccontextmanager
async def staged(git: Git, folder: Path, repository: Path, commit: str) -> AsyncIterator[Git]:
    """Make an index of a commit in a new folder, with nothing around it but the objects of the commit's repository.

    Raises:
        WorkspaceError: Git refuses the commit's names.
    """
    create(folder, commit)
    nowhere = folder / "nowhere"
    nowhere.mkdir()
    inside = borrowing(git.within(nowhere, GIT_DIR=str(folder), GIT_WORK_TREE=str(nowhere)), repository)
    try:
        await inside("read-tree", commit)
        yield inside
    finally:
        shutil.rmtree(folder)


async def whole_tree(git: Git, commit: str) -> str | None:
    """The tree of a commit, if all its files are there: a shallow or partial clone may know of it and lack them."""
    outcome = await git.attempt("rev-list", "--objects", "--no-object-names", "--no-walk", commit)
    return outcome.stdout.split(b"\n", 2)[1].decode() if outcome.exit_code == 0 else None


def _configuration(commit: str, settings: Mapping[str, str]) -> str:
    values = {
        "core.repositoryformatversion": "0",
        "core.filemode": "true",
        "core.logallrefupdates": "true",
        "core.hookspath": "/dev/null",
        "gc.auto": "0",
        "maintenance.auto": "false",
        "core.bare": "true",
        **settings,
    }
    if len(commit) == 64:
        values |= {"core.repositoryformatversion": "1", "extensions.objectformat": "sha256"}
    return "".join(_line(name, value) for name, value in values.items())


def _line(setting: str, value: str) -> str:
    section, name = setting.split(".", 1)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{name} = "{escaped}"\n'
