"""The questions a comparison asks: one per criterion and measure of a suite, and one per measure over all suites."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

from zelda_ci.compare.fisher import Tails, fisher_exact
from zelda_ci.compare.multiplicity import significant
from zelda_ci.compare.permutation import permutation_test, sign_flip_test
from zelda_ci.compare.scales import PASS_RATE, Scale
from zelda_ci.compare.summary import mean

Method = Literal["threshold", "fisherExact", "permutation", "signFlip"]


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers of both sides, and what stands between them."""

    baseline: tuple[float, ...]
    candidate: tuple[float, ...]
    obstacles: tuple[str, ...] = ()
    """Why the answer means nothing; it is `inconclusive` unless `mixed`."""
    mixed: bool = False
    """Answer in spite of obstacles, without consequences."""

    @property
    def answerable(self) -> bool:
        """Both sides have the number and may be compared."""
        return bool(self.baseline and self.candidate) and (self.mixed or not self.obstacles)

    @property
    def trials(self) -> int:
        """Of the side that has fewer."""
        return min(len(self.baseline), len(self.candidate))

    @property
    def change(self) -> float:
        """Candidate mean minus baseline mean."""
        return mean(self.candidate) - mean(self.baseline)


@dataclass(frozen=True, slots=True)
class Question:
    """Did one number change? Without `tails` only the threshold decides, or nothing does."""

    scale: Scale
    sample: Sample
    method: Method | None = None
    tails: Tails | None = None
    differences: tuple[float, ...] = ()
    """Of the pairs of a sign-flip test."""
    noise: float = 0.0
    """Smaller changes happen between two single runs of one commit, as a calibration saw."""

    @property
    def floor(self) -> float:
        """The p-value if the sides were as different as can be."""
        if self.method == "signFlip":
            return 0.5 ** len(self.differences)
        a, b = len(self.sample.baseline), len(self.sample.candidate)
        return 1 / comb(a + b, a)


def ask_pass_rate(sample: Sample) -> Question:
    """Did a criterion's pass rate change? The numbers are 0 or 100."""
    if not sample.answerable:
        return Question(PASS_RATE, sample)
    if sample.trials == 1:
        return Question(PASS_RATE, sample, "threshold")
    a, b = sample.baseline, sample.candidate
    tails = fisher_exact(sum(map(bool, a)), len(a), sum(map(bool, b)), len(b))
    return Question(PASS_RATE, sample, "fisherExact", tails)


def ask_number(scale: Scale, sample: Sample) -> Question:
    """Did the mean of a measure change within one suite?"""
    if not sample.answerable:
        return Question(scale, sample)
    if sample.trials == 1:
        return Question(scale, sample, "threshold")
    return Question(scale, sample, "permutation", permutation_test(sample.baseline, sample.candidate))


def ask_overall(scale: Scale, samples: Sequence[Sample]) -> Question:
    """Did a measure change over all suites? Each suite is one pair of means.

    A pair's difference may have its sign flipped only where both sides have as many trials; of a side that has more,
    the oldest are taken for the test. The means that are shown are of all trials.
    """
    means = Sample(
        tuple(mean(sample.baseline) for sample in samples),
        tuple(mean(sample.candidate) for sample in samples),
        mixed=any(sample.obstacles for sample in samples),
    )
    differences = tuple(_paired_difference(sample) for sample in samples)
    tails = sign_flip_test(differences)
    single = [sample.trials == 1 for sample in samples]
    if any(single) if scale.varies else all(single) and not significant(0.5 ** len(samples)):
        return Question(scale, means, "threshold")
    return Question(scale, means, "signFlip", tails, differences)


def _paired_difference(sample: Sample) -> float:
    return mean(sample.candidate[: sample.trials]) - mean(sample.baseline[: sample.trials])
