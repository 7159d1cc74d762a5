"""Files of Git LFS: what a tree holds are pointers, and the checkout may hold the contents.

A pointer names its content by SHA-256 and size, so it does not matter who wrote the file in which it is found. No
filter is run, and no program of Git LFS.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.workspace import history
from zelda_ci.workspace.git import Git

# Larger files are no pointers to Git LFS either.
MAX_POINTER_BYTES = 1024

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:(?P<digest>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,15})\n"
)


@dataclass(frozen=True)
class Pointer:
    """A file whose content lies elsewhere."""

    path: str
    """From the top of its repository."""
    mode: str
    blob: str
    """Git's name for the pointer itself."""
    digest: str
    size: int


@dataclass(frozen=True)
class LargeFile:
    """A pointer whose content is at hand."""

    path: str
    """From the top of the tested tree."""
    pointer: Pointer
    folder: Path
    """Below it no link is followed."""
    parts: tuple[str, ...]
    """Where the content lies in it."""


async def pointers(git: Git) -> list[Pointer]:
    """Read the pointers of an index that the attributes give to Git LFS.

    Args:
        git: On the index, and on a work tree: an empty one where the attributes in the index are to count.
    """
    listing = (await git("ls-files", "-s", "-z", "--", ":(top,attr:filter=lfs)")).split(b"\0")[:-1]
    entries = [os.fsdecode(entry).split(" ", 2) for entry in listing]
    texts = await history.read_small(git, (blob for _, blob, _ in entries), MAX_POINTER_BYTES)
    found = ((path[2:], mode, blob, _POINTER.fullmatch(texts.get(blob, b""))) for mode, blob, path in entries)
    return [Pointer(path, mode, blob, it["digest"].decode(), int(it["size"])) for path, mode, blob, it in found if it]


def is_content(pointer: Pointer, top: Path) -> bool:
    """Whether the checkout has the content in the pointer's place."""
    with suppress(OSError):
        return _is_whole(LargeFile(pointer.path, pointer, top, tuple(pointer.path.split("/"))))
    return False


def at_hand(pointer: Pointer, path: str, storage: Path, top: Path) -> LargeFile | None:
    """Find the content in the storage of Git LFS, by its name until it is read, or else in the checkout."""
    digest = pointer.digest
    stored = LargeFile(path, pointer, storage, ("lfs", "objects", digest[:2], digest[2:4], digest))
    with suppress(OSError), untrusted.entered(storage, stored.parts[:-1]) as folder:
        status = os.stat(digest, dir_fd=folder, follow_symlinks=False)
        if untrusted.is_regular(status) and status.st_size == pointer.size:
            return stored
    return LargeFile(path, pointer, top, tuple(pointer.path.split("/"))) if is_content(pointer, top) else None


def _is_whole(file: LargeFile) -> bool:
    """Whether a file has the content; no more of it is read than the pointer says."""
    with (
        untrusted.entered(file.folder, file.parts[:-1]) as folder,
        open(untrusted.open_regular(file.parts[-1], folder=folder), "rb") as content,  # noqa: PTH123  # a descriptor
    ):
        size = os.fstat(content.fileno()).st_size
        return size == file.pointer.size and hashlib.file_digest(content, "sha256").hexdigest() == file.pointer.digest


async def store(git: Git, files: Iterable[LargeFile]) -> Mapping[str, str]:
    """Put contents into a repository of ours; returns git's names for them, by SHA-256.

    Raises:
        WorkspaceError: A content has vanished or is damaged, or there is no room.
    """
    distinct = {file.pointer.digest: file for file in files}
    for file in distinct.values():
        if not await anyio.to_thread.run_sync(_is_whole, file):
            raise WorkspaceError(
                f"{file.path!r} is a file of Git LFS, and {file.folder.joinpath(*file.parts)} is not its content.",
                hint="`git lfs fsck` says what is damaged, `git lfs fetch` brings it anew.",
                code="LFS_DAMAGED",
            )
    # As packs, and without compressing what mostly is compressed.
    settings = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
    stdin = b"".join(os.fsencode(file.folder.joinpath(*file.parts)) + b"\n" for file in distinct.values())
    printed = await git(*settings, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin) if stdin else b""
    return dict(zip(distinct, printed.decode().split(), strict=True))
