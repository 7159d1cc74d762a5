"""The questions a comparison asks: one per criterion and measure of a suite, and one per measure over all suites."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Literal

from zelda_ci.compare.compatibility import measure_obstacles, platform_change, session_obstacles
from zelda_ci.compare.exact_tests import Tails, fisher_exact, permutation_test, sign_flip_test
from zelda_ci.compare.multiplicity import significant
from zelda_ci.compare.sides import RunMetrics, SuiteSide, mean, mostly
from zelda_ci.domain.details import CriterionVerdict
from zelda_ci.domain.measure_spec import PASS_RATE, Scale
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.suite import ScoreLimits

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
    doubts: tuple[str, ...] = ()
    """What else may have caused a change, so that none is called; it is, without consequences, if `mixed`."""
    same_job: bool = False
    """Whether the baseline's trials were run beside the candidate's."""

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
    """Of the pairs of suites."""
    is_fact: bool = False
    """Whether a single trial is enough to call a change: commands failed that had passed, or tests are gone."""
    not_tested: str = ""
    """Why the numbers are shown and never called better or worse."""

    @property
    def threshold(self) -> float:
        """The largest change, in the direction of the one that was seen, that does not matter."""
        return self.scale.threshold(mean(self.sample.baseline), self.sample.change)

    @property
    def matters(self) -> bool:
        """Whether the change is beyond the threshold."""
        return abs(self.sample.change) > self.threshold * (1 + 1e-9)

    @property
    def is_worse(self) -> bool:
        """Whether the change is a worsening beyond the threshold: only such a one can gate."""
        return self.scale.is_worse(self.sample.change) and self.matters

    @property
    def floor(self) -> float:
        """The p-value if the sides were as different as can be."""
        if self.method == "signFlip":
            return 0.5 ** len(self.differences)
        if self.differences and self.tails:
            return max(self.tails.lower.floor, self.tails.higher.floor)
        a, b = len(self.sample.baseline), len(self.sample.candidate)
        return 1 / comb(a + b, a)


OTHER_HOUR = "not tested: time also shows how busy machine and API were, so only trials of one job can be compared"
TOLERATED = "not tested: with `gate.tolerance.requirementFulfillment` single criteria may fail, and the score is tested"


def ask_criterion(sample: Sample, tolerance: ScoreLimits) -> Question:
    """Did a criterion's pass rate change? Where a drop of their score is tolerated, criteria are not asked for."""
    if tolerance.of(Measure.REQUIREMENT_FULFILLMENT) is None:
        return ask_pass_rate(sample)
    return Question(PASS_RATE, sample, not_tested=TOLERATED)


def ask_measure(measure: Measure, sample: Sample, tolerance: ScoreLimits) -> Question:
    """Did a measure change within one suite, by more than the suite's gate tolerates?"""
    return ask_number(MEASURES[measure].scale.tolerating(tolerance.of(measure)), sample)


def ask_pass_rate(sample: Sample) -> Question:
    """Did a criterion's pass rate change? The numbers are 0 or 100."""
    if not sample.answerable:
        return Question(PASS_RATE, sample)
    if sample.trials == 1:
        return Question(PASS_RATE, sample, "threshold")
    a, b = sample.baseline, sample.candidate
    tails = fisher_exact(passes(a), len(a), passes(b), len(b))
    return Question(PASS_RATE, sample, "fisherExact", tails)


def passes(outcomes: tuple[float, ...]) -> int:
    """How many of the numbers, 0 or 100, are not 0."""
    return len(outcomes) - outcomes.count(0.0)


def ask_number(scale: Scale, sample: Sample) -> Question:
    """Did the mean of a measure change within one suite?"""
    if not sample.answerable:
        return Question(scale, sample)
    if sample.trials == 1:
        return Question(scale, sample, "threshold")
    if scale.of_the_hour and not sample.same_job:
        return Question(scale, sample, not_tested=OTHER_HOUR)
    return Question(scale, sample, "permutation", permutation_test(sample.baseline, sample.candidate))


def ask_overall(measure: Measure, suites: Sequence[tuple[Sample, ScoreLimits]]) -> Question:
    """Did a measure change over all suites? Each suite is one pair of means, and has a tolerance of its own.

    A pair's difference may have its sign flipped only where both sides have as many trials; of a side that has more,
    the oldest are taken for the test. The means that are shown are of all trials.
    """
    samples = [sample for sample, _ in suites]
    scale = _tolerating(MEASURES[measure].scale, [tolerance.of(measure) for _, tolerance in suites])
    means = Sample(
        tuple(mean(sample.baseline) for sample in samples),
        tuple(mean(sample.candidate) for sample in samples),
        mixed=any(sample.mixed and (sample.obstacles or sample.doubts) for sample in samples),
        doubts=tuple(dict.fromkeys(doubt for sample in samples for doubt in sample.doubts)),
    )
    differences = tuple(_paired_difference(sample) for sample in samples)
    single = [sample.trials == 1 for sample in samples]
    if any(single) if scale.varies else all(single) and not significant(0.5 ** len(samples)):
        return Question(scale, means, "threshold")
    if scale.of_the_hour and not all(sample.same_job for sample in samples):
        return Question(scale, means, differences=differences, not_tested=OTHER_HOUR)
    return Question(scale, means, "signFlip", sign_flip_test(differences), differences)


def _tolerating(scale: Scale, drops: Sequence[float | None]) -> Scale:
    """A mean of suites may fall by the mean of what each tolerates."""
    if all(drop is None for drop in drops):
        return scale
    return scale.tolerating(mean([scale.amount if drop is None else drop for drop in drops]))


def _paired_difference(sample: Sample) -> float:
    return mean(sample.candidate[: sample.trials]) - mean(sample.baseline[: sample.trials])


@dataclass(frozen=True)
class Pair:
    """One suite; one side may lack it."""

    suite: str
    baseline: SuiteSide | None
    candidate: SuiteSide | None
    mixed: bool
    """Compare in spite of obstacles."""
    side_by_side: bool = False
    """Whether the baseline's trials were run beside the candidate's."""

    @cached_property
    def present(self) -> tuple[SuiteSide, ...]:
        """The sides that have the suite."""
        return tuple(side for side in (self.baseline, self.candidate) if side)

    @cached_property
    def readings(self) -> tuple[RunMetrics, ...]:
        """The valid trials of both sides."""
        return tuple(reading for side in self.present for reading in side.readings)

    @property
    def tolerance(self) -> ScoreLimits:
        """The newest run's: a changed gate is meant to take effect."""
        newest = self.readings[-1:]
        return newest[0].run.config.gate.tolerance if newest else ScoreLimits()

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What else than the steering files may have changed the results: stored trials are of their day."""
        if self.side_by_side or self.baseline is None or self.candidate is None:
            return ()
        return platform_change(self.baseline.readings, self.candidate.readings)

    def obstacles(self) -> tuple[str, ...]:
        """Why the suite as a whole cannot be compared."""
        empty = (
            f"no valid run on the {name}'s side: {side.trials.invalid} failed or interrupted"
            for name, side in (("baseline", self.baseline), ("candidate", self.candidate))
            if side and not side.readings
        )
        suites = tuple(dict.fromkeys(side.suite for side in self.present))
        different = (f"different suites: {', '.join(suites)}",) if len(suites) > 1 else ()
        return (*empty, *different, *session_obstacles(self.readings))


def is_fact(pair: Pair, measure: Measure) -> bool:
    """Whether a change of the measure needs no second trial: commands pass on one side only, or tests are gone.

    Everything else may come out otherwise in the next trial of the same files.
    """
    if measure is Measure.TESTS:
        return True
    sides = [side.commands for side in pair.present]
    if measure is not Measure.FUNCTIONAL_CORRECTNESS or not all(counted for _, counted in sides):
        return False
    return len({mostly(failed, counted) for failed, counted in sides}) > 1


def measure_samples(pair: Pair, obstacles: tuple[str, ...]) -> dict[Measure, Sample]:
    """Measures that at least one side has."""
    samples = {}
    for measure in Measure:
        baseline, candidate = _values(pair.baseline, measure), _values(pair.candidate, measure)
        if baseline or candidate:
            reasons = (*obstacles, *measure_obstacles(measure, pair.readings), *_unscored(pair, measure))
            samples[measure] = Sample(baseline, candidate, reasons, pair.mixed, pair.doubts, pair.side_by_side)
    return samples


def criterion_samples(pair: Pair, obstacles: tuple[str, ...]) -> dict[str, Sample]:
    """Criteria that at least one side has, in the candidate's order, those removed last."""
    fulfillment = Measure.REQUIREMENT_FULFILLMENT
    common = (*obstacles, *measure_obstacles(fulfillment, pair.readings))
    samples = {}
    for name in dict.fromkeys((*_criteria(pair.candidate), *_criteria(pair.baseline))):
        missing = tuple(_missing(pair, name))
        reasons = (*common, *missing) if missing or _on_both(pair, name) else ()
        old, new = _outcomes(pair.baseline, name), _outcomes(pair.candidate, name)
        samples[name] = Sample(old, new, reasons, pair.mixed, pair.doubts)
    return samples


def _values(side: SuiteSide | None, measure: Measure) -> tuple[float, ...]:
    return side.values(measure) if side else ()


def _outcomes(side: SuiteSide | None, criterion: str) -> tuple[float, ...]:
    return side.outcomes(criterion) if side else ()


def _criteria(side: SuiteSide | None) -> tuple[str, ...]:
    return side.criteria if side else ()


def _on_both(pair: Pair, criterion: str) -> bool:
    return all(criterion in _criteria(side) for side in (pair.baseline, pair.candidate))


def _unscored(pair: Pair, measure: Measure) -> Iterator[str]:
    for name, side in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        if side and not side.values(measure) and (reason := side.unscored(measure)):
            yield f"unscored on the {name}'s side: {reason}"


def _missing(pair: Pair, criterion: str) -> Iterator[str]:
    """Reasons for a criterion that a side has and could not judge."""
    for name, side in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        if side is None or side.outcomes(criterion):
            continue
        if criterion in side.criteria:
            yield f"{_silence(side, criterion)} on the {name}'s side"
        elif not side.readings:
            yield f"no valid run on the {name}'s side"
        elif reason := side.unscored(Measure.REQUIREMENT_FULFILLMENT):
            yield f"unscored on the {name}'s side: {reason}"


def _silence(side: SuiteSide, criterion: str) -> str:
    """Why no trial counts."""
    verdicts = {reading.judgements[criterion].verdict for reading in side.readings if criterion in reading.judgements}
    return "undecided" if verdicts == {CriterionVerdict.UNDECIDED} else "not judged"
