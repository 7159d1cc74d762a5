"""Standard output and error as commands write to them: a reader that leaves, or a full disk, ends no command."""

import errno
import io
import os
import select
import sys
from typing import Any

LEFT = {errno.EPIPE, errno.ECONNRESET}
"""What writing means where the reader (head, less) has gone: nothing is wrong, and nothing more can be said."""


class Output(io.FileIO):
    """A descriptor that takes everything: what can no longer be written is dropped, and the first failure kept.

    Writing must not raise: between any two lines a command may hold what was paid for, and its exit code is the one of
    its work. So a BrokenPipeError that anybody sees is of another pipe or socket.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None
        """Why nothing is written any more; absent also where it is only that nobody reads."""
        self._silent = False

    def write(self, data: Any) -> int:
        """Write, waiting where a program that shares the descriptor made it return at once."""
        size = memoryview(data).nbytes
        if self._silent:
            return size
        try:
            while (written := super().write(data)) is None:
                select.select([], [self], [])
        except OSError as exc:
            self._silent = True
            self.failure = None if exc.errno in LEFT else exc
            return size
        return written


def take_over() -> Output | None:
    """Put such streams in the place of Python's own; returns standard output's, absent where another stands there."""
    for number in range(3):
        _keep_open(number)
    output, sys.stdout = _replaced(sys.stdout, 1)
    _, sys.stderr = _replaced(sys.stderr, 2)
    return output


def _keep_open(number: int) -> None:
    """A closed one would become the next file that is opened, and what is printed would be written there."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _replaced(stream: Any, number: int) -> tuple[Output | None, Any]:
    """Python has no stream where the descriptor was closed; one that is not of the descriptor is somebody's own."""
    try:
        own = stream is None or (isinstance(stream, io.TextIOWrapper) and stream.fileno() == number)
    except (OSError, ValueError):
        own = False
    if not own:
        return None, stream
    output = Output(number)
    # What a terminal's encoding cannot show becomes a question mark instead of an end.
    text = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=stream.encoding if stream else "utf-8",
        errors="replace",
        line_buffering=stream.line_buffering if stream else False,
        write_through=stream.write_through if stream else False,
    )
    return output, text
