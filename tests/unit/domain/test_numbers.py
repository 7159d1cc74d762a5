"""Numbers as people read them."""

import pytest

from zelda_ci.domain import numbers
from zelda_ci.report.terminal.progress import rough_duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(54, "50 s"), (57, "1 min"), (3569, "59 min"), (3590, "1h 00m"), (7500, "2h 05m")],
)
def test_an_estimate_changes_its_unit_where_it_is_rounded_to_the_next(seconds: float, shown: str) -> None:
    assert rough_duration(seconds) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(940, "940"), (999.6, "1.0k"), (12_345, "12.3k"), (99_949, "99.9k"), (99_960, "100k"), (999_600, "1.0M")],
)
def test_a_brief_count_has_three_digits(number: float, shown: str) -> None:
    assert numbers.brief_count(number) == shown
