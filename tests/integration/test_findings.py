"""Output is read whole, and whatever it does to a reader is no pass and no crash."""

import anyio

from tests.builders import suite
from tests.unit.test_output.fixtures import fixtures
from zelda_ci.domain.details import CommandResult
from zelda_ci.metrics.functional_correctness import CommandEvidence, weigh
from zelda_ci.process import OutputBuffer
from zelda_ci.redact import Redactor, Secret
from zelda_ci.test_output.reading import COVERAGE, TESTS, Findings, find
from zelda_ci.test_output.reports import ReportFile

REDACT = Redactor()
SECRET = "correct horse battery staple"
PYTEST = "============================= test session starts =============================\n\n"
SUMMARY = "======================== 1 failed, 5 passed in 0.02s =========================\n"


def result(exit_code: int = 1) -> CommandResult:
    return CommandResult(command=REDACT("make test"), exit_code=exit_code, seconds=1, output=REDACT(""), output_bytes=1)


def read(
    output: bytes,
    *,
    exit_code: int = 1,
    reports: tuple[ReportFile, ...] = (),
    redact: Redactor = REDACT,
    **limits: float,
) -> Findings:
    printed = OutputBuffer(64 << 20)
    printed.feed(output)
    given = {TESTS: reports, COVERAGE: reports}

    async def main() -> Findings:
        return await find(exit_code, printed, given, redact, **limits)

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


class Broken(OutputBuffer):
    def pieces(self) -> tuple[bytes, ...]:
        raise OSError("it breaks off")


def test_a_reader_that_takes_too_long_or_breaks_off_is_no_pass() -> None:
    late = read((PYTEST + SUMMARY.replace("1 failed, ", "")).encode(), exit_code=0, max_seconds=0)
    broken = anyio.run(find, 0, Broken(0), {}, REDACT)
    for found, reason in ((late, "longer than 0 s"), (broken, "the reader broke off (OSError")):
        assert reason in found.tests.unclear[0]
        assert reason in str(found.coverage.note)
        score, details = weigh(suite(test_command="make"), CommandEvidence(test=result(0), tests=found.tests))
        assert (score, details.passed) == (0, False)
        assert reason in details.shortfalls[0]
