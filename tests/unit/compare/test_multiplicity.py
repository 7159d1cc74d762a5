"""The correction by published numbers, closed testing and brute force; the choice of hypotheses by its properties."""

import random
from functools import cache
from itertools import combinations, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

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


@st.composite
def criteria(draw):
    old_trials, new_trials = draw(st.integers(2, 12)), draw(st.integers(2, 12))
    both = st.tuples(st.integers(0, old_trials), st.integers(0, new_trials))
    counts = draw(st.lists(both, min_size=1, max_size=12))
    weights = draw(st.lists(st.sampled_from([0.1, 1.0]), min_size=len(counts), max_size=len(counts)))
    tests = [fisher_exact(old, old_trials, new, new_trials).lower for old, new in counts]
    return [Hypothesis(test, weight) for test, weight in zip(tests, weights, strict=True)]


@given(criteria(), st.sampled_from([0.04, 0.004, 0.2]))
def test_nothing_that_holm_rejects_among_the_testable_is_lost(found, alpha):
    chosen = Family(tuple(found), alpha)
    continuous = tuple(Hypothesis(OneSided(own.test.p, own.test.floor), own.weight) for own in found)
    coarse = Family(continuous, alpha)
    assert chosen.testable == coarse.testable
    for fine, rough in zip(chosen.adjusted, coarse.adjusted, strict=True):
        assert fine <= rough * (1 + 1e-9)


@given(criteria())
def test_the_quoted_level_is_reached_by_a_p_value_that_would_be_significant(found):
    judged = Family(tuple(found))
    for index, own in enumerate(found):
        level = judged.level(index, own.test.floor)
        lower = [p for p in own.test.attainable if p <= level]
        if lower and index in judged.testable:
            changed = Hypothesis(OneSided(lower[-1], own.test.floor, own.test.attainable), own.weight)
            assert significant(Family((*found[:index], changed, *found[index + 1 :])).adjusted[index])


@pytest.mark.parametrize(("old_trials", "new_trials"), [(5, 5), (20, 10), (3, 16)])
def test_all_p_values_that_fishers_test_can_give_are_those_of_scipy(old_trials, new_trials):
    for passes in range(old_trials + new_trials + 1):
        new = min(passes, new_trials)
        tails = fisher_exact(passes - new, old_trials, new, new_trials)
        null = hypergeom(old_trials + new_trials, passes, new_trials)
        least, most = null.support()
        assert tails.lower.attainable == pytest.approx([null.cdf(x) for x in range(least, most + 1)])
        assert tails.higher.attainable == pytest.approx([null.sf(x - 1) for x in range(most, least - 1, -1)])
        for p in tails.lower.attainable:
            assert tails.lower.chance(p) == p
            assert tails.lower.chance(p * 0.999) < p


@cache
def chance_of(total, new) -> float:
    """That five of ten trials have so many of all passes."""
    return float(hypergeom(10, total, 5).pmf(new))


@pytest.mark.parametrize("alpha", [0.04, 0.1, 0.3])
@pytest.mark.parametrize("passes", [(5, 5, 5), (6, 5, 4), (9, 5, 5), (5, 6, 5, 4)])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0, 1.0), (1.0, 0.1, 0.1, 1.0)])
def test_the_chance_of_any_false_call_counted_over_all_arrangements_is_within_the_error(alpha, passes, weights):
    wrong = 0.0
    for arrangement in product(*(range(max(0, total - 5), min(total, 5) + 1) for total in passes)):
        tests = [fisher_exact(total - new, 5, new, 5).lower for total, new in zip(passes, arrangement, strict=True)]
        found = Family(tuple(map(Hypothesis, tests, weights)), alpha)
        if any(significant(p, alpha) for p in found.adjusted):
            wrong += prod(map(chance_of, passes, arrangement))
    assert 0 < wrong <= alpha * (1 + 1e-9)


def test_among_ten_suites_of_wavering_criteria_more_falls_are_seen_than_by_holm():
    chance = random.Random(16)

    def criterion(rate) -> OneSided:
        old, new = (sum(chance.random() < p for _ in range(n)) for n, p in ((20, 0.9), (10, rate)))
        return fisher_exact(old, 20, new, 10).lower

    seen = seen_by_holm = 0
    for _ in range(300):
        found = [criterion(0.3), *(criterion(0.9) for _ in range(49))]
        seen += significant(Family(tuple(map(Hypothesis, found))).adjusted[0])
        seen_by_holm += significant(family(*((test.p, test.floor) for test in found)).adjusted[0])
    assert seen_by_holm <= 0.73 * 300 < 0.75 * 300 <= seen
