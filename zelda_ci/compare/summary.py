"""Numbers over the trials of one side."""

from collections.abc import Sequence
from math import fsum, sqrt

from zelda_ci.domain.comparison import Summary


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value."""
    return fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation of at least two values."""
    center = mean(values)
    return sqrt(fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def summarize(values: Sequence[float]) -> Summary | None:
    """Mean, range and spread; nothing without values."""
    if not values:
        return None
    spread = deviation(values) if len(values) > 1 else None
    return Summary(trials=len(values), mean=mean(values), minimum=min(values), maximum=max(values), deviation=spread)
