"""Objects of repositories, read by one process of git for as many questions as there are, and history made of them.

History gets other trees: with contents that commits only name, and without suites. Git writes the commits anew; author,
dates and message stay, so that the same commit always becomes the same commit. `WorkspaceError` is raised where
something is lacking or damaged, and where git could not be run or did not answer.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from itertools import accumulate, chain
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream

from zelda_ci import process
from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.git import ABSENT, LINK, SUBMODULE, Git, TreeFile

MAX_TEXT_BYTES = 2 << 20
MAX_TOTAL_BYTES = 128 << 20
MAX_HEADER_BYTES = 256
CHUNK = 1 << 16
# Asked for at once: a pipe takes so many names without waiting for a git that itself waits for us to read.
MAX_NAMES = 500
# A folder of a hundred thousand files has six of them.
MAX_TREE_BYTES = 256 << 20
# The entries of a tree, by the length of names of objects: mode (old tools wrote it with a zero), name, object.
ENTRIES = {size * 2: re.compile(rb"0?(\d+) ([^\0]+)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
IDENTITY, DATE = re.compile(rb"([^<>]* )?<[^<>]*> -?\d{1,18} [+-]\d+"), re.compile(rb" (\d{1,18}) +([+-]\d{4})\b")
IMPORT = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force", "--date-format=raw-permissive")


@dataclass(frozen=True)
class Commit:
    """What a commit says, without what holds for no other (signatures)."""

    name: str
    tree: str
    parents: tuple[str, ...]
    head: bytes
    """Lines that say who made it, when, and in which encoding its message is."""
    message: bytes


def _identity(role: bytes, header: bytes) -> bytes:
    """Return the line that says who made a commit and when; `git fast-import` refuses some that other tools wrote."""
    line, *_ = [*re.findall(rb"^%b (.*)$" % role, header, re.MULTILINE), b""]
    if not IDENTITY.fullmatch(line):
        (name, email, *_), date = [*re.split(rb"[<>]+", line), b""], DATE.search(line)
        line = b"%b <%b> %b" % (name.strip(), email.strip(), b" ".join(date.groups()) if date else b"0 +0000")
    return b"%b %b\n" % (role, line)


def lacking(name: str) -> WorkspaceError:
    """The error that an object of the tested state is not there."""
    return WorkspaceError(f"The repository lacks {name[:12]} of what is tested.", code="GIT_FAILED")


class Objects(AsyncExitStack):
    """Reads objects of a repository, each once, and adds to those that others know; its git ends with the context."""

    def __init__(self, git: Git, known: dict[str, bytes] | None = None) -> None:
        super().__init__()
        self._git, self.known = git, {} if known is None else known
        self.missing = set[str]()
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
        content = (await self.read([name], MAX_TOTAL_BYTES)).get(name)
        if content is None or not content.startswith(b"tree "):
            raise lacking(name)
        header, _, message = content.partition(b"\n\n")
        # Signatures, and lines of further ones, count no more once a tree is another.
        head = b"".join(_identity(role, header) for role in (b"author", b"committer"))
        head += b"".join(re.findall(rb"^encoding .*\n", header + b"\n", re.MULTILINE)[:1])
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
                    if mode == b"40000":
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


@dataclass(frozen=True)
class Replacement:
    """What takes the place of an entry, in every tree that has the very same one there."""

    old: str
    """Git's name for the entry's content."""
    lines: list[bytes] = field(default_factory=list)
    """Commands of `git fast-import` that put it there."""
    files: list[TreeFile] = field(default_factory=list)
    """Files that the trees have then."""


def put(path: str, mode: str, content: str | bytes) -> bytes:
    """Return the command of `git fast-import` for an entry of a tree; zeros as its mode remove it."""
    # Its content has a name; given as bytes, it is one that no repository has yet.
    quoted = b'"%b"' % os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    if mode == ABSENT:
        return b"D %b\n" % quoted
    if isinstance(content, bytes):
        return b"M %b inline %b\ndata %d\n%b\n" % (mode.encode(), quoted, len(content), content)
    return b"M %b %b %b\n" % (mode.encode(), content.encode(), quoted)


def commit_stream(
    reference: str, commit: Commit, parents: Iterable[str], changes: Iterable[bytes], mark: int = 1
) -> bytes:
    """Return the commands of `git fast-import` that make a commit anew, with these parents and changes of its tree."""
    name, tree = reference.encode(), b'M 040000 %b ""\n' % commit.tree.encode()
    head = b"reset %b\ncommit %b\nmark :%d\n" % (name, name, mark)
    head += b"%bdata %d\n%b\n" % (commit.head, len(commit.message), commit.message)
    above = (b"%b %b\n" % (b"merge" if number else b"from", it.encode()) for number, it in enumerate(parents))
    return b"".join([head, *above, tree, *changes])


async def newest_commits(objects: Objects, tip: str, depth: int) -> tuple[list[Commit], set[str]]:
    """Read a commit and those before it, parents first, as many as a depth says; and which of them lost parents."""
    found, cut, level = {tip: await objects.commit(tip)}, set[str](), [tip]
    for number in range(1, depth + 1):
        if number < depth:
            await objects.read(chain(*(found[name].parents for name in level)))
        for name in level:
            # A clone may be shallow itself.
            if found[name].parents and (number == depth or not objects.missing.isdisjoint(found[name].parents)):
                found[name] = replace(found[name], parents=())
                cut.add(name)
        above = chain(*(found[name].parents for name in level))
        level = [name for name in dict.fromkeys(above) if name not in found]
        found |= {name: await objects.commit(name) for name in level}
    order = TopologicalSorter({name: commit.parents for name, commit in found.items()})
    return [found[name] for name in order.static_order()], cut


async def rewrite(
    git: Git,
    reference: str,
    objects: Objects,
    commits: Sequence[Commit],
    replacements: Mapping[str, Replacement],
    finder: SuiteFinder | None,
    project: str,
    cut: set[str],
) -> Withheld:
    """Write commits with other trees into a repository of ours, unless all stay as they are; returns what is withheld.

    So do those before the first that changes, but history begins with those where it was `cut`. The reference gets the
    last of the commits, of which parents come first. `git` is set to the repository and also finds the objects that
    commits and replacements name, by path. Without a finder nothing is withheld; `project` is the folder that is
    tested, from the top of the tree.
    """
    seen, files = set[tuple[str, str]](), set[TreeFile]()
    for commit in commits:
        files.update(await objects.files(commit.tree, seen))
    replaced = {
        commit.name: [by for path, by in replacements.items() if objects.entry(commit.tree, path) == by.old]
        for commit in commits
    }
    withheld = Withheld()
    if finder:
        files.update(file for by in chain(*replaced.values()) for file in by.files)
        withheld = finder.find(await _listing(objects, files, finder.reads), project)
    paths, stream, now = sorted(withheld.paths), bytearray(), dict[str, str]()
    changed = {it.name for it in commits if replaced[it.name] or any(objects.entry(it.tree, path) for path in paths)}
    if not changed:
        return withheld
    for mark, commit in enumerate(commits, start=1):
        above, now[commit.name] = [now[parent] for parent in commit.parents], commit.name
        if commit.name in changed | cut or above != [*commit.parents]:
            changes = chain(*(by.lines for by in replaced[commit.name]), (put(path, ABSENT, "") for path in paths))
            stream += commit_stream(reference, commit, above, changes, mark)
            now[commit.name] = f":{mark}"
    await git(*IMPORT, stdin=bytes(stream))
    return withheld


def is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of some places, or lies in one; folders may end with a slash there."""
    parts = accumulate(path.split("/"), "{}/{}".format)
    return bool(places) and any(part in places or f"{part}/" in places for part in parts)


def read_files(files: Iterable[TreeFile], reads: Callable[[str], bool]) -> list[TreeFile]:
    """The files whose content a `SuiteFinder` reads, links last."""
    found = (it for it in files if it.mode == LINK or (it.mode != SUBMODULE and reads(it.path.rpartition("/")[2])))
    return sorted(found, key=lambda file: (file.mode == LINK, file.content))


async def _listing(objects: Objects, files: Collection[TreeFile], reads: Callable[[str], bool]) -> Listing:
    """List files with the texts of those that are read, and the targets of links."""
    read = read_files(files, reads)
    contents = await objects.read(file.content for file in read)
    texts, targets = dict[str, list[bytes]](), dict[str, list[str]]()
    for file in read:
        if file.content in objects.missing:
            raise lacking(file.content)
        if (content := contents.get(file.content)) is None:
            continue
        if file.mode == LINK:
            targets.setdefault(file.path, []).append(os.fsdecode(content))
        else:
            texts.setdefault(file.path, []).append(content)
    return Listing(frozenset(file.path for file in files if file.mode != SUBMODULE), texts, targets)
