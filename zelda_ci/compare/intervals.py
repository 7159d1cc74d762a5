"""How large a change may be: a confidence interval of the difference between two sides, of one number by itself."""

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, hypot, pi, sin, sqrt
from statistics import NormalDist

from zelda_ci.compare.sides import deviation, mean

Interval = tuple[float, float]

# Chance that the true change lies beyond one end.
TAIL = 0.025
NORMAL = NormalDist().inv_cdf(1 - TAIL)


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


@lru_cache(maxsize=1000)
def student_t_quantile(upper: float, freedom: int) -> float:
    """The t that is exceeded with probability `upper`, which lies in (0, 0.5]; found by bisection."""
    low, high = 0.0, 1.0
    while student_t_upper(high, freedom) > upper:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_t_upper(middle, freedom) > upper else (low, middle)
    return high


def of_pass_rates(old: Sequence[float], new: Sequence[float]) -> Interval:
    """The change of a pass rate; outcomes and change are in percent.

    Newcombe, Interval Estimation for the Difference between Independent Proportions (1998), method 10.
    """
    (a, low_a, high_a), (b, low_b, high_b) = map(_wilson, (old, new))
    return b - a - hypot(b - low_b, high_a - a), b - a + hypot(high_b - b, a - low_a)


def of_means(old: Sequence[float], new: Sequence[float]) -> Interval | None:
    """The change of a mean, by Student's t with the spread within the sides; None where nothing varies within them."""
    freedom = len(old) + len(new) - 2
    spread = sqrt(sum((len(side) - 1) * deviation(side) ** 2 for side in (old, new)) / freedom)
    return _around(mean(new) - mean(old), freedom, spread * sqrt(1 / len(old) + 1 / len(new)))


def of_pairs(differences: Sequence[float]) -> Interval | None:
    """The mean of paired differences, by Student's t; None where they are all the same."""
    pairs = len(differences)
    return _around(mean(differences), pairs - 1, deviation(differences) / sqrt(pairs))


def _around(center: float, freedom: int, error: float) -> Interval | None:
    half = student_t_quantile(TAIL, freedom) * error
    return (center - half, center + half) if half else None


def _wilson(outcomes: Sequence[float]) -> tuple[float, float, float]:
    """A pass rate and the ends of its interval: E. B. Wilson, Probable Inference (1927)."""
    n, rate = len(outcomes), mean(outcomes) / 100
    center = rate + NORMAL**2 / (2 * n)
    half = NORMAL * sqrt(rate * (1 - rate) / n + NORMAL**2 / (4 * n * n))
    share = 100 / (1 + NORMAL**2 / n)
    return 100 * rate, max(0.0, share * (center - half)), min(100.0, share * (center + half))
