"""The correction by published numbers, closed testing and brute force; the choice of hypotheses by its properties."""

from functools import cache
from itertools import combinations, product
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.compare.exact_tests import OneSided, fisher_exact
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis, significant, step_down

probabilities = st.floats(1e-6, 1)


def family(*tests, alpha=ALPHA) -> Family:
    """Each test is (p, floor) or (p, floor, weight)."""
    return Family(tuple(Hypothesis(OneSided(p, floor), *weight) for p, floor, *weight in tests), alpha)


def holm(p_values, weights=None) -> list[float]:
    """Of tests whose p-values can be anything."""
    pairs = zip(p_values, weights or [1.0] * len(p_values), strict=True)
    return step_down([Hypothesis(OneSided(p, 0.0), weight) for p, weight in pairs])


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


def test_hypotheses_whose_data_cannot_show_anything_cost_nothing_and_those_that_reach_alike_are_in_or_out_together():
    alone = family((0.01, 0.001))
    among = family((0.01, 0.001), *[(1.0, 1.0)] * 200)
    assert among.adjusted[0] == alone.adjusted[0] == pytest.approx(0.01)
    assert among.testable == {0}
    assert family(*[(0.01, 0.01)] * 5).testable == frozenset()
    # Two criteria with three trials cannot be told from noise, and one can.
    assert family((0.05, 0.05), (0.05, 0.05), alpha=0.05).adjusted == (1.0, 1.0)
    assert family((0.05, 0.05), alpha=0.05).adjusted == pytest.approx((0.05,))


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


@cache
def chance_of(total, new) -> float:
    """That five of ten trials have so many of all passes."""
    return comb(total, new) * comb(10 - total, 5 - new) / comb(10, 5)


@pytest.mark.parametrize("alpha", [0.04, 0.3])
@pytest.mark.parametrize("passes", [(5, 5, 5), (9, 5, 4)])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 0.1, 0.1)])
def test_the_chance_of_any_false_call_counted_over_all_arrangements_is_within_the_error(alpha, passes, weights):
    wrong = 0.0
    for arrangement in product(*(range(max(0, total - 5), min(total, 5) + 1) for total in passes)):
        tests = [fisher_exact(total - new, 5, new, 5).lower for total, new in zip(passes, arrangement, strict=True)]
        found = Family(tuple(map(Hypothesis, tests, weights)), alpha)
        if any(significant(p, alpha) for p in found.adjusted):
            wrong += prod(map(chance_of, passes, arrangement))
    assert 0 < wrong <= alpha * (1 + 1e-9)
