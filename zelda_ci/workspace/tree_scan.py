"""The state of a work tree after the session, taken into an index and an object folder of Zelda's own.

Nothing that the session could have configured is read: not its repository, its hooks, its filters or its ignored
files' list, only the `.gitignore` and `.gitattributes` of the tree.
"""

import os
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.workspace.folder import CheckoutIndex
from zelda_ci.workspace.git import MAKE_ROOM, NO_SPACE, Git, has_room
from zelda_ci.workspace.ignored import Stamps, unlike

READ_BY_GIT = frozenset({b".gitignore", b".gitattributes", b".gitmodules"})
MAX_SETTINGS_BYTES = 1 << 20


@dataclass
class TreeScan:
    """What git must not meet. Paths are bytes, relative to the work tree."""

    traps: list[bytes] = field(default_factory=list)
    """Files that git reads by their name and that are a pipe, a device or huge."""
    nested: list[bytes] = field(default_factory=list)
    """The `.git` of every repository inside: without it, its files count as what they are."""
    closed: list[bytes] = field(default_factory=list)
    """Folders that cannot be listed."""


def scan_tree(root: Path) -> TreeScan:
    """Walk the tree once, opening no file; a folder deeper than a path may be long counts as closed."""
    scan = TreeScan()
    waiting = [b""]
    top = os.fsencode(root)
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(top, folder)) as entries:  # noqa: PTH118  # bytes: a name need not be UTF-8
                waiting += _folders(folder, list(entries), scan)
        except OSError:
            scan.closed.append(folder)
    return scan


@contextmanager
def set_aside(root: Path, paths: Sequence[bytes], shelf: Path) -> Iterator[None]:
    """Move these out of the tree for a while, and back."""
    shelf.mkdir(mode=0o700, exist_ok=True)
    moved = []
    try:
        for path in paths:
            origin, place = os.path.join(os.fsencode(root), path), shelf / secrets.token_hex(8)  # noqa: PTH118  # as above
            with suppress(OSError):
                os.rename(origin, place)  # noqa: PTH104  # as above
                moved.append((origin, place))
        yield
    finally:
        for origin, place in reversed(moved):
            with suppress(OSError):
                os.rename(place, origin)  # noqa: PTH104  # as above


def _folders(folder: bytes, entries: Sequence[os.DirEntry[bytes]], scan: TreeScan) -> Iterator[bytes]:
    for entry in entries:
        path = os.path.join(folder, entry.name)  # noqa: PTH118  # as above
        if entry.name == b".git":
            if folder:
                scan.nested.append(path)
        elif entry.is_dir(follow_symlinks=False):
            yield path
        elif entry.name in READ_BY_GIT and _is_trap(entry):
            scan.traps.append(path)


def _is_trap(entry: os.DirEntry[bytes]) -> bool:
    """Git follows a link only from `.gitmodules`."""
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return entry.name == b".gitmodules"
    return not untrusted.is_regular(status) or status.st_size > MAX_SETTINGS_BYTES


MAX_FILE_BYTES = 10 << 20
MAX_TOTAL_BYTES = 200 << 20


@dataclass
class DiffableFiles:
    """Paths as bytes, relative to the work tree."""

    present: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)
    left_out: dict[bytes, str] = field(default_factory=dict)
    """Changed, but not read: why, in a few words."""


def classify(root: Path, paths: Iterable[bytes], gone: Collection[bytes]) -> DiffableFiles:
    """Sort out what git may be told to read; of what is `gone`, something else may stand in the place."""
    top = os.fsencode(root)
    files = DiffableFiles()
    size = 0
    for path in sorted(set(paths)):
        status = None if path in gone else _status(top, path)
        reason = _objection(top, path, status, MAX_TOTAL_BYTES - size)
        if reason:
            files.left_out[path.rstrip(b"/")] = reason
        elif status is None or not (untrusted.is_regular(status) or stat.S_ISLNK(status.st_mode)):
            files.removed.append(path)
        else:
            size += status.st_size
            files.present.append(path)
    return files


def _status(top: bytes, path: bytes) -> os.stat_result | None:
    with suppress(OSError):
        return os.lstat(os.path.join(top, path))  # noqa: PTH118  # as above
    return None


def _objection(top: bytes, path: bytes, status: os.stat_result | None, room: int) -> str | None:
    if any(part.lower() == b".git" for part in path.split(b"/")):
        return "named like Git's own"
    if path.endswith(b"/"):
        return "a repository"
    if status is None or not untrusted.is_regular(status):
        return None
    if status.st_size > min(MAX_FILE_BYTES, room):
        return f"{status.st_size} bytes"
    if not os.access(os.path.join(top, path), os.R_OK):  # noqa: PTH118  # as above
        return "unreadable"
    return None


# Git decides by content what is text: a tree's own opinion could hide readable changes.
ATTRIBUTES = "* !diff\n"

# For files that do not fit the encoding their attributes promise.
PLAIN_ATTRIBUTES = "* !diff -text -ident -filter -working-tree-encoding\n"

MAX_ATTEMPTS = 40
MAX_INDEX_BYTES = 64 << 20


class IndexedFile(NamedTuple):
    """What an index says of a file, and whether the tree has lost it."""

    mode: bytes
    blob: bytes
    is_gone: bool


# Changed files that are not in the index, and why.
Staged = dict[bytes, str]


@dataclass
class Snapshot:
    """An index under construction. `git` names the private repository, its index and the work tree."""

    git: Git
    repository: Path
    root: Path
    attempts: int = 0

    async def stage(self, start_index: CheckoutIndex, session_index: Path, before: Stamps) -> Staged:
        """Bring the index from the start state to what the tree holds now, but for what setup has made in between.

        Args:
            start_index: Of the state that was checked out.
            session_index: Where the session's own git keeps its index.
            before: The tree's files after setup.

        Raises:
            WorkspaceError: Git failed altogether, for instance for want of room.
        """
        await anyio.to_thread.run_sync(start_index.write, self.index)
        self._use(ATTRIBUTES)
        changed = _entries(await self.git("diff-files", "-z", "--raw", "--no-abbrev", "--ignore-submodules=all"))
        others = await self._names("ls-files", "--others", "--exclude-standard")
        forced = await self._forced(start_index, session_index)
        fresh = await anyio.to_thread.run_sync(unlike, self.root, [*others, *forced], before)
        gone = {path for path, file in changed.items() if file.is_gone}
        files = await anyio.to_thread.run_sync(classify, self.root, [*changed, *fresh], gone)
        await self._forget(changed, files)
        stubborn = await self._add(files.present)
        if stubborn:
            self._use(PLAIN_ATTRIBUTES)
            self.attempts = 0
            stubborn = await self._add(stubborn)
            self._use(ATTRIBUTES)
        return files.left_out | dict.fromkeys(stubborn, "not accepted by Git")

    async def ignored(self) -> list[bytes]:
        """What the tree's own lists hide, once all else is staged; folders end with a slash."""
        return await self._names("ls-files", "--others", "--ignored", "--exclude-standard", "--directory")

    @property
    def index(self) -> Path:
        """Where the state is kept."""
        return self.repository / "index"

    def _use(self, attributes: str) -> None:
        (self.repository / "info" / "attributes").write_text(attributes)

    async def _names(self, *command: str) -> list[bytes]:
        return [name for name in (await self.git(*command, "-z")).split(b"\0") if name]

    async def _forced(self, start_index: CheckoutIndex, session_index: Path) -> list[bytes]:
        """Ignored files that the session made git track all the same, by what its index says."""
        theirs = await anyio.to_thread.run_sync(_content, session_index)
        if theirs is None or theirs == start_index.content:
            return []
        copy = self.repository / "session-index"
        copy.write_bytes(theirs)
        git = self.git.within(self.git.cwd, GIT_INDEX_FILE=str(copy))
        listing = await git.attempt("ls-files", "-z")
        if listing.exit_code != 0:
            return []
        # Of names that the session wrote, those that are files of the tree; none lies beyond a link.
        return [*{*listing.stdout.split(b"\0")} & {*await self._names("ls-files", "--others")}]

    async def _forget(self, changed: Mapping[bytes, IndexedFile], files: DiffableFiles) -> None:
        """Drop what is gone, and the times of what changed: git would take it at its word on size and second."""
        removals = (b"0 %b\t%b" % (b"0" * len(changed[path].blob), path) for path in files.removed if path in changed)
        updates = (b"%b %b 0\t%b" % (*changed[path][:2], path) for path in files.present if path in changed)
        if not await self._update("--index-info", [*removals, *updates]):
            raise WorkspaceError("What the session changed cannot be computed: git refused an index of its own making.")

    async def _update(self, option: str, lines: Sequence[bytes]) -> bool:
        """Change the index by a list; many files go into one pack rather than into a file each.

        What changed is known by now, so the index is made to look younger than any file: git would otherwise read all
        those again that were written in the same second.

        Raises:
            WorkspaceError: There is no room.
        """
        if not lines:
            return True
        os.utime(self.index, (time.time() + 3600,) * 2)
        options = ("-c", "core.bigFileThreshold=1", "update-index", "-z", *option.split())
        outcome = await self.git.attempt(*options, stdin=b"".join(line + b"\0" for line in lines))
        if outcome.exit_code == 0:
            return True
        error = self.git.failure(options, outcome)
        if error.code == NO_SPACE:
            raise error
        if not has_room(self.repository):
            raise WorkspaceError(error.message, hint=MAKE_ROOM, code=NO_SPACE)
        return False

    async def _add(self, paths: Sequence[bytes]) -> list[bytes]:
        """Add all, finding by halves the few that git refuses; returns those."""
        self.attempts += 1
        if not paths or await self._update("--add --stdin", paths):
            return []
        if len(paths) == 1 or self.attempts > MAX_ATTEMPTS:
            return list(paths)
        middle = len(paths) // 2
        return await self._add(paths[:middle]) + await self._add(paths[middle:])


def _entries(raw: bytes) -> dict[bytes, IndexedFile]:
    """Path and start state from `--raw -z`: `:oldmode newmode oldblob newblob status`, then the path."""
    fields = raw.split(b"\0")[:-1]
    return {
        path: IndexedFile(change[1:7], change.split(b" ")[2], is_gone=change[8:14] == b"000000")
        for change, path in zip(fields[::2], fields[1::2], strict=True)
    }


def _content(file: Path) -> bytes | None:
    """Of a file that a session may have replaced by anything."""
    with suppress(OSError):
        return untrusted.read(file, MAX_INDEX_BYTES)
    return None
