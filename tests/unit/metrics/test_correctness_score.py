"""The formula of functional correctness, as a table."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import safe, suite
from zelda_ci.domain.details import CommandResult, CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.metrics.functional_correctness import CommandEvidence, reasoning, weigh


def ended(code: int | None = 0) -> CommandResult:
    return CommandResult(
        command=safe("make"), exit_code=code, timed_out=code is None, seconds=1, output=safe(""), output_bytes=0
    )


def counts(passed: int, failed: int = 0, **more: Any) -> TestSummary:
    return TestSummary(runners=(RunnerCounts(format="pytest", source="summary", passed=passed, failed=failed, **more),))


def covered(lines: float | None) -> CoverageSummary:
    return CoverageSummary(format="lcov", lines=lines) if lines is not None else CoverageSummary(note="Write a report.")


GOOD, BAD, LATE = ended(0), ended(1), ended(None)
BUILD: dict[str, Any] = {"buildCommand": "make"}
TESTS: dict[str, Any] = {"testCommand": "make test"}
COVERAGE: dict[str, Any] = {**TESTS, "coverageThreshold": 80}

TABLE: list[tuple[dict[str, Any], CommandEvidence, float, bool]] = [
    # build alone
    (BUILD, CommandEvidence(GOOD), 100, True),
    (BUILD, CommandEvidence(BAD), 0, False),
    # tests alone
    (TESTS, CommandEvidence(None, GOOD, counts(12)), 100, True),
    (TESTS, CommandEvidence(None, BAD, counts(9, 3)), 75, False),
    (TESTS, CommandEvidence(None, BAD, counts(9, 1, errored=2)), 75, False),
    (TESTS, CommandEvidence(None, GOOD, counts(3, skipped=9)), 100, True),
    (TESTS, CommandEvidence(None, GOOD, counts(0, skipped=4)), 0, False),
    (TESTS, CommandEvidence(None, GOOD), 100, True),
    (TESTS, CommandEvidence(None, BAD), 0, False),
    (TESTS, CommandEvidence(None, LATE), 0, False),
    # the command failed and no number says why: the numbers are not the whole truth
    (TESTS, CommandEvidence(None, BAD, counts(12, skipped=3)), 0, False),
    (BUILD | TESTS, CommandEvidence(GOOD, BAD, counts(12)), 40, False),
    (COVERAGE, CommandEvidence(None, BAD, counts(12), covered(95)), 100 * 20 / 70, False),
    # the command succeeded though tests failed: the numbers are the score, and it is no pass
    (TESTS, CommandEvidence(None, GOOD, counts(9, 3)), 75, False),
    # what did not pass never rounds to the full score
    (TESTS, CommandEvidence(None, BAD, counts(99_999, 1)), 99, False),
    # build and tests: 40 and 60
    (BUILD | TESTS, CommandEvidence(GOOD, BAD, counts(6, 6)), 70, False),
    (BUILD | TESTS, CommandEvidence(BAD), 0, False),
    # all three: 30, 50 and 20
    (BUILD | COVERAGE, CommandEvidence(GOOD, GOOD, counts(12), covered(80)), 100, True),
    (BUILD | COVERAGE, CommandEvidence(GOOD, GOOD, counts(12), covered(79.99)), 99, False),
    (BUILD | COVERAGE, CommandEvidence(GOOD, GOOD, counts(12), covered(40)), 90, False),
    (BUILD | COVERAGE, CommandEvidence(GOOD, GOOD, counts(12), covered(None)), 80, False),
    (BUILD | COVERAGE, CommandEvidence(GOOD, BAD, counts(6, 6), covered(95)), 75, False),
    # without a build: 50 and 20 of 70
    (COVERAGE, CommandEvidence(None, GOOD, counts(12), covered(40)), 100 * (50 + 10) / 70, False),
    (COVERAGE, CommandEvidence(None, GOOD, counts(12), covered(None)), 100 * 50 / 70, False),
    # a threshold of nothing is met by any number, but not by none
    (COVERAGE | {"coverageThreshold": 0}, CommandEvidence(None, GOOD, counts(1), covered(0)), 100, True),
    (COVERAGE | {"coverageThreshold": 0}, CommandEvidence(None, GOOD, counts(1), covered(None)), 100 * 50 / 70, False),
    # a threshold meant for other suites
    (BUILD | {"coverageThreshold": 80}, CommandEvidence(GOOD), 100, True),
]


@pytest.mark.parametrize(("settings", "evidence", "score", "passed"), TABLE)
def test_the_score_is_the_weighted_share_of_what_is_configured(
    settings: dict[str, Any], evidence: CommandEvidence, score: float, *, passed: bool
) -> None:
    found, details = weigh(suite(**settings), evidence)
    assert found == pytest.approx(score)
    assert 0 <= found <= 100
    assert details.passed is passed
    assert bool(details.shortfalls) is not passed
    assert sum(details.weights.values()) == pytest.approx(100, abs=0.02)
    sum_of_parts = sum(details.weights[part] * details.parts[part] / 100 for part in details.parts)
    assert found == pytest.approx(sum_of_parts if passed else min(sum_of_parts, 99), abs=0.1)
    assert reasoning(details)


SENTENCES = [
    (BUILD | TESTS, CommandEvidence(ended(2)), "buildCommand ended with exit code 2; testCommand was not run."),
    (BUILD | TESTS, CommandEvidence(LATE), "buildCommand ran into its limit of 300 s; testCommand was not run."),
    (TESTS, CommandEvidence(None, ended(127)), "testCommand ended with exit code 127."),
    (TESTS, CommandEvidence(None, BAD, counts(9, 2, errored=1)), "3 of 12 tests failed."),
    (TESTS, CommandEvidence(None, BAD, counts(2, 1, unit="packages")), "1 of 3 packages failed."),
    (TESTS, CommandEvidence(None, GOOD, counts(0)), "The command succeeded (exit code 0) though it ran no test."),
    (TESTS, CommandEvidence(None, ended(5), counts(0)), "testCommand ran no test."),
    (
        COVERAGE,
        CommandEvidence(None, GOOD, counts(1), covered(79.5)),
        "Coverage is 79.5%, below the threshold of 80%.",
    ),
    (COVERAGE, CommandEvidence(None, GOOD, counts(1), covered(None)), "Coverage is not known. Write a report."),
    (
        COVERAGE,
        CommandEvidence(None, BAD, counts(1, 1), covered(40)),
        "1 of 2 tests failed. Coverage is 40%, below the threshold of 80%.",
    ),
    (
        BUILD | COVERAGE,
        CommandEvidence(GOOD, GOOD, counts(12), covered(85.25)),
        "buildCommand succeeded. 12 of 12 tests passed. Coverage is 85.25%, at or above the threshold of 80%.",
    ),
    (TESTS, CommandEvidence(None, GOOD, counts(1), covered(85.25)), "1 of 1 tests passed. Coverage is 85.25%."),
    (TESTS, CommandEvidence(None, GOOD, TestSummary(note=safe("No runner."))), "testCommand succeeded. No runner."),
]


@pytest.mark.parametrize(("settings", "evidence", "sentence"), SENTENCES)
def test_the_reasoning_says_what_fell_short_or_what_passed(
    settings: dict[str, Any], evidence: CommandEvidence, sentence: str
) -> None:
    assert reasoning(weigh(suite(**settings), evidence)[1]) == sentence


def test_what_is_not_configured_or_not_reached_is_absent_and_a_note_is_kept() -> None:
    noted = TestSummary(note=safe("The report a.xml was not used: it is empty."))
    _, details = weigh(suite(**TESTS), CommandEvidence(None, GOOD, noted, notes=("There is more.",)))
    assert (details.parts, details.weights) == ({"tests": 100}, {"tests": 100})
    assert (details.build, details.coverage, details.coverage_threshold) == (None, None, None)
    assert details.notes == ("There is more.", "The report a.xml was not used: it is empty.")
    _, details = weigh(suite(**BUILD, **COVERAGE), CommandEvidence(BAD))
    assert details.parts == {"build": 0, "tests": 0, "coverage": 0}
    assert (details.test, details.tests) == (None, None)


NUMBERS = st.integers(0, 10**6)
SUMMARIES = st.one_of(
    st.builds(counts, NUMBERS, NUMBERS, errored=NUMBERS, skipped=NUMBERS),
    st.builds(TestSummary, unclear=st.sampled_from([(), (safe("A run has no end."),)])),
)
COVERED = st.builds(covered, st.one_of(st.none(), st.floats(0, 100)))


@given(st.integers(1, 255), SUMMARIES, COVERED, st.sampled_from([TESTS, BUILD | TESTS, COVERAGE, BUILD | COVERAGE]))
def test_a_command_that_failed_has_no_full_score(
    code: int, tests: TestSummary, coverage: CoverageSummary, settings: dict[str, Any]
) -> None:
    score, details = weigh(suite(**settings), CommandEvidence(GOOD, ended(code), tests, coverage))
    assert score <= 99
    assert details.parts["tests"] < 100
    assert not details.passed


def test_unclear_numbers_are_no_pass_though_the_command_succeeded() -> None:
    score, details = weigh(suite(**TESTS), CommandEvidence(None, GOOD, TestSummary(unclear=(safe("no end of a run"),))))
    assert (score, details.passed) == (0, False)
    assert details.shortfalls == ("The output of the tests is unclear: no end of a run.",)
