"""Many hypotheses, one promise: few comparisons of equal sides claim anything."""

from bisect import bisect_right
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

_HALVINGS = 40
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
        limit, _ = self._largest_group(0.0, 0.0)
        return frozenset(index for index, hypothesis in enumerate(self.hypotheses) if hypothesis.reach <= limit)

    def level(self, index: int, floor: float) -> float:
        """What a p-value of this hypothesis must reach if it alone is false; 0 where none will do.

        Args:
            index: Its position.
            floor: The smallest p-value of its test if its data were as different as can be.
        """
        own = self.hypotheses[index]
        is_counted = index in self.testable
        limit, weight = self._largest_group(*(0.0, 0.0) if is_counted else (floor / own.weight, own.weight))
        if not weight:
            return 0.0
        ratio, total = self._critical(limit)
        others = total - (_kind(own).chance(ratio) if is_counted else 0.0)
        return max(self.alpha * own.weight / weight, min(ratio * own.weight, self.alpha - others))

    def eventual_level(self, index: int) -> float:
        """The same with trials enough that every hypothesis whose data vary can be rejected."""
        own = self.hypotheses[index]
        return self.alpha * own.weight / (self._varying + (own.weight if own.test.floor >= 1 else 0))

    @cached_property
    def _varying(self) -> float:
        """Weight of the hypotheses whose data are not all equal."""
        return sum(hypothesis.weight for hypothesis in self.hypotheses if hypothesis.test.floor < 1)

    @cached_property
    def _ranked(self) -> tuple[list[float], list[float]]:
        """Reaches in ascending order, and the weight of each with all before it."""
        ordered = sorted((hypothesis.reach, hypothesis.weight) for hypothesis in self.hypotheses)
        return [reach for reach, _ in ordered], list(accumulate(weight for _, weight in ordered))

    def _weight_up_to(self, reach: float) -> float:
        reaches, weights = self._ranked
        count = bisect_right(reaches, reach)
        return weights[count - 1] if count else 0.0

    def _largest_group(self, reach: float, weight: float) -> tuple[float, float]:
        """Reach and weight of the largest group that has one more, given, hypothesis in it; weight 0: there is none."""
        if (reach, weight) not in self._groups:
            self._groups[reach, weight] = self._find_group(reach, weight)
        return self._groups[reach, weight]

    def _critical(self, limit: float) -> tuple[float, float]:
        """The largest p / w, nearly, whose chance in the group up to this reach is within the error; and the chance."""
        if limit not in self._criticals:
            kinds = Counter(_kind(hypothesis) for hypothesis in self.hypotheses if hypothesis.reach <= limit)
            low, high = 0.0, self.alpha / min(kind.weight for kind in kinds) if kinds else self.alpha
            low_total = 0.0
            for _ in range(_HALVINGS if kinds else 0):
                middle = (low + high) / 2
                total = fsum(count * kind.chance(middle) for kind, count in kinds.items())
                low, low_total, high = (middle, total, high) if total <= self.alpha else (low, low_total, middle)
            self._criticals[limit] = (low, low_total) if kinds else (high, 0.0)
        return self._criticals[limit]

    @cached_property
    def _criticals(self) -> dict[float, tuple[float, float]]:
        return {}

    @cached_property
    def _groups(self) -> dict[tuple[float, float], tuple[float, float]]:
        return {}

    def _find_group(self, reach: float, weight: float) -> tuple[float, float]:
        for limit in sorted({*self._ranked[0], reach}, reverse=True):
            total = self._weight_up_to(limit) + weight
            if limit >= reach and total and significant(limit * total, self.alpha):
                return limit, total
        return -1.0, 0.0
