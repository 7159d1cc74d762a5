"""Submodules and files of Git LFS: a commit only names them, by a commit and by a hash; the checkout may have them.

Nothing is believed because of where it lies: the names are hashes of the contents. `.gitmodules` is not read, no
command of a repository is run, and no link is followed. In a workspace a submodule is a folder and a pointer its file,
so a session finds the files of a real checkout, and `git status` is clean. A submodule has no repository of its own
there: what a session changes in it is in the patch like everything else.
"""

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio.to_thread

from zelda_ci.domain.workspace import NamedContents, Parts, WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.workspace import history, large_files, repositories, snapshot, source
from zelda_ci.workspace.git import SUBMODULE, Git, list_tree
from zelda_ci.workspace.history import Replacement
from zelda_ci.workspace.repositories import borrowing
from zelda_ci.workspace.source import Project, Repository, TreeParts

MAX_DEPTH = 20
MAX_LINK_BYTES = 4096
RESULTS = ".zelda"


async def replacements(git: Git, parts: TreeParts) -> dict[bytes, Replacement]:
    """Put contents into a repository of Zelda's own; returns what they take the place of, by path.

    Args:
        git: With GIT_DIR set to the repository.
        parts: What the checkout has.

    Raises:
        WorkspaceError: Something has vanished or is damaged, or there is no room.
    """
    names = await large_files.stored(git, {file.pointer.digest: file for file in parts.files})
    found = {
        os.fsencode(file.pointer.path): Replacement(file.pointer.blob, names[file.pointer.digest])
        for file in parts.files
    }
    for part in parts.submodules:
        tree = await _tree(git, part)
        # Git has no place in a tree for an empty folder; a submodule without files stays what it is.
        if await git("ls-tree", tree):
            found[os.fsencode(part.path)] = Replacement(part.gitlink, tree, "040000")
    return found


async def _tree(git: Git, part: TreeParts) -> str:
    """The tree that takes a submodule's place."""
    both = borrowing(git, part.repository)
    root = (await both("rev-parse", "--verify", f"{part.commit}^{{tree}}")).decode().strip()
    listed = await both("rev-list", "--objects", "--no-object-names", "--no-walk", root)
    packs = Path(git.environment["GIT_DIR"]) / "objects" / "pack"
    packs.mkdir(exist_ok=True)
    await both("pack-objects", "-q", str(packs / "pack"), stdin=listed)
    return (await history.replaced(git, [root], await replacements(git, part)))[root]


@dataclass(frozen=True)
class RepositoryCheckout:
    """A repository as it is checked out: the tested one, or that of a submodule."""

    top: Path
    folder: Path
    """Its own, in which Git LFS keeps contents, too."""
    prefix: str = ""
    """Its place in the tested tree, with a slash at the end; empty at the top."""
    depth: int = 0


class NotTakenError(Exception):
    """Why a submodule is not taken, in a few words."""


@dataclass
class ContentsFinder:
    """Finds what a checkout has, and notes on the way what it lacks."""

    project: Project
    object_format: str
    home: Path
    plumbing: Git
    ask: Git
    git: Git
    """On an empty repository of Zelda's own, in which it may work."""
    tree_counts: bool
    is_base: bool
    present: set[str] = field(default_factory=set)
    absent: dict[str, str] = field(default_factory=dict)
    """Submodules that are not there, and why."""
    files: set[str] = field(default_factory=set)
    pointers: dict[str, str] = field(default_factory=dict)
    """Files of Git LFS whose content is not there."""
    changed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unchanged: set[str] = field(default_factory=set)
    """Files that git calls changed only because no filter is run."""

    async def find(
        self, checkout: RepositoryCheckout, repository: Path, gitlink: str, commit: str, path: str
    ) -> TreeParts:
        """What the checkout has of what a commit names."""
        git = borrowing(self.git, repository)
        wanted = await large_files.pointers(git, commit, self._index())
        files = await anyio.to_thread.run_sync(
            lambda: [large_files.at_hand(pointer, checkout.folder, checkout.top) for pointer in wanted]
        )
        for pointer, file in zip(wanted, files, strict=True):
            place = checkout.prefix + pointer.path
            if file:
                self.files.add(place)
            else:
                self.pointers[place] = ""
            if place in self.project.source.changed:
                is_same = await anyio.to_thread.run_sync(large_files.is_content, pointer, checkout.top)
                self.unchanged |= {place} if is_same else set()
        parts = [
            part for place, named in await gitlinks(git, commit) if (part := await self._part(checkout, place, named))
        ]
        return TreeParts(path, gitlink, commit, repository, tuple(filter(None, files)), tuple(parts))

    def _index(self) -> Path:
        return self.git.cwd / f"index-{secrets.token_hex(4)}"

    async def _part(self, around: RepositoryCheckout, path: str, wanted: str) -> TreeParts | None:
        place = around.prefix + path
        try:
            checkout = await anyio.to_thread.run_sync(_checkout, around, path)
            commit, repository = wanted, checkout.folder
            # What its `.git` says, and what its configuration says of its place, is not asked again.
            ask = self.ask.within(checkout.top, GIT_DIR=str(checkout.folder), GIT_WORK_TREE=str(checkout.top))
            inner = Repository(checkout.folder, checkout.top, self.object_format, {})
            if self.tree_counts:
                commit, repository = await self._as_it_lies(checkout, inner, ask, wanted)
            await self._check(repository, commit)
            if not (self.tree_counts or self.is_base):
                state = await source.state_of(inner, checkout.top / RESULTS, ask, ())
                if state.commit != wanted or state.dirty:
                    self.changed.append(place)
            part = await self.find(checkout, repository, wanted, commit, path)
        except (NotTakenError, OSError, WorkspaceError) as problem:
            self.absent[place] = _reason(problem)
            return None
        self.present.add(place)
        return part

    async def _as_it_lies(
        self, checkout: RepositoryCheckout, inner: Repository, ask: Git, wanted: str
    ) -> tuple[str, Path]:
        """A commit of the submodule's files as they are, and the repository that has it."""
        results = checkout.top / RESULTS
        project = Project(checkout.top, await source.state_of(inner, results, ask, ()), inner)
        tested = await snapshot.of_working_tree(project, results, self.home, self.plumbing, ask)
        self.left_out += [f"{checkout.prefix}{path}" for path in tested.source.left_out]
        commit = tested.source.commit or wanted
        if commit != wanted:
            self.changed.append(checkout.prefix.rstrip("/"))
        return commit, tested.objects or checkout.folder

    async def _check(self, repository: Path, commit: str) -> None:
        """See to it that all of the commit is there, and that git takes its names."""
        git = borrowing(self.git, repository)
        if (await git.attempt("rev-list", "--objects", "--quiet", "--no-walk", commit)).exit_code != 0:
            raise NotTakenError(f"its repository lacks {commit[:12]}")
        staged = git.within(git.cwd, GIT_INDEX_FILE=str(self._index()))
        if (await staged.attempt("read-tree", commit)).exit_code != 0:
            raise NotTakenError("it has names that git refuses")


async def gitlinks(git: Git, commit: str) -> list[tuple[str, str]]:
    """Path and commit of each submodule."""
    return [(file.path, file.content) for file in await list_tree(git, commit) if file.mode == SUBMODULE]


def _checkout(around: RepositoryCheckout, path: str) -> RepositoryCheckout:
    """The submodule's checkout, if it is one that git itself would take."""
    parts = path.split("/")
    if any(part.lower() in {"", ".", "..", ".git"} for part in parts):
        raise NotTakenError("a name that git refuses")
    if around.depth >= MAX_DEPTH:
        raise NotTakenError(f"it lies in {MAX_DEPTH} others")
    top = around.top / path
    with untrusted.entered(around.top, parts) as folder:
        repository = _repository(top, folder)
    inside = [around.folder, top / ".git"]
    if not any(repository.is_relative_to(place) and repository != around.folder for place in inside):
        raise NotTakenError("its repository lies outside that of the project")
    return RepositoryCheckout(top, repository, f"{around.prefix}{path}/", around.depth + 1)


def _repository(top: Path, folder: int) -> Path:
    """Where the repository of a submodule lies: in its `.git`, or where that says."""
    try:
        text = untrusted.read(".git", MAX_LINK_BYTES, folder=folder)
    except untrusted.NotRegularError:
        os.close(untrusted.open_folder(".git", folder=folder))
        text = b"gitdir: .git"
    kind, _, place = text.rstrip(b"\r\n").partition(b" ")
    if b"\0" in place:
        raise NotTakenError("its .git file contains an invalid path")
    repository = Path(os.path.realpath(top / os.fsdecode(place)))
    if kind != b"gitdir:" or not (repository / "objects").is_dir():
        raise NotTakenError("its repository is not where its .git says")
    return repository


def _reason(problem: Exception) -> str:
    match problem:
        case FileNotFoundError():
            return ""
        case OSError():
            return problem.strerror or "it cannot be read"
        case WorkspaceError():
            return problem.message.rstrip(".")
        case _:
            return str(problem)


async def with_contents(
    project: Project, home: Path, plumbing: Git, ask: Git, *, tree_counts: bool = False, is_base: bool = False
) -> Project:
    """The project, with what its checkout has of submodules and files of Git LFS.

    Args:
        project: With the commit that is tested.
        home: The project's folder among the workspaces.
        plumbing: Git of Zelda's own.
        ask: Git as the user has configured it, which says what differs from a commit.
        tree_counts: Whether files count as they are, and not as they were committed.
        is_base: Whether the tested commit is not the one that is checked out.

    Raises:
        WorkspaceError: Git refuses the tested commit, or there is no room.
    """
    repository, commit = project.repository, project.checkout
    if repository is None or commit is None or project.source.commit is None:
        return project
    async with repositories.draft(home / repositories.TREES, repository.object_format) as scratch:
        git = plumbing.within(scratch, GIT_DIR=str(scratch))
        finder = ContentsFinder(project, repository.object_format, home, plumbing, ask, git, tree_counts, is_base)
        checkout = RepositoryCheckout(repository.top, repository.common_dir)
        parts = await finder.find(checkout, project.objects or repository.common_dir, "", commit, "")
    return replace(project, parts=parts, source=_with_findings(project.source, finder, parts))


def _with_findings(before: WorkspaceSource, found: ContentsFinder, parts: TreeParts) -> WorkspaceSource:
    changed = tuple(name for name in before.changed if name not in found.unchanged and name not in found.present)
    contents = NamedContents(
        submodules=Parts(frozenset(found.present), found.absent),
        lfs=Parts(frozenset(found.files), found.pointers),
        changed=() if found.tree_counts else tuple(name for name in found.changed if name in found.present),
        key=parts.key,
    )
    was_clean = bool(before.changed) and not changed
    dirty = bool(found.changed) or (before.dirty and not was_clean)
    left_out = (*before.left_out, *found.left_out)
    return before.replace(changed=changed, dirty=dirty, left_out=left_out, contents=contents)
