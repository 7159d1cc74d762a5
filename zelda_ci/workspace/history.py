"""The history of a store with other trees: with contents that commits only name, and without suites.

Author, dates and message stay, so that the same commit always becomes the same commit. Only objects that are left are
kept: the others would be found by their id.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.git import Git

MAX_TEXT_BYTES = 2 << 20
MAX_TOTAL_BYTES = 128 << 20
# By the digits of a name.
HASHES = {40: "sha1", 64: "sha256"}
LINK, SUBMODULE, ABSENT = b"120000", b"160000", b"000000"
# Headers that are about the commit as it was.
SIGNATURES = (b"gpgsig", b"gpgsig-sha256", b"mergetag")


@dataclass(frozen=True)
class Replacement:
    """What takes the place of an entry, in every tree that has the very same one there."""

    old: str
    new: str
    mode: str | None = None
    """Absent where that stays."""


async def rewrite(
    git: Git, tip: str, replacements: Mapping[bytes, Replacement], finder: SuiteFinder | None, project: str
) -> tuple[str, Withheld]:
    """Rewrite all commits of a repository of ours; returns the new tip and what is withheld.

    Args:
        git: With GIT_DIR set to the repository.
        tip: The only reference of it.
        replacements: By path.
        finder: Finds what to withhold; without it nothing is.
        project: The folder that is tested, from the top of the tree.

    Raises:
        WorkspaceError: There is no room.
    """
    commits = (await git("rev-list", "--topo-order", "--reverse", tip)).decode().split()
    bodies = await read_objects(git, commits)
    old = {name: body.partition(b"\n")[0].removeprefix(b"tree ").decode() for name, body in bodies.items()}
    whole = await replaced(git, old.values(), replacements)
    withheld = Withheld()
    if finder:
        seen = [*dict.fromkeys(whole[old[name]] for name in commits)]
        withheld = finder.find(await _listing(git, seen, finder.reads), project)
    removals = b"".join(b"D %b\n" % _quoted(os.fsencode(path)) for path in sorted(withheld.paths))
    lighter = await _edited(git, dict.fromkeys(whole.values(), removals))
    ids: dict[str, str] = {}
    objects: dict[str, bytes] = {}
    for name in commits:
        body = _with_tree(bodies[name], lighter[whole[old[name]]], ids)
        content = b"commit %d\0%b" % (len(body), body)
        ids[name] = hashlib.new(HASHES[len(name)], content, usedforsecurity=False).hexdigest()
        if ids[name] != name:
            objects[ids[name]] = content
    new = ids[commits[-1]]
    if objects:
        folder = Path(git.environment["GIT_DIR"])
        await anyio.to_thread.run_sync(_write, folder / "objects", objects)
        _move_border(folder / "shallow", ids)
        # The objects are there by now; the other way round, a kill in between would leave a tip that points to nothing.
        await git("update-ref", tip, new)
    if withheld.paths:
        # Drops the old objects: with them, `git cat-file` would show a session what was taken out.
        await git("-c", "repack.writeBitmaps=false", "repack", "-a", "-d", "-q")
    return new, withheld


async def replaced(git: Git, trees: Iterable[str], replacements: Mapping[bytes, Replacement]) -> Mapping[str, str]:
    """Each tree's id once entries of it are replaced.

    Raises:
        WorkspaceError: There is no room.
    """
    edits = dict.fromkeys(trees, b"")
    for tree in edits if replacements else ():
        for entry in (await git("ls-tree", "-r", "-z", "--full-tree", tree)).split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, _, name = about.decode().split(" ")
            by = replacements.get(path)
            if by and by.old == name:
                edits[tree] += b"M %b %b %b\n" % ((by.mode or mode).encode(), by.new.encode(), _quoted(path))
    return await _edited(git, edits)


async def _edited(git: Git, edits: Mapping[str, bytes]) -> Mapping[str, str]:
    """Each tree's id after changes in the language of `git fast-import`; folders that become empty are gone."""
    changes = {tree: lines for tree, lines in edits.items() if lines}
    if not changes:
        return {tree: tree for tree in edits}
    commit = b'commit refs/zelda/edited\ncommitter Z <z> 0 +0000\ndata 0\nM 040000 %b ""\n%bls ""\n'
    stream = b"".join(commit % (tree.encode(), lines) for tree, lines in changes.items())
    nothing = b"0" * len(next(iter(changes)))
    # As one pack, which is gone once the history is packed anew; and without a reference at the end.
    options = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force")
    printed = await git(*options, stdin=stream + b"reset refs/zelda/edited\nfrom %b\n\n" % nothing)
    ids = [line.split()[2].decode() for line in printed.splitlines()]
    return {tree: tree for tree in edits} | dict(zip(changes, ids, strict=True))


def _quoted(path: bytes) -> bytes:
    return b'"%b"' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


async def _listing(git: Git, trees: Sequence[str], reads: Callable[[str], bool]) -> Listing:
    """The files of all trees together: those of the first, and what each has that the one before has not."""
    empty = (await git("hash-object", "-t", "tree", "--stdin")).decode().strip()
    pairs = "".join(f"{before} {tree}\n" for before, tree in zip((empty, *trees), trees, strict=False))
    options = ("--stdin", "-r", "--raw", "-z", "--no-abbrev", "--no-renames")
    fields = (await git("diff-tree", *options, stdin=pairs.encode())).split(b"\0")[:-1]
    versions = set[tuple[str, bytes, str]]()  # path, mode and blob
    for change, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, new, _ = change.rpartition(b"\n")[2].split(b" ")
        if mode not in {ABSENT, SUBMODULE}:
            versions.add((os.fsdecode(path), mode, new.decode()))
    links = {blob for _, mode, blob in versions if mode == LINK}
    read = {blob for name, mode, blob in versions if mode != LINK and reads(name.rpartition("/")[2])}
    contents = await read_small(git, [*sorted(read), *sorted(links)], MAX_TEXT_BYTES)
    texts: dict[str, list[bytes]] = {}
    targets: dict[str, list[str]] = {}
    for name, mode, blob in sorted(versions):
        text = contents.get(blob)
        if text is not None and mode == LINK:
            targets.setdefault(name, []).append(os.fsdecode(text))
        elif text is not None:
            texts.setdefault(name, []).append(text)
    return Listing(frozenset(name for name, _, _ in versions), texts, targets)


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


def _with_tree(body: bytes, tree: str, ids: Mapping[str, str]) -> bytes:
    """A commit with another tree or other parents; without the signature of what it was."""
    head, _, message = body.partition(b"\n\n")
    headers = [header.partition(b" ")[::2] for header in re.split(rb"\n(?! )", head)]
    moved = [(key, _moved(key, value.decode("latin-1"), tree, ids).encode("latin-1")) for key, value in headers]
    if moved == headers:
        return body
    # A signature that does not fit would make git call the commit forged.
    return b"\n".join(b"%b %b" % header for header in moved if header[0] not in SIGNATURES) + b"\n\n" + message


def _moved(key: bytes, value: str, tree: str, ids: Mapping[str, str]) -> str:
    return {b"tree": tree, b"parent": ids.get(value, value)}.get(key, value)


def _write(objects: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        file = objects / name[:2] / name[2:]
        file.parent.mkdir(exist_ok=True)
        # As git stores loose objects; quickly rather than small, as they are packed right after.
        file.write_bytes(zlib.compress(content, 1))


def _move_border(shallow: Path, ids: Mapping[str, str]) -> None:
    """Where history was cut, it is cut still."""
    if shallow.exists():
        border = sorted(ids.get(name, name) for name in shallow.read_text().split())
        shallow.write_text("".join(f"{name}\n" for name in border))
