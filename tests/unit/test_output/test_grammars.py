"""Closing summaries that no sample in `tests/data` shows: passed, failed, errored and skipped."""

from tests.support.cases import for_each
from tests.unit.test_output.fixtures import read

SUMMARIES: dict[str, tuple[str, tuple[int, int, int, int]]] = {
    "XCTest": (
        "Test Suite 'All tests' started at 2026-01-01 10:00:00.000.\nTest Case '-[T b]' failed (0.1 seconds).\nTest Suite 'T' failed at 2026.\n"
        "\t Executed 3 tests, with 1 failure (0 unexpected) in 0.002 (0.003) seconds\nTest Suite 'All tests' failed at 2026.\n"
        "\t Executed 3 tests, with 1 failure (0 unexpected) in 0.002 (0.003) seconds",
        (2, 1, 0, 0),
    ),
    "Swift Testing, with more failed assertions than tests": (
        "\u25c7 Test run started.\n\u2718 Test a() failed after 0.1 seconds with 5 issues.\n"
        "\u2718 Test run with 3 tests failed after 0.1 seconds with 5 issues.",
        (2, 1, 0, 0),
    ),
    "PHPUnit, with remarks": (
        "PHPUnit 11.0.0 by Sebastian Bergmann and contributors.\n\n...\n\nOK, but there were issues!\n"
        "Tests: 3, Assertions: 3, PHPUnit Warnings: 1, PHPUnit Deprecations: 2, Skipped: 1.",
        (2, 0, 0, 1),
    ),
    ".NET, two assemblies and their total": (
        "  Failed T.A [10 ms]\nFailed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 10 ms - a.dll\n"
        "  Failed T.B [10 ms]\nFailed!  - Failed:     1, Passed:     0, Skipped:     0, Total:     1, Duration: 10 ms - b.dll\n"
        "Test summary: total: 5, failed: 2, succeeded: 2, skipped: 1, duration: 1s",
        (2, 2, 0, 1),
    ),
}


STAMPS = (
    "2026-01-01T10:00:00.1234567Z ",
    "[2026-01-01 10:00:00] ",
    "test\tRun tests\t2026-01-01T10:00:00Z ",
    "#12 1.234 ",
)


@for_each(SUMMARIES)
def test_a_closing_summary_is_read_as_its_runner_means_it_whatever_a_log_puts_around_it(name: str) -> None:
    text, wanted = SUMMARIES[name]
    stamped = ["".join(f"{stamp}{line}\n" for line in text.split("\n")) for stamp in STAMPS]
    for around in (text, f"some log\n{text}\n", f"compiling\n\n{text}\n\nnpm ERR! code 1\nDone.\n", *stamped):
        summary = read(around, exit_code=1)
        found = [(one.passed, one.failed, one.errored, one.skipped) for one in summary.runners]
        assert found == [wanted], (around, {it.format for it in summary.runners}, summary.unclear)


def test_a_failing_test_is_named_with_its_own_run() -> None:
    runs = [
        f"Finished in 0.01 seconds\n3 examples, 1 failure\n\nFailed examples:\n\nrspec ./a_spec.rb:3 # {name}\n"
        for name in ("first", "second")
    ]
    found = read("\n".join(runs), exit_code=1)
    assert [runner.failures for runner in found.runners] == [("first",), ("second",)]
