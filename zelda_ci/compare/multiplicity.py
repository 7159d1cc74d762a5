"""Many hypotheses, one promise: few comparisons of equal sides claim anything."""

from collections.abc import Sequence
from itertools import accumulate

from zelda_ci.compare.exact_tests import OneSided

# Chance that a comparison of two equal sides claims any regression; the same again for any improvement.
#
# What users are promised is 5 %. The rest is for numbers over all suites.
ALPHA = 0.04

_ROUNDING = 1 + 1e-9  # 1/25 must count as 0.04

# A test in one direction, and the share of the error that it may use, relative to the others.
Hypothesis = tuple[OneSided, float]


def significant(p: float, alpha: float = ALPHA) -> bool:
    """Whether a p-value counts, floating point aside."""
    return p <= alpha * _ROUNDING


def adjust(hypotheses: Sequence[Hypothesis], alpha: float = ALPHA) -> list[float]:
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
    can reach follows from the pooled data alone, whichever side each trial was on, so choosing by it cannot favour a
    result.
    """
    reach = [test.floor / weight for test, weight in hypotheses]
    ranked = sorted(zip(reach, (weight for _, weight in hypotheses), strict=True))
    weights = accumulate(weight for _, weight in ranked)
    # Those that reach alike are in or out together: the last of them has the weight of all.
    groups = {least: weight for (least, _), weight in zip(ranked, weights, strict=True)}
    limit = max((least for least, weight in groups.items() if significant(least * weight, alpha)), default=-1.0)
    return frozenset(index for index, least in enumerate(reach) if least <= limit)
