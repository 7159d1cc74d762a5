"""How large a change may be, by published numbers."""

import random
from math import sqrt
from statistics import fmean, stdev, variance

import pytest

from zelda_ci.compare.inference import of_means, of_pairs, of_pass_rates, student_t_quantile, student_t_upper


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


# Upper 2.5 % points of Student's t by degrees of freedom, from any table.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 9: 2.262, 11: 2.201, 18: 2.101, 38: 2.024, 39: 2.023, 40: 2.021}


@pytest.mark.parametrize(("a", "b"), [(2, 2), (3, 10), (10, 10), (2, 40)])
def test_the_interval_of_a_mean_is_students(a, b):
    chance = random.Random(a * b)
    old, new = ([chance.gauss(50, 9) for _ in range(n)] for n in (a, b))
    pooled = ((a - 1) * variance(old) + (b - 1) * variance(new)) / (a + b - 2)
    half = STUDENT[a + b - 2] * sqrt(pooled * (1 / a + 1 / b))
    change = fmean(new) - fmean(old)
    assert of_means(old, new) == pytest.approx((change - half, change + half), rel=1e-3)
    half = STUDENT[b - 1] * stdev(new) / sqrt(b)
    assert of_pairs(new) == pytest.approx((fmean(new) - half, fmean(new) + half), rel=1e-3)


def test_numbers_that_never_vary_have_no_interval():
    assert of_means([100.0] * 3, [80.0] * 3) is None
    assert of_pairs([-20.0] * 5) is None


@pytest.mark.parametrize(("freedom", "quantile"), STUDENT.items())
def test_quantiles_of_student_are_those_of_the_tables(freedom, quantile):
    assert student_t_quantile(0.025, freedom) == pytest.approx(quantile, abs=5e-4)
    assert student_t_upper(quantile, freedom) == pytest.approx(0.025, rel=1e-3)
