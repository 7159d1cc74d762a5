"""What a comparison of this size can tell from noise: the smallest drop, and the trials that a given drop needs."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from math import atan, comb, cos, pi, sin, sqrt

from zelda_ci.compare.exact_tests import fisher_exact
from zelda_ci.compare.multiplicity import significant
from zelda_ci.compare.sides import deviation


def student_t_upper(t: float, freedom: int) -> float:
    """P(T > t) for t >= 0: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4."""
    theta = atan(t / sqrt(freedom))
    cosine = cos(theta)
    odd = freedom % 2
    term = sin(theta) * (cosine if odd else 1.0)
    series = 0.0
    for k in range(2 + odd, freedom + 1, 2):
        series += term
        term *= (k - 1) / k * cosine * cosine
    if not odd:
        return (1 - series) / 2
    return (1 - 2 / pi * (theta + series)) / 2


@lru_cache(maxsize=10_000)
def student_t_quantile(upper: float, freedom: int) -> float:
    """The t that is exceeded with probability `upper`, which lies in (0, 0.5]; found by bisection."""
    low, high = 0.0, 1.0
    while student_t_upper(high, freedom) > upper and high < 1e12:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_t_upper(middle, freedom) > upper else (low, middle)
    return high


# Numbers of trials per side that are tried; nobody pays for more.
TRIALS: tuple[int, ...] = (*range(2, 31), *range(32, 51, 2), *range(55, 101, 5), 120, 150, 200)


@lru_cache(maxsize=20_000)
def detectable_pass_drop(passed: int, trials: int, new_trials: int, level: float) -> float | None:
    """Points between the old pass rate and the largest new one whose Fisher test would reach `level`."""
    for new in range(new_trials, -1, -1):
        drop = 100 * (passed / trials - new / new_trials)
        if drop > 0 and significant(fisher_exact(passed, trials, new, new_trials).lower.p, level):
            return drop
    return None


def detectable_difference(spread: float, trials: int, new_trials: int, level: float) -> float | None:
    """The difference of two means that would reach `level`: Fisher's least significant difference.

    t(level, n_a + n_b - 2) s sqrt(1/n_a + 1/n_b), where the t test stands for the permutation test, whose critical
    value it approximates (Fisher, 1935, section 21); `spread` is the standard deviation within a side. None where
    even the most extreme arrangement of so few numbers would not do.
    """
    if not significant(1 / comb(trials + new_trials, trials), level):
        return None
    quantile = student_t_quantile(level, trials + new_trials - 2)
    return quantile * spread * sqrt(1 / trials + 1 / new_trials)


def detectable_paired(differences: Sequence[float], level: float) -> float | None:
    """The mean of paired differences that would reach `level`: t(level, n - 1) s / sqrt(n)."""
    pairs = len(differences)
    if pairs < 2 or not significant(0.5**pairs, level):
        return None
    return student_t_quantile(level, pairs - 1) * deviation(differences) / sqrt(pairs)


@lru_cache(maxsize=20_000)
def trials_for_pass_rates(old: float, new: float, level: float) -> int | None:
    """Trials per side at which these two rates (0 to 1, either order) would be told apart; None: over 200."""
    low, high = sorted((old, new))
    return next((n for n in TRIALS if significant(_rounded_fisher(high, low, n), level)), None)


def trials_for_difference(change: float, spread: float, level: float) -> int | None:
    """Trials per side at which two means so far apart would be told apart; None: over 200."""
    index = bisect_left(TRIALS, True, key=lambda n: _shows(change, spread, n, level))  # noqa: FBT003 - a sorted flag
    return TRIALS[index] if index < len(TRIALS) else None


def pooled_deviation(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """Standard deviation within sides of at least two numbers each."""
    freedom = len(baseline) + len(candidate) - 2
    squares = sum((len(side) - 1) * deviation(side) ** 2 for side in (baseline, candidate))
    return sqrt(squares / freedom)


def _shows(change: float, spread: float, trials: int, level: float) -> bool:
    least = detectable_difference(spread, trials, trials, level)
    return least is not None and least <= abs(change)


def _rounded_fisher(high: float, low: float, trials: int) -> float:
    return fisher_exact(round(high * trials), trials, round(low * trials), trials).lower.p
