"""Of output with a hole in it, only what can be proved is told."""

from tests.unit.test_output.fixtures import REDACT
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.tally import Output


def read(head: str, tail: str):
    return read_tests(Output(head, tail), (), 1, REDACT)


SESSION = "============ test session starts ============\ncollected {total} items\n\ntest_a.py ..F\n"
CLOSING = "noise\n============ 1 failed, {passed} passed in 3.20s ============\n"


def test_pytest_is_believed_if_it_ran_as_many_as_it_collected() -> None:
    summary = read(SESSION.format(total=5000), CLOSING.format(passed=4999))
    assert (summary.passed, summary.failed, summary.total) == (4999, 1, 5000)
    summary = read(SESSION.format(total=5000), CLOSING.format(passed=12))
    assert not summary.recognised
    assert "testReport" in str(summary.note)


def test_an_error_of_a_fixture_stands_for_its_test_and_does_not_disturb_the_proof() -> None:
    tail = "noise\n==== 1 failed, 3 passed, 1 error in 3.20s ====\n"
    assert read(SESSION.format(total=5), tail).total == 5
    assert read(SESSION.format(total=4), tail).total == 5
    assert not read(SESSION.format(total=9), tail).recognised


def test_a_closing_summary_without_its_beginning_is_not_believed_since_others_may_be_missing() -> None:
    tail = "x\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\nTime: 1 s\n"
    assert not read("PASS ./a.test.js\nlog\n", tail).recognised
