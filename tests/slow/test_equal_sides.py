"""One trial, or two, of suites that did not change: what merely varies turns nothing red and is no headline."""

from statistics import fmean

import pytest

from tests.unit.compare.test_equal_sides import equal_sides, rows
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.measures import Measure


@pytest.mark.parametrize("each", [(1, 1), (5, 1), (1, 5)])
def test_at_one_trial_on_a_side_nothing_that_merely_varies_is_red_or_a_headline(each):
    moved = []
    # Nothing may move at all, and in every comparison something could: few are enough.
    for _, compared in equal_sides(each, 8):
        found = compared.comparison
        assert compared.gate.exit_code == 0
        assert found.counts[Verdict.REGRESSED] == found.counts[Verdict.IMPROVED] == 0
        assert not {row.verdict for row in rows(found)} & {Verdict.REGRESSED, Verdict.IMPROVED}
        moved.append(any(abs(row.change or 0) > 10 for row in rows(found) if row.measure is Measure.EFFICIENCY))
    # The simulation must be able to fail: nearly every comparison holds a drop or rise beyond the old threshold.
    assert fmean(moved) > 0.8


def test_at_two_trials_nearly_no_comparison_of_equal_sides_is_red():
    found = [compared for _, compared in equal_sides((2, 2), 60)]
    assert fmean(compared.gate.exit_code for compared in found) <= 0.05
    # Within a suite two against two cannot accuse at all: the best p-value is one in six.
    assert not any(
        row.verdict is Verdict.REGRESSED
        for compared in found
        for suite in compared.comparison.suites
        for row in suite.measures
    )
