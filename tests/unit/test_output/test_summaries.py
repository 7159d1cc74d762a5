"""What the numbers say together: contradictions, zero tests, retries and logs that imitate a summary."""

import pytest

from tests.unit.test_output.fixtures import REDACT, read
from zelda_ci.domain.details import RunnerCounts, TestSummary
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.reading import contradictions, read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output


def summary(**counts: int) -> TestSummary:
    return TestSummary(runners=(RunnerCounts.model_validate({"format": "pytest", "source": "summary", **counts}),))


@pytest.mark.parametrize(
    ("counts", "exit_code", "sentence"),
    [
        ({"passed": 12}, 1, "The command failed (exit code 1) though 12 of 12 tests passed."),
        ({"passed": 11, "failed": 1}, 0, "The command succeeded (exit code 0) though 1 of 12 tests did not pass."),
        ({"skipped": 4}, 0, "The command succeeded (exit code 0) though it ran no test."),
        ({"passed": 3}, 0, None),
        ({"passed": 3, "failed": 1}, 1, None),
        ({"passed": 3, "errored": 1}, 2, None),
        ({"passed": 3}, None, None),
        ({}, 5, None),
    ],
)
def test_an_exit_code_that_does_not_fit_the_numbers_is_told(counts, exit_code, sentence) -> None:
    assert contradictions(summary(**counts), exit_code) == ((sentence,) if sentence else ())


PYTEST = "=== test session starts ===\ncollected {n} items\n\n{log}\na.py . [100%]\n\n=== {n} passed in 0.1s ===\n"


@pytest.mark.parametrize(
    "log",
    [
        "=== 9 failed, 1 passed in 0.2s ===",
        "9 failed, 1 passed in 0.2s",
        "[worker] 9 failed, 1 passed in 0.2s",
        "Tests:       9 failed, 1 passed, 10 total",
        "Ran 12 tests in 0.1s\n\nFAILED (failures=3)",
        "test result: FAILED. 3 passed; 9 failed; 0 ignored; 0 measured; 0 filtered out",
        "not ok 3 - imaginary",
        "  7 passing (3ms)\n  2 failing",
        "[  FAILED  ] 12 tests, listed below:",
        "4 tests, 1 failure",
    ],
)
def test_a_log_that_looks_like_a_summary_before_the_real_one_is_not_counted(log: str) -> None:
    found = read(PYTEST.format(n=3, log=log))
    assert [it.format for it in found.runners] == ["pytest"]
    assert (found.passed, found.failed) == (3, 0)


def test_interleaved_sessions_of_the_same_runner_are_both_counted() -> None:
    woven = (
        "=== test session starts ===\ncollected 2 items\n=== test session starts ===\ncollected 5 items\n"
        "=== 5 passed in 0.1s ===\n=== 1 failed, 1 passed in 0.3s ===\n"
    )
    found = read(woven, exit_code=1)
    assert sorted(runner.total for runner in found.runners) == [2, 5]


@pytest.mark.parametrize("text", ["coverage matters", "Coverage: 85%", "Coverage: nan%", "done 85%", ""])
def test_what_is_no_coverage_is_none(text: str) -> None:
    found = read_coverage(Output(text), ())
    assert found.lines is None
    assert "coverageReport" in str(found.note)


JACOCO = (
    '<!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd"><report name="x">'
    '<counter type="BRANCH" missed="1" covered="3"/><counter type="LINE" missed="{}" covered="{}"/></report>'
)


def test_coverage_of_several_modules_is_added_up_by_lines() -> None:
    reports = [ReportFile(f"{name}/jacoco.xml", JACOCO.format(*numbers).encode()) for name, numbers in
               {"one": (0, 10), "two": (90, 0)}.items()]  # fmt: skip
    found = read_coverage(Output(""), reports)
    assert (found.lines, found.branches, found.format) == (10.0, 75.0, "JaCoCo XML")

    alone = [ReportFile("coverage.xml", b'<coverage line-rate="0.5" branch-rate="0.25"/>')]
    assert read_coverage(Output(""), alone).lines == 50.0
    shares = "ok  \ta\t0.1s\tcoverage: 80.0% of statements\nok  \tb\t0.1s\tcoverage: 40.0% of statements\n"
    found = read_coverage(Output(shares), ())
    assert (found.lines, "(80%, 40%) without the numbers" in str(found.note)) == (None, True)


def read_torn(head: str, tail: str) -> TestSummary:
    """Of output with a hole in it only what can be proved is told."""
    return read_tests(Output(head, tail), (), 1, REDACT)


TORN = "============ test session starts ============\ncollected {total} items\n\ntest_a.py ..F\n"
END = "noise\n============ 1 failed, {passed} passed in 3.20s ============\n"


def test_pytest_is_believed_if_it_ran_as_many_as_it_collected() -> None:
    summary = read_torn(TORN.format(total=5000), END.format(passed=4999))
    assert (summary.passed, summary.failed, summary.total) == (4999, 1, 5000)
    summary = read_torn(TORN.format(total=5000), END.format(passed=12))
    assert not summary.recognised
    assert "testReport" in str(summary.note)


def test_an_error_of_a_fixture_stands_for_its_test_and_does_not_disturb_the_proof() -> None:
    tail = "noise\n==== 1 failed, 3 passed, 1 error in 3.20s ====\n"
    assert read_torn(TORN.format(total=5), tail).total == 5
    assert read_torn(TORN.format(total=4), tail).total == 5
    assert not read_torn(TORN.format(total=9), tail).recognised


def test_a_closing_summary_without_its_beginning_is_not_believed_since_others_may_be_missing() -> None:
    tail = "x\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\nTime: 1 s\n"
    assert not read_torn("PASS ./a.test.js\nlog\n", tail).recognised
