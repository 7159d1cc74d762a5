"""Artifacts as archives: packed from files, and unpacked in memory within limits."""

import hashlib
import io
import os
import shutil
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

from zelda_ci.errors import ArtifactError
from zelda_ci.files import untrusted

# The last record of an archive without a comment.
END = struct.Struct("<4s4H2LH")
END_SIGNATURE = b"PK\x05\x06"
LARGE_LOCATOR = b"PK\x06\x07"
LOCATOR_BYTES = 20
# Of the table of contents, for one member: its name and dates.
MAX_BYTES_PER_ENTRY = 1024
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Encrypted, patched, strongly encrypted, and with a masked table of contents.
REFUSED_FLAGS = 0x1 | 0x20 | 0x40 | 0x2000
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
)


def read_members(
    blob: bytes, wanted: Iterable[str], *, max_member_bytes: int, max_total_bytes: int, max_members: int
) -> dict[str, bytes]:
    """Those of the wanted members that are there; nothing is written anywhere, and others are not unpacked.

    Args:
        blob: The archive.
        wanted: Exact names.
        max_member_bytes: Most that a wanted member may have.
        max_total_bytes: Most that all wanted members may have together.
        max_members: Most that the archive may hold, wanted or not.

    Raises:
        ArtifactError: `ARTIFACT_INVALID` for no archive, a damaged one, one beyond the limits, or one that readers
            could understand differently.
    """
    return MemberReader(blob, max_members=max_members).read(
        wanted, max_member_bytes=max_member_bytes, max_total_bytes=max_total_bytes
    )


class MemberReader:
    """An archive whose table of contents is checked once, for whoever reads from it more than once.

    Arguments and errors of it all are those of `read_members`.
    """

    def __init__(self, blob: bytes, *, max_members: int) -> None:
        _check_end(blob, max_members)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(blob))
        except UNREADABLE:
            _refuse("it is damaged")
        self._members = _by_name(self._archive, max_members)

    @property
    def names(self) -> Iterable[str]:
        """Of everything that it holds."""
        return self._members.keys()

    def read(self, wanted: Iterable[str], *, max_member_bytes: int, max_total_bytes: int) -> dict[str, bytes]:
        """Those of the wanted members that are there, unpacked."""
        members = [self._members[name] for name in wanted if name in self._members]
        _check_kinds(members)
        _check_sizes(members, max_member_bytes, max_total_bytes)
        try:
            return {member.filename: _read(self._archive, member) for member in members}
        except UNREADABLE:
            _refuse("it is damaged")


def _check_end(blob: bytes, max_members: int) -> None:
    """Bound the table of contents before anything reads it: a member in it costs 46 bytes there and a kilobyte here."""
    end = blob[-END.size :]
    if len(end) < END.size or end[:4] != END_SIGNATURE:
        _refuse("it is no zip archive, or not a whole one")
    _, disk, first_disk, here, entries, size, _, comment = END.unpack(end)
    large = blob[-END.size - LOCATOR_BYTES : -END.size].startswith(LARGE_LOCATOR)
    if disk or first_disk or here != entries or comment or large:
        _refuse("it is a zip archive of an unusual kind")
    if entries > max_members or size > max_members * MAX_BYTES_PER_ENTRY:
        _refuse(f"it holds more than {max_members} files")


def _by_name(archive: zipfile.ZipFile, max_members: int) -> dict[str, zipfile.ZipInfo]:
    everything = archive.infolist()
    if len(everything) > max_members:
        _refuse(f"it holds more than {max_members} files")
    members = {member.filename: member for member in everything}
    if len(members) != len(everything):
        _refuse("two files in it have the same name")
    return members


def _check_kinds(members: Iterable[zipfile.ZipInfo]) -> None:
    for member in members:
        if member.flag_bits & REFUSED_FLAGS:
            _refuse(f"{member.filename} is encrypted")
        if member.compress_type not in METHODS:
            _refuse(f"{member.filename} is compressed in an unusual way")


def _check_sizes(members: list[zipfile.ZipInfo], max_member_bytes: int, max_total_bytes: int) -> None:
    for member in members:
        if member.file_size > max_member_bytes:
            _refuse(f"{member.filename} has more than {max_member_bytes} bytes")
    if sum(member.file_size for member in members) > max_total_bytes:
        _refuse(f"its files have more than {max_total_bytes} bytes together")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Unpack no more than the size that was checked; where that is a lie, the checksum tells."""
    with archive.open(member) as source:
        content = source.read(member.file_size + 1)
    if len(content) != member.file_size:
        _refuse(f"{member.filename} is shorter than the archive says")
    return content


def _refuse(why: str) -> NoReturn:
    raise ArtifactError(f"The artifact cannot be used: {why}.", code="ARTIFACT_INVALID")


MAX_ARTIFACT_NAME_LENGTH = 100
HASH_LENGTH = 8
FORBIDDEN = frozenset('":<>|*?\r\n')
SEPARATORS = frozenset("\\/")
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def artifact_name(text: str) -> str:
    """A legal name for any text; one that had to be changed ends in a hash, so that two texts stay two names."""
    kept = "".join(char if _is_legal(char) else "-" for char in text)[:MAX_ARTIFACT_NAME_LENGTH].strip(" .-")
    if text and kept == text:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{kept[: MAX_ARTIFACT_NAME_LENGTH - HASH_LENGTH - 1] or 'artifact'}-{mark}"


def is_artifact_name(name: str) -> bool:
    """Whether GitHub takes it."""
    return bool(name) and not (FORBIDDEN | SEPARATORS).intersection(name)


def is_member_name(name: str) -> bool:
    """Whether a file in an artifact may be called so: a relative path that leads nowhere else."""
    parts = name.split("/")
    return not (FORBIDDEN | {"\\"}).intersection(name) and all(part not in {"", ".", ".."} for part in parts)


def _is_legal(char: str) -> bool:
    return char not in FORBIDDEN | SEPARATORS and unicodedata.category(char) not in INVISIBLE


COPY_BYTES = 1 << 20
ZIP64_FROM = 1 << 31
EPOCH = (1980, 1, 1, 0, 0, 0)
MODE = 0o644


@contextmanager
def packed(files: Mapping[str, Path | bytes]) -> Iterator[IO[bytes]]:
    """The archive as an open file that vanishes afterwards; only a little of it is ever in memory.

    Raises:
        ArtifactError: `ARTIFACT_EMPTY`, `ARTIFACT_NAME_INVALID`, or `ARTIFACT_FAILED` where a file cannot be read or
            the archive cannot be written.
    """
    _check(files)
    try:
        with tempfile.TemporaryFile(prefix="zelda-artifact-") as archive:
            _write(archive, files)
            archive.seek(0)
            yield archive
    except OSError as exc:
        raise ArtifactError(f"The artifact's archive could not be made: {exc.strerror or exc}.") from exc


def _check(files: Mapping[str, Path | bytes]) -> None:
    if not files:
        raise ArtifactError("There is nothing to store in the artifact.", code="ARTIFACT_EMPTY")
    if wrong := [name for name in files if not is_member_name(name)]:
        message = f"A file in an artifact cannot be called {wrong[0]!a}."
        raise ArtifactError(message, code="ARTIFACT_NAME_INVALID")


def _write(archive: IO[bytes], files: Mapping[str, Path | bytes]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as target:
        for name, content in sorted(files.items()):
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = MODE << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            if isinstance(content, bytes):
                target.writestr(info, content)
            else:
                _copy(content, info, target)


def _copy(path: Path, info: zipfile.ZipInfo, target: zipfile.ZipFile) -> None:
    # No symbolic link is followed and no pipe waited for: the folder may have been within reach of a session.
    try:
        descriptor = untrusted.open_regular(path)
    except untrusted.NotRegularError:
        raise ArtifactError(f"{path.name} is not a regular file and cannot be stored in the artifact.") from None
    with open(descriptor, "rb") as source:  # noqa: PTH123  # a descriptor
        size = os.fstat(descriptor).st_size
        with target.open(info, "w", force_zip64=size >= ZIP64_FROM) as member:
            shutil.copyfileobj(source, member, COPY_BYTES)
