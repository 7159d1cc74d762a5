"""Files of Git LFS: what a tree holds are pointers, and the storage of Git LFS may hold the contents.

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
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.objects import Objects

# Larger files are no pointers to Git LFS either.
MAX_POINTER_BYTES = 1024

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:(?P<digest>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,15})\n"
)


@dataclass(frozen=True)
class LargeFile:
    """A file whose content lies elsewhere."""

    path: str
    """From the top of the tested tree."""
    mode: str
    name: str
    """Git's name for the pointer."""
    content: str
    """SHA-256 of the content."""
    size: int
    repository: Path
    """In whose storage the content may lie; below it no link is followed."""

    @property
    def place(self) -> str:
        """Where Git LFS keeps the content in the repository."""
        return f"lfs/objects/{self.content[:2]}/{self.content[2:4]}/{self.content}"


async def pointers(git: Git, repository: Path, prefix: str = "") -> list[LargeFile]:
    """Read the pointers of an index that the attributes give to Git LFS: in an empty work tree, those in the index."""
    listing = (await git("ls-files", "-s", "-z", "--", ":(top,attr:filter=lfs)")).split(b"\0")[:-1]
    entries = [os.fsdecode(entry).split(" ", 2) for entry in listing]
    async with Objects(git) as objects:
        texts = await objects.read((blob for _, blob, _ in entries), MAX_POINTER_BYTES)
    matches = ((mode, blob, path[2:], _POINTER.fullmatch(texts.get(blob, b""))) for mode, blob, path in entries)
    return [
        LargeFile(prefix + path, mode, blob, it["digest"].decode(), int(it["size"]), repository)
        for mode, blob, path, it in matches
        if it
    ]


def is_stored(file: LargeFile) -> bool:
    """Whether the storage has a content of the pointer's size; its hash is that of its name until it is read."""
    *above, name = file.place.split("/")
    with suppress(OSError), untrusted.entered(file.repository, above) as folder:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return untrusted.is_regular(status) and status.st_size == file.size
    return False


def is_content(file: LargeFile, top: Path, path: str) -> bool:
    """Whether a file below a folder has a pointer's content; no more of it is read than the pointer says."""
    *above, name = path.split("/")
    with (
        suppress(OSError),
        untrusted.entered(top, above) as folder,
        open(untrusted.open_regular(name, folder=folder), "rb") as content,  # noqa: PTH123  # a descriptor
    ):
        is_whole = os.fstat(content.fileno()).st_size == file.size
        return is_whole and hashlib.file_digest(content, "sha256").hexdigest() == file.content
    return False


async def store(git: Git, files: Iterable[LargeFile]) -> Mapping[str, str]:
    """Put contents into a repository of ours, unless one is damaged; returns git's names for them, by SHA-256."""
    distinct = {file.content: file for file in files}
    places = [file.repository / file.place for file in distinct.values()]
    for file, place in zip(distinct.values(), places, strict=True):
        if not await anyio.to_thread.run_sync(is_content, file, file.repository, file.place):
            message = f"{file.path!r} is a file of Git LFS, and {place} is not its content."
            hint = "`git lfs fsck` says what is damaged, `git lfs fetch` brings it anew."
            raise WorkspaceError(message, hint=hint, code="LFS_DAMAGED")
    # As packs, and without compressing what mostly is compressed.
    settings = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
    stdin = b"".join(os.fsencode(place) + b"\n" for place in places)
    printed = await git(*settings, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin) if stdin else b""
    return dict(zip(distinct, printed.decode().split(), strict=True))
