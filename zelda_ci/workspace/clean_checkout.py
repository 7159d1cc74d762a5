"""A fresh checkout of what a session changed, except for protected files, which are as they were committed.

The suites may be among them, where commands need to see them. Nothing else of the session is in it: no ignored file
that the suite does not name, no HOME, no configuration or hook of its repository.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from pathspec import PathSpec

from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.redact import SafeText
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import store
from zelda_ci.workspace.git import ABSENT, SUBMODULE, Git, list_tree
from zelda_ci.workspace.history import is_below
from zelda_ci.workspace.ignored import folders_above
from zelda_ci.workspace.protection import protection
from zelda_ci.workspace.staging import StagedTree
from zelda_ci.workspace.store import Start

WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@dataclass(frozen=True)
class ProtectedFiles:
    """Copies of protected files, by their path below the root, where no run can reach."""

    root: Path
    copies: Path
    files: Sequence[str]

    @classmethod
    def over(cls, root: Path, copies: Path, files: Sequence[str]) -> "ProtectedFiles":
        """Copy files of a fresh checkout; links and submodules are left alone."""
        copies.mkdir(mode=0o700)
        plain = [name for name in files if untrusted.is_regular((root / name).lstat())]
        for number, name in enumerate(plain):
            shutil.copy(root / name, copies / str(number))
        return cls(root, copies, plain)

    def restore(self) -> list[str]:
        """Put back what is different; returns its names."""
        return [name for number, name in enumerate(self.files) if self._put_back(name, self.copies / str(number))]

    def bring(self, source: Path, names: Sequence[str]) -> None:
        """Move files here from another tree, to the same places; no link is followed in either."""
        for name in names:
            *above, last = name.split("/")
            with suppress(OSError), untrusted.entered(source, above) as origin, self._inside(above) as folder:
                self._aside(last, folder)
                untrusted.move(last, origin, last, folder)

    def _put_back(self, name: str, kept: Path) -> bool:
        *above, last = name.split("/")
        with self._inside(above) as folder:
            content, is_program = kept.read_bytes(), kept.stat().st_mode & stat.S_IXUSR
            with suppress(OSError):
                if untrusted.read(last, len(content), folder=folder) == content:
                    return False
            self._aside(last, folder)
            descriptor = untrusted.open_regular(last, WRITE, 0o755 if is_program else 0o644, folder=folder)
            with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor
                file.write(content)
            self._hand_over(last, folder)
        return True

    @contextmanager
    def _inside(self, parts: Sequence[str]) -> Iterator[int]:
        """Open a real folder below the root; whatever else stands in its way is moved aside."""
        for depth, part in enumerate(parts):
            with untrusted.entered(self.root, parts[:depth]) as above:
                try:
                    os.close(untrusted.open_folder(part, folder=above))
                except OSError:
                    self._aside(part, above)
                    os.mkdir(part, dir_fd=above)
                    self._hand_over(part, above)
        with untrusted.entered(self.root, parts) as folder:
            yield folder

    def _aside(self, name: str, folder: int) -> None:
        with untrusted.entered(self.copies) as top, suppress(FileNotFoundError):
            untrusted.move(name, folder, secrets.token_hex(8), top)

    def _hand_over(self, name: str, folder: int) -> None:
        if os.geteuid() == 0:
            owner = self.root.lstat()
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)


NAME = "checked"


@dataclass(frozen=True)
class CheckedOut:
    """A workspace with a fresh checkout of what a session changed."""

    workspace: Workspace
    restored: tuple[SafeText, ...]
    """Protected files that the session had changed, added or removed, relative to the top of the tree."""
    left_out: tuple[SafeText, ...]
    """Changes that are not in it, such as very large files."""
    protection: PathSpec[Any]
    """Which files are as they were committed, there or not, by their paths from the top of the tree."""
    protected: ProtectedFiles
    update: tuple[str, ...] | None = None
    """The command that brings the session's changes into it after setup; it runs confined, without a network."""


async def check_out(
    workspace: Workspace, run: WorkspaceFolder, start: Start, suite: ResolvedSuite, staged: StagedTree, git: Git
) -> CheckedOut:
    """Make the checkout inside the folder of a session's run, where it could not reach; it is not confined yet.

    The index of what was staged after the session becomes that of the checkout.

    Raises:
        WorkspaceError: It cannot be made, for instance because a changed file has an impossible name.
    """
    folder = WorkspaceFolder(run.path / NAME, run.number)
    prefix = workspace.path.relative_to(workspace.root)
    for place in (folder.path, folder.home, folder.tmp):
        place.mkdir(mode=0o700)
    await store.add_worktree(folder, start.project, start.store, git)
    if not folder.is_intact():
        raise WorkspaceError("The fresh checkout is not where it should be.")
    protected = protection(suite, prefix.as_posix(), lambda path: (folder.root / path).is_file())
    restored = {
        path: (it.old_mode, it.old_content) for path, it in staged.changed.items() if protected.match_file(path)
    }
    uncovered = await _shown(start, staged.repository, git)
    above = {*uncovered, *(place[:-1] for path in uncovered for place in folders_above(path))}
    forged = {
        path
        for path, change in staged.changed.items()
        if path in above and uncovered.get(path) != (change.mode, change.content)
    }
    # The uncovered win: what the session has put in the place of a suite or criterion must not be run.
    await _restore(staged.git, restored | uncovered)
    tree = (await staged.git("write-tree")).decode().strip()
    copy = partial(shutil.copytree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("info", "tmp_*"))
    await anyio.to_thread.run_sync(copy, staged.repository / "objects", folder.git_dir / "objects")
    # Only as long as nothing has run in it.
    inside = git.within(folder.root, GIT_DIR=str(folder.session_index.parent), GIT_WORK_TREE=str(folder.root))
    # What is the same in both is not written again, and so keeps the bytes that the committed attributes give it,
    # whatever the session's own say.
    await inside("read-tree", "-m", "-u", start.store.commit, tree, inherit=(folder.number,))
    store.make_folder(folder.root, prefix)
    tracked = os.fsdecode(await staged.git("ls-files", "-z")).split("\0")[:-1]
    names = [path for path in tracked if path in uncovered or protected.match_file(path)]
    copies = await anyio.to_thread.run_sync(ProtectedFiles.over, folder.root, folder.path / "kept", names)
    update, network = None, suite.isolation.network
    # Setup with a network must not run what a session without one wrote: the session's changes come after it.
    if suite.setup_command is not None and network.setup == "open" and network.session == "none":
        await inside("read-tree", "-m", "-u", tree, start.store.commit, inherit=(folder.number,))
        update = ("git", "read-tree", "--reset", "-u", tree)
    base, root, home, tmp = folder.path, folder.root, folder.home, folder.tmp
    checked = replace(workspace, base=base, root=root, path=root / prefix, home=home, tmp=tmp, git_dir=folder.git_dir)
    back, left_out = (tuple(map(git.redact, sorted(some))) for some in (restored.keys() | forged, staged.left_out))
    return CheckedOut(checked, back, left_out, protected, copies, update)


async def _shown(start: Start, repository: Path, git: Git) -> dict[str, tuple[str, str]]:
    """Mode and blob, by path, of what the session did not see and commands shall; copies the objects."""
    if start.whole is None or not start.store.withheld.paths:
        return {}
    whole = git.within(start.whole.folder, GIT_DIR=str(start.whole.folder))
    entries = {
        file.path: (file.mode, file.content)
        for file in await list_tree(whole, start.whole.commit)
        if file.mode != SUBMODULE and is_below(file.path, start.store.withheld.paths)
    }
    packs = repository / "objects" / "pack"
    packs.mkdir(exist_ok=True)
    blobs = "".join(f"{blob}\n" for _, blob in entries.values())
    await whole("pack-objects", "-q", str(packs / "pack"), stdin=blobs.encode())
    return entries


async def _restore(git: Git, entries: Mapping[str, tuple[str, str]]) -> None:
    """Put index entries back; a file or link that has taken the place of a folder gives way."""
    # Removals first.
    lines = [
        f"{0 if mode == ABSENT else mode} {blob}\t{path}\0"
        for path, (mode, blob) in sorted(entries.items(), key=lambda entry: entry[1][0] != ABSENT)
    ]
    if lines:
        await git("update-index", "-z", "--replace", "--index-info", stdin=os.fsencode("".join(lines)))
