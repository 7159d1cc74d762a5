"""Drops that could have been detected, and trials that would do."""

import pytest
from scipy import stats

from zelda_ci.compare.exact_tests import fisher_exact
from zelda_ci.compare.power import detectable_difference, detectable_paired, detectable_pass_drop, trials_for_pass_rates


def test_detectable_drops_shrink_with_trials_and_there_is_none_where_nothing_would_be_rare_enough():
    assert detectable_pass_drop(10, 10, 10, 0.04) == pytest.approx(50)
    assert detectable_pass_drop(10, 10, 10, 0.04 / 100) == pytest.approx(80)
    assert detectable_pass_drop(3, 3, 3, 0.04) is None
    assert detectable_difference(1.0, 3, 3, 0.04) is None
    assert detectable_difference(1.0, 4, 4, 0.04) == pytest.approx(stats.t.isf(0.04, 6) * 0.5**0.5)
    assert detectable_paired([1.0, 2.0, 3.0, 4.0, 5.0], 0.04) == pytest.approx(stats.t.isf(0.04, 4) * 0.5**0.5)


def test_trials_needed_are_the_fewest_that_do():
    needed = trials_for_pass_rates(1.0, 0.4, 0.005)
    assert needed is not None
    assert fisher_exact(needed, needed, round(0.4 * needed), needed).lower.p <= 0.005
    assert fisher_exact(needed - 1, needed - 1, round(0.4 * (needed - 1)), needed - 1).lower.p > 0.005
