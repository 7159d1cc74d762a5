"""The questions a comparison asks: one per criterion and measure of a suite, and one per measure over all suites.

What is tested here, and nothing else, can be called better or worse, end a suite, and turn the check red.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Literal, NamedTuple

from zelda_ci.compare.compatibility import measure_obstacles, platform_change, session_obstacles
from zelda_ci.compare.exact_tests import OneSided, Tails, fisher_exact, permutation_test, stratified_permutation_test
from zelda_ci.compare.multiplicity import significant
from zelda_ci.compare.sides import RunMetrics, SuiteSide, mean, mostly
from zelda_ci.domain.details import CriterionVerdict
from zelda_ci.domain.measures import MEASURES, PASS_RATE, Measure, Scale
from zelda_ci.domain.suite import ScoreLimits

Method = Literal["threshold", "fisherExact", "permutation"]
Values = tuple[float, ...]

# The error of the overall rows, beside that of the suites: 5 % in all.
OVERALL_ALPHA = 0.01

OTHER_HOUR = "not tested: time also shows how busy machine and API were, so only trials of one job can be compared"
TOLERATED = "not tested: with `gate.tolerance.requirementFulfillment` single criteria may fail, and the score is tested"


class QuestionKey(NamedTuple):
    """Which number of which suite; the overall numbers have no suite."""

    suite: str | None
    name: str
    criterion: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers of both sides, and what stands between them."""

    baseline: Values
    candidate: Values
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
    def is_mixed(self) -> bool:
        """Whether there is an answer in spite of what stands between the sides."""
        return self.mixed and bool(self.obstacles or self.doubts)

    @property
    def trials(self) -> int:
        """Of the side that has fewer."""
        return min(len(self.baseline), len(self.candidate))

    @property
    def change(self) -> float:
        """Candidate mean minus baseline mean."""
        return mean(self.candidate) - mean(self.baseline)


@dataclass(frozen=True)
class Question:
    """Did one number change? Without a test only the threshold decides, or nothing does."""

    scale: Scale
    sample: Sample
    method: Method | None = None
    strata: tuple[tuple[Values, Values], ...] = ()
    """Of a number over all suites, both sides of each suite."""
    is_fact: bool = False
    """Whether a single trial is enough to call a change: commands failed that had passed, or tests are gone."""
    not_tested: str = ""
    """Why the numbers are shown and never called better or worse."""

    @cached_property
    def tails(self) -> Tails | None:
        """Both tests; none where the number is not tested."""
        a, b = self.sample.baseline, self.sample.candidate
        if self.method == "fisherExact":
            return fisher_exact(len(a) - a.count(0.0), len(a), len(b) - b.count(0.0), len(b))
        if self.method == "permutation":
            return stratified_permutation_test(self.strata) if self.strata else permutation_test(a, b)
        return None

    def tail(self, *, worse: bool) -> OneSided:
        """The test for a change in the worse, or better, direction; the number has to be tested."""
        assert self.tails  # noqa: S101 - says the line above
        return self.tails.lower if (self.scale.better == "higher") == worse else self.tails.higher

    @property
    def is_tested(self) -> bool:
        """Whether chance is reckoned with."""
        return self.method in ("fisherExact", "permutation")

    @property
    def may_gate(self) -> bool:
        """Whether a regression turns the check red: what was compared in spite of differences never does."""
        return self.method is not None and not (self.sample.is_mixed or self.sample.obstacles or self.sample.doubts)

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
        if self.strata and self.tails:
            return max(self.tails.lower.floor, self.tails.higher.floor)
        a, b = len(self.sample.baseline), len(self.sample.candidate)
        return 1 / comb(a + b, a)


def ask_criterion(sample: Sample, tolerance: ScoreLimits) -> Question:
    """Did a criterion's pass rate change? Where a drop of their score is tolerated, criteria are not asked for."""
    if not sample.answerable:
        return Question(PASS_RATE, sample)
    if tolerance.of(Measure.REQUIREMENT_FULFILLMENT) is not None:
        return Question(PASS_RATE, sample, not_tested=TOLERATED)
    return Question(PASS_RATE, sample, "threshold" if sample.trials == 1 else "fisherExact")


def ask_measure(measure: Measure, sample: Sample, tolerance: ScoreLimits) -> Question:
    """Did a measure change within one suite, by more than the suite's gate tolerates?"""
    question = Question(MEASURES[measure].scale.tolerating(tolerance.of(measure)), sample)
    if not sample.answerable:
        return question
    if sample.trials == 1:
        return replace(question, method="threshold")
    if question.scale.of_the_hour and not sample.same_job:
        return replace(question, not_tested=OTHER_HOUR)
    return replace(question, method="permutation")


def ask_overall(measure: Measure, suites: Sequence[tuple[Sample, ScoreLimits]]) -> Question:
    """Did a measure change over all suites? The test is on their trials; shown are the means, of each suite one."""
    samples = [sample for sample, _ in suites]
    scale = _tolerating(MEASURES[measure].scale, [tolerance.of(measure) for _, tolerance in suites])
    means = Sample(
        tuple(mean(sample.baseline) for sample in samples),
        tuple(mean(sample.candidate) for sample in samples),
        obstacles=tuple(dict.fromkeys(obstacle for sample in samples for obstacle in sample.obstacles)),
        mixed=any(sample.mixed for sample in samples),
        doubts=tuple(dict.fromkeys(doubt for sample in samples for doubt in sample.doubts)),
    )
    question = Question(scale, means, strata=tuple(map(_in_proportion, samples)))
    single = [sample.trials == 1 for sample in samples]
    if any(single) if scale.varies else all(single) and not significant(0.5 ** len(samples), OVERALL_ALPHA):
        return replace(question, method="threshold")
    if scale.of_the_hour and not all(sample.same_job for sample in samples):
        return replace(question, not_tested=OTHER_HOUR)
    return replace(question, method="permutation")


def _in_proportion(sample: Sample) -> tuple[Values, Values]:
    """The numbers of both sides as multiples of their common mean: a dear suite counts as much as a cheap one."""
    whole = mean((*sample.baseline, *sample.candidate)) or 1.0
    return tuple(value / whole for value in sample.baseline), tuple(value / whole for value in sample.candidate)


def _tolerating(scale: Scale, drops: Sequence[float | None]) -> Scale:
    """A mean of suites may fall by the mean of what each tolerates."""
    if all(drop is None for drop in drops):
        return scale
    return scale.tolerating(mean([scale.amount if drop is None else drop for drop in drops]))


@dataclass(frozen=True)
class Pair:
    """One suite; one side may lack it."""

    suite: str
    baseline: SuiteSide | None
    candidate: SuiteSide | None
    mixed: bool = False
    """Compare in spite of obstacles."""
    side_by_side: bool = False
    """Whether the baseline's trials were run beside the candidate's."""
    limits: ScoreLimits | None = None
    """What the gate tolerates; absent where the newest trial says it."""

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
        """What the gate of the newest run tolerates: a changed gate is meant to take effect."""
        newest = self.readings[-1:]
        return self.limits or (newest[0].run.config.gate.tolerance if newest else ScoreLimits())

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What else than the steering files may have changed the results: stored trials are of their day."""
        if self.side_by_side or self.baseline is None or self.candidate is None:
            return ()
        return platform_change(self.baseline.readings, self.candidate.readings)

    @cached_property
    def obstacles(self) -> tuple[str, ...]:
        """Why the suite as a whole cannot be compared."""
        empty = (
            f"no valid run on the {name}'s side: {side.trials.invalid} failed or interrupted"
            for name, side in self._named()
            if not side.readings
        )
        suites = tuple(dict.fromkeys(side.suite for side in self.present))
        different = (f"different suites: {', '.join(suites)}",) if len(suites) > 1 else ()
        return (*empty, *different, *session_obstacles(self.readings))

    def _named(self) -> Iterator[tuple[str, SuiteSide]]:
        yield from (("baseline", self.baseline),) if self.baseline else ()
        yield from (("candidate", self.candidate),) if self.candidate else ()

    def values(self, measure: Measure) -> Sample:
        """The numbers of both sides, whatever stands between them."""
        old, new = (side.values(measure) if side else () for side in (self.baseline, self.candidate))
        return Sample(old, new, same_job=self.side_by_side)

    def outcomes(self, criterion: str) -> Sample:
        """The outcomes of both sides, whatever stands between them."""
        old, new = (side.outcomes(criterion) if side else () for side in (self.baseline, self.candidate))
        return Sample(old, new, same_job=self.side_by_side)

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """In the candidate's order, those removed last."""
        return tuple(dict.fromkeys(name for side in reversed(self.present) for name in side.criteria))

    @cached_property
    def questions(self) -> dict[QuestionKey, Question]:
        """Of each measure and each criterion that at least one side has."""
        found = {}
        for measure in Measure:
            if (sample := self.sample(measure)).baseline or sample.candidate:
                question = ask_measure(measure, sample, self.tolerance)
                found[QuestionKey(self.suite, measure.value)] = replace(question, is_fact=self._is_fact(measure))
        for name, sample in self._criterion_samples():
            found[QuestionKey(self.suite, name, criterion=True)] = ask_criterion(sample, self.tolerance)
        return found

    def sample(self, measure: Measure) -> Sample:
        """The numbers of both sides, and what stands between them."""
        unscored = (
            f"unscored on the {name}'s side: {reason}"
            for name, side in self._named()
            if not side.values(measure) and (reason := side.unscored(measure))
        )
        reasons = (*self.obstacles, *measure_obstacles(measure, self.readings), *unscored)
        return replace(self.values(measure), obstacles=reasons, mixed=self.mixed, doubts=self.doubts)

    def _criterion_samples(self) -> Iterator[tuple[str, Sample]]:
        common = (*self.obstacles, *measure_obstacles(Measure.REQUIREMENT_FULFILLMENT, self.readings))
        for name in self.criteria:
            missing = tuple(self._missing(name))
            is_on_both = all(side and name in side.criteria for side in (self.baseline, self.candidate))
            reasons = (*common, *missing) if missing or is_on_both else ()
            yield name, replace(self.outcomes(name), obstacles=reasons, mixed=self.mixed, doubts=self.doubts)

    def _missing(self, criterion: str) -> Iterator[str]:
        """Reasons for a criterion that a side has and could not judge."""
        for name, side in self._named():
            if side.outcomes(criterion):
                continue
            if criterion in side.criteria:
                yield f"{_silence(side, criterion)} on the {name}'s side"
            elif not side.readings:
                yield f"no valid run on the {name}'s side"
            elif reason := side.unscored(Measure.REQUIREMENT_FULFILLMENT):
                yield f"unscored on the {name}'s side: {reason}"

    def _is_fact(self, measure: Measure) -> bool:
        """Whether a change needs no second trial: commands pass on one side only, or tests are gone.

        Everything else may come out otherwise in the next trial of the same files.
        """
        if measure is not Measure.FUNCTIONAL_CORRECTNESS:
            return measure is Measure.TESTS
        commands = [side.commands for side in self.present]
        return all(counted for _, counted in commands) and len({mostly(*each) for each in commands}) > 1


def _silence(side: SuiteSide, criterion: str) -> str:
    """Why no trial counts."""
    verdicts = {reading.judgements[criterion].verdict for reading in side.readings if criterion in reading.judgements}
    return "undecided" if verdicts == {CriterionVerdict.UNDECIDED} else "not judged"
