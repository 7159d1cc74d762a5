"""All that a test command tells: output and reports in, tests and coverage out, read in a thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio
import anyio.to_thread

from zelda_ci.domain.test_run import CoverageSummary, TestSummary
from zelda_ci.process import OutputBuffer
from zelda_ci.redact import Redactor
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output

# Output and reports are bounded and read in linear time; this is for a machine that is hardly there.
MAX_SECONDS = 120.0

# Kinds of reports.
TESTS: Final = "test"
COVERAGE: Final = "coverage"


@dataclass(frozen=True)
class Findings:
    """What a test command's output and reports tell."""

    tests: TestSummary
    coverage: CoverageSummary


async def find(
    exit_code: int | None,
    printed: OutputBuffer,
    reports: Mapping[str, Sequence[ReportFile]],
    redact: Redactor,
    *,
    max_seconds: float = MAX_SECONDS,
) -> Findings:
    """Read the output of a test command and its reports. Where reading fails, the counts are unclear.

    Args:
        exit_code: Of the command.
        printed: Its output.
        reports: By kind, those that it wrote.
        redact: Through which names of tests become `SafeText`.
        max_seconds: For reading.
    """

    def read() -> Findings:
        output = Output(*printed.pieces())
        tests = read_tests(output, reports.get(TESTS, ()), exit_code, redact)
        return Findings(tests, read_coverage(output, reports.get(COVERAGE, ())))

    try:
        with anyio.fail_after(max_seconds):
            return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    except TimeoutError:
        problem = f"that took longer than {max_seconds:g} s"
    # Output may be hostile: whatever it does to a reader, the other suites go on.
    except Exception as error:  # noqa: BLE001
        problem = f"the reader broke off ({type(error).__name__})"
    told = f"its output could not be read: {problem}"
    return Findings(TestSummary(unclear=(redact(told),)), CoverageSummary(note=f"Of the tests, {told}."))
