"""Exact permutation tests against scipy, against each other, and by their properties."""

import random
from itertools import combinations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zelda_ci.compare.exact_tests import ENUMERATED, Tails, fisher_exact, permutation_test, sign_flip_test


def difference_of_means(x, y, axis):
    return x.mean(axis=axis) - y.mean(axis=axis)


def mean(x, axis):
    return x.mean(axis=axis)


def scipy_p(samples, statistic, permutation_type="independent") -> tuple[float, float]:
    """The p-values of a fall and of a rise, from every arrangement, of which scipy looks at each once."""
    found = stats.permutation_test(
        samples, statistic, permutation_type=permutation_type, vectorized=True, n_resamples=inf, alternative="less"
    )
    rounding = 1e-12 * max(1.0, abs(found.statistic))
    return float(found.pvalue), float((found.null_distribution >= found.statistic - rounding).mean())


def p_values(tails: Tails) -> tuple[float, float]:
    return tails.lower.p, tails.higher.p


@pytest.mark.parametrize("size", [(2, 2), (3, 3), (2, 9), (5, 3), (6, 6)])
@pytest.mark.parametrize("seed", range(3))
def test_small_samples_of_any_numbers_agree_with_scipy(size, seed):
    chance = random.Random(seed)
    a, b = ([chance.gauss(0.1 * shift, 1) for _ in range(n)] for shift, n in enumerate(size))
    assert p_values(permutation_test(a, b)) == pytest.approx(scipy_p((b, a), difference_of_means))


@pytest.mark.parametrize(("seed", "size"), [(0, (8, 8)), (1, (8, 8)), (2, (9, 7))])
def test_larger_samples_of_scores_agree_with_scipy(seed, size):
    chance = random.Random(seed)
    a, b = ([float(chance.randrange(0, 101, 5)) for _ in range(n)] for n in size)
    assert p_values(permutation_test(a, b)) == pytest.approx(scipy_p((b, a), difference_of_means))


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


def test_complete_separation_is_one_arrangement_of_all():
    low, high = [float(n) for n in range(10)], [n + 0.5 for n in range(10, 20)]
    assert permutation_test(low[:3], high[:3]).higher.p == pytest.approx(1 / 20)
    assert permutation_test(low, high).higher.p == pytest.approx(1 / 184_756)


def test_numbers_that_are_all_equal_can_show_nothing():
    found = permutation_test([80.0] * 3, [80.0] * 3)
    assert found.lower.p == found.lower.floor == 1.0


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


@given(numbers, numbers, st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(a, b, chance):
    shuffled_a, shuffled_b = chance.sample(a, len(a)), chance.sample(b, len(b))
    assert permutation_test(a, b) == permutation_test(shuffled_a, shuffled_b)


@given(numbers, numbers)
def test_calling_the_sides_by_each_others_name_turns_the_direction_round(a, b):
    assert permutation_test(a, b).lower.p == pytest.approx(permutation_test(b, a).higher.p)


def test_hundreds_of_trials_a_side_are_approximated_in_both_directions():
    chance = random.Random(1)
    a = [chance.gauss(0, 1) for _ in range(150)]
    b = [chance.gauss(0.25, 1) for _ in range(120)]
    theirs = stats.permutation_test(
        (b, a), difference_of_means, vectorized=True, n_resamples=5_000, alternative="greater", rng=1
    )
    assert permutation_test(a, b).higher.p == pytest.approx(theirs.pvalue, abs=0.008)
    assert permutation_test(a, b).higher.p == pytest.approx(permutation_test(b, a).lower.p)


def test_the_limit_of_enumeration_is_six_against_six():
    assert len(list(combinations(range(12), 6))) <= ENUMERATED < len(list(combinations(range(14), 7)))


@pytest.mark.parametrize("pairs", [2, 4, 9, 12])
@pytest.mark.parametrize("seed", range(5))
def test_paired_differences_agree_with_scipy(pairs, seed):
    chance = random.Random(seed)
    differences = [float(chance.randrange(-100, 101)) or 1.0 for _ in range(pairs)]
    assert p_values(sign_flip_test(differences)) == pytest.approx(scipy_p((differences,), mean, "samples"))


def test_darwins_maize_gives_fishers_own_number():
    # Fisher, The Design of Experiments, section 21: 15 pairs, in eighths of an inch; 863 of 32,768 sums of the signs
    # are at least as large as the observed one.
    eighths = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sign_flip_test(eighths).higher.p == pytest.approx(863 / 2**15, abs=1e-12)


def test_unchanged_pairs_tell_nothing():
    assert sign_flip_test([0.0, 0.0]).lower.floor == 1.0
    assert sign_flip_test([0.0, -3.0, -4.0]).lower == sign_flip_test([-3.0, -4.0]).lower


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=60))
def test_turning_every_difference_round_turns_the_direction_round(differences):
    there, back = sign_flip_test(differences), sign_flip_test([-difference for difference in differences])
    assert there.lower.p == pytest.approx(back.higher.p)
    assert 0 < there.lower.floor <= there.lower.p <= 1
