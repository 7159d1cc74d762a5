"""Files as a zip archive on disk, the same bytes for the same files."""

import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from zelda_ci.errors import ArtifactError
from zelda_ci.github.names import is_member_name

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
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as source:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise ArtifactError(f"{path.name} is not a regular file and cannot be stored in the artifact.")
        with target.open(info, "w", force_zip64=about.st_size >= ZIP64_FROM) as member:
            shutil.copyfileobj(source, member, COPY_BYTES)
