"""Of output with a hole in it, wherever that is, only what can be proved is told."""

from itertools import combinations

from tests.support.cases import for_each
from tests.unit.test_output.fixtures import Fixture, expected_numbers, fixtures, numbers
from tests.unit.test_output.test_summaries import read_torn

PRINTED = [fixture for fixture in fixtures() if not fixture.reports or fixture.only_coverage]
PLACES = 7
"""Of each output, from the first line to the last, between which it is cut: every piece is missing once."""


@for_each(PRINTED)
def test_wherever_output_is_cut_the_numbers_are_right_or_none(fixture: Fixture) -> None:
    lines = fixture.output.decode("utf-8", "replace").splitlines(keepends=True)
    # A retry that nobody could see is not counted; everything else must be right.
    wanted = [runner | {"flaky": 0} for runner in expected_numbers(fixture)]
    width = max(0, len(lines) - 2)
    for start, end in combinations(sorted({1 + place * width // (PLACES - 1) for place in range(PLACES)}), 2):
        summary = read_torn("".join(lines[:start]), "".join(lines[end:]))
        assert [runner | {"flaky": 0} for runner in numbers(summary)] in ([], wanted), (start, end)
