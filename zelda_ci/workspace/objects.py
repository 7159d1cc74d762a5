"""Objects of repositories, read by one process of git for as many questions as there are."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream

from zelda_ci import process
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.git import Git, TreeFile

MAX_TEXT_BYTES = 2 << 20
MAX_TOTAL_BYTES = 128 << 20
MAX_HEADER_BYTES = 256
CHUNK = 1 << 16
# Asked for at once: a pipe takes so many names without waiting for a git that itself waits for us to read.
MAX_NAMES = 500
# A folder of a hundred thousand files has six of them.
MAX_TREE_BYTES = 256 << 20
# The entries of a tree, by the length of names of objects: mode without a leading zero, name, object.
ENTRIES = {size * 2: re.compile(rb"(\d+) ([^\0]+)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
TREE = b"40000"


@dataclass(frozen=True)
class Commit:
    """What a commit says, without what holds for no other (signatures)."""

    name: str
    tree: str
    parents: tuple[str, ...]
    head: bytes
    """Lines that say who made it, when, and in which encoding its message is."""
    message: bytes


def lacking(name: str) -> WorkspaceError:
    """The error that an object of the tested state is not there."""
    return WorkspaceError(f"The repository lacks {name[:12]} of what is tested.", code="GIT_FAILED")


class Objects(AsyncExitStack):
    """Reads objects of a repository, each once; its git runs from the first that is not known to the context's end.

    It takes what others have read, by name, and adds to it. Methods raise `WorkspaceError` where something is lacking,
    or git could not be run or did not answer.
    """

    def __init__(self, git: Git, known: dict[str, bytes] | None = None) -> None:
        super().__init__()
        self._git, self.known = git, {} if known is None else known
        self.missing = set[str]()
        """What the repository lacks."""
        self._pipes: tuple[ByteSendStream, BufferedByteReceiveStream] | None = None

    async def read(
        self, names: Iterable[str], max_bytes: int = MAX_TEXT_BYTES, max_total_bytes: int = MAX_TOTAL_BYTES
    ) -> dict[str, bytes]:
        """Return the content of objects, by name; of those that are there and within bounds, each and all together."""
        wanted, found = [*dict.fromkeys(names)], dict[str, bytes]()
        unknown = [name for name in wanted if name not in self.known]
        try:
            with anyio.fail_after(self._git.timeout_seconds):
                for start in range(0, len(unknown), MAX_NAMES):
                    await self._load(unknown[start : start + MAX_NAMES], max_bytes)
        except (OSError, anyio.BrokenResourceError, anyio.IncompleteRead, anyio.DelimiterNotFound) as error:
            raise WorkspaceError(f"git cat-file could not read the repository: {type(error).__name__}.") from error
        for name in wanted:
            content = self.known.get(name)
            if content is not None and len(content) <= min(max_bytes, max_total_bytes):
                max_total_bytes -= len(content)
                found[name] = content
        return found

    async def _load(self, names: list[str], max_bytes: int) -> None:
        if self._pipes is None:
            argv, environment = [self._git.program, "cat-file", "--batch"], self._git.environment
            started = process.conversing(argv, cwd=self._git.cwd, environment=environment)
            child = await self.enter_async_context(started)
            stdin, stdout = cast("ByteSendStream", child.stdin), cast("ByteReceiveStream", child.stdout)
            self._pipes = stdin, BufferedByteReceiveStream(stdout)
        questions, answers = self._pipes
        await questions.send("".join(f"{name}\n" for name in names).encode())
        for name in names:
            # NAME TYPE SIZE, or NAME missing.
            size = (await answers.receive_until(b"\n", MAX_HEADER_BYTES)).rpartition(b" ")[2]
            if not size.isdigit():
                self.missing.add(name)
                continue
            # A line break ends it.
            rest = int(size) + 1
            if rest <= max_bytes + 1:
                self.known[name] = (await answers.receive_exactly(rest))[:-1]
                continue
            while rest:
                rest -= len(await answers.receive_exactly(min(rest, CHUNK)))

    async def commit(self, name: str) -> Commit:
        """Read a commit."""
        content = (await self.read([name])).get(name)
        if content is None:
            raise lacking(name)
        header, _, message = content.partition(b"\n\n")
        # Signatures, and lines of further ones, count no more once a tree is another.
        head = b"".join(re.findall(rb"^(?:author|committer|encoding) .*\n", header + b"\n", re.MULTILINE))
        tree, *parents = re.findall(r"^(?:tree|parent) (.*)$", header.decode("latin-1"), re.MULTILINE)
        return Commit(name, tree, tuple(parents), head, message)

    async def files(self, tree: str, seen: set[tuple[str, str]] | None = None) -> list[TreeFile]:
        """List all files of a tree, submodules as one; a folder that was `seen` at the same place is passed over."""
        files, waiting = list[TreeFile](), [("", tree)]
        seen = set() if seen is None else seen
        while waiting := [folder for folder in waiting if folder not in seen]:
            seen.update(waiting)
            await self.read((name for _, name in waiting), MAX_TREE_BYTES, sys.maxsize)
            below = []
            for place, name in waiting:
                for mode, part, content in self._entries(name):
                    if mode == TREE:
                        below.append((f"{place}{part}/", content))
                    else:
                        files.append(TreeFile(place + part, mode.decode(), content))
            waiting = below
        return files

    def entry(self, tree: str, path: str) -> str | None:
        """The name of what lies at a path in a tree whose files were listed."""
        name: str | None = tree
        for part in path.split("/"):
            if name not in self.known:
                return None
            name = next((content for _, it, content in self._entries(name) if it == part), None)
        return name

    def _entries(self, tree: str) -> Iterator[tuple[bytes, str, str]]:
        """The mode, name and content of each entry of a tree that was read."""
        if tree not in self.known:
            raise lacking(tree)
        for mode, part, content in ENTRIES[len(tree)].findall(self.known[tree]):
            yield mode, os.fsdecode(part), content.hex()
