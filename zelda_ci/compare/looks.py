"""What one suite's trials show at fixed looks: with how much error each look is made, and whether all goes as expected.

Suite s of S owns the share ALPHA / S of the error, look k of it the weight w_k, and what is tested at a look is fixed
before the first trial. So the chance of any false call is at most ALPHA, whichever suites stop, and when. A fixed
number of trials is a plan with one look; suites with one look are corrected together, with the sum of their shares.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TypeVar

from zelda_ci.compare.exact_tests import fisher_exact, permutation_test
from zelda_ci.compare.multiplicity import ALPHA, Hypothesis, adjust, significant
from zelda_ci.compare.questions import Pair, Question, QuestionKey, Sample, ask_measure
from zelda_ci.compare.sides import SuiteSide
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.suite import ScoreLimits
from zelda_ci.domain.trials import Plan

# One-sided p-values above which a number of the head looks as the other trials lead to expect. They carry no error:
# whoever stops calls nothing. Of a few trials that passed, a small p-value cannot be had, so the limit is higher.
EXPECTED_AT_FIRST = 0.2
EXPECTED = 0.12
EXPECTED_OF_FEW = 0.25
FEW = 10
# The same for a score that varies in every session.
EXPECTED_SCORE = 0.05

# Shares of the error that the tests of a number may use, relative to those of a criterion. Resources vary in every
# session and quality does not: with equal shares, five resource tests per suite would use up the error that criteria
# need. At one look of several the score of the criteria, which is their mean, costs them little.
AT_ONCE = {measure: 0.1 for measure, spec in MEASURES.items() if spec.scale.varies}
AT_LOOKS = {Measure.REQUIREMENT_FULFILLMENT: 0.05, Measure.TOOL_USAGE: 0.1, Measure.TESTS: 0.1}

# The first look and two at which something is tested: only then is the last one made on a condition.
MANY_LOOKS = 3


@dataclass(frozen=True, slots=True)
class AdjustedAnswer:
    """P-values of both directions, corrected for everything: compared with ALPHA."""

    worse: float = 1.0
    better: float = 1.0
    regressed: bool = False
    """Whether it is worse beyond the threshold, and significantly so."""


Answers = Mapping[QuestionKey, AdjustedAnswer]


def answered(
    questions: Mapping[QuestionKey, Question],
    share: float = 1.0,
    *,
    alpha: float = ALPHA,
    weights: Mapping[Measure, float] = {},
) -> dict[QuestionKey, AdjustedAnswer]:
    """The answers of one look; those to what is not tested are left out.

    "Something got worse" and "something got better" are two families: what is promised is the error of the first.

    Args:
        questions: All that is asked at the look.
        share: What the look owns of the whole error.
        alpha: The whole error.
        weights: Of measures that have others than 1; the score of criteria has it only beside criteria.
    """
    tested = {key: question for key, question in questions.items() if question.is_tested}
    if not tested or not share:
        return {}
    own = {key: _weight(key, tested, weights) for key in tested}
    families = (
        [Hypothesis(question.tail(worse=worse), own[key]) for key, question in tested.items()]
        for worse in (True, False)
    )
    # P-values are compared with ALPHA, whatever the look owns.
    scale = ALPHA / (alpha * share)
    adjusted = ([min(1.0, p * scale) for p in adjust(family, alpha * share)] for family in families)
    return {
        key: AdjustedAnswer(worse, better, significant(worse) and question.is_worse)
        for (key, question), worse, better in zip(tested.items(), *adjusted, strict=True)
    }


def _weight(key: QuestionKey, tested: Iterable[QuestionKey], weights: Mapping[Measure, float]) -> float:
    is_alone = key.name == Measure.REQUIREMENT_FULFILLMENT and not any(other.criterion for other in tested)
    return 1.0 if key.criterion or is_alone else weights.get(Measure(key.name), 1.0)


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
    if isinstance(plan, int):
        return (Look(plan, plan * has_base, float(has_base)),)
    first, *later = plan.counts
    weight = 1 / len(later) if has_base else 0.0
    return (Look(first, 0, 0.0), *(Look(count, count * has_base, weight) for count in later))


@dataclass(frozen=True)
class SuiteLooks:
    """One suite's trials, look by look."""

    suite: str
    looks: tuple[Look, ...]
    head: SuiteSide
    base: SuiteSide
    stored: SuiteSide
    share: float
    """Of the whole error."""

    @cached_property
    def completed(self) -> int:
        """How many looks have their trials."""
        head, base = len(self.head.readings), len(self.base.readings)
        reached = (head >= look.head and base >= look.base for look in self.looks)
        return next((index for index, done in enumerate(reached) if not done), len(self.looks))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The trials of each completed look."""
        return tuple(
            self._pair(self.base.first(look.base) if look.base else None, look) for look in self.looks[: self.completed]
        )

    def _pair(self, baseline: SuiteSide | None, look: Look) -> Pair:
        head = self.head.first(look.head)
        return Pair(self.suite, baseline, head, side_by_side=True, limits=self.tolerance)

    @cached_property
    def whole(self) -> Pair:
        """All trials, of the base those beside them where there are any: what is shown, whatever was tested."""
        bases = (self.base, self.stored)
        known = next((side for side in bases if side.readings), next((side for side in bases if side.given), None))
        head = self.head if self.head.given else None
        return Pair(self.suite, known, head, side_by_side=bool(self.base.readings))

    @property
    def tolerance(self) -> ScoreLimits:
        """What the gate of the newest trial tolerates: a changed gate is meant to take effect."""
        newest = self.head.readings[-1:]
        return newest[0].run.config.gate.tolerance if newest else ScoreLimits()

    def as_expected(self, index: int) -> bool:
        """Whether all goes on as usual: at the first look by the stored trials, later by the base of this job."""
        if index:
            return _as_expected(self.pairs[index], first=False)
        return _as_expected(self._pair(self.stored, self.looks[0]), first=True)

    @property
    def is_futile(self) -> bool:
        """Whether the last look is not worth its trials.

        That is where this suite, were it the only one and this the only look, would not be called by now.
        """
        if len(self.looks) < MANY_LOOKS or self.completed != len(self.looks) - 1:
            return False
        answers = answered(_at_looks(self.pairs[-1]), weights=AT_LOOKS)
        return not any(answer.regressed for answer in answers.values())

    @cached_property
    def answers(self) -> Answers:
        """The smallest p-values of all completed looks: a call that was made at one of them stands."""
        found: dict[QuestionKey, AdjustedAnswer] = {}
        for pair, look in zip(self.pairs, self.looks, strict=False):
            answers = answered(_at_looks(pair), look.weight * self.share, weights=AT_LOOKS)
            for key, answer in answers.items():
                if not self.whole.questions[key].is_tested:
                    continue
                known = found.get(key, answer)
                found[key] = AdjustedAnswer(
                    min(known.worse, answer.worse),
                    min(known.better, answer.better),
                    known.regressed or answer.regressed,
                )
        return found

    @property
    def has_regressed(self) -> bool:
        """Whether any look shows something to be worse. It ends the suite, and it is what the gate may count."""
        return any(answer.regressed for answer in self.answers.values())


def _at_looks(pair: Pair) -> dict[QuestionKey, Question]:
    """What is tested at a look: what every session has other values of is tested once, over all suites."""
    return {key: question for key, question in pair.questions.items() if not question.scale.varies}


def _as_expected(pair: Pair, *, first: bool) -> bool:
    """Whether nothing of the head looks worse than the other trials; without any, whether everything passes.

    At the first look, one failure is also enough to go on where the other trials never failed.
    """
    passes = (*map(pair.outcomes, pair.criteria), pair.values(Measure.FUNCTIONAL_CORRECTNESS))
    return all(_is_expected(sample, first=first) for sample in passes) and not (
        _is_worse(pair, Measure.TESTS)
        or (_is_worse(pair, Measure.TOOL_USAGE) and _is_rare(pair.values(Measure.TOOL_USAGE)))
    )


def _is_worse(pair: Pair, measure: Measure) -> bool:
    sample = pair.values(measure)
    return sample.answerable and ask_measure(measure, sample, pair.tolerance).is_worse


def _is_rare(scores: Sample) -> bool:
    """Whether chance hardly makes so low a score, or few trials could not show one that is any rarer."""
    lower = permutation_test(scores.baseline, scores.candidate).lower
    return lower.p <= max(EXPECTED_SCORE, lower.floor)


def _is_expected(sample: Sample, *, first: bool) -> bool:
    old, new = sample.baseline, sample.candidate
    if not new or (old and sample.change >= 0):
        return True
    # A single trial that passed says that it can: what fails beside it is not expected, however few trials there are.
    knows_little = first or len(old) == 1
    if not old or (knows_little and min(old) >= 100):
        return min(new) >= 100
    known = EXPECTED_OF_FEW if len(old) < FEW else EXPECTED
    if {*old, *new} <= {0.0, 100.0}:
        tails = fisher_exact(len(old) - old.count(0.0), len(old), len(new) - new.count(0.0), len(new))
    else:
        tails = permutation_test(old, new)
    return tails.lower.p > (EXPECTED_AT_FIRST if first else known)


T = TypeVar("T")


def interleaved(lists: Iterable[Sequence[T]]) -> Iterator[T]:
    """One of each in turn."""
    rows = zip_longest(*lists, fillvalue=None)
    return (item for row in rows for item in row if item is not None)
