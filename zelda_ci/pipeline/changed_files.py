"""What differs between two commits, as far as it says which suites may feel it: read by git, nothing is checked out."""

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from zelda_ci.domain.fingerprint import Steers
from zelda_ci.domain.kinds import SKILL_FILE, may_steer
from zelda_ci.execution.manifest.documents import parse
from zelda_ci.execution.manifest.tree import MAX_FILE_BYTES
from zelda_ci.pipeline.digests import digest
from zelda_ci.pipeline.reach import RECIPES, Graph
from zelda_ci.pipeline.repository_files import RepositoryFiles
from zelda_ci.selection.effects import ChangeSet, FileChange, FileText, ProjectFiles, Reach, how_it_steers
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.store import TreeFile

LINK, SUBMODULE = "120000", "160000"
# A repository of skills may have thousands; what all of them lead to is no longer looked for then.
MAX_FILES = 20_000
MAX_BYTES = 64_000_000


class Blob(NamedTuple):
    """A file of a tree, by git's names for mode and content."""

    mode: str
    name: str


async def read_changes(git: Git, before: str, after: str, folder: str, dirty: Iterable[str] = ()) -> ChangeSet:
    """What differs between two commits, and what the files of the second that steer draw in.

    Args:
        git: In a repository that has both commits, and of both the files that steer.
        before: The commit that results are compared with.
        after: The commit that is tested.
        folder: The project's, from the top of the repository; empty at the top.
        dirty: More files that differ, of which nothing else is known.
    """
    listing = await git.attempt("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after)
    tree = await git.attempt("ls-tree", "-r", "-z", "--full-tree", after)
    if listing.exit_code or listing.truncated or tree.exit_code or tree.truncated:
        return unknown(f"what changed since {before[:7]} could not be read")
    raw, files = list(_changes(listing.stdout)), dict(_files(tree.stdout))
    wanted = {blob for path, *sides in raw if may_steer(path) for blob in sides if blob and _is_file(blob)}
    texts = await _texts(git, wanted)
    changes = [
        FileChange(path, _side(path, before, texts), _side(path, after, texts), _first_line(before, after, texts))
        for path, before, after in raw
    ]
    changes += [FileChange(path, FileText(kind="other"), FileText(kind="other")) for path in dict.fromkeys(dirty)]
    if not changes:
        return ChangeSet()
    try:
        # What is gone was drawn in by those who still name it.
        gone = {path: before for path, before, after in raw if before and after is None}
        return ChangeSet(tuple(changes), *await reach(git, files, folder, gone))
    except _UnreadableSteeringError as problem:
        return unknown(str(problem))


async def steering_files(git: Git, files: Iterable[TreeFile], folder: str) -> dict[str, Steers] | None:
    """Of the files of one tree those that steer, and how, by path; nothing where not all of it is known.

    Args:
        git: In a repository that has their contents.
        files: All of them.
        folder: The project's, from the top of the tree.
    """
    blobs = {printable(file.path): Blob(file.mode, file.content) for file in files}
    try:
        known = ChangeSet((), *await reach(git, blobs, folder, {}))
    except _UnreadableSteeringError:
        return None
    texts = await _texts(git, {blob for path, blob in blobs.items() if may_steer(path) and _is_file(blob)})
    project = ProjectFiles(folder, config="", test_dir="")
    found: dict[str, Steers] = {}
    for file in files:
        path = printable(file.path)
        text = _side(path, blobs[path], texts)
        if text and (how := how_it_steers(path, text, known, project)):
            found[file.path] = how
    return found


async def line_digests(git: Git, files: Iterable[TreeFile]) -> dict[str, list[str]]:
    """Of each file a digest of every line, by path; of what is no text one of the whole."""
    blobs = {printable(file.path): Blob(file.mode, file.content) for file in files}
    texts = await _texts(git, (blob for blob in blobs.values() if _is_file(blob)))
    found = {path: _decoded(texts.get(blob.name)) for path, blob in blobs.items()}
    return {
        path: [blob.name] if (text := found[path]) is None else [digest(line)[:8] for line in text.splitlines()]
        for path, blob in blobs.items()
    }


def printable(path: str) -> str:
    """As paths are spelled where they are compared: names need not be text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def unknown(problem: str) -> ChangeSet:
    """Changes of which not all are known."""
    return ChangeSet(problem=problem)


class _UnreadableSteeringError(Exception):
    """Nobody knows what the files that steer draw in; the message follows "since"."""


async def reach(
    git: Git, files: Mapping[str, Blob], folder: str, gone: Mapping[str, Blob]
) -> tuple[Mapping[str, str], Mapping[str, Reach]]:
    """What files that steer lead to, or would if it were not gone: for all suites, and for some."""
    known = {**gone, **files}
    targets = await _texts(git, (blob for blob in files.values() if blob.mode == LINK))
    links = {
        path: targets.get(it.name, b"").decode("utf-8", "replace") for path, it in files.items() if it.mode == LINK
    }
    runners = {path: blob for path, blob in files.items() if posixpath.basename(path) in RECIPES}
    texts = await _texts(git, runners.values())
    graph = Graph(
        RepositoryFiles({path: blob.mode for path, blob in known.items()}, links, folder),
        ProjectFiles(folder, config="", test_dir=""),
        {path: _decoded(texts.get(blob.name)) or "" for path, blob in runners.items()},
    )
    waiting = {(path, True) for path, blob in files.items() if graph.steers(path) and _is_file(blob)}
    seen = set[tuple[str, bool]]()
    while waiting:
        seen |= waiting
        if len(seen) > MAX_FILES:
            raise _UnreadableSteeringError(f"more than {MAX_FILES:,} files steer, or are named by those that do")
        texts |= await _texts(git, {files[path] for path, _ in waiting if files[path].name not in texts})
        found = {path: _decoded(texts.get(files[path].name)) for path, _ in waiting}
        if lost := [path for path, it in found.items() if it is None and graph.steers(path) and _is_text(path)]:
            raise _UnreadableSteeringError(f"{min(lost)} could not be read")
        further: set[tuple[str, bool]] = set()
        for path, is_felt in sorted(waiting):
            if text := found[path]:
                described = _described(path, text) if path.endswith(".md") and graph.steers(path) else FileText()
                further |= set(graph.look_into(path, text, described, is_felt=is_felt))
        wanted = {it for it in further if it[0] in files and graph.tree.is_file(it[0])}
        waiting = {(path, is_felt) for path, is_felt in wanted if not {(path, is_felt), (path, True)} & seen}
        waiting -= {(path, False) for path, is_felt in waiting if is_felt}
    felt = graph.felt()
    return felt, graph.reached(felt)


def _is_text(path: str) -> bool:
    return path.endswith((".md", ".json"))


def _changes(listing: bytes) -> Iterator[tuple[str, Blob | None, Blob | None]]:
    """Path and both sides of each entry of `git diff-tree --raw -z`."""
    fields = listing.split(b"\0")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old, new, _ = about.decode("ascii", "replace").lstrip(":").split(" ")
        sides = (Blob(m, name) if m != "000000" else None for m, name in ((old_mode, old), (mode, new)))
        yield path.decode("utf-8", "backslashreplace"), *sides  # type: ignore[misc]


def _files(listing: bytes) -> Iterator[tuple[str, Blob]]:
    for entry in listing.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path:
            mode, _, name = about.decode("ascii", "replace").split(" ")[:3]
            yield path.decode("utf-8", "backslashreplace"), Blob(mode, name)


def _is_file(blob: Blob) -> bool:
    return blob.mode not in (LINK, SUBMODULE)


def _side(path: str, blob: Blob | None, texts: Mapping[str, bytes]) -> FileText | None:
    if blob is None:
        return None
    if not _is_file(blob):
        return FileText(kind="link" if blob.mode == LINK else "submodule")
    text = _decoded(texts.get(blob.name)) if may_steer(path) else ""
    if text is None:
        return FileText(kind="other")
    return _described(path, text) if path.endswith(".md") else FileText()


def _first_line(before: Blob | None, after: Blob | None, texts: Mapping[str, bytes]) -> int | None:
    """Where a reader finds the change; nothing where a side's text is not known."""
    old, new = ((_decoded(texts.get(side.name)) if side else "") for side in (before, after))
    if after is None or old is None or new is None:
        return None
    lines = new.splitlines()
    pairs = zip(old.splitlines(), lines, strict=False)
    same = next((number for number, (was, now) in enumerate(pairs) if was != now), min(old.count("\n"), len(lines)))
    return max(1, min(same + 1, len(lines)))


def _described(path: str, text: str) -> FileText:
    document = parse(text)
    head = text[: len(text) - len(document.body)]
    # Of skills and commands without a description, Claude Code shows the first line of the text.
    if not document.text("description") and (path.endswith(SKILL_FILE) or "/commands/" in path):
        head += f"\0{document.first_line}"
    return FileText(head, document.paths)


def _decoded(data: bytes | None) -> str | None:
    """As the scan reads files, whatever ends their lines; nothing where it would not."""
    if data is None or len(data) > MAX_FILE_BYTES or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


async def _texts(git: Git, blobs: Iterable[Blob]) -> dict[str, bytes]:
    """The contents of blobs that are there and not too large."""
    names = dict.fromkeys(blob.name for blob in blobs)
    if not names:
        return {}
    sizes = await git.attempt("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in names).encode())
    wanted, total = [], 0
    for line in sizes.stdout.decode("ascii", "replace").splitlines():
        name, kind, *size = line.split(" ")
        if kind == "blob" and int(size[0]) <= MAX_FILE_BYTES and total <= MAX_BYTES:
            wanted.append(name)
            total += int(size[0])
    if not wanted:
        return {}
    contents = await git.attempt("cat-file", "--batch", stdin="".join(f"{name}\n" for name in wanted).encode())
    return dict(_batch(contents.stdout)) if contents.exit_code == 0 and not contents.truncated else {}


def _batch(output: bytes) -> Iterator[tuple[str, bytes]]:
    """What `git cat-file --batch` prints."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        name, _, size = output[start:end].decode("ascii", "replace").split(" ")
        start = end + 1 + int(size) + 1
        yield name, output[end + 1 : start - 1]
