"""Fisher's exact test for two pass rates."""

from dataclasses import dataclass
from functools import lru_cache
from math import comb


@dataclass(frozen=True, slots=True)
class OneSided:
    """A one-sided test: its p-value and the smallest p-value any arrangement of the same data could have given."""

    p: float
    floor: float


@dataclass(frozen=True, slots=True)
class Tails:
    """Both one-sided tests of one question: is the candidate lower, is it higher?"""

    lower: OneSided
    higher: OneSided


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
    everything = comb(total, trials_b)
    at = passed_b - least
    return Tails(
        lower=OneSided(sum(ways[: at + 1]) / everything, ways[0] / everything),
        higher=OneSided(sum(ways[at:]) / everything, ways[-1] / everything),
    )
