"""Quantiles against scipy, and detectable drops against the tests they speak for."""

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zelda_ci.compare.exact_tests import fisher_exact, permutation_test
from zelda_ci.compare.power import (
    detectable_difference,
    detectable_paired,
    detectable_pass_drop,
    pooled_deviation,
    student_t_quantile,
    student_t_upper,
    trials_for_difference,
    trials_for_pass_rates,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 18, 39, 198])
def test_students_t_agrees_with_scipy(freedom):
    for t in (0.0, 0.3, 1.0, 2.5, 6.0, 20.0):
        assert student_t_upper(t, freedom) == pytest.approx(stats.t.sf(t, freedom), abs=1e-12)
    for upper in (0.5, 0.05, 0.001, 1e-5):
        assert student_t_quantile(upper, freedom) == pytest.approx(stats.t.isf(upper, freedom), rel=1e-5, abs=1e-9)


@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 30), st.sampled_from([0.04, 0.01, 0.001]))
def test_a_detectable_pass_drop_is_significant_and_the_next_smaller_one_is_not(trials, new_trials, passed, level):
    passed = min(passed, trials)
    drop = detectable_pass_drop(passed, trials, new_trials, level)
    if drop is None:
        assert passed == 0 or fisher_exact(passed, trials, 0, new_trials).lower.p > level
        return
    new = round((passed / trials - drop / 100) * new_trials)
    assert fisher_exact(passed, trials, new, new_trials).lower.p <= level * (1 + 1e-9)
    if (new + 1) / new_trials < passed / trials:
        assert fisher_exact(passed, trials, new + 1, new_trials).lower.p > level


def test_ten_trials_see_a_fall_to_five_alone_and_to_two_among_a_hundred():
    assert detectable_pass_drop(10, 10, 10, 0.04) == pytest.approx(50)
    assert detectable_pass_drop(10, 10, 10, 0.04 / 5) == pytest.approx(60)
    assert detectable_pass_drop(10, 10, 10, 0.04 / 100) == pytest.approx(80)
    assert detectable_pass_drop(3, 3, 3, 0.04) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_shift_by_the_detectable_difference_is_about_as_significant_as_the_level_says(seed):
    chance = random.Random(seed)
    a, b = ([chance.gauss(50, 8) for _ in range(10)] for _ in range(2))
    level = 0.005
    least = detectable_difference(pooled_deviation(a, b), 10, 10, level)
    assert least is not None
    moved = [value - fmean(b) + fmean(a) - least for value in b]
    assert level / 3 < permutation_test(a, moved).lower.p < level * 3


def test_no_difference_can_be_detected_where_even_separation_is_not_rare_enough():
    assert detectable_difference(1.0, 3, 3, 0.04) is None
    assert detectable_difference(1.0, 4, 4, 0.04) == pytest.approx(stats.t.isf(0.04, 6) * 0.5**0.5)
    assert detectable_paired([1.0, 2.0, 3.0, 4.0], 0.04) is None
    assert detectable_paired([1.0], 0.6) is None
    assert detectable_paired([1.0, 2.0, 3.0, 4.0, 5.0], 0.04) == pytest.approx(stats.t.isf(0.04, 4) * 0.5**0.5)


def test_pooled_deviation_is_that_of_the_t_test():
    a, b = [1.0, 2.0, 4.0], [10.0, 13.0]
    t = stats.ttest_ind(b, a).statistic
    assert (fmean(b) - fmean(a)) / (pooled_deviation(a, b) * (1 / 3 + 1 / 2) ** 0.5) == pytest.approx(t)


def test_trials_needed_are_the_fewest_that_do():
    needed = trials_for_pass_rates(1.0, 0.4, 0.005)
    assert needed is not None
    assert fisher_exact(needed, needed, round(0.4 * needed), needed).lower.p <= 0.005
    assert fisher_exact(needed - 1, needed - 1, round(0.4 * (needed - 1)), needed - 1).lower.p > 0.005
    assert trials_for_pass_rates(0.4, 1.0, 0.005) == needed


def test_changes_too_small_for_any_affordable_number_of_trials_need_none():
    assert trials_for_pass_rates(0.9, 0.89, 0.01) is None
    assert trials_for_difference(0.1, 100.0, 0.01) is None


def test_steady_numbers_still_need_the_trials_that_make_a_small_p_value():
    assert trials_for_difference(10.0, 0.0, 0.04 / 50) == 7  # 1 / C(14, 7) = 0.00029, 1 / C(12, 6) = 0.0011
