"""Fisher's exact test against scipy and the lady tasting tea."""

from fractions import Fraction
from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zelda_ci.compare.exact_tests import fisher_exact

SIZES = [(1, 1), (1, 10), (3, 3), (7, 4), (8, 8)]


@pytest.mark.parametrize(("n_a", "n_b"), SIZES)
def test_every_table_of_these_sizes_agrees_with_scipy(n_a, n_b):
    for a, b in product(range(n_a + 1), range(n_b + 1)):
        table = [[b, n_b - b], [a, n_a - a]]
        ours = fisher_exact(a, n_a, b, n_b)
        assert ours.lower.p == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue, rel=1e-9)
        assert ours.higher.p == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue, rel=1e-9)


def test_the_lady_who_told_three_of_four_cups_gets_fishers_own_number():
    # Four cups had milk first; she named three of them: 17 of 70 arrangements do as well.
    assert Fraction(fisher_exact(1, 4, 3, 4).higher.p).limit_denominator(1000) == Fraction(17, 70)


def test_three_against_three_reach_one_in_twenty_and_no_less():
    total = fisher_exact(3, 3, 0, 3).lower
    assert total.p == total.floor == pytest.approx(1 / 20)


def test_a_floor_is_the_least_p_of_any_table_with_the_same_margins():
    for passes in range(9):
        tables = [(a, passes - a) for a in range(6) if 0 <= passes - a <= 3]
        floors = {fisher_exact(a, 5, b, 3).lower.floor for a, b in tables}
        assert floors == {min(fisher_exact(a, 5, b, 3).lower.p for a, b in tables)}


def test_trials_that_all_ended_alike_can_show_nothing():
    assert fisher_exact(10, 10, 10, 10).lower.floor == 1.0


tables = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda n: st.tuples(st.integers(0, n[0]), st.just(n[0]), st.integers(0, n[1]), st.just(n[1]))
)


@given(tables)
def test_p_values_are_probabilities_not_below_their_floor_and_share_only_the_observed_table(table):
    a, n_a, b, n_b = table
    found = fisher_exact(a, n_a, b, n_b)
    for test in (found.lower, found.higher):
        assert 0 < test.floor <= test.p <= 1
    observed = comb(n_a, a) * comb(n_b, b) / comb(n_a + n_b, a + b)
    assert found.lower.p + found.higher.p == pytest.approx(1 + observed)
