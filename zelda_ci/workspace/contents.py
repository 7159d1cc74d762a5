"""Submodules and files of Git LFS: a commit only names them, by a commit and by a hash; the checkout may have them.

Nothing is believed because of where it lies: the names are hashes of the contents. `.gitmodules` is not read, no
command of a repository is run, and no link is followed. In a workspace a submodule is a folder and a pointer its file,
so a session finds the files of a real checkout, and `git status` is clean. A submodule has no repository of its own
there: what a session changes in it is in the patch like everything else.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from pathlib import Path, PurePosixPath

import anyio.to_thread

from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.workspace import NamedContents, Parts, WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import history, large_files, repositories, snapshot, source
from zelda_ci.workspace.git import SUBMODULE, Git, TreeFile, list_tree
from zelda_ci.workspace.history import Replacement, modify
from zelda_ci.workspace.large_files import LargeFile
from zelda_ci.workspace.source import Project, Repository, Submodule

RESULTS = ".zelda"
LFS = "lfs"
FILTER = re.compile(r"^[^#\n].*\sfilter=(\S+)", re.MULTILINE)


async def replacements(git: Git, parts: Sequence[Submodule | LargeFile]) -> dict[str, Replacement]:
    """Put contents into a repository of Zelda's own; returns what they take the place of, by path.

    Raises:
        WorkspaceError: Something has vanished or is damaged, or there is no room.
    """
    names = await large_files.store(git, (part for part in parts if isinstance(part, LargeFile)))
    found = dict[str, Replacement]()
    for part in parts:
        above = (str(folder) for folder in reversed(PurePosixPath(part.path).parents))
        outermost = next((folder for folder in above if folder in found), part.path)
        if isinstance(part, LargeFile):
            entry = found.setdefault(outermost, Replacement(part.pointer.blob))
            entry.lines.append(modify(part.pointer.mode, names[part.pointer.digest], part.path))
        # Git has no place in a tree for an empty folder; a submodule without files stays what it is.
        elif part.files:
            entry = found.setdefault(outermost, Replacement(part.name))
            entry.lines.append(modify("040000", part.tree, part.path))
            entry.files.extend(replace(file, path=f"{part.path}/{file.path}") for file in part.files)
    return found


@dataclass(frozen=True)
class RepositoryCheckout:
    """A repository as it is checked out: the tested one, or that of a submodule."""

    top: Path
    folder: Path
    """Its own, in which Git LFS keeps contents, too."""
    prefix: str = ""
    """Its place in the tested tree, with a slash at the end; empty at the top."""


@dataclass
class ContentsFinder:
    """Finds what a checkout has, and notes on the way what it lacks."""

    project: Project
    repository: Repository
    place: Path
    """An empty folder for repositories of Zelda's own."""
    plumbing: Git
    ask: Git
    tree_counts: bool
    is_base: bool
    parts: list[Submodule | LargeFile] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Submodules that are not there, and why."""
    pointers: dict[str, str] = field(default_factory=dict)
    """Files of Git LFS whose content is not there."""
    filters: set[str] = field(default_factory=set)
    """Content filters that the trees' attributes name."""
    changed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unchanged: set[str] = field(default_factory=set)
    """Files that git calls changed only because no filter is run."""
    numbers: Iterator[int] = field(default_factory=count)

    async def find(self, checkout: RepositoryCheckout, repository: Path, commit: str) -> tuple[TreeFile, ...]:
        """Find what the checkout has of what a commit names; returns the commit's files."""
        git = self.plumbing.within(self.place, GIT_DIR=str(repository))
        files = tuple(await list_tree(git, commit))
        attributes = [file.content for file in files if file.path.rpartition("/")[2] == ".gitattributes"]
        texts = await history.read_objects(git, attributes)
        filters = {name for text in texts.values() for name in FILTER.findall(text.decode("utf-8", "surrogateescape"))}
        self.filters |= filters
        if LFS in filters:
            await self._find_large_files(checkout, repository, commit)
        for file in files:
            if file.mode == SUBMODULE:
                await self._find_submodule(checkout, file)
        return files

    async def _find_large_files(self, checkout: RepositoryCheckout, repository: Path, commit: str) -> None:
        async with self._staged(repository, commit) as staged:
            pointers = await large_files.pointers(staged)
        for pointer in pointers:
            path = checkout.prefix + pointer.path
            found = await anyio.to_thread.run_sync(large_files.at_hand, pointer, path, checkout.folder, checkout.top)
            if found:
                self.parts.append(found)
            else:
                self.pointers[path] = ""
            if path in self.project.source.changed:
                is_same = await anyio.to_thread.run_sync(large_files.is_content, pointer, checkout.top)
                self.unchanged |= {path} if is_same else set()

    async def _find_submodule(self, around: RepositoryCheckout, link: TreeFile) -> None:
        place, known = around.prefix + link.path, len(self.parts)
        try:
            top = _place_of(around, link.path)
            answer = await self.plumbing.within(top)("rev-parse", "--path-format=absolute", "--git-common-dir")
            checkout = RepositoryCheckout(top, _inside(around, top, answer), f"{place}/")
            commit, repository, state = link.content, checkout.folder, None
            if self.tree_counts:
                tested = await self._as_it_lies(checkout)
                commit, repository = tested.commit, tested.objects or repository
            tree = await self._whole_tree(repository, commit)
            if not (self.tree_counts or self.is_base):
                state = (await self._inspected(checkout))[0].source
            if commit != link.content or (state and (state.commit != commit or state.dirty)):
                self.changed.append(place)
            files = await self.find(checkout, repository, commit)
        except WorkspaceError as problem:
            self.absent[place] = problem.message.rstrip(".")
            del self.parts[known:]
        else:
            self.parts.append(Submodule(place, link.content, commit, tree, files, repository))

    async def _inspected(self, checkout: RepositoryCheckout) -> tuple[Project, Git]:
        """The state of a submodule's checkout, and git that asks there."""
        # What its `.git` says, and what its configuration says of its place, is not asked again.
        ask = self.ask.within(checkout.top, GIT_DIR=str(checkout.folder), GIT_WORK_TREE=str(checkout.top))
        settings = await source.read_settings(ask)
        inner = Repository(checkout.folder, checkout.top, self.repository.object_format, *settings)
        state = await source.state_of(inner, checkout.top / RESULTS, ask, ())
        return Project(checkout.top, state, inner, commit=state.commit or ""), ask

    async def _as_it_lies(self, checkout: RepositoryCheckout) -> Project:
        """The submodule with a commit of its files as they are."""
        project, ask = await self._inspected(checkout)
        tested = await snapshot.of_working_tree(project, checkout.top / RESULTS, self._folder(), self.plumbing, ask)
        self.left_out += [f"{checkout.prefix}{path}" for path in tested.source.left_out]
        return tested

    async def _whole_tree(self, repository: Path, commit: str) -> str:
        """The commit's tree, if all of it is there and git takes its names."""
        tree = await repositories.whole_tree(self.plumbing.within(self.place, GIT_DIR=str(repository)), commit)
        if tree is None:
            raise WorkspaceError(f"its repository lacks {commit[:12]}")
        try:
            async with self._staged(repository, commit):
                return tree
        except WorkspaceError as problem:
            raise WorkspaceError("it has names that git refuses") from problem

    def _staged(self, repository: Path, commit: str) -> AbstractAsyncContextManager[Git]:
        return repositories.staged(self.plumbing, self._folder(), repository, self.repository.object_format, commit)

    def _folder(self) -> Path:
        return self.place / f"part-{next(self.numbers)}"


def _place_of(around: RepositoryCheckout, path: str) -> Path:
    """The folder of a submodule, if git itself would take it; the error says nothing where it is not checked out."""
    top = around.top / path
    if {"", ".", "..", ".git"} & {*path.lower().split("/")}:
        raise WorkspaceError("a name that git refuses")
    if os.path.realpath(top) != str(top):
        raise WorkspaceError("a link is in its place")
    if not os.path.lexists(top / ".git"):
        raise WorkspaceError("")
    return top


def _inside(around: RepositoryCheckout, top: Path, answer: bytes) -> Path:
    """The repository that git names for a submodule; it must be one of those that git itself makes."""
    repository = Path(os.path.realpath(os.fsdecode(answer.removesuffix(b"\n"))))
    inside = [around.folder, top / ".git"]
    if not any(repository.is_relative_to(place) and repository != around.folder for place in inside):
        raise WorkspaceError("its repository lies outside that of the project")
    return repository


async def with_contents(
    project: Project, place: Path, plumbing: Git, ask: Git, *, tree_counts: bool = False, is_base: bool = False
) -> Project:
    """The project with its files, and with what its checkout has of submodules and files of Git LFS.

    Args:
        project: With the commit that is tested.
        place: An empty folder for repositories of Zelda's own.
        plumbing: Git of Zelda's own.
        ask: Git as the user has configured it, which says what differs from a commit.
        tree_counts: Whether files count as they are, and not as they were committed.
        is_base: Whether the tested commit is not the one that is checked out.

    Raises:
        WorkspaceError: Git refuses the tested commit, or there is no room.
    """
    repository = project.repository
    if repository is None or project.source.commit is None:
        return project
    finder = ContentsFinder(project, repository, place, plumbing, ask, tree_counts, is_base)
    checkout = RepositoryCheckout(repository.top, repository.common_dir)
    files = await finder.find(checkout, project.objects or repository.common_dir, project.commit)
    parts = tuple(sorted(finder.parts, key=lambda part: part.path))
    found = replace(project, files=files, parts=parts, source=_with_findings(project.source, finder, parts))
    return replace(found, notes=(*project.notes, *_notes(found, finder.filters - {LFS})))


def _with_findings(
    before: WorkspaceSource, found: ContentsFinder, parts: Sequence[Submodule | LargeFile]
) -> WorkspaceSource:
    present = frozenset(part.path for part in parts if isinstance(part, Submodule))
    changed = tuple(name for name in before.changed if name not in found.unchanged and name not in present)
    identity = "\n".join(
        f"{part.path!r} {part.commit if isinstance(part, Submodule) else part.pointer.digest}" for part in parts
    )
    contents = NamedContents(
        submodules=Parts(present, found.absent),
        lfs=Parts(frozenset(part.path for part in parts if isinstance(part, LargeFile)), found.pointers),
        changed=() if found.tree_counts else tuple(name for name in found.changed if name in present),
        key=sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:12] if parts else "",
    )
    was_clean = bool(before.changed) and not changed
    dirty = bool(found.changed) or (before.dirty and not was_clean)
    left_out = (*before.left_out, *found.left_out)
    return before.replace(changed=changed, dirty=dirty, left_out=left_out, contents=contents)


def _notes(project: Project, filters: set[str]) -> Iterator[str]:
    if project.empty_submodules:
        yield f"Submodules are empty folders in the workspace: {some_of(project.empty_submodules)}."
    if pointers := project.source.contents.lfs.missing:
        yield f"Files of Git LFS are pointers in the workspace: {some_of(sorted(pointers))}."
    if filters:
        yield f"Files with the content filter {some_of(sorted(filters))} are as Git stores them."
