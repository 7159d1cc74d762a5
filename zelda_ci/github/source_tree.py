"""A commit's files without git: what GitHub's API lists of them, and their contents from its archive or one by one.

Contents are known by their hashes. So nothing is unpacked to a place that an archive names, and an archive that differs
from the commit (`export-ignore`, `export-subst`, files of Git LFS) lacks files, and changes none.
"""

import base64
import binascii
import gzip
import hashlib
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Annotated, cast

from pydantic import AwareDatetime, Field

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Described, understand

MAX_FILES = 100_000
MAX_ARCHIVE_BYTES = 512 << 20
MAX_UNPACKED_BYTES = 2 << 30
# GitHub takes no larger file.
MAX_FILE_BYTES = 100 << 20
MAX_RATIO = 200
# Small archives may be packed as well as they like.
UNSUSPICIOUS_BYTES = 64 << 20
# A path, or a comment; what is longer would be read into memory as a whole.
MAX_HEADER_BYTES = 1 << 20

CHUNK = 1 << 16
UNREADABLE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError)

ObjectName = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class Signature(Described):
    """Who wrote a commit, or put it where it is, and when."""

    name: str = ""
    email: str = ""
    date: AwareDatetime = datetime.fromtimestamp(0, UTC)


class _TreeName(Described):
    sha: ObjectName


class SourceCommit(Described):
    """A commit without its files."""

    tree: _TreeName
    message: str = ""
    author: Signature = Signature()
    committer: Signature = Signature()


class SourceEntry(Described):
    """A file, a link, a submodule or a folder, by its path from the top."""

    path: str
    mode: str
    type: str
    sha: ObjectName
    size: int = 0


class SourceListing(Described):
    tree: tuple[SourceEntry, ...] = Field(max_length=MAX_FILES * 2)
    truncated: bool


class _Blob(Described):
    content: str
    encoding: str


def read_commit(api: Api, commit: str) -> SourceCommit:
    """What GitHub says of a commit."""
    return understand(SourceCommit, api.get(f"git/commits/{commit}"))


def read_tree(api: Api, tree: str) -> tuple[SourceEntry, ...]:
    """All of a tree but its folders.

    Raises:
        GitHubError: `GITHUB_TOO_LARGE` where GitHub does not list all of it.
    """
    listing = understand(SourceListing, api.get(f"git/trees/{tree}", recursive="1"))
    files = tuple(entry for entry in listing.tree if entry.type != "tree")
    if listing.truncated or len(files) > MAX_FILES:
        raise GitHubError("The commit has more files than GitHub lists.", code="GITHUB_TOO_LARGE")
    return files


def read_blob(api: Api, name: str) -> bytes:
    """The content of one file.

    Raises:
        GitHubError: It cannot be had, or has another name than it was asked for by.
    """
    blob = understand(_Blob, api.get(f"git/blobs/{name}"))
    try:
        content = base64.b64decode(blob.content) if blob.encoding == "base64" else blob.content.encode()
    except (binascii.Error, ValueError):
        content = b""
    if blob_name(content) != name:
        raise GitHubError(f"What GitHub sent as {name[:7]} is not that file.", code="GITHUB_REFUSED")
    return content


def blob_name(content: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def contents(archive: IO[bytes], wanted: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Those of the wanted contents that an archive has, each once.

    Args:
        archive: Tar and gzip, from whoever.
        wanted: Sizes by names of the files' contents; links are contents, too.

    Raises:
        GitHubError: It is damaged, of another kind, or larger than what is read.
    """
    left = dict(wanted)
    sizes = set(left.values())
    try:
        with tempfile.TemporaryFile(prefix="zelda-source-") as plain:
            _unpack(archive, plain)
            with tarfile.open(fileobj=cast("IO[bytes]", _Bounded(plain)), mode="r:", encoding="utf-8") as tar:
                for member in _members(tar):
                    content = _content(tar, member, sizes)
                    name = blob_name(content) if content is not None else ""
                    if content is not None and left.pop(name, None) is not None:
                        yield name, content
    except UNREADABLE as problem:
        raise _refusal("it is damaged, or no archive that GitHub makes") from problem


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for number, member in enumerate(tar):
        # Folders count, too.
        if number > 2 * MAX_FILES:
            raise _refusal(f"it holds more than {2 * MAX_FILES:,} entries")
        yield member


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, sizes: set[int]) -> bytes | None:
    """What git would keep of an entry; nothing of other kinds than files and links, and of what cannot be wanted."""
    if member.issym():
        return member.linkname.encode("utf-8", "surrogateescape")
    is_plain = member.isreg() and not member.issparse()
    if not is_plain or member.size not in sizes or member.size > MAX_FILE_BYTES:
        return None
    file = tar.extractfile(member)
    if file is None:
        return None
    with file:
        return b"".join(iter(lambda: file.read(CHUNK), b""))


def _unpack(archive: IO[bytes], plain: IO[bytes]) -> None:
    """Write the archive without compression: no more of it than a source archive can need."""
    packed = archive.seek(0, 2)
    limit = min(MAX_UNPACKED_BYTES, max(UNSUSPICIOUS_BYTES, packed * MAX_RATIO))
    archive.seek(0)
    with gzip.GzipFile(fileobj=archive) as unpacker:
        while chunk := unpacker.read(CHUNK):
            plain.write(chunk)
            if plain.tell() > limit:
                raise _refusal(f"unpacked it is larger than {limit >> 20:,} MB")
    plain.seek(0)


class _Bounded:
    """A file of which nobody reads much at once: tarfile reads a header into memory, however long it says it is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_HEADER_BYTES:
            raise tarfile.ReadError("a header is too long")
        return self._file.read(size)


def _refusal(why: str) -> GitHubError:
    return GitHubError(f"The commit's archive cannot be used: {why}.", code="GITHUB_REFUSED")
