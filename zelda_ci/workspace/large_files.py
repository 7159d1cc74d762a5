"""Files of Git LFS: what a tree holds are pointers, and the checkout may hold the contents.

A pointer names its content by SHA-256 and size, so it does not matter who wrote the file in which it is found. No
filter is run, and no program of Git LFS.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.withholding import read_objects

# Larger ones are none to Git LFS either.
MAX_POINTER_BYTES = 1024
CHUNK = 1 << 20

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:(?P<digest>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,15})\n"
)
_PLAIN = (b"100644", b"100755")


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
    listed = dict(_plain(await staged("ls-files", "-s", "-z")))
    answer = await staged("check-attr", "--cached", "-z", "--stdin", "filter", stdin=b"\0".join([*listed, b""]))
    fields = answer.split(b"\0")
    filtered = {path: listed[path] for path, value in zip(fields[::3], fields[2::3], strict=False) if value == b"lfs"}
    contents = await read_objects(git, await _small(git, {*filtered.values()}))
    return [found for path, blob in filtered.items() if (found := _pointer(path, blob, contents.get(blob, b"")))]


def _plain(listing: bytes) -> Iterator[tuple[bytes, str]]:
    """Path and blob of regular files."""
    for entry in listing.split(b"\0")[:-1]:
        about, _, path = entry.partition(b"\t")
        mode, blob, _ = about.split(b" ")
        if mode in _PLAIN:
            yield path, blob.decode()


async def _small(git: Git, blobs: Iterable[str]) -> list[str]:
    names = sorted(blobs)
    sizes = await git("cat-file", "--batch-check=%(objectsize)", stdin="".join(f"{name}\n" for name in names).encode())
    known = zip(names, sizes.split(b"\n"), strict=False)
    return [name for name, size in known if size.isdigit() and int(size) <= MAX_POINTER_BYTES]


def _pointer(path: bytes, blob: str, content: bytes) -> Pointer | None:
    match = _POINTER.fullmatch(content)
    return Pointer(os.fsdecode(path), blob, match["digest"].decode(), int(match["size"])) if match else None


def find(wanted: Sequence[Pointer], storage: Path, top: Path) -> Iterator[LargeFile]:
    """Those whose content is at hand.

    What lies in the storage of Git LFS is taken at its name until it is copied. A file of the checkout may be anything,
    so it is read.

    Args:
        wanted: The pointers.
        storage: The repository's folder, in which Git LFS has one of its own.
        top: The repository's checkout.
    """
    for pointer in wanted:
        digest, inside = pointer.digest, tuple(pointer.path.split("/"))
        stored = LargeFile(pointer, storage, ("lfs", "objects", digest[:2], digest[2:4], digest))
        if _size(stored) == pointer.size:
            yield stored
        elif is_content(pointer, top):
            yield LargeFile(pointer, top, inside)


def is_content(pointer: Pointer, top: Path) -> bool:
    """Whether the checkout has the content in the pointer's place."""
    file = LargeFile(pointer, top, tuple(pointer.path.split("/")))
    if _size(file) != pointer.size:
        return False
    with suppress(OSError):
        return _copied(file, None) == pointer.digest
    return False


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
        open(untrusted.open_regular(file.parts[-1], folder=folder), "rb", buffering=0) as source,  # noqa: PTH123  # a descriptor
        open(target or os.devnull, "xb" if target else "wb") as copy,  # noqa: PTH123  # as above
    ):
        while chunk := source.read(min(CHUNK, room)):
            room -= len(chunk)
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()


# Of contents that are copied before git takes them, at most this much at once; a single one may be larger.
BATCH_BYTES = 256 << 20


async def take(git: Git, files: Sequence[LargeFile], place: Path) -> Mapping[str, str]:
    """Put contents into a repository of Zelda's own; returns git's names for them, by SHA-256.

    Args:
        git: With GIT_DIR set to the repository.
        files: What to put there.
        place: A new folder to work in.

    Raises:
        WorkspaceError: A content is not what its pointer says, or there is no room.
    """
    names: dict[str, str] = {}
    for number, batch in enumerate(_batches({file.pointer.digest: file for file in files}.values())):
        folder = place / str(number)
        await anyio.to_thread.run_sync(_copy, batch, folder)
        names |= await _stored(git, batch, folder)
        await anyio.to_thread.run_sync(shutil.rmtree, place)
    return names


def _batches(files: Iterable[LargeFile]) -> Iterator[list[LargeFile]]:
    batch: list[LargeFile] = []
    size = 0
    for file in files:
        if batch and size + file.pointer.size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.pointer.size
    if batch:
        yield batch


def _copy(files: Sequence[LargeFile], folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in files:
        # Copied first and read by git from there: the checkout's file may become another in between.
        if _copied(file, folder / file.pointer.digest) != file.pointer.digest:
            found = file.folder.joinpath(*file.parts)
            raise WorkspaceError(
                f"{file.pointer.path!r} is a file of Git LFS, and {found} is not its content.",
                hint="`git lfs fsck` says what is damaged, `git lfs fetch` brings it anew.",
                code="LFS_DAMAGED",
            )


async def _stored(git: Git, files: Sequence[LargeFile], folder: Path) -> dict[str, str]:
    index = folder.with_name(f"{folder.name}.index")
    inside = git.within(folder, GIT_INDEX_FILE=str(index), GIT_WORK_TREE=str(folder))
    # As one pack, and without compressing what mostly is compressed.
    settings = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
    paths = "".join(f"{file.pointer.digest}\0" for file in files).encode()
    await inside(*settings, "update-index", "--add", "-z", "--stdin", stdin=paths)
    return {path.decode(): blob for path, blob in _plain(await inside("ls-files", "-s", "-z"))}
