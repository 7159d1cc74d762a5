"""What a commit only names, and the checkout has: submodules, named by a commit, and files of Git LFS, by a hash.

Nothing of it is believed because of where it lies: the names are hashes of the contents. `.gitmodules` is not read, no
command of a repository is run, and no link is followed.
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.to_thread

from zelda_ci.domain.workspace import NamedContents, Parts, WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.process import removal
from zelda_ci.workspace import large_files, source, store, working_tree
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.grafting import TreeParts, borrowing
from zelda_ci.workspace.large_files import LargeFile, Pointer
from zelda_ci.workspace.source import Project, Repository

MAX_SUBMODULES = 500
MAX_DEPTH = 20
MAX_FILES = 200_000
MAX_BYTES = 4 << 30
MAX_LFS_BYTES = 2 << 30

ABSENT = ""
TOO_MUCH = "more than Zelda takes"
MAX_LINK_BYTES = 4096
RESULTS = ".zelda"


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
class CheckoutLook:
    """One look at a checkout; what is found is noted on the way."""

    project: Project
    object_format: str
    home: Path
    plumbing: Git
    ask: Git
    git: Git
    """On an empty repository of Zelda's own, in which it may work."""
    tree_counts: bool = False
    """Whether files count as they are, and not as they were committed."""
    is_base: bool = False
    """Whether another commit is asked for than the one that is checked out."""
    present: set[str] = field(default_factory=set)
    absent: dict[str, str] = field(default_factory=dict)
    """Submodules that are not there, and why."""
    contents: set[str] = field(default_factory=set)
    pointers: dict[str, str] = field(default_factory=dict)
    """Files of Git LFS whose content is not there, and why."""
    changed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unchanged: set[str] = field(default_factory=set)
    """Files that git calls changed only because no filter is run."""
    room: int = field(default_factory=lambda: MAX_BYTES)
    places: int = field(default_factory=lambda: MAX_FILES)
    lfs_room: int = field(default_factory=lambda: MAX_LFS_BYTES)
    number: int = 0

    async def all(self, repository: Repository, commit: str) -> TreeParts:
        """What there is of the tested commit."""
        folder = self.project.objects or repository.common_dir
        return await self._parts(RepositoryCheckout(repository.top, repository.common_dir), folder, "", commit, "")

    async def _parts(
        self, checkout: RepositoryCheckout, repository: Path, gitlink: str, commit: str, path: str
    ) -> TreeParts:
        git = borrowing(self.git, repository)
        files = await self._files(git, checkout, commit)
        parts = [
            part
            for place, named in await _gitlinks(git, commit)
            if (part := await self._submodule(checkout, place, named))
        ]
        return TreeParts(path, gitlink, commit, repository, files, tuple(parts))

    def _index(self) -> Path:
        self.number += 1
        return self.git.cwd / f"index-{self.number}"

    async def _files(self, git: Git, checkout: RepositoryCheckout, commit: str) -> tuple[LargeFile, ...]:
        wanted = await large_files.pointers(git, commit, self._index())
        found = await anyio.to_thread.run_sync(lambda: [*large_files.find(wanted, checkout.folder, checkout.top)])
        taken = [file for file in found if self._has_room(file)]
        there, at_hand = ({file.pointer.path for file in files} for files in (taken, found))
        for pointer in wanted:
            path = checkout.prefix + pointer.path
            if pointer.path in there:
                self.contents.add(path)
            else:
                self.pointers[path] = TOO_MUCH if pointer.path in at_hand else ABSENT
        changed = [each for each in wanted if checkout.prefix + each.path in self.project.source.changed]
        self.unchanged |= await anyio.to_thread.run_sync(_unchanged, changed, checkout)
        return tuple(taken)

    def _has_room(self, file: LargeFile) -> bool:
        if file.pointer.size > self.lfs_room:
            return False
        self.lfs_room -= file.pointer.size
        return True

    async def _submodule(self, around: RepositoryCheckout, path: str, wanted: str) -> TreeParts | None:
        place = around.prefix + path
        try:
            checkout = await anyio.to_thread.run_sync(self._found, around, path)
            commit, repository = wanted, checkout.folder
            if self.tree_counts:
                commit, repository = await self._as_it_lies(checkout, wanted)
            await self._check(repository, commit)
            if not (self.tree_counts or self.is_base):
                await self._compare(checkout, wanted)
            part = await self._parts(checkout, repository, wanted, commit, path)
        except (NotTakenError, OSError, WorkspaceError) as problem:
            self.absent[place] = _reason(problem)
            return None
        self.present.add(place)
        return part

    def _found(self, around: RepositoryCheckout, path: str) -> RepositoryCheckout:
        """The submodule's checkout, if it is one that git itself would take."""
        parts = path.split("/")
        if any(part.lower() in {"", ".", "..", ".git"} for part in parts):
            raise NotTakenError("a name that git refuses")
        if around.depth >= MAX_DEPTH or len(self.present) >= MAX_SUBMODULES:
            raise NotTakenError(TOO_MUCH)
        top = around.top / path
        with untrusted.entered(around.top, parts) as folder:
            repository = _repository(top, folder)
        inside = [around.folder, top / ".git"]
        if not any(repository.is_relative_to(place) and repository != around.folder for place in inside):
            raise NotTakenError("its repository lies outside that of the project")
        return RepositoryCheckout(top, repository, f"{around.prefix}{path}/", around.depth + 1)

    async def _compare(self, checkout: RepositoryCheckout, wanted: str) -> None:
        """Note a checkout that differs from the commit whose files are tested."""
        state = await source.state_of(self._repository(checkout), checkout.top / RESULTS, self._asking(checkout), ())
        if state.commit != wanted or state.dirty:
            self.changed.append(checkout.prefix.rstrip("/"))

    async def _as_it_lies(self, checkout: RepositoryCheckout, wanted: str) -> tuple[str, Path]:
        """A commit of the submodule's files as they are, and the repository that has it."""
        repository, ask, results = self._repository(checkout), self._asking(checkout), checkout.top / RESULTS
        state = await source.state_of(repository, results, ask, ())
        inner = Project(checkout.top, state, repository)
        tested = await working_tree.committed(inner, results, self.home, self.plumbing, ask)
        self.left_out += [f"{checkout.prefix}{path}" for path in tested.source.left_out]
        commit = tested.source.commit or wanted
        if commit != wanted:
            self.changed.append(checkout.prefix.rstrip("/"))
        return commit, tested.objects or checkout.folder

    def _repository(self, checkout: RepositoryCheckout) -> Repository:
        return Repository(checkout.folder, checkout.top, self.object_format, {})

    def _asking(self, checkout: RepositoryCheckout) -> Git:
        """What its `.git` says, and what its configuration says of its place, is not asked again."""
        return self.ask.within(checkout.top, GIT_DIR=str(checkout.folder), GIT_WORK_TREE=str(checkout.top))

    async def _check(self, repository: Path, commit: str) -> None:
        """See to it that all of the commit is there, and that it is neither too large nor hostile."""
        git = borrowing(self.git, repository)
        if (await git.attempt("rev-list", "--objects", "--quiet", "--no-walk", commit)).exit_code != 0:
            raise NotTakenError(f"its repository lacks {commit[:12]}")
        staged = git.within(git.cwd, GIT_INDEX_FILE=str(self._index()))
        if (await staged.attempt("read-tree", commit)).exit_code != 0:
            raise NotTakenError("it has names that git refuses")
        sizes = _sizes(await git("ls-tree", "-r", "-l", "-z", commit))
        if len(sizes) > self.places or sum(sizes) > self.room:
            raise NotTakenError(TOO_MUCH)
        self.places -= len(sizes)
        self.room -= sum(sizes)


def _unchanged(pointers: Sequence[Pointer], checkout: RepositoryCheckout) -> set[str]:
    return {checkout.prefix + each.path for each in pointers if large_files.is_content(each, checkout.top)}


async def _gitlinks(git: Git, commit: str) -> list[tuple[str, str]]:
    """Path and commit of each submodule."""
    entries = (await git("ls-tree", "-r", "-z", "--full-tree", commit)).split(b"\0")
    found = (entry.partition(b"\t") for entry in entries if entry.startswith(b"160000 "))
    return [(os.fsdecode(path), about.split(b" ")[2].decode()) for about, _, path in found]


def _sizes(listing: bytes) -> list[int]:
    """Of files; what has no size is a submodule, and counts as nothing."""
    columns = (entry.partition(b"\t")[0].split() for entry in listing.split(b"\0")[:-1])
    return [int(column[3]) if column[3].isdigit() else 0 for column in columns]


def _repository(top: Path, folder: int) -> Path:
    """Where the repository of a submodule lies: in its `.git`, or where that says."""
    try:
        text = untrusted.read(".git", MAX_LINK_BYTES, folder=folder)
    except untrusted.NotRegularError:
        os.close(untrusted.open_folder(".git", folder=folder))
        text = b"gitdir: .git"
    kind, _, place = text.rstrip(b"\r\n").partition(b" ")
    if b"\0" in place:
        raise NotTakenError("its .git names an impossible place")
    repository = Path(os.path.realpath(top / os.fsdecode(place)))
    if kind != b"gitdir:" or not (repository / "objects").is_dir():
        raise NotTakenError("its repository is not where its .git says")
    return repository


def _reason(problem: Exception) -> str:
    match problem:
        case FileNotFoundError():
            return ABSENT
        case OSError():
            return problem.strerror or "it cannot be read"
        case WorkspaceError():
            return problem.message.rstrip(".")
        case _:
            return str(problem)


def _create(scratch: Path, object_format: str) -> None:
    for folder in (scratch.parent.parent, scratch.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    store.create(scratch, object_format=object_format)


async def look(
    project: Project, home: Path, plumbing: Git, ask: Git, *, tree_counts: bool = False, is_base: bool = False
) -> Project:
    """The project, with what its checkout has of submodules and files of Git LFS.

    Args:
        project: With the commit that is tested.
        home: The project's folder among the workspaces.
        plumbing: Git of Zelda's own.
        ask: Git as the user has configured it, which says what differs from a commit.
        tree_counts: Whether files count as they are.
        is_base: Whether the tested commit is not the one that is checked out.

    Raises:
        WorkspaceError: Git refuses the tested commit, or there is no room.
    """
    repository, commit = project.repository, project.checkout
    if repository is None or commit is None:
        return project
    # Among drafts that are removed if this process does not live to do it.
    scratch = home / working_tree.FOLDER / f"look-{secrets.token_hex(4)}"
    try:
        await anyio.to_thread.run_sync(_create, scratch, repository.object_format)
        git = plumbing.within(scratch, GIT_DIR=str(scratch))
        found = CheckoutLook(
            project, repository.object_format, home, plumbing, ask, git, tree_counts=tree_counts, is_base=is_base
        )
        parts = await found.all(repository, commit)
    finally:
        with anyio.CancelScope(shield=True):
            await removal.discard(scratch, home / "trash")
    return replace(project, parts=parts, source=_told(project.source, found, parts))


def _told(before: WorkspaceSource, found: CheckoutLook, parts: TreeParts) -> WorkspaceSource:
    changed = tuple(name for name in before.changed if name not in found.unchanged and name not in found.present)
    contents = NamedContents(
        submodules=Parts(frozenset(found.present), found.absent),
        lfs=Parts(frozenset(found.contents), found.pointers),
        changed=() if found.tree_counts else tuple(name for name in found.changed if name in found.present),
        key=parts.key,
    )
    was_clean = bool(before.changed) and not changed
    dirty = bool(found.changed) or (before.dirty and not was_clean)
    left_out = (*before.left_out, *found.left_out)
    return replace(before, changed=changed, dirty=dirty, left_out=left_out, contents=contents)
