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
from typing import IO

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
DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError)


class MemberReader:
    """An archive whose table of contents is checked once; nothing is written anywhere.

    One that is damaged, too large, or that readers could understand differently is an `ArtifactError`.
    """

    def __init__(self, file: IO[bytes], *, max_members: int) -> None:
        # Before anything reads the table of contents: a member in it costs 46 bytes there and a kilobyte here.
        file.seek(max(0, file.seek(0, io.SEEK_END) - END.size - LOCATOR_BYTES))
        tail = file.read()
        end = tail[-END.size :]
        if len(end) < END.size or end[:4] != END_SIGNATURE:
            raise _refusal("it is no zip archive, or not a whole one")
        _, disk, first_disk, here, entries, size, _, comment = END.unpack(end)
        large = tail[: -END.size].startswith(LARGE_LOCATOR)
        if disk or first_disk or here != entries or comment or large:
            raise _refusal("it is a zip archive of an unusual kind")
        if entries > max_members or size > max_members * MAX_BYTES_PER_ENTRY:
            raise _refusal(f"it holds more than {max_members} files")
        try:
            self._archive = zipfile.ZipFile(file)
        except DAMAGED:
            raise _refusal("it is damaged") from None
        listed = self._archive.namelist()
        self.names = frozenset(listed)
        if len(listed) > max_members:
            raise _refusal(f"it holds more than {max_members} files")
        if len(self.names) != len(listed):
            raise _refusal("two files in it have the same name")

    def read(self, wanted: Iterable[str], *, max_member_bytes: int, max_total_bytes: int) -> dict[str, bytes]:
        """Those of the wanted members that are there, by their exact names; others are not unpacked, nor limited."""
        members = [self._archive.getinfo(name) for name in wanted if name in self.names]
        for member in members:
            if member.flag_bits & REFUSED_FLAGS:
                raise _refusal(f"{member.filename} is encrypted")
            if member.compress_type not in METHODS:
                raise _refusal(f"{member.filename} is compressed in an unusual way")
            if member.file_size > max_member_bytes:
                raise _refusal(f"{member.filename} has more than {max_member_bytes} bytes")
        if sum(member.file_size for member in members) > max_total_bytes:
            raise _refusal(f"its files have more than {max_total_bytes} bytes together")
        found: dict[str, bytes] = {}
        for member in members:
            try:
                with self._archive.open(member) as source:
                    # No more than the size that was checked; where that is a lie, the checksum tells.
                    found[member.filename] = source.read(member.file_size + 1)
            except DAMAGED:
                raise _refusal("it is damaged") from None
            if len(found[member.filename]) != member.file_size:
                raise _refusal(f"{member.filename} is shorter than the archive says")
        return found


def _refusal(why: str) -> ArtifactError:
    return ArtifactError(f"The artifact cannot be used: {why}.", code="ARTIFACT_INVALID")


MAX_ARTIFACT_NAME_LENGTH, HASH_LENGTH = 100, 8
FORBIDDEN = frozenset('":<>|*?\r\n\\/')
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def artifact_name(text: str) -> str:
    """A legal name for any text; one that had to be changed ends in a hash, so that two texts stay two names."""
    legal = ("-" if char in FORBIDDEN or unicodedata.category(char) in INVISIBLE else char for char in text)
    kept = "".join(legal)[:MAX_ARTIFACT_NAME_LENGTH].strip(" .-")
    if text and kept == text:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{kept[: MAX_ARTIFACT_NAME_LENGTH - HASH_LENGTH - 1] or 'artifact'}-{mark}"


@contextmanager
def packed(files: Mapping[str, Path | bytes]) -> Iterator[IO[bytes]]:
    """The archive as an open file that vanishes; raises `ArtifactError` where it, or a file, cannot be made or read."""
    try:
        with tempfile.TemporaryFile(prefix="zelda-artifact-") as archive:
            with zipfile.ZipFile(archive, "w") as target:
                for name, content in sorted(files.items()):
                    _add(target, name, content)
            archive.seek(0)
            yield archive
    except OSError as exc:
        raise ArtifactError(f"The artifact's archive could not be made: {exc.strerror or exc}.") from exc


def _add(target: zipfile.ZipFile, name: str, content: Path | bytes) -> None:
    info = zipfile.ZipInfo(name)
    info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
    if isinstance(content, bytes):
        target.writestr(info, content)
        return
    # No symbolic link is followed and no pipe waited for: the folder may have been within reach of a session.
    try:
        descriptor = untrusted.open_regular(content)
    except untrusted.NotRegularError:
        raise ArtifactError(f"{content.name} is not a regular file and cannot be stored in the artifact.") from None
    with open(descriptor, "rb") as source:  # noqa: PTH123  # a descriptor
        info.file_size = os.fstat(descriptor).st_size
        with target.open(info, "w") as member:
            shutil.copyfileobj(source, member, 1 << 20)
