"""Cases in one test: a failure hides no other, and each is named."""

from types import SimpleNamespace

import pytest

from tests.support.cases import for_each


def test_every_case_that_fails_is_named_with_what_it_found() -> None:
    @for_each([(SimpleNamespace(name="jest/mixed"), "CRLF", 3), ("pytest", "colour", 4), ("tap", "CRLF", 0)])
    def test(_fixture: object, _disguise: str, number: int) -> None:
        assert 12 // number == 3

    with pytest.raises(pytest.fail.Exception) as failure:
        test()
    told = str(failure.value)
    assert told.startswith("2 of 3 cases failed:\n  jest/mixed, CRLF, 3\n  tap, CRLF, 0\n")
    assert "assert (12 // 3) == 3" in told
    assert "ZeroDivisionError" in told
    assert "pytest, colour" not in told


def test_a_check_without_cases_proves_nothing_and_fails() -> None:
    with pytest.raises(AssertionError, match="nothing to check"):
        for_each([])(lambda _: None)()


def test_cases_that_pass_pass() -> None:
    checked: list[int] = []
    for_each(range(3))(checked.append)()
    assert checked == [0, 1, 2]
