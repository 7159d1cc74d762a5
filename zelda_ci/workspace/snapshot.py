"""The state of a work tree after the session, taken into an index and an object folder of Zelda's own.

Nothing that the session could have configured is read: not its repository, its hooks, its filters or its ignored
files' list, only the `.gitignore` and `.gitattributes` of the tree.
"""

import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.candidates import Candidates, classify
from zelda_ci.workspace.folder import Index
from zelda_ci.workspace.git import MAKE_ROOM, NO_SPACE, Git, has_room

ATTRIBUTES = "* !diff\n"
"""Git decides by content what is text: a tree's own opinion could hide readable changes."""

PLAIN_ATTRIBUTES = "* !diff -text -ident -filter -working-tree-encoding\n"
"""For files that do not fit the encoding their attributes promise."""

MOST_ATTEMPTS = 40
LARGEST_INDEX = 64 << 20


class Entry(NamedTuple):
    """What an index says of a file."""

    mode: bytes
    blob: bytes


Staged = dict[bytes, str]
"""Changed files that are not in the index, and why."""


@dataclass
class Snapshot:
    """An index under construction. `git` names the private repository, its index and the work tree."""

    git: Git
    repository: Path
    root: Path
    attempts: int = 0

    async def take(self, start_index: Index, session_index: Path) -> Staged:
        """Bring the index from the start state to what the tree holds now.

        Raises:
            WorkspaceError: Git failed altogether, for instance for want of room.
        """
        await anyio.to_thread.run_sync(start_index.write, self.index)
        self._use(ATTRIBUTES)
        changed = _entries(await self.git("diff-files", "-z", "--raw", "--no-abbrev", "--ignore-submodules=all"))
        fresh = await self._names("ls-files", "--others", "--exclude-standard")
        forced = await self._forced(start_index, session_index)
        found = await anyio.to_thread.run_sync(classify, self.root, [*changed, *fresh, *forced])
        await self._forget(changed, found)
        stubborn = await self._add(found.present)
        if stubborn:
            self._use(PLAIN_ATTRIBUTES)
            self.attempts = 0
            stubborn = await self._add(stubborn)
            self._use(ATTRIBUTES)
        return found.left_out | dict.fromkeys(stubborn, "not accepted by Git")

    @property
    def index(self) -> Path:
        """Where the state is kept."""
        return self.repository / "index"

    def _use(self, attributes: str) -> None:
        (self.repository / "info" / "attributes").write_text(attributes)

    async def _names(self, *command: str) -> list[bytes]:
        return [name for name in (await self.git(*command, "-z")).split(b"\0") if name]

    async def _forced(self, start_index: Index, session_index: Path) -> list[bytes]:
        """Ignored files that the session made git track all the same, by what its index says."""
        theirs = await anyio.to_thread.run_sync(_content, session_index)
        if theirs is None or theirs == start_index.content:
            return []
        copy = self.repository / "session-index"
        copy.write_bytes(theirs)
        git = self.git.within(self.git.cwd, GIT_INDEX_FILE=str(copy))
        told = await git.attempt("ls-files", "-z")
        if told.exit_code != 0:
            return []
        known = set(await self._names("ls-files"))
        return [name for name in told.stdout.split(b"\0") if name and name not in known]

    async def _forget(self, changed: Mapping[bytes, Entry], found: Candidates) -> None:
        """Drop what is gone, and the times of what changed: git would take it at its word on size and second."""
        gone = (b"0 %b\t%b" % (b"0" * len(changed[path].blob), path) for path in found.gone if path in changed)
        kept = (b"%b %b 0\t%b" % (*changed[path], path) for path in found.present if path in changed)
        if not await self._update("--index-info", [*gone, *kept]):
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
        done = await self.git.attempt(*options, stdin=b"".join(line + b"\0" for line in lines))
        if done.exit_code == 0:
            return True
        error = self.git.failure(options, done)
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
        if len(paths) == 1 or self.attempts > MOST_ATTEMPTS:
            return list(paths)
        middle = len(paths) // 2
        return await self._add(paths[:middle]) + await self._add(paths[middle:])


def _entries(raw: bytes) -> dict[bytes, Entry]:
    """Path and start state from `--raw -z`: `:oldmode newmode oldblob newblob status`, then the path."""
    fields = raw.split(b"\0")[:-1]
    return {path: Entry(told[1:7], told.split(b" ")[2]) for told, path in zip(fields[::2], fields[1::2], strict=True)}


def _content(file: Path) -> bytes | None:
    """Of a file that a session may have replaced by anything."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  # a descriptor
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_INDEX:
                return opened.read(LARGEST_INDEX)
    return None
