"""Of output with a hole in it, only what can be proved is told."""

from itertools import combinations

from tests.support.cases import for_each
from tests.unit.test_output.fixtures import REDACT, Fixture, expected_numbers, fixtures, numbers
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.tally import Output

PRINTED = [fixture for fixture in fixtures() if not fixture.reports or fixture.only_coverage]
PLACES = 7
"""Of each output, from the first line to the last, between which it is cut: every piece is missing once."""


def read(head: str, tail: str):
    return read_tests(Output(head, tail), (), 1, REDACT)


@for_each(PRINTED)
def test_wherever_output_is_cut_the_numbers_are_right_or_none(fixture: Fixture) -> None:
    lines = fixture.output.decode("utf-8", "replace").splitlines(keepends=True)
    # A retry that nobody could see is not counted; everything else must be right.
    wanted = [runner | {"flaky": 0} for runner in expected_numbers(fixture)]
    width = max(0, len(lines) - 2)
    for start, end in combinations(sorted({1 + place * width // (PLACES - 1) for place in range(PLACES)}), 2):
        summary = read("".join(lines[:start]), "".join(lines[end:]))
        assert [runner | {"flaky": 0} for runner in numbers(summary)] in ([], wanted), (start, end)


SESSION = "============ test session starts ============\ncollected {total} items\n\ntest_a.py ..F\n"
CLOSING = "noise\n============ 1 failed, {passed} passed in 3.20s ============\n"


def test_pytest_that_ran_as_many_as_it_collected_is_believed() -> None:
    summary = read(SESSION.format(total=5000), CLOSING.format(passed=4999))
    assert (summary.passed, summary.failed, summary.total) == (4999, 1, 5000)


def test_an_error_of_a_fixture_stands_for_its_test_and_does_not_disturb_the_proof() -> None:
    tail = "noise\n==== 1 failed, 3 passed, 1 error in 3.20s ====\n"
    assert read(SESSION.format(total=5), tail).total == 5
    assert read(SESSION.format(total=4), tail).total == 5
    assert not read(SESSION.format(total=9), tail).recognised


def test_pytest_that_ran_another_number_than_it_collected_is_not_believed() -> None:
    summary = read(SESSION.format(total=5000), CLOSING.format(passed=12))
    assert not summary.recognised
    assert "testReport" in str(summary.note)


def test_a_closing_summary_without_its_beginning_is_not_believed_since_others_may_be_missing() -> None:
    tail = "x\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\nTime: 1 s\n"
    assert not read("PASS ./a.test.js\nlog\n", tail).recognised
