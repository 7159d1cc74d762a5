"""Exact permutation tests against a count of all arrangements, against each other, and by their properties."""

import random
from collections.abc import Iterable
from itertools import combinations, product
from math import sqrt
from statistics import NormalDist, fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.compare.inference import (
    ENUMERATED,
    Tails,
    fisher_exact,
    permutation_test,
    stratified_permutation_test,
)


def counted(observed: float, arrangements: Iterable[float]) -> tuple[float, float]:
    """The shares of all arrangements that fall and that rise as much as what was observed."""
    found = list(arrangements)
    rounding = 1e-9 * max(1.0, abs(observed))
    fall = sum(each <= observed + rounding for each in found)
    return fall / len(found), sum(each >= observed - rounding for each in found) / len(found)


def in_two(a: list[float], b: list[float]) -> tuple[float, float]:
    return counted(sum(b), map(sum, combinations([*a, *b], len(b))))


def p_values(tails: Tails) -> tuple[float, float]:
    return tails.lower.p, tails.higher.p


@pytest.mark.parametrize("size", [(2, 2), (3, 3), (2, 9), (5, 3), (6, 6)])
def test_small_samples_of_any_numbers_are_counted(size):
    chance = random.Random(1)
    a, b = ([chance.gauss(0.1 * shift, 1) for _ in range(n)] for shift, n in enumerate(size))
    assert p_values(permutation_test(a, b)) == pytest.approx(in_two(a, b))


@pytest.mark.parametrize(("seed", "size"), [(0, (8, 8)), (2, (9, 7))])
def test_larger_samples_of_scores_are_counted(seed, size):
    chance = random.Random(seed)
    a, b = ([float(chance.randrange(0, 101, 5)) for _ in range(n)] for n in size)
    assert p_values(permutation_test(a, b)) == pytest.approx(in_two(a, b))


def test_whole_numbers_that_span_the_grid_are_counted_exactly():
    chance = random.Random(5)
    values = [0, 1000, *(chance.randrange(1001) for _ in range(18))]
    a, b = values[::2], values[1::2]
    observed = sum(b)
    sums = [sum(chosen) for chosen in combinations(values, 10)]
    ours = permutation_test(a, b)
    assert ours.lower.p == sum(total <= observed for total in sums) / len(sums)
    assert ours.higher.p == sum(total >= observed for total in sums) / len(sums)


def test_on_zeros_and_ones_it_is_fishers_exact_test():
    for a, b in [(10, 4), (9, 9), (3, 8), (0, 10)]:
        ours = permutation_test([1.0] * a + [0.0] * (10 - a), [1.0] * b + [0.0] * (10 - b))
        fisher = fisher_exact(a, 10, b, 10)
        assert (ours.lower.p, ours.lower.floor) == pytest.approx((fisher.lower.p, fisher.lower.floor))
        assert (ours.higher.p, ours.higher.floor) == pytest.approx((fisher.higher.p, fisher.higher.floor))


def test_sums_that_differ_only_by_floating_point_count_as_equal():
    assert permutation_test([0.1, 0.2], [0.3, 0.0]).lower.p == permutation_test([1, 2], [3, 0]).lower.p


numbers = st.lists(st.integers(0, 100).map(float), min_size=2, max_size=9)


@given(numbers, numbers)
def test_p_values_lie_between_their_floor_and_one_and_together_exceed_one(a, b):
    found = permutation_test(a, b)
    for test in (found.lower, found.higher):
        assert 0 < test.floor <= test.p * (1 + 1e-9)
        assert test.p <= 1
    assert found.lower.p + found.higher.p >= 1


def test_hundreds_of_trials_a_side_are_approximated_in_both_directions():
    chance = random.Random(1)
    a = [chance.gauss(0, 1) for _ in range(150)]
    b = [chance.gauss(0.25, 1) for _ in range(120)]
    # Of so many the difference of the means is normally distributed over all arrangements.
    spread = sqrt(variance([*a, *b]) * (1 / len(a) + 1 / len(b)))
    expected = 1 - NormalDist().cdf((fmean(b) - fmean(a)) / spread)
    assert permutation_test(a, b).higher.p == pytest.approx(expected, abs=0.004)
    assert permutation_test(a, b).higher.p == pytest.approx(permutation_test(b, a).lower.p)


def test_the_limit_of_enumeration_is_six_against_six():
    assert len(list(combinations(range(12), 6))) <= ENUMERATED < len(list(combinations(range(14), 7)))


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), min_size=1, max_size=3), st.lists(st.integers(0, 9), min_size=1, max_size=3)
        ),
        min_size=1,
        max_size=3,
    )
)
def test_over_strata_numbers_change_sides_within_their_own_alone(found):
    strata = [(tuple(map(float, a)), tuple(map(float, b))) for a, b in found]
    observed = sum(sum(b) for _, b in strata)
    sums = [[sum(chosen) for chosen in combinations(a + b, len(b))] for a, b in strata]
    totals = [sum(each) for each in product(*sums)]
    tails = stratified_permutation_test(strata)
    if len(set(totals)) > 1:
        assert tails.lower.p == pytest.approx(sum(total <= observed for total in totals) / len(totals))
        assert tails.higher.p == pytest.approx(sum(total >= observed for total in totals) / len(totals))
        assert tails.lower.floor == pytest.approx(totals.count(min(totals)) / len(totals))


def test_over_many_strata_the_normal_approximation_is_close_to_the_count():
    chance = random.Random(1)
    strata = [
        (tuple(chance.random() for _ in range(3)), tuple(chance.random() + 0.1 for _ in range(3))) for _ in range(33)
    ]
    exact = stratified_permutation_test(strata)
    normal = stratified_permutation_test([*strata, ((0.5,) * 3, (0.5,) * 3)])
    assert normal.higher.p == pytest.approx(exact.higher.p, rel=0.2)
    assert 0.0001 < exact.higher.p < 0.2
