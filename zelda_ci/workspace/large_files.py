"""Files of Git LFS: what a tree holds are pointers, and the checkout may hold the contents.

A pointer names its content by SHA-256 and size, so it does not matter who wrote the file in which it is found. No
filter is run, and no program of Git LFS.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
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
CHUNK = 1 << 20

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:(?P<digest>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,15})\n"
)


@dataclass(frozen=True)
class Pointer:
    """A file whose content lies elsewhere."""

    path: str
    """From the top of its repository."""
    blob: str
    """Git's name for the pointer itself."""
    digest: str
    size: int


@dataclass(frozen=True)
class LargeFile:
    """A pointer whose content is at hand."""

    pointer: Pointer
    folder: Path
    """Below it no link is followed."""
    parts: tuple[str, ...]
    """Where the content lies in it."""


async def pointers(git: Git, commit: str, index: Path) -> list[Pointer]:
    """The pointers of a commit that its own attributes give to Git LFS.

    Args:
        git: With GIT_DIR set to a repository of Zelda's own that has, or borrows, the commit's files.
        commit: Which one.
        index: Where to make an index of it.

    Raises:
        WorkspaceError: Git refuses the commit's names.
    """
    asked = ("grep", "-I", "-q", "-E", "filter=lfs", commit, "--", ":(glob)**/.gitattributes")
    if (await git.attempt(*asked)).exit_code != 0:
        return []
    staged = git.within(git.cwd, GIT_INDEX_FILE=str(index))
    await staged("read-tree", commit)
    entries = (entry.partition(b"\t") for entry in (await staged("ls-files", "-s", "-z")).split(b"\0")[:-1])
    listed = {path: about.split(b" ")[1].decode() for about, _, path in entries if about.startswith(b"100")}
    answer = await staged("check-attr", "--cached", "-z", "--stdin", "filter", stdin=b"\0".join([*listed, b""]))
    fields = answer.split(b"\0")
    filtered = {path: listed[path] for path, value in zip(fields[::3], fields[2::3], strict=False) if value == b"lfs"}
    texts = await history.read_small(git, filtered.values(), MAX_POINTER_BYTES)
    found = ((path, blob, _POINTER.fullmatch(texts.get(blob, b""))) for path, blob in filtered.items())
    return [Pointer(os.fsdecode(p), blob, m["digest"].decode(), int(m["size"])) for p, blob, m in found if m]


def is_content(pointer: Pointer, top: Path) -> bool:
    """Whether the checkout has the content in the pointer's place."""
    file = LargeFile(pointer, top, tuple(pointer.path.split("/")))
    with suppress(OSError):
        return _size(file) == pointer.size and _copied(file, None) == pointer.digest
    return False


def at_hand(pointer: Pointer, storage: Path, top: Path) -> LargeFile | None:
    """The content, from the storage of Git LFS at its name until it is copied, or else from the checkout."""
    digest = pointer.digest
    stored = LargeFile(pointer, storage, ("lfs", "objects", digest[:2], digest[2:4], digest))
    if _size(stored) == pointer.size:
        return stored
    return LargeFile(pointer, top, tuple(pointer.path.split("/"))) if is_content(pointer, top) else None


def _size(file: LargeFile) -> int | None:
    with suppress(OSError), untrusted.entered(file.folder, file.parts[:-1]) as folder:
        status = os.stat(file.parts[-1], dir_fd=folder, follow_symlinks=False)
        return status.st_size if untrusted.is_regular(status) else None
    return None


def _copied(file: LargeFile, target: Path | None) -> str:
    """The SHA-256 of the content; never more of it than the pointer says."""
    digest, room = hashlib.sha256(), file.pointer.size + 1
    with (
        untrusted.entered(file.folder, file.parts[:-1]) as folder,
        open(untrusted.open_regular(file.parts[-1], folder=folder), "rb", buffering=0) as content,  # noqa: PTH123  # a descriptor
        open(target or os.devnull, "xb" if target else "wb") as copy,  # noqa: PTH123  # as above
    ):
        while chunk := content.read(min(CHUNK, room)):
            room -= len(chunk)
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()


async def stored(git: Git, files: Mapping[str, LargeFile]) -> Mapping[str, str]:
    """Git's names for contents, by SHA-256."""
    if not files:
        return {}
    folder = Path(git.environment["GIT_DIR"]) / "incoming"
    # Copied first and read by git from there: the checkout's file may become another in between.
    await anyio.to_thread.run_sync(_copy, files, folder)
    # As packs, and without compressing what mostly is compressed.
    settings = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
    stdin = "".join(f"{folder / digest}\n" for digest in files).encode()
    printed = await git(*settings, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin)
    await anyio.to_thread.run_sync(shutil.rmtree, folder)
    return dict(zip(files, printed.decode().split(), strict=True))


def _copy(files: Mapping[str, LargeFile], folder: Path) -> None:
    folder.mkdir()
    for digest, file in files.items():
        if _copied(file, folder / digest) != digest:
            found = file.folder.joinpath(*file.parts)
            raise WorkspaceError(
                f"{file.pointer.path!r} is a file of Git LFS, and {found} is not its content.",
                hint="`git lfs fsck` says what is damaged, `git lfs fetch` brings it anew.",
                code="LFS_DAMAGED",
            )
