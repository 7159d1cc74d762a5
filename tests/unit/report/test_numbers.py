from collections.abc import Callable
from functools import partial

import pytest

from zelda_ci.domain import numbers
from zelda_ci.report.text import clock


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (numbers.duration, {-0.2: "0.0 s", 0.44: "0.4 s", 59.94: "59.9 s", 59.96: "1m 00s", 83.2: "1m 23s"}),
        (numbers.duration, {119.6: "2m 00s", 3599.4: "59m 59s", 3599.6: "1h 00m", 7265: "2h 01m", 90_000: "25h 00m"}),
        (numbers.money, {0: "$0.0000", 0.0123: "$0.0123", 0.00001: "less than $0.0001", 0.00005: "$0.0001"}),
        (numbers.money, {1234.5: "$1,234.5000"}),
        (partial(numbers.money, exact=False), {0.5: "about $0.5000"}),
        (numbers.format_score, {100: "100.0", 0: "0.0", -0.04: "0.0", 66.666: "66.7"}),
        (numbers.average, {9: "9", 9.8: "9.8", 10.04: "10", 1234.5: "1234.5"}),
        (clock, {0: "0:00", 42.9: "0:42", 83: "1:23", 3723: "1:02:03"}),
        (partial(numbers.format_count, noun="file"), {1: "1 file", 0: "0 files"}),
        (partial(numbers.format_count, noun="retry", plural="retries"), {2000: "2,000 retries"}),
    ],
)
def test_numbers_are_written_for_people(write: Callable[[float], str], shown: dict[float, str]) -> None:
    """In the finest unit that matters, without a negative zero; a guessed price says so, nouns follow their number."""
    assert {value: write(value) for value in shown} == shown
