"""Holm's correction by published numbers and by closed testing; the choice of hypotheses by its properties."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.compare.exact_tests import OneSided
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis, holm, significant

probabilities = st.floats(1e-6, 1)


def family(*tests, alpha=ALPHA) -> Family:
    """Each test is (p, floor) or (p, floor, weight)."""
    return Family(tuple(Hypothesis(OneSided(p, floor), *weight) for p, floor, *weight in tests), alpha)


def test_holm_gives_the_numbers_of_a_well_known_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_gives_the_numbers_of_the_r_documentation_for_tied_and_large_values():
    assert holm([0.01, 0.01, 0.6, 0.9]) == pytest.approx([0.04, 0.04, 1.0, 1.0])


def closed_test(p_values, weights) -> list[float]:
    """Weighted Bonferroni in every intersection: Holm's method is the shortcut to this."""
    indices = range(len(p_values))
    subsets = [chosen for size in indices for chosen in combinations(indices, size + 1)]
    bound = {
        chosen: min(1.0, min(p_values[i] / weights[i] for i in chosen) * sum(weights[i] for i in chosen))
        for chosen in subsets
    }
    return [max(value for chosen, value in bound.items() if i in chosen) for i in indices]


@given(st.lists(st.tuples(probabilities, st.sampled_from([0.1, 1.0, 2.0])), min_size=1, max_size=6))
def test_holm_with_weights_is_the_closed_test(pairs):
    p_values, weights = [p for p, _ in pairs], [weight for _, weight in pairs]
    assert holm(p_values, weights) == pytest.approx(closed_test(p_values, weights))


@given(st.lists(probabilities, min_size=1, max_size=40))
def test_adjusted_values_keep_their_order_and_never_fall_below_the_raw_ones(p_values):
    adjusted = holm(p_values)
    assert all(raw <= found <= 1 for raw, found in zip(p_values, adjusted, strict=True))
    ordered = [found for _, found in sorted(zip(p_values, adjusted, strict=True))]
    assert ordered == sorted(ordered)


def test_hypotheses_whose_data_cannot_show_anything_cost_nothing():
    alone = family((0.01, 0.001))
    among = family((0.01, 0.001), *[(1.0, 1.0)] * 200)
    assert among.adjusted[0] == alone.adjusted[0] == pytest.approx(0.01)
    assert among.testable == {0}


def test_two_criteria_with_three_trials_cannot_be_told_from_noise():
    assert family((0.05, 0.05), (0.05, 0.05), alpha=0.05).adjusted == (1.0, 1.0)
    assert family((0.05, 0.05), alpha=0.05).adjusted == pytest.approx((0.05,))


def test_equally_reaching_hypotheses_are_in_or_out_together():
    found = family(*[(0.01, 0.01)] * 5)
    assert found.testable == frozenset()


def test_resource_hypotheses_with_small_weight_leave_the_error_to_the_others():
    heavy = family((0.005, 1e-6), *[(0.5, 1e-6)] * 50)
    light = family((0.005, 1e-6), *[(0.5, 1e-6, 0.1)] * 50)
    assert not significant(heavy.adjusted[0])
    assert significant(light.adjusted[0])


tests = st.lists(
    st.tuples(st.floats(1e-6, 1), st.floats(0, 1), st.sampled_from([0.1, 1.0])).map(
        lambda t: (t[0] + (1 - t[0]) * t[1], t[0], t[2])
    ),
    min_size=1,
    max_size=30,
)


@given(tests)
def test_who_is_testable_follows_from_floors_alone(found):
    other = [(floor, floor, weight) for _, floor, weight in found]
    assert family(*found).testable == family(*other).testable


@given(tests)
def test_every_testable_hypothesis_could_be_rejected_and_no_p_value_is_flattered(found):
    judged = family(*found)
    weight = sum(found[index][2] for index in judged.testable)
    for index, (p, floor, own) in enumerate(found):
        assert judged.adjusted[index] >= min(1.0, p) * (1 - 1e-12)
        if index in judged.testable:
            assert significant(floor / own * weight)


@given(tests)
def test_a_p_value_at_the_quoted_level_would_have_been_significant(found):
    judged = family(*found)
    for index, (_, floor, weight) in enumerate(found):
        level = judged.level(index, floor)
        if level and floor <= level:
            lowered = list(found)
            lowered[index] = (level, floor, weight)
            assert significant(family(*lowered).adjusted[index])


def test_the_level_counts_a_hypothesis_whose_data_are_still_all_equal():
    found = family((1.0, 1.0), (0.2, 0.001), (0.3, 0.001))
    assert found.level(0, floor=0.001) == pytest.approx(ALPHA / 3)
    assert found.level(1, floor=0.001) == pytest.approx(ALPHA / 2)
    assert found.eventual_level(0) == pytest.approx(ALPHA / 3)


def test_no_level_is_quoted_where_no_data_would_do():
    assert family(*[(0.5, 0.02)] * 10).level(0, floor=0.02) == 0.0
