"""Child processes: started with a complete environment, drained while they run, never left behind."""

import io
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import Process

from zelda_ci.redact import Redactor, SafeText, joined

# Takes a chunk of output; false means that enough was read and the process may be ended.
Sink = Callable[[bytes], bool]

CHUNK = 1 << 16
# Characters dropped on each side of a gap: longer than any secret that the gap could have cut in two.
SEAM = 8192
# From SIGTERM to SIGKILL: longer than the supervisor needs to end a whole run.
TERM_GRACE_SECONDS = 10.0
# How long output may still come after the end, from a grandchild that kept the pipe open.
DRAIN_SECONDS = 1.0
NOTHING: Mapping[str, str] = {}

# Status of a start, as a supervisor writes it into a file: its own process id, the word that the program has begun, the
# program's exit code, each once it is known. An exit code cannot tell: a program may end with any number, 125 included,
# and so may what should have confined it.
MAX_STATUS_BYTES = 200
STATUS = re.compile(rb"(?:([0-9]{1,9})\n)?(?:(begun)\n)?(?:ended ([0-9]{1,3})\n)?")


class OutputBuffer:
    """Head and tail of a stream of any length: all of it up to `max_bytes` and twice the seam."""

    def __init__(self, max_bytes: int) -> None:
        self.total, self._room = 0, max_bytes // 2 + SEAM
        self._head, self._tail = bytearray(), bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take all, keep the ends."""
        self.total += len(chunk)
        fitting = self._room - len(self._head)
        self._head += chunk[:fitting]
        self._tail += chunk[fitting:]
        # Cut only now and then: cutting for each chunk would copy the whole tail every time.
        if len(self._tail) > self._room + self._room // 2 + CHUNK:
            del self._tail[: -self._room]
        return True

    def pieces(self) -> tuple[bytes, ...]:
        """Return the whole stream, or its head and its tail."""
        head, tail = bytes(self._head), bytes(self._tail[-self._room :])
        return (head + tail,) if self.total <= 2 * self._room else (head, tail)

    def text(self, redact: Redactor, max_bytes: int) -> tuple[SafeText, bool]:
        """Return the masked text of the stream, and whether something of its middle is left out."""
        # At a gap, the edges go: they may hold half of a secret, which no mask knows.
        kept, half = b"".join(self.pieces()), max_bytes // 2 + SEAM
        if self.total <= min(2 * half, len(kept)):
            return redact(kept.decode("utf-8", "replace")), False
        gap = redact(f"[... {self.total} bytes in all, the middle is left out ...]")
        head = redact(kept[:half].decode("utf-8", "replace"))[:-SEAM]
        tail = redact(kept[-half:].decode("utf-8", "replace"))[SEAM:]
        return joined("\n", (redact(head), gap, redact(tail))), True


@dataclass(frozen=True)
class Captured:
    """A program's whole output. `truncated`: it was ended because it wrote more than allowed."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False


def answer(
    argv: Sequence[str], *, timeout_seconds: float, cwd: Path | None = None, environment: Mapping[str, str] = NOTHING
) -> Captured:
    """Run a short program of ours without input, outside any event loop; raises `TimeoutError` once it was killed."""
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True}
    try:
        outcome = subprocess.run(argv, cwd=cwd, env={**environment}, timeout=timeout_seconds, check=False, **options)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]} did not end in {timeout_seconds:.0f} s") from error
    return Captured(outcome.returncode, outcome.stdout, outcome.stderr)


async def run(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout_seconds: float, sink: Sink
) -> int | None:
    """Run a program without input, with both streams into one sink; returns its exit code, or None at the deadline."""
    async with _started(argv, cwd, environment, stderr=subprocess.STDOUT) as child:
        with anyio.move_on_after(timeout_seconds) as deadline:
            await _drain(child, sink)
    return None if deadline.cancelled_caught else child.returncode


async def capture(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float = 120.0,
    *,
    max_bytes: int = 64 << 20,
    input: bytes = b"",  # noqa: A002  # the standard library's word for it
    inherit: Sequence[int] = (),
    to: Path | None = None,
) -> Captured:
    """Run a program of ours and return all that it wrote, each stream up to `max_bytes`; raises as `answer`.

    Its standard output goes into the file `to` instead, where one is given. It keeps the descriptors `inherit` open,
    such as a lock that must stay held while it runs even if Zelda is killed.
    """
    sizes, streams = [0, 0], (io.BytesIO(), io.BytesIO())
    with ExitStack() as stack:
        files = (stack.enter_context(to.open("wb")) if to else streams[0], streams[1])

        def write(number: int, chunk: bytes) -> bool:
            files[number].write(chunk[: max_bytes - sizes[number]])
            sizes[number] += len(chunk)
            return sizes[number] <= max_bytes

        stdin: IO[bytes] | int = subprocess.DEVNULL
        if input:
            # A file, not a pipe, so that a program that does not read cannot block us. Without a name on disk, so that
            # nobody else can open it and nothing is left if Zelda is killed.
            stdin = stack.enter_context(tempfile.TemporaryFile())
            stdin.write(input)
            stdin.seek(0)
        async with _started(argv, cwd, environment, stdin=stdin, inherit=inherit) as child:
            with anyio.fail_after(timeout_seconds):
                await _drain(child, partial(write, 0), partial(write, 1))
    return Captured(child.returncode, streams[0].getvalue(), streams[1].getvalue(), max(sizes) > max_bytes)


@asynccontextmanager
async def conversing(argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> AsyncIterator[Process]:
    """Start a program of ours that answers as long as it is asked, and end it on leaving; raises `OSError`."""
    started = anyio.open_process(argv, cwd=cwd, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    async with await started as child:
        yield child


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
    """Start a child that is ended on leaving: asked first, then its whole process group killed."""
    # In a session of its own, so that a Ctrl+C at the terminal is ours alone to answer.
    options: dict[str, Any] = {"pass_fds": inherit, "start_new_session": True, "bufsize": 0, "stdout": subprocess.PIPE}
    # It takes a millisecond, and asyncio's own waits for grandchildren's pipes.
    with subprocess.Popen(argv, cwd=cwd, env={**environment}, stdin=stdin, stderr=stderr, **options) as child:  # noqa: ASYNC220
        try:
            yield child
        finally:
            with anyio.CancelScope(shield=True):
                _terminate(child)
                with anyio.move_on_after(TERM_GRACE_SECONDS):
                    await _exited(child)
                with suppress(ProcessLookupError, PermissionError):  # an empty group is what we want
                    os.killpg(child.pid, signal.SIGKILL)
                await _exited(child)
                # Reaped last: until then its process group cannot be anybody else's.
                child.wait()


def _terminate(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:  # not reaped yet, so the number is still this child's
        os.kill(child.pid, signal.SIGTERM)


async def _drain(child: subprocess.Popen[bytes], *sinks: Sink) -> None:
    """Read standard output and error to their end, each into its sink, then wait for the child."""
    failures = list[OSError]()

    async def read(pipe: int, sink: Sink) -> None:
        try:
            is_wanted = True
            while is_wanted:
                await anyio.wait_readable(pipe)
                if not (chunk := os.read(pipe, CHUNK)):
                    return
                is_wanted = sink(chunk)
        except OSError as error:
            failures.append(error)
        _terminate(child)

    async with anyio.create_task_group() as readers:
        for pipe, sink in zip(filter(None, (child.stdout, child.stderr)), sinks, strict=True):
            readers.start_soon(read, pipe.fileno(), sink)
        await _exited(child)
        # A grandchild may hold a pipe open for ever: once the child is gone, what is still unread gets a moment.
        readers.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
    if failures:
        raise failures[0]


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


@dataclass(frozen=True)
class Launch:
    """How far a start came; `exit_code` is the program's own, absent where the supervisor did not see its end."""

    begun: bool
    exit_code: int | None = None
    supervisor: int | None = None


@contextmanager
def followed(file: Path) -> Iterator[Callable[[], Launch]]:
    """Hold the file for the next start open, and yield its reader: an unconfined command can remove the file only."""
    file.unlink(missing_ok=True)
    with file.open("x+b", buffering=0) as opened:

        def read() -> Launch:
            opened.seek(0)
            supervisor, begun, code = STATUS.findall(opened.read(MAX_STATUS_BYTES) or b"")[0]
            return Launch(bool(begun), int(code) if code else None, int(supervisor) if supervisor else None)

        yield read
