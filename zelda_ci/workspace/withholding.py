"""A history with other trees: without the files that no session may see, or with contents that it only names.

Author, dates and message stay, so that the same commit always becomes the same commit. Only objects that are left are
kept: the others would be found by their id.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread

from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.git import Git

MAX_TEXT_BYTES = 2 << 20
MAX_TOTAL_BYTES = 128 << 20
LINK, FOLDER = b"120000", b"40000"
# Removed files, and submodules, which hold none.
GONE = {b"000000", b"160000"}
# Headers that are about the commit as it was.
UNSIGNED = (b"gpgsig", b"gpgsig-sha256", b"mergetag")


@dataclass(frozen=True)
class Replacement:
    """What takes the place of an entry, in every commit that has the very same one there."""

    old: str
    new: str
    mode: bytes | None = None
    """Absent where that stays."""


# What changes below a folder: names, and what below them; nothing where all of it goes.
Branch: TypeAlias = "dict[bytes, Branch | Replacement | None]"


@dataclass
class CommitHistory:
    """All commits that a store has; `git` names its repository."""

    git: Git
    tip: str
    object_format: str
    objects: dict[str, bytes] = field(default_factory=dict)
    """New objects by name, with their headers."""

    async def commits(self) -> list[str]:
        """Parents before children."""
        return (await self.git("rev-list", "--topo-order", "--reverse", self.tip)).decode().split()

    async def listing(self, commits: Sequence[str], reads: Callable[[str], bool]) -> Listing:
        """The files of all commits together."""
        versions = await self._versions(commits)
        links = {blob.decode() for _, mode, blob in versions if mode == LINK}
        read = {
            blob.decode() for path, mode, blob in versions if mode != LINK and reads(_text(path.rpartition(b"/")[2]))
        }
        contents = await read_objects(self.git, await self._small([*sorted(read), *sorted(links)]))
        texts: dict[str, list[bytes]] = {}
        targets: dict[str, list[str]] = {}
        for path, mode, blob in sorted(versions):
            content = contents.get(blob.decode())
            if content is not None and mode == LINK:
                targets.setdefault(_text(path), []).append(_text(content))
            elif content is not None:
                texts.setdefault(_text(path), []).append(content)
        return Listing(frozenset(_text(path) for path, _, _ in versions), texts, targets)

    async def rewritten(self, commits: Sequence[str], branch: Branch) -> Mapping[str, str]:
        """Each commit's id once this is removed or replaced; new ones are in `objects`."""
        bodies = await read_objects(self.git, commits)
        trees = {commit: body.partition(b"\n")[0].removeprefix(b"tree ").decode() for commit, body in bodies.items()}
        lighter = await self.trees({*trees.values()}, branch)
        ids: dict[str, str] = {}
        for commit in commits:
            body = _rewritten(bodies[commit], lighter[trees[commit]], ids)
            ids[commit] = commit if body == bodies[commit] else self._add(b"commit", body)
        return ids

    async def _versions(self, commits: Sequence[str]) -> set[tuple[bytes, bytes, bytes]]:
        """Path, mode and blob of every file: what a commit has that no parent of it has, and those without parents."""
        options = ("--stdin", "--no-commit-id", "-r", "-c", "--root", "--raw", "-z", "--no-abbrev", "--no-renames")
        listing = await self.git("diff-tree", *options, stdin="".join(f"{commit}\n" for commit in commits).encode())
        fields = iter(listing.split(b"\0")[:-1])
        versions = set()
        for change, path in zip(fields, fields, strict=True):
            columns = change.lstrip(b":").split(b" ")
            parents = len(change) - len(change.lstrip(b":"))
            mode, blob = columns[parents], columns[2 * parents + 1]
            if mode not in GONE:
                versions.add((path, mode, blob))
        return versions

    async def trees(self, roots: set[str], doomed: Branch) -> Mapping[str, str]:
        """Each tree's id once this is removed or replaced in it."""
        # Level by level: a path may be deeper than the stack.
        levels: list[dict[tuple[str, int], Branch]] = [{(root, id(doomed)): doomed for root in roots}]
        bodies: dict[str, bytes] = {}
        while levels[-1]:
            bodies |= await read_objects(self.git, {tree for tree, _ in levels[-1]} - bodies.keys())
            below = (
                (entry.id, branch.get(entry.name))
                for (tree, _), branch in levels[-1].items()
                for entry in self._entries(bodies[tree])
                if entry.mode == FOLDER
            )
            # Level by level instead of by recursion: each level costs one call of git, however many folders it has.
            levels.append({(tree, id(branch)): branch for tree, branch in below if branch and isinstance(branch, dict)})
        ids: dict[tuple[str, int], str] = {}
        for level in reversed(levels):
            for (tree, key), branch in level.items():
                ids[tree, key] = self._lighter(bodies[tree], branch, ids)
        return {root: ids[root, id(doomed)] for root in roots}

    def _lighter(self, body: bytes, branch: Branch, ids: Mapping[tuple[str, int], str]) -> str:
        kept = []
        for entry in self._entries(body):
            below = branch.get(entry.name, {})
            if below is None:
                continue
            if isinstance(below, Replacement):
                kept.append(entry.replaced(below))
                continue
            new = ids.get((entry.id, id(below)), entry.id)
            # Git keeps no empty folders, so a tree from which all was taken goes as well; one that was empty before
            # stays.
            if new != entry.id and new == self.empty:
                continue
            kept.append(_Entry(entry.mode, entry.name, new))
        if any(isinstance(below, Replacement) for below in branch.values()):
            kept.sort(key=lambda entry: entry.order)
        return self._add(b"tree", b"".join(entry.line for entry in kept))

    @cached_property
    def empty(self) -> str:
        return hashlib.new(self.object_format, b"tree 0\0", usedforsecurity=False).hexdigest()

    def _add(self, kind: bytes, body: bytes) -> str:
        content = b"%b %d\0%b" % (kind, len(body), body)
        name = hashlib.new(self.object_format, content, usedforsecurity=False).hexdigest()
        self.objects[name] = content
        return name

    def _entries(self, body: bytes) -> Iterator["_Entry"]:
        size, start = hashlib.new(self.object_format, usedforsecurity=False).digest_size, 0
        while start < len(body):
            end = body.index(b"\0", start)
            mode, _, name = body[start:end].partition(b" ")
            start = end + 1 + size
            yield _Entry(mode, name, body[end + 1 : start].hex())

    async def _small(self, names: Sequence[str]) -> list[str]:
        """Those that can be read, within bounds for all together."""
        sizes = await self.git(
            "cat-file", "--batch-check=%(objectsize)", stdin="".join(f"{name}\n" for name in names).encode()
        )
        room, readable = MAX_TOTAL_BYTES, list[str]()
        for name, size in zip(names, sizes.split(b"\n"), strict=False):
            if size.isdigit() and int(size) <= min(room, MAX_TEXT_BYTES):
                room -= int(size)
                readable.append(name)
        return readable


async def read_objects(git: Git, names: Iterable[str]) -> dict[str, bytes]:
    """The content of objects, by name.

    Raises:
        WorkspaceError: One of them is not there.
    """
    ordered = sorted(set(names))
    if not ordered:
        return {}
    output = await git("cat-file", "--batch", stdin="".join(f"{name}\n" for name in ordered).encode())
    bodies, start = dict[str, bytes](), 0
    for name in ordered:
        end = output.index(b"\n", start)
        size = output[start:end].rpartition(b" ")[2]
        if not size.isdigit():
            raise WorkspaceError(f"The repository lacks an object of the tested commit: {name}.")
        bodies[name] = output[end + 1 : end + 1 + int(size)]
        start = end + int(size) + 2
    return bodies


@dataclass(frozen=True)
class _Entry:
    mode: bytes
    name: bytes
    id: str

    @property
    def line(self) -> bytes:
        """As it stands in a tree."""
        return b"%b %b\0%b" % (self.mode, self.name, bytes.fromhex(self.id))

    @property
    def order(self) -> bytes:
        """Git sorts a folder as if its name ended with a slash."""
        return self.name + b"/" if self.mode == FOLDER else self.name

    def replaced(self, by: Replacement) -> "_Entry":
        """What stands there instead, where it is the one to be replaced."""
        return _Entry(by.mode or self.mode, self.name, by.new) if self.id == by.old else self


async def withhold(git: Git, tip: str, object_format: str, finder: SuiteFinder, project: str) -> tuple[str, Withheld]:
    """Take suites out of a repository of ours; returns the new tip and what is gone.

    Args:
        git: With GIT_DIR set to the repository.
        tip: The only reference of it.
        object_format: Its hash.
        finder: Knows what to take out.
        project: The folder that is tested, from the top of the tree.

    Raises:
        WorkspaceError: There is no room.
    """
    history = CommitHistory(git, (await git("rev-parse", tip)).decode().strip(), object_format)
    commits = await history.commits()
    withheld = finder.find(await history.listing(commits, finder.reads), project)
    ids = await history.rewritten(commits, _branch(withheld.paths)) if withheld.paths else {}
    if await settle(history, tip, ids):
        # Drops the old objects: with them, `git cat-file` would show a session what was taken out.
        await git("-c", "repack.writeBitmaps=false", "repack", "-a", "-d", "-q")
    return ids.get(history.tip, history.tip), withheld


async def settle(history: CommitHistory, tip: str, ids: Mapping[str, str]) -> bool:
    """Write what is new and move the reference there; false where nothing is.

    Raises:
        WorkspaceError: There is no room.
    """
    new = ids.get(history.tip, history.tip)
    if new == history.tip:
        return False
    folder = Path(history.git.environment["GIT_DIR"])
    await anyio.to_thread.run_sync(_write, folder, history.objects)
    _move_border(folder / "shallow", ids)
    # The objects are there by now; the other way round, a kill in between would leave a tip that points to nothing.
    await history.git("update-ref", tip, new)
    return True


def _write(repository: Path, objects: Mapping[str, bytes]) -> None:
    for name, content in objects.items():
        file = repository / "objects" / name[:2] / name[2:]
        file.parent.mkdir(exist_ok=True)
        # As git stores loose objects; quickly rather than small, as they are packed right after.
        file.write_bytes(zlib.compress(content, 1))


def _move_border(shallow: Path, ids: Mapping[str, str]) -> None:
    """Where history was cut, it is cut still."""
    if shallow.exists():
        border = sorted(ids.get(name, name) for name in shallow.read_text().split())
        shallow.write_text("".join(f"{name}\n" for name in border))


def _rewritten(body: bytes, tree: str, ids: Mapping[str, str]) -> bytes:
    """A commit with another tree, or another parent; what was signed is no longer what it says."""
    head, _, message = body.partition(b"\n\n")
    headers = re.split(rb"\n(?! )", head)
    moved = [_moved(header, tree, ids) for header in headers]
    if moved == headers:
        return body
    # A signature that does not fit would make git call the commit forged.
    unsigned = [header for header in moved if header.partition(b" ")[0] not in UNSIGNED]
    return b"\n".join(unsigned) + b"\n\n" + message


def _moved(header: bytes, tree: str, ids: Mapping[str, str]) -> bytes:
    name, _, value = header.partition(b" ")
    if name == b"tree":
        return b"tree " + tree.encode()
    if name == b"parent":
        return b"parent " + ids.get(value.decode(), value.decode()).encode()
    return header


def _branch(paths: Iterable[str]) -> Branch:
    top: Branch = {}
    for path in sorted(paths):
        plant(top, os.fsencode(path), None)
    return top


def plant(top: Branch, path: bytes, leaf: Replacement | None) -> None:
    """Note what becomes of an entry; what is below one that has been noted stays out."""
    *above, last = path.split(b"/")
    level: Branch | Replacement | None = top
    for part in above:
        level = level.setdefault(part, {}) if isinstance(level, dict) else None
    if isinstance(level, dict):
        level[last] = leaf


def _text(name: bytes) -> str:
    return os.fsdecode(name)
