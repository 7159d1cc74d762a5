"""How likely outcomes of sessions are that felt a change or a share of it, whatever sessions do with and without it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import comb, exp, fsum, lgamma, log, pi, sqrt
from statistics import NormalDist

from zelda_ci.compare.exact_tests import fisher_exact, significant
from zelda_ci.compare.sides import mean

Trial = tuple[float, float]
"""Share of the change that a session felt, and its outcome."""


@dataclass(frozen=True)
class Fit:
    evidence: float
    """Logarithm of the likelihood of all outcomes."""
    good: Callable[[float], float]
    """Chance that a session which feels a share of the change is like those of the base."""


# Rates that sessions may pass at, all equally likely beforehand.
_RATES = [(step + 0.5) / 20 for step in range(20)]
_PAIRS = len(_RATES) * (len(_RATES) - 1) / 2
# A criterion that did not change is one that sessions mostly meet.
_MOSTLY = [3 * rate**2 / len(_RATES) for rate in _RATES]


def fit_rates(trials: Sequence[Trial], *, is_equal: bool) -> Fit:
    """Fit pass rates without the change and, lower, with it, or one for both, on a grid."""
    without, having = ([outcome == 100 for felt, outcome in trials if felt == side] for side in (0.0, 1.0))
    return _fit_counts((sum(without), len(without)), (sum(having), len(having)), is_equal=is_equal)


@lru_cache(maxsize=10_000)
def _fit_counts(without: tuple[int, int], having: tuple[int, int], *, is_equal: bool) -> Fit:
    """Fit as `fit_rates`, by how many passed of how many; many hypotheses say the same."""
    healthy, broken = (
        [rate**passed * (1 - rate) ** (trials - passed) for rate in _RATES] for passed, trials in (without, having)
    )
    # Of each rate without the change, those with it that are lower.
    partners = list(map(float.__mul__, broken, _MOSTLY)) if is_equal else [0.0, *accumulate(broken[:-1])]
    likely = list(map(float.__mul__, healthy, partners))
    total = fsum(likely)
    rate = lower = fsum(map(float.__mul__, likely, _RATES)) / total
    if not is_equal:
        lowered = accumulate(map(float.__mul__, broken[:-1], _RATES), initial=0.0)
        lower = fsum(map(float.__mul__, healthy, lowered)) / total
    return Fit(log(total if is_equal else total / _PAIRS), lambda felt: lower if felt else rate)


@lru_cache
def chance_to_find(base: int, head: int, *, is_equal: bool) -> float:
    """How likely a comparison of so many trials finds that a suite got worse."""
    return fsum(
        comb(base, a) * comb(head, b) * exp(_fit_counts((a, base), (b, head), is_equal=is_equal).evidence)
        for a in range(base + 1)
        for b in range(head + 1)
        if significant(fisher_exact(a, base, b, head).lower.p)
    )


# Of logarithms, as if one value more had been seen: a measure that never varies proves nothing by itself.
SPREAD = 0.05


def fit_measure(trials: Sequence[Trial], *, is_equal: bool, better_than: float) -> Fit:
    """Fit logarithms of a measure that lie on a line over what was felt, or around one value, with unknown spread."""
    felt, values = [it for it, _ in trials], [log(it) for _, it in trials]
    n, center, middle = len(trials), mean(values), mean(felt)
    width = fsum((it - middle) ** 2 for it in felt)
    slope = 0.0 if is_equal else fsum((x - middle) * y for x, y in zip(felt, values, strict=True)) / width
    fitted = 1 if is_equal else 2
    rest = fsum((y - center - slope * (x - middle)) ** 2 for x, y in zip(felt, values, strict=True)) + SPREAD**2
    freedom = n - fitted + 1
    evidence = lgamma(freedom / 2) - freedom / 2 * log(pi * rest) - log(n * (1 if is_equal else width)) / 2
    spread = sqrt(rest / freedom)
    return Fit(evidence, lambda share: NormalDist(center + slope * (share - middle), spread).cdf(log(better_than)))
