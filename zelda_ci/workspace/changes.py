"""What a session changed: the work tree now against the commit it started from, and the patch."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import anyio

from zelda_ci.domain.workspace import Changes
from zelda_ci.files.atomic import replacing
from zelda_ci.redact import Redactor
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import ignored, repositories
from zelda_ci.workspace.folder import CheckoutIndex
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.ignored import IgnoredChanges, Stamps
from zelda_ci.workspace.store import Start
from zelda_ci.workspace.tree_scan import MAX_FILE_BYTES, Snapshot, scan_tree, set_aside

MAX_PATCH_BYTES = 20 << 20
BORDER = b"diff --git "
# Lines of a file's own begin with a sign.
BINARY = b"\nGIT binary patch\n"


def store_patch(
    raw: Path, target: Path, preface: Sequence[str], redact: Redactor, *, complete: bool
) -> tuple[int, bool]:
    """Write the patch whole or not at all; returns its bytes and whether anything was left out.

    Args:
        raw: Git's own output.
        target: The file to make.
        preface: Lines for people, which `git apply` skips.
        redact: The door for text from outside; bytes that are not UTF-8 are replaced.
        complete: False where git's output broke off, so that its last section is not whole.
    """
    with raw.open("rb") as source, replacing(target) as file:
        file.write(redact("".join(f"# {line}\n" for line in preface)).encode())
        left_out = _copy(source, file, redact, complete=complete)
        return file.tell(), left_out


def _copy(source: BinaryIO, file: BinaryIO, redact: Redactor, *, complete: bool) -> bool:
    left_out = not complete
    last: bytes | None = None
    for section in _sections(source):
        if last is not None:
            left_out = _append(last, file, redact) or left_out
        last = section
    if last is not None and complete:
        left_out = _append(last, file, redact) or left_out
    return left_out


def _append(section: bytes, file: BinaryIO, redact: Redactor) -> bool:
    """Add one file's section; true where there is no room for it."""
    if len(section) > MAX_PATCH_BYTES:
        return True
    # Compressed data says nothing, but letters by chance look like a name with a value.
    careful = redact.known_only() if BINARY in section else redact
    text = careful(section.decode("utf-8", "replace")).encode()
    if file.tell() + len(text) > MAX_PATCH_BYTES:
        return True
    file.write(text)
    return False


def _sections(source: BinaryIO) -> Iterator[bytes]:
    """One file's changes after the other; of one that can never fit, only as much as tells so."""
    section = bytearray()
    for line in source:
        if line.startswith(BORDER) and section:
            yield bytes(section)
            section.clear()
        if len(section) <= MAX_PATCH_BYTES:
            section += line
    if section:
        yield bytes(section)


MAX_RAW_BYTES = 256 << 20
DIFF = ("diff-index", "--cached", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-M", "-l1000")
RAW = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
MAX_NAMED = 50
# As arguments of a command.
MAX_EXCLUDED = 500
DEADLINE_SECONDS = 120.0
CONFIGURATION = {
    "core.attributesfile": os.devnull,
    "core.excludesfile": os.devnull,
    "core.fsmonitor": "false",
    "core.safecrlf": "false",
    # Nothing from here is ever checked out, and nothing of it is kept.
    "core.protecthfs": "false",
    "core.protectntfs": "false",
    "core.compression": "1",
    "core.fsync": "none",
}


@dataclass(frozen=True)
class Measured:
    """A repository whose index is the work tree's state; `git` no longer sees the tree."""

    git: Git
    left_out: dict[bytes, str]
    """What could not be read, and why."""
    ignored: list[bytes] = field(default_factory=list)
    """What git ignores: files, and folders that end with a slash."""


async def hidden(staged: Measured, start: str, folder: WorkspaceFolder, before: Stamps) -> IgnoredChanges:
    """What the session did to files that git ignores, given the tree's files as they were before it."""
    indexed = await staged.git("ls-files", "-z")
    committed = await staged.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", start)
    known = [*indexed.split(b"\0"), *committed.split(b"\0"), *staged.left_out]
    return await anyio.to_thread.run_sync(ignored.changed, folder.root, before, staged.ignored, known)


async def measured(folder: WorkspaceFolder, start: Start, before: Stamps, scratch: Path, plumbing: Git) -> Measured:
    """Take the state of a run's work tree into a repository in `scratch`, an empty folder.

    Args:
        folder: The run's own.
        start: The state that was checked out.
        before: The tree's files after setup, or none where there was no setup. What setup made and the session left
            alone is no change of the session's.
        scratch: An empty folder to work in.
        plumbing: Git of Zelda's own.

    Raises:
        WorkspaceError: Git failed altogether, for instance for want of room.
    """
    repository, nowhere = scratch / "git", scratch / "nowhere"
    settings = {**start.settings, **CONFIGURATION}
    repositories.create(repository, object_format=start.object_format, settings=settings, borrow=start.store.objects)
    nowhere.mkdir()
    root = folder.root if folder.is_intact() else nowhere
    git = plumbing.within(nowhere, GIT_DIR=str(repository), GIT_CONFIG_GLOBAL=os.devnull)
    git = replace(git, timeout_seconds=DEADLINE_SECONDS)
    ignored.exclude_installed(repository, before)
    inside = git.within(root, GIT_WORK_TREE=str(root))
    left_out, hidden = await _stage(folder, start.index, before, root, inside, scratch)
    left_out |= _filled(root, start.store.submodules)
    # From here on nothing of the work tree is read, where the traps are back.
    return Measured(git.within(nowhere, GIT_WORK_TREE=str(nowhere)), left_out, hidden)


async def _stage(
    folder: WorkspaceFolder, index: CheckoutIndex, before: Stamps, root: Path, git: Git, scratch: Path
) -> tuple[dict[bytes, str], list[bytes]]:
    """Bring the index to the work tree's state; returns what could not be read, and why, and what git ignores."""
    scan = await anyio.to_thread.run_sync(scan_tree, root)
    with set_aside(root, [*scan.nested, *scan.traps], scratch / "aside"):
        snapshot = Snapshot(git, scratch / "git", root)
        left_out = await snapshot.stage(index, folder.session_index, before)
        hidden = await snapshot.ignored()
    left_out |= dict.fromkeys(scan.traps, "not a plain file")
    return left_out | dict.fromkeys(scan.closed, "cannot be listed"), hidden


def _filled(root: Path, submodules: Sequence[str]) -> dict[bytes, str]:
    """Submodules, which were empty, where there is something now."""
    places = {os.fsencode(name): root / name for name in submodules}
    return {name: "a submodule" for name, place in places.items() if not place.is_symlink() and _holds_something(place)}


def _holds_something(place: Path) -> bool:
    try:
        with os.scandir(place) as entries:
            return any(entries)
    except OSError:
        return False


async def compute(staged: Measured, start: str, scratch: Path, target: Path, redact: Redactor) -> Changes:
    """Write the patch to `target` and count what is in it, working in the folder of the measurement.

    Raises:
        WorkspaceError: Git failed altogether, for instance for want of room.
    """
    git, large = staged.git, await _replaced_large(staged.git, start)
    left_out = staged.left_out | {path: f"{size} bytes before" for path, size in large.items()}
    # Git would print all of a large file that is gone, and what comes after it would not fit any more.
    places = ("--", ":(top)", *(f":(top,exclude,literal){os.fsdecode(path)}" for path in large))
    stats = _counted(await git(*DIFF, "--numstat", "-z", start, *places))
    raw = scratch / "raw.patch"
    complete = await git.into(raw, *DIFF, "-p", "--binary", "--no-color", start, *places, max_bytes=MAX_RAW_BYTES)
    preface = _preface(left_out)
    size, cut = await anyio.to_thread.run_sync(lambda: store_patch(raw, target, preface, redact, complete=complete))
    names = sorted({*(name for name, _, _ in stats), *left_out})
    return Changes(
        files=tuple(redact(os.fsdecode(name)) for name in names),
        insertions=sum(added for _, added, _ in stats),
        deletions=sum(removed for _, _, removed in stats),
        patch=target,
        patch_bytes=size,
        truncated=cut or bool(left_out),
    )


async def _replaced_large(git: Git, start: str) -> dict[bytes, int]:
    """Files that are changed or gone and were large at the start, with their sizes then."""
    fields = (await git(*RAW, start)).split(b"\0")[:-1]
    old = {path: change.split(b" ")[2] for change, path in zip(fields[::2], fields[1::2], strict=True)}
    sizes = await git(
        "cat-file", "--batch-check=%(objectsize)", stdin=b"".join(b"%b\n" % blob for blob in old.values())
    )
    known = zip(old, sizes.split(b"\n"), strict=False)
    large = [(path, int(size)) for path, size in known if size.isdigit() and int(size) > MAX_FILE_BYTES]
    return dict(large[:MAX_EXCLUDED])


def _preface(left_out: Mapping[bytes, str]) -> Sequence[str]:
    lines = [f"not in this patch: {os.fsdecode(name)!r} ({why})" for name, why in sorted(left_out.items())]
    more = len(lines) - MAX_NAMED
    return [*lines[:MAX_NAMED], *([f"and {more} more"] if more > 0 else [])]


def _counted(raw: bytes) -> list[tuple[bytes, int, int]]:
    """Name, added and removed lines from `--numstat -z`; a renamed file by its new name, a binary one without lines."""
    fields = iter(raw.split(b"\0"))
    counts: list[tuple[bytes, int, int]] = []
    for entry in fields:
        if not entry:
            continue
        added, removed, name = entry.split(b"\t", 2)
        if not name:
            next(fields)
            name = next(fields)
        counts.append((name, int(added.replace(b"-", b"0")), int(removed.replace(b"-", b"0"))))
    return counts
