"""Student's t distribution with whole degrees of freedom, as far as detectable differences need it."""

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt


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
