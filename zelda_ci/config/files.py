"""Reading the user's files with suspicion: regular, of sensible size, UTF-8."""

import os
import re
import stat
from pathlib import Path

from zelda_ci.config.problems import Position, Rejected, problem

MEGABYTE = 1_000_000
LARGEST_FILE = MEGABYTE

# What YAML itself does not allow in a file; nobody types these.
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_text(path: Path, file: str) -> str:
    """The file's text, every line break a newline, without a byte order mark.

    Args:
        path: Where it is. Links are not followed, nothing is opened that could block.
        file: Its name in messages.

    Raises:
        Rejected: it cannot be read as text.
    """
    try:
        data = _read_bytes(path, file)
    except OSError as exc:
        raise Rejected(problem(file, None, f"cannot be read: {exc.strerror or exc}")) from None
    text = _decode(data, file).replace("\r\n", "\n").replace("\r", "\n")
    found = _UNPRINTABLE.search(text)
    if found:
        at = position(text, found.start())
        raise Rejected(problem(file, at, f"a text file cannot hold the character U+{ord(found[0]):04X}"))
    return text


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a path, links followed, leads into a folder; neither needs to exist."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False


def position(text: str, offset: int) -> Position:
    """The place of a character."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _read_bytes(path: Path, file: str) -> bytes:
    _refuse(path.lstat(), file)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - from a descriptor
        _refuse(os.fstat(descriptor), file)
        data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise Rejected(problem(file, None, "grows while it is read"))
    return data


def _refuse(status: os.stat_result, file: str) -> None:
    for is_kind, kind in _KINDS:
        if is_kind(status.st_mode):
            raise Rejected(problem(file, None, f"is {kind}; it must be a regular file"))
    if status.st_size > LARGEST_FILE:
        size = f"{status.st_size / MEGABYTE:.1f} MB"
        raise Rejected(problem(file, None, f"is {size} large; at most 1 MB is read"))


def _decode(data: bytes, file: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Rejected(problem(file, Position(1, 1), "is UTF-16 text; save it as UTF-8"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        # A byte order mark is not part of what the codec counts.
        offset = exc.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        before = data[:offset].decode("utf-8-sig")
        message = f"is not UTF-8 text: byte 0x{data[offset]:02x} at offset {offset}; save it as UTF-8"
        raise Rejected(problem(file, position(before, len(before)), message)) from None
