"""Child processes: started with a complete environment, drained while they run, never left behind."""

import io
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from zelda_ci.redact import Redactor, SafeText, joined

# Takes a chunk of output; false means that enough was read and the process may be ended.
Sink = Callable[[bytes], bool]

CHUNK = 1 << 16

# Characters dropped on each side of a gap: longer than any secret that the gap could have cut in two.
SEAM = 8192


class Limited:
    """A file that takes bytes up to a limit."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.written = 0
        self.truncated = False
        self._file = file
        self._limit = limit

    def feed(self, chunk: bytes) -> bool:
        """Take what fits; false once that is not all."""
        fitting = chunk[: self._limit - self.written]
        self._file.write(fitting)
        self.written += len(fitting)
        self.truncated = self.truncated or len(fitting) < len(chunk)
        return not self.truncated


class Ends:
    """Head and tail of a stream of any length."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._room = keep // 2 + SEAM
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def truncated(self) -> bool:
        """Whether something of the middle is missing."""
        return self.total > 2 * self._room

    def feed(self, chunk: bytes) -> bool:
        """Take all, keep the ends."""
        self.total += len(chunk)
        fitting = self._room - len(self._head)
        self._head += chunk[:fitting]
        self._tail += chunk[fitting:]
        # Cut only now and then: cutting for each chunk would copy the whole tail every time.
        if len(self._tail) > 2 * self._room + CHUNK:
            del self._tail[: -self._room]
        return True

    def gap(self, redact: Redactor) -> SafeText | None:
        """The line that stands for what was not kept; none where nothing is missing."""
        return redact(f"[... {self.total} bytes in all, the middle is left out ...]") if self.truncated else None

    def text(self, redact: Redactor) -> SafeText:
        """What was kept. Where there is a gap, its edges go: they may hold half of a secret, which no mask knows."""
        gap = self.gap(redact)
        if gap is None:
            return redact((self._head + self._tail).decode("utf-8", "replace"))
        head = redact(self._head.decode("utf-8", "replace"))[:-SEAM]
        tail = redact(self._tail[-self._room :].decode("utf-8", "replace"))[SEAM:]
        return joined("\n", (redact(head), gap, redact(tail)))


# From SIGTERM to SIGKILL: longer than the supervisor needs to end a whole run.
TERM_GRACE_SECONDS = 10.0

# How long output may still come after the end, from a grandchild that kept the pipe open.
DRAIN_SECONDS = 1.0

# More than this a pipe of Linux never holds, unless an administrator allows it.
MAX_PIPE_BYTES = 1 << 20

# Bytes on standard error after which a program of ours is ended.
MAX_ERRORS = 16 << 20


@dataclass(frozen=True)
class Completed:
    """A program that ran to its end or its deadline.

    `exit_code` is negative where a signal ended it, and absent where the deadline or an interruption did. `output` is
    head and tail of both streams, as they came; `gap` is the line in it that stands for what is missing.
    """

    exit_code: int | None
    timed_out: bool
    seconds: float
    output: SafeText
    output_bytes: int
    truncated: bool
    gap: SafeText | None = None


@dataclass(frozen=True)
class Captured:
    """A program's whole output. `truncated`: it was ended because it wrote more than allowed."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False


@dataclass(frozen=True)
class Streamed:
    """A program whose standard output went into a file of `written` bytes; `truncated` as in `Captured`."""

    exit_code: int
    stderr: bytes
    written: int
    truncated: bool


def answer(
    argv: Sequence[str],
    *,
    timeout_seconds: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Captured:
    """Run a short program of ours without input, outside any event loop, and return what it said.

    Raises:
        OSError: It could not be started.
        TimeoutError: It did not end in time; it is dead then.
    """
    try:
        outcome = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
            cwd=cwd,
            env=dict(environment or {}),
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]} did not end in {timeout_seconds:.0f} s") from error
    return Captured(outcome.returncode, outcome.stdout, outcome.stderr)


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    redact: Redactor,
    keep_bytes: int = 200_000,
    spool: Sink | None = None,
    when_cut_short: Callable[[Completed], None] | None = None,
) -> Completed:
    """Run a program without input, keeping head and tail of what it prints however much that is.

    Whoever wants all of it passes a `spool`. Who is cancelled gets no answer: `when_cut_short` is told what was printed
    until then.

    Raises:
        OSError: It could not be started.
    """
    ends = Ends(keep_bytes)
    started = time.monotonic()

    def take(chunk: bytes) -> bool:
        return ends.feed(chunk) and (spool is None or spool(chunk))

    def completed(exit_code: int | None, *, timed_out: bool = False) -> Completed:
        seconds = time.monotonic() - started
        return Completed(exit_code, timed_out, seconds, ends.text(redact), ends.total, ends.truncated, ends.gap(redact))

    try:
        async with _started(argv, cwd, environment, stderr=subprocess.STDOUT) as child:
            with anyio.move_on_after(timeout_seconds) as deadline:
                await _drain(child, take)
    except anyio.get_cancelled_exc_class():
        if when_cut_short:
            when_cut_short(completed(None))
        raise
    timed_out = deadline.cancelled_caught
    # Masking what was printed may take a while, and others stream meanwhile.
    ended = partial(completed, None if timed_out else child.returncode, timed_out=timed_out)
    return await anyio.to_thread.run_sync(ended)


async def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    input: bytes | None = None,  # noqa: A002  # the standard library's word for it
    timeout_seconds: float = 120.0,
    max_bytes: int = 64 << 20,
    inherit: Sequence[int] = (),
) -> Captured:
    """Run a program of ours and return all that it wrote, each stream up to `max_bytes`.

    It keeps the descriptors `inherit` open, such as a lock that must stay held while it runs even if Zelda is killed.

    Raises:
        OSError: It could not be started.
        TimeoutError: It did not end in time; it is dead then.
    """
    stdout, stderr = io.BytesIO(), io.BytesIO()
    sinks = Limited(stdout, max_bytes), Limited(stderr, max_bytes)
    with _input(input) as stdin:
        async with _started(argv, cwd, environment, stdin=stdin, inherit=inherit) as child:
            with anyio.fail_after(timeout_seconds):
                await _drain(child, *(sink.feed for sink in sinks))
    return Captured(child.returncode, stdout.getvalue(), stderr.getvalue(), any(sink.truncated for sink in sinks))


async def stream(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    to: Path,
    timeout_seconds: float,
    max_bytes: int,
) -> Streamed:
    """Run a program with its standard output going into a file, of at most `max_bytes`.

    Raises:
        OSError: It could not be started, or the file not be written.
        TimeoutError: It did not end in time; it is dead then.
    """
    stderr = io.BytesIO()
    with to.open("wb") as file:
        into, errors = Limited(file, max_bytes), Limited(stderr, MAX_ERRORS)
        async with _started(argv, cwd, environment) as child:
            with anyio.fail_after(timeout_seconds):
                await _drain(child, into.feed, errors.feed)
    return Streamed(child.returncode, stderr.getvalue(), into.written, into.truncated)


def _input(data: bytes | None) -> IO[bytes]:
    # A file, not a pipe, so that a program that does not read cannot block us.
    # Without a name on disk, so that nobody else can open it and nothing is left if Zelda is killed.
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(data or b"")
    file.seek(0)
    return file


@asynccontextmanager
async def _started(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stderr: int = subprocess.PIPE,
    inherit: Sequence[int] = (),
) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A child that is ended on leaving."""
    # In a session of its own, so that a Ctrl+C at the terminal is ours alone to answer.
    with subprocess.Popen(  # noqa: ASYNC220  # takes a millisecond, and asyncio's own waits for grandchildren's pipes
        argv,
        cwd=cwd,
        env=dict(environment or {}),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        pass_fds=inherit,
        start_new_session=True,
        bufsize=0,
    ) as child:
        try:
            yield child
        finally:
            with anyio.CancelScope(shield=True):
                await _end(child)


async def _end(child: subprocess.Popen[bytes]) -> None:
    """Make sure that the child is gone: asked first, then its whole process group killed."""
    _ask(child)
    with anyio.move_on_after(TERM_GRACE_SECONDS):
        await _exited(child)
    with suppress(ProcessLookupError, PermissionError):  # an empty group is what we want
        os.killpg(child.pid, signal.SIGKILL)
    await _exited(child)
    # Reaped last: until then its process group cannot be anybody else's.
    child.wait()


def _ask(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:  # not reaped yet, so the number is still this child's
        os.kill(child.pid, signal.SIGTERM)


async def _drain(child: subprocess.Popen[bytes], *sinks: Sink) -> None:
    """Read standard output and error to their end, each into its sink, then wait for the child."""
    failures: list[OSError] = []

    async def read(pipe: IO[bytes], sink: Sink) -> None:
        try:
            complete = await _read(pipe.fileno(), sink)
        except OSError as error:
            failures.append(error)
            complete = False
        if not complete:
            _ask(child)

    pipes = list(zip(filter(None, (child.stdout, child.stderr)), sinks, strict=True))
    try:
        async with anyio.create_task_group() as readers:
            for pipe, sink in pipes:
                readers.start_soon(read, pipe, sink)
            await _exited(child)
            # A grandchild may hold a pipe open for ever: once the child is gone, what is still unread gets a moment.
            readers.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
    except anyio.get_cancelled_exc_class():
        # A busy machine may not have read yet what the child printed long ago.
        for pipe, sink in pipes:
            _take_rest(pipe.fileno(), sink)
        raise
    if failures:
        raise failures[0]


async def _read(pipe: int, sink: Sink) -> bool:
    """Feed the sink until the pipe ends (true) or the sink has enough (false)."""
    os.set_blocking(pipe, False)
    while True:
        await anyio.wait_readable(pipe)
        with suppress(BlockingIOError):
            chunk = os.read(pipe, CHUNK)
            if not chunk:
                return True
            if not sink(chunk):
                return False


def _take_rest(pipe: int, sink: Sink) -> None:
    """Feed the sink what the pipe holds now; a child that goes on printing is not waited for."""
    os.set_blocking(pipe, False)
    with suppress(OSError):
        for _ in range(MAX_PIPE_BYTES // CHUNK):
            chunk = os.read(pipe, CHUNK)
            if not chunk or not sink(chunk):
                return


async def _exited(child: subprocess.Popen[bytes]) -> None:
    """Wait for the child itself, not for whoever inherited its pipes. Not reaped, where the system can do that."""
    try:
        # It becomes readable when the process ends, without reaping it, so its number stays taken.
        descriptor = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # another system, or an old kernel
        while child.poll() is None:  # noqa: ASYNC110  # there is no event to wait for
            await anyio.sleep(0.01)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
