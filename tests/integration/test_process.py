"""Child processes: what is kept of their output, and that they end."""

import os
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.claude_sessions import with_more_time
from tests.support.patience import PATIENCE
from tests.support.projects import is_running, wait_until
from zelda_ci import process
from zelda_ci.redact import Redactor, Secret

ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
REDACT = Redactor([Secret("hunter2hunter2")])


@dataclass(frozen=True)
class Done:
    """How a program ended, and what is shown of its output."""

    exit_code: int | None
    output: str
    truncated: bool
    output_bytes: int


def run(*argv: str, timeout: float = 60, keep: int = 200_000, cwd: Path = Path("/")) -> Done:
    buffer = process.OutputBuffer(keep)

    async def main() -> int | None:
        return await process.run(argv, cwd=cwd, environment=ENVIRONMENT, timeout_seconds=timeout, sink=buffer.feed)

    return Done(anyio.run(main), *buffer.text(REDACT, keep), buffer.total)


def shell(line: str, **options: float) -> Done:
    return run("sh", "-c", line, **options)  # type: ignore[arg-type]  # numbers only


def capture(*argv: str, stdin: bytes = b"", max_bytes: int = 1 << 20, timeout: float = 60) -> process.Captured:
    async def main() -> process.Captured:
        return await process.capture(
            argv,
            cwd=Path("/"),
            environment=ENVIRONMENT,
            input=stdin,
            max_bytes=max_bytes,
            timeout_seconds=timeout,
        )

    return anyio.run(main)


def capture_into(target: Path, *argv: str, max_bytes: int = 1 << 20) -> tuple[process.Captured, bytes]:
    async def main() -> process.Captured:
        return await process.capture(argv, cwd=Path("/"), environment=ENVIRONMENT, to=target, max_bytes=max_bytes)

    return anyio.run(main), target.read_bytes()


def test_both_streams_and_the_exit_code_are_reported() -> None:
    done = shell(r"cat; echo out; printf 'a\377b\n' >&2; exit 3")
    assert (done.exit_code, done.output, done.output_bytes) == (3, "out\na\N{REPLACEMENT CHARACTER}b\n", 8)
    assert not done.truncated
    assert shell("kill -9 $$").exit_code == -9


def test_the_environment_is_exactly_the_one_given() -> None:
    assert sorted(run("env").output.split()) == sorted(f"{name}={value}" for name, value in ENVIRONMENT.items())


def test_a_deadline_ends_the_program_and_keeps_what_it_said(tmp_path: Path) -> None:
    def ends(place: Path, limit: int) -> bool:
        place.mkdir()
        done = shell(f"echo $$ > {place}/pid; echo before; sleep 1000; echo after", timeout=limit)
        assert done.exit_code is None
        return done.output == "before\n" and not Path("/proc", (place / "pid").read_text().strip()).exists()

    with_more_time(ends, tmp_path, 1, 60)


def test_a_long_output_keeps_its_head_and_its_tail_and_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        done = shell("echo first; yes | head -c 60000000; echo last")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.output.startswith("first\ny\n")
    assert done.output.endswith("y\nlast\n")
    assert "60000011 bytes in all" in done.output
    assert (done.output_bytes, done.truncated) == (60_000_011, True)
    assert len(done.output) < 220_000
    assert peak < 15_000_000


@pytest.mark.parametrize("size", [0, 36_383, 36_384, 36_385, 50_000])
def test_output_is_whole_up_to_the_limit_and_counted_beyond_it(size: int) -> None:
    done = shell(f"yes 123456789 | head -c {size}", keep=20_000)
    whole = ("123456789\n" * (size // 10 + 1))[:size]
    assert done.output_bytes == size
    assert done.truncated == (done.output != whole)
    assert done.truncated == (size > 36_384)


def test_secrets_are_masked_also_where_the_output_was_cut() -> None:
    done = shell("for n in 1 2 3; do yes hunter2hunter2 | head -c 100003; echo; done", keep=20_000)
    assert done.truncated
    assert "hunter" not in done.output
    assert "ter2" not in done.output


def test_a_grandchild_that_keeps_the_pipe_open_holds_nobody_up() -> None:
    done = shell("sleep 100 & echo done", timeout=50)
    assert (done.exit_code, done.output) == (0, "done\n")


def test_cancelling_ends_the_process_group_and_keeps_what_was_printed_until_then(tmp_path: Path) -> None:
    buffer = process.OutputBuffer(1000)
    line = f"sleep 100 & echo $! > {tmp_path}/pid; echo hunter2hunter2; echo more; wait"

    async def printing() -> None:
        argv = ["sh", "-c", line]
        await process.run(argv, cwd=Path("/"), environment=ENVIRONMENT, timeout_seconds=PATIENCE, sink=buffer.feed)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(printing)
            while buffer.total < len("hunter2hunter2\nmore\n"):  # noqa: ASYNC110  # a sink sets no event
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(main)
    assert buffer.text(REDACT, 1000) == ("***\nmore\n", False)
    pid = (tmp_path / "pid").read_text().strip()
    wait_until(lambda: not is_running(pid))


def test_capturing_passes_input_and_separates_the_streams() -> None:
    done = capture("sh", "-c", "cat; echo err >&2; exit 4", stdin=b"\x00\xff" * 300_000)
    assert done == process.Captured(4, b"\x00\xff" * 300_000, b"err\n")


def test_capturing_stops_a_program_that_writes_too_much_or_takes_too_long() -> None:
    done = capture("yes", stdin=b"x" * 5_000_000, max_bytes=1000)
    assert (len(done.stdout), done.truncated) == (1000, True)
    with pytest.raises(TimeoutError):
        capture("sleep", "100", timeout=0.2)


def test_an_inherited_lock_stays_open_in_the_child(tmp_path: Path) -> None:
    async def main(number: int) -> process.Captured:
        line = ["sh", "-c", f"readlink /proc/self/fd/{number} || readlink /dev/fd/{number}"]
        return await process.capture(line, cwd=tmp_path, environment=ENVIRONMENT, inherit=(number,))

    with (tmp_path / "lock").open("w") as file:
        assert anyio.run(main, file.fileno()).exit_code == 0


def test_capturing_into_a_file_writes_it_up_to_its_limit(tmp_path: Path) -> None:
    done, written = capture_into(tmp_path / "out", "sh", "-c", "echo data; echo warning >&2")
    assert (done, written) == (process.Captured(0, b"", b"warning\n"), b"data\n")
    done, written = capture_into(tmp_path / "out", "cat", "/dev/zero", max_bytes=100_000)
    assert (done.truncated, done.stdout, len(written)) == (True, b"", 100_000)
    with pytest.raises(OSError, match="No space left"):
        capture_into(Path("/dev/full"), "cat", "/dev/zero")


@given(st.lists(st.binary(max_size=9000), max_size=8), st.integers(0, 40_000))
def test_a_buffer_keeps_head_and_tail_of_any_stream_and_shows_less_of_it(chunks: list[bytes], shown: int) -> None:
    stream, buffer = b"".join(chunks), process.OutputBuffer(2 * 9000)
    for chunk in chunks:
        buffer.feed(chunk)
    room = 9000 + process.SEAM
    assert buffer.pieces() == ((stream,) if len(stream) <= 2 * room else (stream[:room], stream[-room:]))
    text, truncated = buffer.text(Redactor(), min(shown, 18_000))
    assert truncated == (len(stream) > 2 * (min(shown, 18_000) // 2 + process.SEAM))
    assert truncated == (f"{len(stream)} bytes in all" in text)
