"""A patch made fit for storing: redacted, and cut between files where it is too long."""

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from zelda_ci import ownership
from zelda_ci.redact import Redactor

LARGEST_PATCH = 20 << 20
BORDER = b"diff --git "
BINARY = b"\nGIT binary patch\n"
"""Lines of a file's own begin with a sign."""


def store(raw: Path, target: Path, preface: Sequence[str], redact: Redactor, *, complete: bool) -> tuple[int, bool]:
    """Write the patch whole or not at all; returns its bytes and whether anything was left out.

    Args:
        raw: Git's own output.
        target: The file to make.
        preface: Lines for people, which `git apply` skips.
        redact: The door for text from outside; bytes that are not UTF-8 are replaced.
        complete: False where git's output broke off, so that its last section is not whole.
    """
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with raw.open("rb") as source, draft.open("wb") as file:
            ownership.hand_over(file.fileno(), target.parent)
            file.write(redact("".join(f"# {line}\n" for line in preface)).encode())
            left_out = _copy(source, file, redact, complete=complete)
            written = file.tell()
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return written, left_out


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
    if len(section) > LARGEST_PATCH:
        return True
    # Compressed data says nothing, but letters by chance look like a name with a value.
    careful = redact.known_only() if BINARY in section else redact
    text = careful(section.decode("utf-8", "replace")).encode()
    if file.tell() + len(text) > LARGEST_PATCH:
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
        if len(section) <= LARGEST_PATCH:
            section += line
    if section:
        yield bytes(section)
