"""Exact tests of two samples, what many of them are worth together, and how large a change may be.

Fisher's test for pass rates, permutations for numbers, within strata where there are; Holm's correction of those that
Tarone's screening leaves; a confidence interval of the difference of one number by itself.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations, islice
from math import atan, comb, cos, fsum, hypot, pi, sin, sqrt
from statistics import NormalDist
from typing import NamedTuple

from zelda_ci.compare.sides import deviation, mean

# Up to so many arrangements (6 against 6) each is looked at.
ENUMERATED = 1000
# Resolution when each arrangement is looked at: only to make equal sums equal in spite of floating point.
FINE_STEPS = 10**12
# Resolution of the counting, shared among the numbers. Scores, turns and the like lie on so few steps that they are
# counted as they are; other numbers (10 against 10) are first rounded to a thousandth of their range. The test is
# exact for the rounded numbers, because they are rounded alike whichever side they are on.
SHARED_STEPS = 20_000
# The same for strata, of which each sum of one meets each of the others.
STRATA_STEPS = 6000
# Above so many numbers the sum is so close to normal that its mean and variance do.
COUNTED = 200
# Chance that a comparison of two equal sides claims any regression; the same again for any improvement.
# What users are promised is 5 %; the rest is for numbers over all suites.
ALPHA = 0.04
_ROUNDING = 1 + 1e-9  # 1/25 must count as 0.04
# Chance that the true change lies beyond one end.
TAIL = 0.025
NORMAL = NormalDist().inv_cdf(1 - TAIL)


class OneSided(NamedTuple):
    """A one-sided test: its p-value and the smallest p-value any arrangement of the same data could have given."""

    p: float
    floor: float


class Tails(NamedTuple):
    """Both one-sided tests of one question: is the candidate lower, is it higher?"""

    lower: OneSided
    higher: OneSided


NO_DIFFERENCE = Tails(OneSided(1.0, 1.0), OneSided(1.0, 1.0))


def _tails(at_most: float, at_least: float, lowest: float, highest: float, of: int) -> Tails:
    return Tails(OneSided(at_most / of, lowest / of), OneSided(at_least / of, highest / of))


@lru_cache(maxsize=100_000)
def fisher_exact(passed_a: int, trials_a: int, passed_b: int, trials_b: int) -> Tails:
    """Is B's pass rate lower, or higher, than A's?

    Fisher, The Design of Experiments (1935), chapter II: with both margins held, B's passes X are hypergeometric,
    P(X = x) = C(K, x) C(N - K, n - x) / C(N, n) for n = B's trials, K = all passes, N = all trials;
    `lower` is P(X <= observed), `higher` is P(X >= observed). All sums are of integers.
    """
    total, passes = trials_a + trials_b, passed_a + passed_b
    least, most = max(0, passes - trials_a), min(passes, trials_b)
    ways = [comb(passes, x) * comb(total - passes, trials_b - x) for x in range(least, most + 1)]
    position = passed_b - least
    return _tails(sum(ways[: position + 1]), sum(ways[position:]), ways[0], ways[-1], comb(total, trials_b))


def pass_rate_test(a: Sequence[float], b: Sequence[float]) -> Tails:
    """Fisher's test of outcomes that are 0 or not."""
    return fisher_exact(len(a) - a.count(0.0), len(a), len(b) - b.count(0.0), len(b))


def permutation_test(a: Sequence[float], b: Sequence[float]) -> Tails:
    """Are B's numbers lower, or higher, than A's? Both sides need at least one.

    Pitman, Significance Tests Which May Be Applied to Samples from Any Populations (1937): the share of all
    C(n_a + n_b, n_b) ways to call n_b of the pooled numbers "B" whose mean is at most (at least) the observed one.
    """
    pooled = [*a, *b]
    if min(pooled) == max(pooled):
        return NO_DIFFERENCE
    if len(pooled) > COUNTED:
        center, variance = mean(pooled), len(b) / len(pooled) * len(a) * deviation(pooled) ** 2
        return _normal_tails(fsum(value - center for value in b), variance)
    arrangements = comb(len(pooled), len(b))
    count = _count_by_enumeration if arrangements <= ENUMERATED else _count_by_polynomial
    at_most, at_least = count(pooled, len(a))
    lowest, highest = _extremes(sorted(pooled), len(b)), _extremes(sorted(pooled, reverse=True), len(b))
    return _tails(at_most, at_least, lowest, highest, arrangements)


def stratified_permutation_test(strata: Sequence[tuple[tuple[float, ...], tuple[float, ...]]]) -> Tails:
    """Do B's numbers lie lower, or higher, than A's, over strata of which each has numbers on both sides?

    Pitman's test with permutations within the strata alone: the share of all ways to call as many numbers of each
    stratum "B" whose sum over all strata is at most (at least) the observed one. The sums of a stratum are counted, and
    those of all strata by convolution, on steps shared among the numbers, as in `permutation_test`. With one number a
    side in each stratum it is Fisher's test for paired differences, The Design of Experiments (1935), section 21.
    """
    pooled = [value for a, b in strata for value in (*a, *b)]
    if min(pooled) == max(pooled):
        return NO_DIFFERENCE
    if len(pooled) > COUNTED:
        spread = fsum(len(a) * len(b) * deviation(a + b) ** 2 / len(a + b) for a, b in strata)
        centers = fsum(fsum(b) - len(b) * mean(a + b) for a, b in strata)
        return _normal_tails(centers, spread) if spread else NO_DIFFERENCE
    grid = iter(_on_steps(_shares(pooled), STRATA_STEPS))
    chances, observed = {0: 1.0}, 0
    for a, b in strata:
        numbers = list(islice(grid, len(a) + len(b)))
        observed += sum(numbers[len(a) :])
        sums, further = _sums(numbers, len(b)), dict[int, float]()
        for one, chance in chances.items():
            for other, its_chance in sums.items():
                further[one + other] = further.get(one + other, 0.0) + chance * its_chance
        chances = further
    at_most = fsum(chance for total, chance in chances.items() if total <= observed)
    at_least = fsum(chance for total, chance in chances.items() if total >= observed)
    return _tails(min(1.0, at_most), min(1.0, at_least), chances[min(chances)], chances[max(chances)], 1)


def _sums(numbers: Sequence[int], size: int) -> dict[int, float]:
    """The chance of each sum of so many of the numbers."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(size))]
    for number in numbers:
        for chosen in range(size, 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + number] += count
    everything = comb(len(numbers), size)
    return {total: count / everything for total, count in ways[size].items()}


def _normal_tails(total: float, variance: float) -> Tails:
    normal = NormalDist(0, sqrt(variance))
    return _tails(normal.cdf(total), normal.cdf(-total), 0.0, 0.0, 1)


def _shares(values: Sequence[float]) -> list[float]:
    """Where each value lies between the least, 0, and the greatest, 1."""
    least = min(values)
    width = max(values) - least
    return [(value - least) / width for value in values]


def _on_steps(shares: Sequence[float], shared: int = SHARED_STEPS) -> list[int]:
    """Shares as whole numbers: exact where all lie on few enough equal steps, otherwise rounded."""
    most = max(shared // len(shares), 50)
    steps = 1
    for share in shares:
        if abs(share * steps - round(share * steps)) > 1e-6:
            steps *= Fraction(share * steps).limit_denominator(max(1, most // steps)).denominator
    exact = all(abs(share * steps - round(share * steps)) <= 1e-6 for share in shares)
    return [round(share * (steps if exact else most)) for share in shares]


def _count_by_enumeration(pooled: Sequence[float], n_a: int) -> tuple[int, int]:
    """Arrangements whose B sum is at most, and at least, the observed one."""
    grid = [round(share * FINE_STEPS) for share in _shares(pooled)]
    observed = sum(grid[n_a:])
    slack = len(grid)  # of rounding, in steps
    sums = [sum(chosen) for chosen in combinations(grid, len(grid) - n_a)]
    return sum(total <= observed + slack for total in sums), sum(total >= observed - slack for total in sums)


def _count_by_polynomial(pooled: Sequence[float], n_a: int) -> tuple[int, int]:
    grid = _on_steps(_shares(pooled))
    n_b = len(grid) - n_a
    observed = sum(grid[n_a:])
    arrangements = comb(len(grid), n_b)
    bits = (arrangements + 1).bit_length() + 1
    by_size = [1] + [0] * n_b
    for remaining, value in zip(range(len(grid) - 1, -1, -1), grid, strict=True):
        # Sets that the numbers left over cannot complete any more are not counted.
        for size in range(n_b, max(0, n_b - remaining - 1), -1):
            by_size[size] += by_size[size - 1] << value * bits
    return arrangements - _tail(by_size[n_b], observed + 1, bits), _tail(by_size[n_b], observed, bits)


def _tail(polynomial: int, power: int, bits: int) -> int:
    """Sum of the coefficients from `power` up: digits in base 2^bits leave the same remainder as their sum."""
    return (polynomial >> power * bits) % ((1 << bits) - 1)


def _extremes(ranked: Sequence[float], size: int) -> int:
    """How many choices of `size` numbers are as extreme as the first ones: more than one where the last is tied."""
    edge = ranked[size - 1]
    return comb(ranked.count(edge), ranked[:size].count(edge))


# --- many tests, one promise: few comparisons of equal sides claim anything ------------------------------------------


# A test in one direction, and the share of the error that it may use, relative to the others.
Hypothesis = tuple[OneSided, float]


def significant(p: float, alpha: float = ALPHA) -> bool:
    """Whether a p-value counts, floating point aside."""
    return p <= alpha * _ROUNDING


def adjust(hypotheses: Sequence[Hypothesis], alpha: float) -> list[float]:
    """Adjusted p-values in the order given; 1 for hypotheses that no data could have rejected.

    Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979), with the weights of its section 4: ordered by
    p / w, each is multiplied by the weights of all that are not yet passed.
    """
    adjusted = [1.0] * len(hypotheses)
    ratios = [test.p / weight for test, weight in hypotheses]
    ordered = sorted(reachable(hypotheses, alpha), key=lambda index: ratios[index], reverse=True)
    left = accumulate(hypotheses[index][1] for index in ordered)
    reached = 0.0
    for index, weight in reversed(list(zip(ordered, left, strict=True))):
        reached = adjusted[index] = max(reached, min(1.0, ratios[index] * weight))
    return adjusted


def reachable(hypotheses: Sequence[Hypothesis], alpha: float) -> frozenset[int]:
    """Positions of the hypotheses that could be rejected: no other costs them anything.

    Tarone, A Modified Bonferroni Method for Discrete Data (1990): the largest group of the best reaching hypotheses in
    which each, with the most extreme arrangement of its data, would pass the Bonferroni bound of the group. What a test
    can reach follows from the pooled data alone, whichever side each trial was on, so that it favours no result.
    """
    reach = [test.floor / weight for test, weight in hypotheses]
    ranked = sorted(zip(reach, (weight for _, weight in hypotheses), strict=True))
    weights = accumulate(weight for _, weight in ranked)
    # Those that reach alike are in or out together: the last of them has the weight of all.
    groups = {least: weight for (least, _), weight in zip(ranked, weights, strict=True)}
    limit = max((least for least, weight in groups.items() if significant(least * weight, alpha)), default=-1.0)
    return frozenset(index for index, least in enumerate(reach) if least <= limit)


# --- how large a change may be ----------------------------------------------------------------------------------------

Interval = tuple[float, float]


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
    return (1 - (2 / pi * (theta + series) if odd else series)) / 2


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
    """The change of a pass rate; outcomes and change are in percent."""
    # Newcombe, Interval Estimation for the Difference between Independent Proportions (1998), method 10.
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
