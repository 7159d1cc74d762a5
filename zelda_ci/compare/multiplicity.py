"""Many hypotheses, one promise: few comparisons of equal sides claim anything."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import fsum
from typing import NamedTuple

from zelda_ci.compare.exact_tests import OneSided

# Chance that a comparison of two equal sides claims any regression; the same again for any improvement.
#
# What users are promised is 5 %. The rest is the margin that keeps the promise visible in a few thousand comparisons.
ALPHA = 0.04

_ROUNDING = 1 + 1e-9  # 1/25 must count as 0.04


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One test in one direction, and the share of the error that it may use, relative to the others."""

    test: OneSided
    weight: float = 1.0

    @property
    def reach(self) -> float:
        """The least that p / weight could have been with these data."""
        return self.test.floor / self.weight


def significant(p: float, alpha: float = ALPHA) -> bool:
    """Whether a p-value counts, floating point aside."""
    return p <= alpha * _ROUNDING


def step_down(hypotheses: Sequence[Hypothesis]) -> list[float]:
    """Adjusted p-values in the order given, by Holm's step-down method with the levels that discrete data can reach.

    Ordered by p / w, each becomes the chance that any of those not yet passed has a p / w so small if nothing changed:
    the sum of their own chances at most (Westfall and Wolfinger, Multiple Tests with Discrete Distributions, 1997).
    Where a test's p-values are not known one by one, the chance of p <= t is bounded by t. If so for all, this is
    Holm's, A Simple Sequentially Rejective Multiple Test Procedure (1979), with the weights of its section 4; it is
    never more than that, since no chance is more than t. An adjusted value is never below one before
    it, and never above 1.
    """
    ratios = [hypothesis.test.p / hypothesis.weight for hypothesis in hypotheses]
    remaining = Counter(map(_kind, hypotheses))
    adjusted = [1.0] * len(ratios)
    reached = 0.0
    for index in sorted(range(len(ratios)), key=ratios.__getitem__):
        total = fsum(count * kind.chance(ratios[index]) for kind, count in remaining.items() if count)
        reached = adjusted[index] = max(reached, min(1.0, total))
        if reached >= 1:
            break
        remaining[_kind(hypotheses[index])] -= 1
    return adjusted


class _HypothesisKind(NamedTuple):
    """Hypotheses that have the same chances."""

    weight: float
    floor: float
    attainable: tuple[float, ...]

    def chance(self, ratio: float) -> float:
        """A bound on the chance that p / w is at most this."""
        return OneSided(1.0, self.floor, self.attainable).chance(ratio * self.weight)


def _kind(hypothesis: Hypothesis) -> _HypothesisKind:
    return _HypothesisKind(hypothesis.weight, hypothesis.test.floor, hypothesis.test.attainable)


@dataclass(frozen=True)
class Family:
    """Hypotheses corrected together.

    Only those that could be rejected are corrected for, after Tarone, A Modified Bonferroni Method for Discrete Data
    (1990): the largest group of the best reaching hypotheses in which each, with the most extreme arrangement of its
    data, would pass the Bonferroni bound of the group. What a test can reach follows from the pooled data alone,
    whichever side each trial was on, so choosing by it cannot favour a result.
    """

    hypotheses: tuple[Hypothesis, ...]
    alpha: float = ALPHA

    @cached_property
    def adjusted(self) -> tuple[float, ...]:
        """Adjusted p-values in the order given; 1 for hypotheses that no data could have rejected."""
        chosen = sorted(self.testable)
        corrected = step_down([self.hypotheses[index] for index in chosen])
        by_index = dict(zip(chosen, corrected, strict=True))
        return tuple(by_index.get(index, 1.0) for index in range(len(self.hypotheses)))

    @cached_property
    def testable(self) -> frozenset[int]:
        """Positions of the hypotheses that could be rejected."""
        ranked = sorted((hypothesis.reach, hypothesis.weight) for hypothesis in self.hypotheses)
        weights = accumulate(weight for _, weight in ranked)
        # Those that reach alike are in or out together: the last of them has the weight of all.
        groups = {reach: weight for (reach, _), weight in zip(ranked, weights, strict=True)}
        limit = max(
            (reach for reach, weight in groups.items() if significant(reach * weight, self.alpha)), default=-1.0
        )
        return frozenset(index for index, hypothesis in enumerate(self.hypotheses) if hypothesis.reach <= limit)
