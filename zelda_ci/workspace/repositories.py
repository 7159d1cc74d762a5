"""Bare repositories of Zelda's own, which may borrow the objects of others."""

import os
from collections.abc import Mapping
from pathlib import Path

from zelda_ci.workspace.git import Git, alternate, configuration

SETTINGS = {
    "core.repositoryformatversion": "0", "core.filemode": "true", "core.logallrefupdates": "true",
    "core.hookspath": "/dev/null", "core.bare": "true", "gc.auto": "0", "maintenance.auto": "false",
}  # fmt: skip
SHA256 = {"core.repositoryformatversion": "1", "extensions.objectformat": "sha256"}


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
    format_of_names = SHA256 if len(commit) == 64 else {}
    (folder / "config").write_text(configuration({**SETTINGS, **(settings or {}), **format_of_names}))
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
