"""Output is read whole, and whatever it does to a reader is no pass and no crash."""

from pathlib import Path

import anyio
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import suite
from tests.unit.test_output.fixtures import fixtures
from zelda_ci.domain.test_run import CommandResult
from zelda_ci.metrics.functional_correctness import CommandEvidence, weigh
from zelda_ci.process.spool import Spool, spooled
from zelda_ci.redact import Redactor, Secret
from zelda_ci.test_output.findings import COVERAGE, TESTS, Findings, find
from zelda_ci.test_output.reports import ReportFile

REDACT = Redactor()
SECRET = "correct horse battery staple"
PYTEST = "============================= test session starts =============================\n\n"
SUMMARY = "======================== 1 failed, 5 passed in 0.02s =========================\n"


def result(exit_code: int = 1, output: str = "") -> CommandResult:
    return CommandResult(
        command=REDACT("make test"), exit_code=exit_code, seconds=1, output=REDACT(output), output_bytes=1
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
            spool.feed(output)
            given = {TESTS: reports, COVERAGE: reports}
            return await find(result(exit_code), spool, given, redact, **limits)

    return anyio.run(main)


def test_what_is_found_is_what_is_read_and_so_is_the_middle_of_a_long_output() -> None:
    fixture = next(fixture for fixture in fixtures() if fixture.reports and not fixture.only_coverage)
    found = read(fixture.output, exit_code=fixture.exit_code, reports=fixture.reports)
    assert found.tests == fixture.summary
    noise = b"log line of a talkative test\n" * 40_000
    found = read(PYTEST.encode() + noise + SUMMARY.encode() + noise)
    assert (found.tests.passed, found.tests.failed) == (5, 1)


def test_a_secret_in_the_name_of_a_test_is_masked_where_the_name_is_cut_too() -> None:
    cases = "".join(f'<testcase name="{name}"><failure/></testcase>' for name in (SECRET, "x" * 290 + SECRET))
    xml = f'<testsuite tests="2">{cases}</testsuite>'
    found = read(b"", reports=(ReportFile("junit.xml", xml.encode()),), redact=Redactor([Secret(SECRET)]))
    assert len(found.tests.failures) == 2
    assert not [word for word in SECRET.split() for text in found.tests.failures if word in text]


def test_a_reader_that_takes_too_long_or_breaks_off_is_no_pass(tmp_path: Path) -> None:
    late = read((PYTEST + SUMMARY.replace("1 failed, ", "")).encode(), exit_code=0, max_seconds=0)
    with (tmp_path / "file").open("wb") as unreadable:
        spool = Spool(unreadable)
        spool.feed(b"===== 5 passed in 0.02s =====\n")
        broken = anyio.run(find, result(0), spool, {}, REDACT)
    for found, reason in ((late, "longer than 0 s"), (broken, "the reader broke off (OSError")):
        assert reason in found.tests.unclear[0]
        assert reason in str(found.coverage.note)
        score, details = weigh(suite(test_command="make"), CommandEvidence(test=result(0), tests=found.tests))
        assert (score, details.passed) == (0, False)
        assert reason in details.shortfalls[0]


def test_where_the_disk_is_full_what_was_kept_is_read() -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        spool = Spool(full)
        assert spool.feed(b"x" * 100)
        assert spool.lost
        short = anyio.run(find, result(1, PYTEST + SUMMARY), spool, {}, REDACT)
    assert (short.tests.passed, short.tests.failed) == (5, 1)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_a_spool_keeps_head_and_tail_of_any_stream(chunks: list[bytes]) -> None:
    stream = b"".join(chunks)
    with spooled(Path.cwd(), 64) as spool:
        assert spool
        for chunk in chunks:
            spool.feed(chunk)
        kept = spool.contents()
    assert kept == ([stream] if len(stream) <= 64 else [stream[:32], stream[-32:]])
