"""The history of a store with other trees: with contents that commits only name, and without suites.

Git writes the commits anew. Author, dates and message stay, so that the same commit always becomes the same commit.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from itertools import accumulate, chain

from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.workspace.git import ABSENT, LINK, SUBMODULE, Git, TreeFile
from zelda_ci.workspace.objects import Commit, Objects, lacking

IMPORT = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force", "--date-format=raw-permissive")


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
    """Return the command of `git fast-import` for an entry of a tree, which zeros as its mode remove.

    Its content has a name; given as bytes, it is one that no repository has yet.
    """
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
        level = [*dict.fromkeys(chain(*(found[name].parents for name in level)))]
        level = [name for name in level if name not in found]
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
) -> Withheld:
    """Write commits with other trees into a repository of ours, unless all stay as they are; returns what is withheld.

    Where history was cut, it begins then. The reference gets the last of the commits, of which parents come first.
    `git` is set to the repository and also finds the objects that commits and replacements name, by path. Without a
    finder nothing is withheld; `project` is the folder that is tested, from the top of the tree.
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
    if not (any(replaced.values()) or any(is_below(file.path, withheld.paths) for file in files)):
        return withheld
    removals = [put(path, ABSENT, "") for path in sorted(withheld.paths)]
    stream, marks = bytearray(), dict[str, int]()
    for commit in commits:
        above = [f":{marks[parent]}" for parent in commit.parents]
        marks[commit.name] = len(marks) + 1
        changes = [*(line for by in replaced[commit.name] for line in by.lines), *removals]
        stream += commit_stream(reference, commit, above, changes, marks[commit.name])
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
