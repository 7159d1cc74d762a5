"""Submodules and files of Git LFS: a commit only names them, by a commit and by a hash; the checkout may have them.

Nothing is believed because of where it lies: the names are hashes of the contents. `.gitmodules` is not read, no
command of a repository is run, and no link is followed. In a workspace a submodule is a folder and a pointer its file,
so a session finds the files of a real checkout, and `git status` is clean. A submodule has no repository of its own
there: what a session changes in it is in the patch like everything else.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

import anyio.to_thread

from zelda_ci.domain.workspace import NamedContents, Parts, SuiteFinder
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import snapshot, source
from zelda_ci.workspace.git import SUBMODULE, Git, TreeFile, borrowing, create_repository
from zelda_ci.workspace.objects import Objects, Replacement, put, read_files
from zelda_ci.workspace.source import LargeFile, Project, Submodule, pointers

LFS = "lfs"
FILTER = re.compile(r"^[^#\n].*\sfilter=(\S+)", re.MULTILINE)


async def replacements(git: Git, parts: Sequence[Submodule | LargeFile]) -> dict[str, Replacement]:
    """Put contents into a repository of Zelda's own; returns what they take the place of, by path."""
    names = await _store(git, (part for part in parts if isinstance(part, LargeFile)))
    found = dict[str, Replacement]()
    for part in parts:
        above = (str(folder) for folder in reversed(PurePosixPath(part.path).parents))
        outermost = next((folder for folder in above if folder in found), part.path)
        if isinstance(part, LargeFile):
            entry = found.setdefault(outermost, Replacement(part.name))
            entry.lines.append(put(part.path, part.mode, names[part.content]))
        # Git has no place in a tree for an empty folder; a submodule without files stays what it is.
        elif part.files:
            entry = found.setdefault(outermost, Replacement(part.name))
            entry.lines.append(put(part.path, "040000", part.tree))
            entry.files.extend(replace(file, path=f"{part.path}/{file.path}") for file in part.files)
    return found


async def _store(git: Git, files: Iterable[LargeFile]) -> Mapping[str, str]:
    """Put contents into a repository of ours, unless one is damaged; returns git's names for them, by SHA-256."""
    distinct = {file.content: file for file in files}
    places = [file.repository / file.place for file in distinct.values()]
    for file, place in zip(distinct.values(), places, strict=True):
        if not await anyio.to_thread.run_sync(file.is_content, file.repository, file.place):
            message = f"{file.path!r} is a file of Git LFS, and {place} is not its content."
            hint = "`git lfs fsck` says what is damaged, `git lfs fetch` brings it anew."
            raise WorkspaceError(message, hint=hint, code="LFS_DAMAGED")
    # As packs, and without compressing what mostly is compressed.
    settings = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
    stdin = b"".join(os.fsencode(place) + b"\n" for place in places)
    printed = await git(*settings, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin) if stdin else b""
    return dict(zip(distinct, printed.decode().split(), strict=True))


@dataclass
class ContentsFinder:
    """Finds the files of the tested commit, what a checkout has of those that it only names, and what it lacks."""

    place: Path
    """An empty folder for repositories of Zelda's own."""
    internal_git: Git
    environ: Mapping[str, str]
    suites: SuiteFinder | None
    """Reads files, so that nothing is left to be read when they are withheld."""
    tree_counts: bool
    """Whether files count as they are, and not as they were committed."""
    is_base: bool
    """Whether the tested commit is not the one that is checked out."""
    known: dict[str, bytes] = field(default_factory=dict)
    parts: list[Submodule | LargeFile] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Submodules that are not there, and why."""
    pointers: dict[str, str] = field(default_factory=dict)
    """Files of Git LFS whose content is not there."""
    filters: set[str] = field(default_factory=set)
    """Content filters that the trees' attributes name."""
    changed: list[str] = field(default_factory=list)
    """Submodules whose checkout differs from the commit that is tested."""
    left_out: list[str] = field(default_factory=list)
    unchanged: set[str] = field(default_factory=set)
    """Files that git calls changed only because no filter is run."""

    async def find(self, project: Project) -> Project:
        """The project with its files, and with what its checkout has of submodules and files of Git LFS."""
        _, files = await self._find(project, "")
        parts = tuple(sorted(self.parts, key=lambda part: part.path))
        submodules, large = [{part.path for part in parts if isinstance(part, it)} for it in (Submodule, LargeFile)]
        key = "\n".join(f"{part.path!r} {part.content}" for part in parts)
        contents = NamedContents(
            submodules=Parts(frozenset(submodules), self.absent),
            lfs=Parts(frozenset(large), self.pointers),
            changed=() if self.tree_counts else tuple(name for name in self.changed if name in submodules),
            key=sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12] if parts else "",
        )
        before = project.source
        changed = tuple(name for name in before.changed if name not in self.unchanged | submodules)
        # Where all that differed is accounted for, nothing does.
        dirty = bool(self.changed) or (before.dirty and bool(changed or not before.changed))
        left_out = (*before.left_out, *self.left_out)
        state = before.replace(dirty=dirty, changed=changed, left_out=left_out, contents=contents)
        filters = frozenset(self.filters - {LFS})
        return replace(project, source=state, files=files, parts=parts, filters=filters, known=self.known)

    async def _find(self, project: Project, prefix: str) -> tuple[str, tuple[TreeFile, ...]]:
        """Find what the checkout of a project, or of a submodule with its place, has; returns its tree and files."""
        folder = Path(tempfile.mkdtemp(dir=self.place))
        create_repository(folder, project.commit)
        # Nothing of the user's repository but its objects.
        git = borrowing(self.internal_git.within(folder, GIT_DIR=str(folder)), project.objects)
        async with Objects(git, self.known) as objects:
            tree = (await objects.commit(project.commit)).tree
            files = tuple(await objects.files(tree))
            attributes = [file.content for file in files if file.path.rpartition("/")[2] == ".gitattributes"]
            texts = await objects.read(attributes)
            if self.suites:
                await objects.read(file.content for file in read_files(files, self.suites.reads))
        filters = {name for text in texts.values() for name in FILTER.findall(text.decode("utf-8", "surrogateescape"))}
        self.filters |= filters
        if LFS in filters:
            await self._find_large_files(project, prefix, git)
        for file in files:
            if file.mode == SUBMODULE:
                await self._find_submodule(project, prefix, file)
        return tree, files

    async def _find_large_files(self, project: Project, prefix: str, git: Git) -> None:
        nowhere, repository = git.cwd / "nowhere", project.repository
        nowhere.mkdir()
        # The attributes that count are those of the commit.
        git = git.within(nowhere, GIT_WORK_TREE=str(nowhere))
        await git("read-tree", project.commit)
        for file in await pointers(git, repository.common_dir, prefix):
            if file.is_stored():
                self.parts.append(file)
            else:
                self.pointers[file.path] = ""
            if not prefix and file.path in project.source.changed:
                is_same = await anyio.to_thread.run_sync(file.is_content, repository.top, file.path)
                self.unchanged |= {file.path} if is_same else set()

    async def _find_submodule(self, around: Project, prefix: str, link: TreeFile) -> None:
        place, known = prefix + link.path, len(self.parts)
        try:
            submodule = await self._inspected(around, place, link)
            tree, files = await self._find(submodule, f"{place}/")
        except WorkspaceError as problem:
            self.absent[place] = problem.message.rstrip(".")
            del self.parts[known:]
        else:
            self.parts.append(Submodule(place, link.content, submodule.commit, tree, files, submodule.objects))

    async def _inspected(self, around: Project, place: str, link: TreeFile) -> Project:
        """A submodule at the commit that is tested of it, if the checkout is one that git would make."""
        outer = around.repository
        top = outer.top / link.path
        _check_place(top, link.path)
        submodule = await source.inspect(top, top / source.RESULTS, self.internal_git, self.environ)
        inner, state = submodule.repository, submodule.source
        folders = {*inner.common_dir.parents, inner.common_dir} & {outer.common_dir, top / ".git"}
        if inner.top != top or inner.common_dir == outer.common_dir or not folders:
            raise WorkspaceError("its repository lies outside that of the project")
        if self.tree_counts:
            places = top / source.RESULTS, Path(tempfile.mkdtemp(dir=self.place))
            submodule = await snapshot.of_files(submodule, *places, self.internal_git, self.environ)
            self.left_out += [f"{place}/{path}" for path in submodule.source.left_out]
        if not self.is_base and (submodule.commit != link.content or (state.dirty and not self.tree_counts)):
            self.changed.append(place)
        return submodule if self.tree_counts else replace(submodule, commit=link.content)


def _check_place(top: Path, path: str) -> None:
    """Refuse a folder that git would not take for a submodule; the error says nothing where it is not checked out."""
    if {"", ".", "..", ".git"} & {*path.lower().split("/")}:
        raise WorkspaceError("a name that git refuses")
    if os.path.realpath(top) != str(top):
        raise WorkspaceError("a link is in its place")
    if not os.path.lexists(top / ".git"):
        raise WorkspaceError("")
