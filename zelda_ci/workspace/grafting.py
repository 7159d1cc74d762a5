"""Contents that a commit only names, put in their place: a submodule becomes a folder, a pointer becomes its file.

So a session finds the files of a real checkout, and `git status` is clean. A submodule has no repository of its own
there: no address, no branch and no setting of it gets into a workspace, and what a session changes in it is in the
patch like everything else.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from zelda_ci.workspace import large_files
from zelda_ci.workspace.git import Git, alternate
from zelda_ci.workspace.large_files import LargeFile
from zelda_ci.workspace.withholding import FOLDER, Branch, CommitHistory, Replacement, plant, settle


@dataclass(frozen=True)
class TreeParts:
    """A commit, and what the checkout has of what it only names."""

    path: str
    """Where its files belong in the tree around it; empty for the tested commit itself."""
    gitlink: str
    """The commit that the tree around it names."""
    commit: str
    """The commit whose files take the place: another one only where the working tree is tested."""
    repository: Path
    """Where git finds that."""
    files: tuple[LargeFile, ...] = ()
    submodules: "tuple[TreeParts, ...]" = ()

    @cached_property
    def key(self) -> str:
        """The same for two with the same contents; empty where there are none."""
        if not (self.files or self.submodules):
            return ""
        return sha256("\n".join(_identity(self)).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _identity(parts: TreeParts) -> Iterator[str]:
    yield f"{parts.path!r} {parts.commit}"
    yield from (f"{file.pointer.path!r} {file.pointer.digest}" for file in parts.files)
    for part in parts.submodules:
        yield from _identity(part)
    yield "end"


def borrowing(git: Git, repository: Path) -> Git:
    """Git on a repository of ours that also finds the objects of another: its settings and hooks are nothing to it."""
    objects = os.fsdecode(alternate(repository / "objects"))
    return git.within(git.cwd, GIT_ALTERNATE_OBJECT_DIRECTORIES=objects)


async def graft(git: Git, tip: str, parts: TreeParts, object_format: str) -> str:
    """Rewrite the commits of a repository of ours with all that the checkout has; returns the new tip.

    Args:
        git: With GIT_DIR set to the repository.
        tip: The only reference of it.
        parts: What the checkout has.
        object_format: The repository's hash.

    Raises:
        WorkspaceError: Something has vanished or is damaged, or there is no room.
    """
    history = CommitHistory(git, (await git("rev-parse", tip)).decode().strip(), object_format)
    if not parts.key:
        return history.tip
    commits = await history.commits()
    ids = await history.rewritten(commits, await Grafting(history).branch(parts))
    await settle(history, tip, ids)
    return ids.get(history.tip, history.tip)


@dataclass
class Grafting:
    """Brings contents into the repository of a history."""

    history: CommitHistory
    number: int = 0

    async def branch(self, parts: TreeParts) -> Branch:
        """What is to be replaced in the tree of a commit."""
        git = self.history.git
        top: Branch = {}
        self.number += 1
        place = Path(git.environment["GIT_DIR"]) / f"incoming-{self.number}"
        names = await large_files.take(git, parts.files, place)
        for file in parts.files:
            new = names[file.pointer.digest]
            plant(top, os.fsencode(file.pointer.path), Replacement(file.pointer.blob, new))
        for part in parts.submodules:
            tree = await self._tree(part)
            # Git has no place in a tree for an empty folder; a submodule without files stays what it is.
            if tree != self.history.empty:
                plant(top, os.fsencode(part.path), Replacement(part.gitlink, tree, FOLDER))
        return top

    async def _tree(self, part: TreeParts) -> str:
        """The tree that takes a submodule's place."""
        git = borrowing(self.history.git, part.repository)
        root = (await git("rev-parse", "--verify", f"{part.commit}^{{tree}}")).decode().strip()
        listed = (await git("rev-list", "--objects", "--no-object-names", "--no-walk", root)).split()
        packs = Path(git.environment["GIT_DIR"]) / "objects" / "pack"
        packs.mkdir(exist_ok=True)
        await git("pack-objects", "-q", str(packs / "pack"), stdin=b"".join(name + b"\n" for name in listed))
        return (await self.history.trees({root}, await self.branch(part)))[root]
