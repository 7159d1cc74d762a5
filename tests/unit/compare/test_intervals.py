"""How large a change may be, by published numbers and by scipy."""

import random

import pytest
from scipy import stats

from zelda_ci.compare.intervals import of_means, of_pairs, of_pass_rates, student_t_quantile, student_t_upper


def outcomes(passed: int, trials: int) -> tuple[float, ...]:
    return (100.0,) * passed + (0.0,) * (trials - passed)


@pytest.mark.parametrize(
    ("old", "new", "interval"),
    [
        # Newcombe (1998), table II, method 10.
        ((56, 70), (48, 80), (-33.39, -5.24)),
        ((9, 10), (3, 10), (-80.90, -17.05)),
        ((6, 7), (2, 7), (-80.62, -5.82)),
        ((5, 56), (0, 29), (-19.26, 3.81)),
        ((10, 10), (0, 10), (-100.0, -60.75)),
    ],
)
def test_the_interval_of_a_pass_rate_is_the_published_one(old, new, interval):
    assert of_pass_rates(outcomes(*old), outcomes(*new)) == pytest.approx(interval, abs=0.02)


@pytest.mark.parametrize(("old", "new"), [((5, 5), (0, 5)), ((3, 3), (3, 3)), ((0, 2), (0, 9))])
def test_the_interval_of_a_pass_rate_holds_what_was_seen_and_nothing_impossible(old, new):
    low, high = of_pass_rates(outcomes(*old), outcomes(*new))
    seen = 100 * (new[0] / new[1] - old[0] / old[1])
    assert -100 <= low <= seen <= high <= 100


@pytest.mark.parametrize(("a", "b"), [(2, 2), (3, 10), (10, 10), (2, 40)])
def test_the_interval_of_a_mean_is_that_of_scipy(a, b):
    chance = random.Random(a * b)
    old, new = ([chance.gauss(50, 9) for _ in range(n)] for n in (a, b))
    expected = stats.ttest_ind(new, old).confidence_interval()
    assert of_means(old, new) == pytest.approx((expected.low, expected.high))
    paired = stats.ttest_1samp(new, 0).confidence_interval()
    assert of_pairs(new) == pytest.approx((paired.low, paired.high))


def test_numbers_that_never_vary_have_no_interval():
    assert of_means([100.0] * 3, [80.0] * 3) is None
    assert of_pairs([-20.0] * 5) is None


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 38])
def test_quantiles_of_student_are_those_of_scipy(freedom):
    assert student_t_quantile(0.025, freedom) == pytest.approx(stats.t.isf(0.025, freedom))
    assert student_t_upper(1.5, freedom) == pytest.approx(stats.t.sf(1.5, freedom))
