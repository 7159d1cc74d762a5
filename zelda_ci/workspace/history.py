"""The history of a store with other trees: with contents that commits only name, and without suites.

Git writes the commits anew. Author, dates and message stay, so that the same commit always becomes the same commit.
Only objects that are left are kept: the others would be found by their id.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import accumulate
from pathlib import Path

from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.git import LINK, SUBMODULE, Git, TreeFile

MAX_TEXT_BYTES = 2 << 20
MAX_TOTAL_BYTES = 128 << 20


@dataclass(frozen=True)
class Replacement:
    """What takes the place of an entry, in every tree that has the very same one there."""

    old: str
    """Git's name for the entry's content."""
    lines: list[bytes] = field(default_factory=list)
    """Commands of `git fast-import` that put it there."""
    files: list[TreeFile] = field(default_factory=list)
    """Files that the trees have then."""


def modify(mode: str, content: str, path: str) -> bytes:
    """Return the command of `git fast-import` for an entry of a tree."""
    return b"M %b %b %b\n" % (mode.encode(), content.encode(), _quoted(path))


def _quoted(path: str) -> bytes:
    return b'"%b"' % os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


async def rewrite(
    git: Git, tip: str, replacements: Mapping[str, Replacement], finder: SuiteFinder | None, project: str
) -> Withheld:
    """Rewrite all commits of a repository of ours, unless all stays as it is; returns what is withheld.

    Args:
        git: With GIT_DIR set to the repository; it also finds the objects that the replacements name.
        tip: The only reference of it.
        replacements: By path.
        finder: Finds what to withhold; without it nothing is.
        project: The folder that is tested, from the top of the tree.

    Raises:
        WorkspaceError: Git takes a commit for damaged, or there is no room.
    """
    exported = [*_commits(await git("fast-export", "--no-data", "--reencode=no", tip))]
    files = {file for _, changes in exported for _, file in changes}
    used = {it.path: by for it in files if (by := replacements.get(it.path)) and by.old == it.content}
    withheld = Withheld()
    if finder:
        files.update(file for by in used.values() for file in by.files)
        withheld = finder.find(await _listing(git, [it for it in files if it.content], finder.reads), project)
    if not (used or withheld.paths):
        return withheld
    removals = b"".join(b"D %b\n" % _quoted(path) for path in sorted(withheld.paths))
    stream = bytearray()
    for head, changes in exported:
        stream += head
        for line, file in changes:
            if not is_below(file.path, withheld.paths):
                by = used.get(file.path)
                stream += b"".join([*by.lines, removals]) if by and by.old == file.content else line
    # Where history was cut, it begins now. As one pack, which is gone once the history is packed anew.
    Path(git.environment["GIT_DIR"], "shallow").unlink(missing_ok=True)  # noqa: ASYNC240  # a moment
    options = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force", "--date-format=raw-permissive")
    await git(*options, stdin=bytes(stream))
    # Drops the old objects: with them, `git cat-file` would show a session what was taken out.
    await git("-c", "repack.writeBitmaps=false", "repack", "-a", "-d", "-q")
    return withheld


def _commits(stream: bytes) -> Iterator[tuple[bytes, list[tuple[bytes, TreeFile]]]]:
    """Split what `git fast-export` prints into what stands before the changes of each commit, and these.

    What is gone comes first: of a file that becomes a folder, git names the new files before the old one.
    """
    lines, head, changes = BytesIO(stream), b"", list[bytes]()
    for line in lines:
        if line.startswith((b"M ", b"D ")):
            changes.append(line)
            continue
        if changes:
            yield head, [(change, _changed_file(change)) for change in sorted(changes)]
            head, changes = b"", []
        head += line
        if line.startswith(b"data "):
            head += lines.read(int(line[5:]))
    yield head, [(change, _changed_file(change)) for change in sorted(changes)]


def _changed_file(line: bytes) -> TreeFile:
    """Read `M mode content path`, or `D path` of one that is gone; a path that needs it is quoted as in C."""
    mode, content, path = line[2:-1].split(b" ", 2) if line.startswith(b"M ") else (b"", b"", line[2:-1])
    path = path[1:-1].decode("unicode_escape").encode("latin-1") if path.startswith(b'"') else path
    return TreeFile(os.fsdecode(path), mode.decode(), content.decode())


def is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of some places, or lies in one."""
    return bool(places) and any(part in places for part in accumulate(path.split("/"), "{}/{}".format))


async def _listing(git: Git, files: Collection[TreeFile], reads: Callable[[str], bool]) -> Listing:
    """List files with the texts of those that are read, and the targets of links."""
    links = [file for file in files if file.mode == LINK]
    read = [file for file in files if file.mode not in (LINK, SUBMODULE) and reads(file.path.rpartition("/")[2])]
    ordered = sorted([*links, *read], key=lambda file: (file.mode == LINK, file.content))
    contents = await read_small(git, [file.content for file in ordered], MAX_TEXT_BYTES)
    texts: dict[str, list[bytes]] = {}
    targets: dict[str, list[str]] = {}
    for file in ordered:
        content = contents.get(file.content)
        if content is not None and file.mode == LINK:
            targets.setdefault(file.path, []).append(os.fsdecode(content))
        elif content is not None:
            texts.setdefault(file.path, []).append(content)
    return Listing(frozenset(file.path for file in files if file.mode != SUBMODULE), texts, targets)


async def read_small(
    git: Git, names: Iterable[str], max_bytes: int, max_total_bytes: int = MAX_TOTAL_BYTES
) -> dict[str, bytes]:
    """The content of objects, by name; of those that are there and within bounds, each and all together."""
    ordered, readable = [*dict.fromkeys(names)], list[str]()
    stdin = "".join(f"{name}\n" for name in ordered).encode()
    sizes = (await git("cat-file", "--batch-check=%(objectsize)", stdin=stdin)).split(b"\n") if ordered else ()
    for name, size in zip(ordered, sizes, strict=False):
        # Of one that is not there, git says so in its place.
        if size.isdigit() and int(size) <= min(max_bytes, max_total_bytes):
            max_total_bytes -= int(size)
            readable.append(name)
    return await read_objects(git, readable)


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
