"""What one suite's trials show at fixed looks: with how much error each look is made, and whether all goes as expected.

Suite s of S owns the share ALPHA / S of the error, look k of it the weight w_k, and what is tested at a look is fixed
before the first trial. So the chance of any false call is at most ALPHA, whichever suites stop, and when.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TypeVar

from zelda_ci.compare.compatibility import measure_obstacles, session_obstacles
from zelda_ci.compare.deltas import QuestionKey, tail
from zelda_ci.compare.exact_tests import fisher_exact, permutation_test
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis, significant
from zelda_ci.compare.questions import Question, Sample, ask_criterion, ask_measure, passes
from zelda_ci.compare.sides import INVALID, RunMetrics
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.suite import ScoreLimits
from zelda_ci.domain.trials import FixedTrials, Plan

# One-sided p-values above which a number of the head looks as the other trials lead to expect. They carry no error:
# whoever stops calls nothing. Of a few trials that passed, a small p-value cannot be had, so the limit is higher.
EXPECTED_AT_FIRST = 0.2
EXPECTED = 0.12
EXPECTED_OF_FEW = 0.25
FEW = 10
# The same for a score that varies in every session.
EXPECTED_SCORE = 0.05

# The first look and two at which something is tested: only then is the last one made on a condition.
MANY_LOOKS = 3

# Scores that are tested at a look. That of the criteria is their mean and costs them little where they are tested
# themselves; numbers that every session has other values of are tested once, over all suites.
# Tests that are gone cannot fail, so how many ran is tested beside them.
SCORES = {
    Measure.REQUIREMENT_FULFILLMENT: 0.05,
    Measure.FUNCTIONAL_CORRECTNESS: 1.0,
    Measure.TOOL_USAGE: 0.1,
    Measure.TESTS: 0.1,
}


class TrialGroup(tuple[RunMetrics, ...]):  # noqa: SLOT001 - what was read is kept
    """Trials that are looked at together, and what they show: read once, however often the schedule is asked."""

    @cached_property
    def valid(self) -> "TrialGroup":
        """Those that count, the oldest first; one that is given twice counts once."""
        unique = {trial.key: trial for trial in self if trial.run.status not in INVALID}
        return TrialGroup(sorted(unique.values(), key=lambda trial: (trial.run.started_at, trial.run.run_id)))

    @cached_property
    def outcomes(self) -> dict[str, tuple[float, ...]]:
        """Of each criterion, in the trials in which it counts."""
        found = [trial.outcomes for trial in self]
        names: set[str] = set().union(*found)
        return {name: tuple([outcomes[name] for outcomes in found if name in outcomes]) for name in sorted(names)}

    @cached_property
    def scores(self) -> dict[Measure, tuple[float, ...]]:
        """Of each score that is tested at a look, the values of the trials that have it."""
        found = [trial.values for trial in self]
        return {measure: tuple([values[measure] for values in found if measure in values]) for measure in SCORES}


def grouped(trials: tuple[RunMetrics, ...]) -> TrialGroup:
    """As a group; one that is a group already keeps what it has read."""
    return trials if isinstance(trials, TrialGroup) else TrialGroup(trials)


@dataclass(frozen=True, slots=True)
class Look:
    """When the sides are compared: valid trials that each must have, and the share of the suite's error."""

    head: int
    base: int
    """Of this job."""
    weight: float


def looks_of(plan: Plan, *, has_base: bool) -> tuple[Look, ...]:
    """The looks of a suite, fixed before its first trial.

    From the second look on both sides have as many trials, and these looks have equal shares of the error.

    Args:
        plan: The suite's.
        has_base: Whether trials of the base can be run: without them nothing is tested.
    """
    if isinstance(plan, FixedTrials):
        return (Look(plan.trials, plan.trials * has_base, float(has_base)),)
    first, *later = plan.counts
    weight = 1 / len(later) if has_base else 0.0
    return (Look(first, 0, 0.0), *(Look(count, count * has_base, weight) for count in later))


@dataclass(frozen=True)
class SeenTrials:
    """The trials that one look is made on."""

    suite: str
    base: TrialGroup
    head: TrialGroup
    tolerance: ScoreLimits

    @cached_property
    def criteria(self) -> dict[str, Sample]:
        """Of each criterion the outcomes on both sides; a side may lack it."""
        new, old = self.head.outcomes, self.base.outcomes
        return {name: Sample(old.get(name, ()), new.get(name, ())) for name in dict.fromkeys((*new, *old))}

    def score(self, measure: Measure) -> Sample:
        """Of a score the values on both sides."""
        return Sample(self.base.scores[measure], self.head.scores[measure])

    @cached_property
    def questions(self) -> dict[QuestionKey, Question]:
        """What is tested: all that both sides have in two trials at least."""
        asked = {
            QuestionKey(self.suite, name, criterion=True): ask_criterion(sample, self.tolerance)
            for name, sample in sorted(self.criteria.items())
        }
        for measure in SCORES:
            asked[QuestionKey(self.suite, measure.value)] = ask_measure(measure, self.score(measure), self.tolerance)
        return {key: question for key, question in asked.items() if question.tails}

    def as_expected(self, *, first: bool) -> bool:
        """Whether nothing of the head looks worse than the other trials; without any, whether everything passes.

        At the first look, one failure is also enough to go on where the other trials never failed.
        """
        passes = (*self.criteria.values(), self.score(Measure.FUNCTIONAL_CORRECTNESS))
        return all(_is_expected(sample, first=first) for sample in passes) and not (
            self._is_worse(Measure.TESTS) or (self._is_worse(Measure.TOOL_USAGE) and self._is_rare(Measure.TOOL_USAGE))
        )

    def _is_worse(self, measure: Measure) -> bool:
        sample = self.score(measure)
        return sample.answerable and ask_measure(measure, sample, self.tolerance).is_worse

    def _is_rare(self, measure: Measure) -> bool:
        """Whether chance hardly makes so low a score, or few trials could not show one that is any rarer."""
        sample = self.score(measure)
        lower = permutation_test(sample.baseline, sample.candidate).lower
        return lower.p <= max(EXPECTED_SCORE, lower.floor)


def _is_expected(sample: Sample, *, first: bool) -> bool:
    if not sample.candidate or (sample.baseline and sample.change >= 0):
        return True
    # A single trial that passed says that it can: what fails beside it is not expected, however few trials there are.
    knows_little = first or len(sample.baseline) == 1
    if not sample.baseline or (knows_little and min(sample.baseline) >= 100):
        return min(sample.candidate) >= 100
    known = EXPECTED_OF_FEW if len(sample.baseline) < FEW else EXPECTED
    limit = EXPECTED_AT_FIRST if first else known
    is_rate = {*sample.baseline, *sample.candidate} <= {0.0, 100.0}
    return (_chance_of_passes(sample) if is_rate else _chance_of_scores(sample)) > limit


def _chance_of_passes(sample: Sample) -> float:
    a, b = sample.baseline, sample.candidate
    return fisher_exact(passes(a), len(a), passes(b), len(b)).lower.p


def _chance_of_scores(sample: Sample) -> float:
    return permutation_test(sample.baseline, sample.candidate).lower.p


@dataclass(frozen=True, slots=True)
class Adjusted:
    """P-values of both directions, corrected for everything: compared with ALPHA."""

    worse: float
    better: float


def corrected(questions: Mapping[QuestionKey, Question], share: float) -> dict[QuestionKey, Adjusted]:
    """The answers of one look, which owns this share of the whole error."""
    if not questions or not share:
        return {}
    found = {}
    for worse in (True, False):
        tests = (
            Hypothesis(tail(question.scale, question.tails, worse=worse), _weight(key, questions))
            for key, question in questions.items()
            if question.tails
        )
        found[worse] = Family(tuple(tests), ALPHA * share).adjusted
    pairs = zip(found[True], found[False], strict=True)
    return {
        key: Adjusted(min(1.0, worse / share), min(1.0, better / share))
        for key, (worse, better) in zip(questions, pairs, strict=True)
    }


def _weight(key: QuestionKey, questions: Iterable[QuestionKey]) -> float:
    speaks_alone = key.name == Measure.REQUIREMENT_FULFILLMENT and not any(other.criterion for other in questions)
    return 1.0 if key.criterion or speaks_alone else SCORES[Measure(key.name)]


@dataclass(frozen=True)
class SuiteLooks:
    """One suite's trials, look by look."""

    suite: str
    looks: tuple[Look, ...]
    head: TrialGroup
    base: TrialGroup
    stored: TrialGroup
    share: float
    """Of the whole error."""

    @cached_property
    def made(self) -> int:
        """How many looks have their trials."""
        reached = (len(self.head) >= look.head and len(self.base) >= look.base for look in self.looks)
        return next((index for index, done in enumerate(reached) if not done), len(self.looks))

    @cached_property
    def seen(self) -> tuple[SeenTrials, ...]:
        """What may be tested at each look that is made."""
        return tuple(
            SeenTrials(
                self.suite, TrialGroup(self.base[: look.base]), TrialGroup(self.head[: look.head]), self.tolerance
            )
            for look in self.looks[: self.made]
        )

    @property
    def tolerance(self) -> ScoreLimits:
        """The newest trial's: a changed gate is meant to take effect."""
        return self.head[-1].run.config.gate.tolerance

    def as_expected(self, index: int) -> bool:
        """Whether all goes on as usual: at the first look by the stored trials, later by the base of this job."""
        seen = self.seen[index]
        if index:
            return seen.as_expected(first=False)
        return SeenTrials(self.suite, self.stored, seen.head, self.tolerance).as_expected(first=True)

    @property
    def is_futile(self) -> bool:
        """Whether the last look is not worth its trials.

        That is where this suite, were it the only one and this the only look, would not be called by now.
        """
        if len(self.looks) < MANY_LOOKS or self.made != len(self.looks) - 1:
            return False
        seen = self.seen[-1]
        return not _called(seen, corrected(seen.questions, 1.0))

    @cached_property
    def answers(self) -> tuple[dict[QuestionKey, Adjusted], ...]:
        """What each look that is made says."""
        made = zip(self.seen, self.looks, strict=False)
        return tuple(corrected(seen.questions, look.weight * self.share) for seen, look in made)

    @cached_property
    def regressed(self) -> frozenset[QuestionKey]:
        """What any look shows to be worse. It ends the suite, and it is what the comparison lets gate."""
        called = (_called(*each) for each in zip(self.seen, self.answers, strict=True))
        return frozenset(filter(self._is_comparable, set().union(*called)))

    def _is_comparable(self, key: QuestionKey) -> bool:
        trials = (*self.base, *self.head)
        measure = Measure.REQUIREMENT_FULFILLMENT if key.criterion else Measure(key.name)
        return not (session_obstacles(trials) or measure_obstacles(measure, trials))

    @cached_property
    def best(self) -> dict[QuestionKey, Adjusted]:
        """The smallest p-values of all looks: a call that was made at one of them stands."""
        found: dict[QuestionKey, Adjusted] = {}
        for answers in self.answers:
            for key, answer in answers.items():
                known = found.get(key, answer)
                found[key] = Adjusted(min(known.worse, answer.worse), min(known.better, answer.better))
        return found


def _called(seen: SeenTrials, answers: Mapping[QuestionKey, Adjusted]) -> set[QuestionKey]:
    """What is worse beyond the threshold and significantly so."""
    return {key for key, answer in answers.items() if significant(answer.worse) and seen.questions[key].is_worse}


T = TypeVar("T")


def interleaved(lists: Iterable[Sequence[T]]) -> Iterator[T]:
    """One of each in turn."""
    rows = zip_longest(*lists, fillvalue=None)
    return (item for row in rows for item in row if item is not None)
