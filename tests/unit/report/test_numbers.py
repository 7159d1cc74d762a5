import pytest

from zelda_ci.domain import numbers


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (-0.2, "0.0 s"),
        (0.44, "0.4 s"),
        (59.94, "59.9 s"),
        (59.96, "1m 00s"),
        (83.2, "1m 23s"),
        (119.6, "2m 00s"),
        (3599.4, "59m 59s"),
        (3599.6, "1h 00m"),
        (7265, "2h 01m"),
        (90_000, "25h 00m"),
    ],
)
def test_a_duration_is_shown_in_the_finest_unit_that_matters(seconds: float, shown: str) -> None:
    assert numbers.duration(seconds) == shown


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (0, "$0.0000"),
        (0.0123, "$0.0123"),
        (0.00001, "less than $0.0001"),
        (0.00005, "$0.0001"),
        (1234.5, "$1,234.5000"),
    ],
)
def test_money_has_four_decimals(usd: float, shown: str) -> None:
    assert numbers.money(usd) == shown


def test_a_guessed_price_says_so() -> None:
    assert numbers.money(0.5, exact=False) == "about $0.5000"


@pytest.mark.parametrize(
    ("value", "shown"), [(100, "100.0"), (0, "0.0"), (-0.04, "0.0"), (-0.0, "0.0"), (66.666, "66.7")]
)
def test_a_score_has_one_decimal_and_no_negative_zero(value: float, shown: str) -> None:
    assert numbers.format_score(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(9, "9"), (9.8, "9.8"), (10.04, "10"), (1234.5, "1234.5")])
def test_an_average_is_whole_where_it_is(value: float, shown: str) -> None:
    assert numbers.average(value) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (42.9, "0:42"), (83, "1:23"), (3723, "1:02:03")])
def test_a_running_clock(seconds: float, shown: str) -> None:
    assert numbers.clock(seconds) == shown


def test_nouns_follow_their_number() -> None:
    shown = [
        numbers.format_count(1, "file"),
        numbers.format_count(0, "file"),
        numbers.format_count(2000, "retry", "retries"),
    ]
    assert shown == ["1 file", "0 files", "2,000 retries"]
