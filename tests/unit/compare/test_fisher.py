"""Fisher's exact test against a count of all tables with the same margins."""

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.compare.inference import fisher_exact

SIZES = [(1, 1), (1, 10), (3, 3), (7, 4), (8, 8)]


@pytest.mark.parametrize(("n_a", "n_b"), SIZES)
def test_p_is_the_share_of_tables_that_fall_or_rise_as_much(n_a, n_b):
    for a, b in product(range(n_a + 1), range(n_b + 1)):
        of_b = range(max(0, a + b - n_a), min(n_b, a + b) + 1)
        tables = {each: comb(n_a, a + b - each) * comb(n_b, each) for each in of_b}
        fall = sum(count for each, count in tables.items() if each <= b)
        rise = sum(count for each, count in tables.items() if each >= b)
        ours, whole = fisher_exact(a, n_a, b, n_b), sum(tables.values())
        assert (ours.lower.p, ours.higher.p) == pytest.approx((fall / whole, rise / whole), rel=1e-9)


def test_a_floor_is_the_least_p_of_any_table_with_the_same_margins():
    for passes in range(9):
        tables = [(a, passes - a) for a in range(6) if 0 <= passes - a <= 3]
        floors = {fisher_exact(a, 5, b, 3).lower.floor for a, b in tables}
        assert floors == {min(fisher_exact(a, 5, b, 3).lower.p for a, b in tables)}


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
