"""The correction by published numbers, closed testing and brute force; the choice of hypotheses by its properties."""

from functools import cache
from itertools import combinations, product
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.compare.inference import ALPHA, Hypothesis, OneSided, adjust, fisher_exact, reachable, significant

probabilities = st.floats(1e-6, 1)


def of(*tests) -> list[Hypothesis]:
    """Each test is (p, floor) or (p, floor, weight)."""
    return [(OneSided(p, floor), *(weight or [1.0])) for p, floor, *weight in tests]


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
    adjusted = adjust(of(*((p, 0.0, weight) for p, weight in pairs)), ALPHA)
    assert adjusted == pytest.approx(closed_test(p_values, weights))


def test_hypotheses_whose_data_cannot_show_anything_cost_nothing_and_those_that_reach_alike_are_in_or_out_together():
    among = of((0.01, 0.001), *[(1.0, 1.0)] * 200)
    assert adjust(among, ALPHA)[0] == adjust(of((0.01, 0.001)), ALPHA)[0] == pytest.approx(0.01)
    assert reachable(among, ALPHA) == {0}
    assert reachable(of(*[(0.01, 0.01)] * 5), ALPHA) == frozenset()
    # Two criteria with three trials cannot be told from noise, and one can.
    assert adjust(of((0.05, 0.05), (0.05, 0.05)), 0.05) == [1.0, 1.0]
    assert adjust(of((0.05, 0.05)), 0.05) == pytest.approx([0.05])


def test_resource_hypotheses_with_small_weight_leave_the_error_to_the_others():
    heavy, light = (adjust(of((0.005, 1e-6), *[(0.5, 1e-6, weight)] * 50), ALPHA) for weight in (1.0, 0.1))
    assert not significant(heavy[0])
    assert significant(light[0])


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
    assert reachable(of(*found), ALPHA) == reachable(of(*other), ALPHA)


@given(tests)
def test_every_testable_hypothesis_could_be_rejected_and_no_p_value_is_flattered(found):
    adjusted, testable = adjust(of(*found), ALPHA), reachable(of(*found), ALPHA)
    weight = sum(found[index][2] for index in testable)
    for index, (p, floor, own) in enumerate(found):
        assert adjusted[index] >= min(1.0, p) * (1 - 1e-12)
        if index in testable:
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
        found = adjust(list(zip(tests, weights, strict=True)), alpha)
        if any(significant(p, alpha) for p in found):
            wrong += prod(map(chance_of, passes, arrangement))
    assert 0 < wrong <= alpha * (1 + 1e-9)
