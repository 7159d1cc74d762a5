"""Output is read whole, in a process of its own, and whatever happens to that process is no pass and no crash."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import suite
from tests.support.cases import for_each
from tests.unit.test_output.fixtures import Fixture, fixtures
from zelda_ci.domain.test_run import CommandResult
from zelda_ci.metrics.functional_correctness import CommandEvidence, weigh
from zelda_ci.process.spool import Spool, spooled
from zelda_ci.redact import Redactor, Secret
from zelda_ci.test_output import reader_process
from zelda_ci.test_output.reader_process import COVERAGE, TESTS, Findings, read_apart
from zelda_ci.test_output.reports import ReportFile

REDACT = Redactor()
SECRET = "correct horse battery staple"
# The process starts anew for each: a few of each kind, not all.
READ = [fixture for number, fixture in enumerate(fixtures()) if number % 40 == 0]
PYTEST = "============================= test session starts =============================\n\n"
SUMMARY = "======================== 1 failed, 5 passed in 0.02s =========================\n"


def result(exit_code: int = 1, output: str = "", gap: str | None = None) -> CommandResult:
    safe_gap = REDACT(gap) if gap else None
    return CommandResult(
        command=REDACT("make test"), exit_code=exit_code, seconds=1, output=REDACT(output), output_bytes=1, gap=safe_gap
    )


def read(
    output: bytes,
    *,
    exit_code: int = 1,
    reports: tuple[ReportFile, ...] = (),
    redact: Redactor = REDACT,
    **limits: float,
) -> Findings:
    async def main() -> Findings:
        with spooled(Path.cwd(), 64 << 20) as spool:
            assert spool
            for start in range(0, len(output), 1 << 16):
                spool.feed(output[start : start + (1 << 16)])
            given = {TESTS: reports, COVERAGE: reports}
            return await read_apart(result(exit_code), spool, given, redact, **limits)

    return anyio.run(main)


@for_each(READ)
def test_reading_apart_is_reading(fixture: Fixture) -> None:
    found = read(fixture.output, exit_code=fixture.exit_code, reports=fixture.reports)
    if not fixture.only_coverage:
        assert found.tests == fixture.summary


def test_numbers_in_the_middle_of_a_long_output_are_read() -> None:
    noise = b"log line of a talkative test\n" * 40_000
    found = read(PYTEST.encode() + noise + SUMMARY.encode() + noise)
    assert (found.tests.passed, found.tests.failed) == (5, 1)


def test_a_secret_in_the_name_of_a_test_is_masked_where_the_name_is_cut_too() -> None:
    cases = "".join(f'<testcase name="{name}"><failure/></testcase>' for name in (SECRET, "x" * 290 + SECRET))
    xml = f'<testsuite tests="2">{cases}</testsuite>'
    found = read(b"", reports=(ReportFile("junit.xml", xml.encode()),), redact=Redactor([Secret(SECRET)]))
    assert len(found.tests.failures) == 2
    assert not [word for word in SECRET.split() for text in found.tests.failures if word in text]


def test_a_text_of_the_output_cannot_stand_for_another() -> None:
    forged = "\x02" + "0" * 16 + ".0\x03"
    xml = f"<testsuite tests='1'><testcase name='a{forged[1:-1]}'><failure/></testcase></testsuite>"
    found = read(b"", reports=(ReportFile("junit.xml", xml.encode()),))
    assert found.tests.failures == (f"a{forged[1:-1]}",)


def test_reading_that_takes_too_long_is_ended_and_is_no_pass() -> None:
    started = time.monotonic()
    found = read((PYTEST + SUMMARY.replace("1 failed, ", "")).encode(), exit_code=0, max_seconds=0.01)
    assert time.monotonic() - started < 9
    check_unclear(found, "longer than 0.01 s")


def test_a_reader_that_breaks_off_is_no_pass(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as unreadable:
        spool = Spool(unreadable)
        spool.feed(b"===== 5 passed in 0.02s =====\n")
        found = anyio.run(read_apart, result(0), spool, {}, REDACT)
    check_unclear(found, "the reader broke off (OSError")


def check_unclear(found: Findings, reason: str) -> None:
    assert not found.tests.recognised
    assert reason in found.tests.unclear[0]
    assert reason in str(found.coverage.note)
    score, details = weigh(suite(test_command="make"), CommandEvidence(test=result(0), tests=found.tests))
    assert (score, details.passed) == (0, False)
    assert reason in details.shortfalls[0]


def test_where_the_disk_is_full_head_and_tail_are_read() -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        spool = Spool(full)
        assert spool.feed(b"x" * 100)
        assert spool.lost
        head, tail = PYTEST, SUMMARY
        short = anyio.run(read_apart, result(1, head + tail), spool, {}, REDACT)
        cut = anyio.run(read_apart, result(1, f"{head}[gap]\n{tail}", gap="[gap]"), spool, {}, REDACT)
    assert (short.tests.passed, short.tests.failed) == (5, 1)
    assert not cut.tests.recognised
    assert "too long" in str(cut.tests.note)


def test_without_a_folder_there_is_no_spool() -> None:
    with spooled(Path("/nowhere")) as spool:
        assert spool is None


def parts_of(spool: Spool) -> list[bytes]:
    return [b"".join(os.pread(spool.descriptor, end - start, start) for start, end in part) for part in spool.parts]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_a_spool_keeps_head_and_tail_of_any_stream(chunks: list[bytes]) -> None:
    stream = b"".join(chunks)
    with spooled(Path.cwd(), 64) as spool:
        assert spool
        for chunk in chunks:
            spool.feed(chunk)
        kept = parts_of(spool)
        assert os.fstat(spool.descriptor).st_size <= 64
    assert kept == ([stream] if len(stream) <= 64 else [stream[:32], stream[-32:]])


def test_nothing_is_left_of_a_spool_whose_process_was_killed(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, signal
from zelda_ci.process.spool import spooled
with spooled(pathlib.Path({str(tmp_path)!r})) as spool:
    spool.feed(b"x" * 1_000_000)
    print(os.fstat(spool.descriptor).st_size, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "1000000\n")
    assert list(tmp_path.iterdir()) == []


def readers_of(pid: int) -> list[Path]:
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and os.fsencode(reader_process.PROGRAM) in (process / "cmdline").read_bytes():
                parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[1]
                found += [process] if int(parent) == pid else []
    return found


def test_a_reader_ends_with_a_zelda_that_was_killed() -> None:
    """It would go on for half a minute: 30 MB in which every line looks like a summary."""
    line = b"12:00:01 INFO 3 passed something 5 failed logins\\n"
    words = f"from {__name__} import read; read(b'{line.decode()}' * 600_000)"
    asking = subprocess.Popen([sys.executable, "-c", words], cwd=Path(__file__).parents[3])
    try:
        while not (readers := readers_of(asking.pid)):
            assert asking.poll() is None
            time.sleep(0.05)
    finally:
        asking.kill()
        asking.wait()
    killed = time.monotonic()
    while any((reader / "exe").exists() for reader in readers):
        assert time.monotonic() - killed < 10
        time.sleep(0.05)


@pytest.mark.parametrize("share", [-0.5, 101.0])
def test_a_share_that_cannot_be_one_is_not_known(share: float) -> None:
    said = [{"tests": {}, "texts": [], "nonce": "0"}, {"coverage": {"format": "gcov", "lines": share}}]
    answer = b"".join(json.dumps(line).encode() + b"\n" for line in said)
    _, coverage = reader_process._understood(answer, REDACT)
    assert coverage
    assert (coverage.lines, "cannot be" in str(coverage.note)) == (None, True)


@pytest.mark.parametrize("count", [-3, 10**30])
def test_counts_that_cannot_be_counts_are_unclear(count: int) -> None:
    runner = {"format": "pytest", "source": "summary", "passed": count}
    answer = json.dumps({"tests": {"runners": [runner]}, "texts": [], "nonce": "0"}).encode() + b"\n"
    with pytest.raises(ValueError, match="negative or absurd"):
        reader_process._understood(answer, REDACT)
