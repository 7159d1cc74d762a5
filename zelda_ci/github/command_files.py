"""The files in which a step hands over outputs and its summary."""

import os
import stat
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

LARGEST_SUMMARY = 1_000_000
"""Bytes; from 1 MiB on the runner takes nothing at all."""

CUT = "\n\n(The rest did not fit; the results of this run have everything.)\n"


class OutputFile:
    """GITHUB_OUTPUT: values in here documents whose end nobody can guess."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, name: str, value: str) -> None:
        """Hand over one output. Without a file, as outside a workflow, nothing happens.

        Raises:
            ValueError: The name is none.
        """
        end = f"ghadelimiter_{uuid.uuid4()}"
        clean = value.replace("\r\n", "\n")
        if not name or set(name) & set("=\r\n") or "<<" in name or end in clean:
            raise ValueError(f"{name!r} is no name of an output")
        _append(self._path, f"{name}<<{end}\n{clean}\n{end}\n".encode("utf-8", "replace"))


class Summary:
    """GITHUB_STEP_SUMMARY: Markdown on the run's page."""

    def __init__(self, path: Path | None, limit: int = LARGEST_SUMMARY) -> None:
        self._path, self._limit = path, limit

    def write(self, markdown: str) -> None:
        """Add Markdown; what would not fit is cut between two lines, since too much would be taken as nothing."""
        _append(self._path, _fitting(markdown, self._limit - _size(self._path)))

    def replace(self, markdown: str) -> None:
        """Write Markdown in the place of what is there; at no time is there nothing."""
        if self._path is None:
            return
        with open(_open(self._path, os.O_WRONLY | os.O_CREAT), "wb") as file:
            file.write(_fitting(markdown, self._limit))
            file.truncate()


def empty(paths: Iterable[Path]) -> None:
    """Forget what others wrote for the runner in this step's name: a session may have found the files."""
    for path in paths:
        with suppress(OSError):
            handle = _open(path, os.O_WRONLY)
            try:
                os.ftruncate(handle, 0)
            finally:
                os.close(handle)


def _fitting(markdown: str, room: int) -> bytes:
    data = (markdown.rstrip("\n") + "\n").encode("utf-8", "replace")
    if len(data) <= room:
        return data
    kept = data[: max(0, room - len(CUT.encode()))].rpartition(b"\n")[0]
    return kept + CUT.encode() if kept else b""


def _append(path: Path | None, data: bytes) -> None:
    if path is None:
        return
    with open(_open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb") as file:
        file.write(data)


def _open(path: Path, flags: int) -> int:
    """A plain file: no link that leads elsewhere, no pipe that waits for a reader."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is no plain file")
    return handle


def _size(path: Path | None) -> int:
    with suppress(OSError):
        return path.stat().st_size if path else 0
    return 0
