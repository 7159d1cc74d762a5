"""Numbers over all suites of a comparison whose trials are added as they are needed.

They are tested once, on everybody's first trials against as many of the base in the same job: who goes on does so
because of what it showed. Stored trials only say whether the base is to run for it; what they say costs no error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zelda_ci.compare.comparison import tested_row
from zelda_ci.compare.deltas import HypothesisResult, QuestionKey, tail
from zelda_ci.compare.exact_tests import stratified_permutation_test
from zelda_ci.compare.looks import SuiteLooks
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis
from zelda_ci.compare.questions import Question, Sample, ask_overall
from zelda_ci.compare.sides import RunMetrics, mean
from zelda_ci.domain.comparison import MeasureDelta
from zelda_ci.domain.measures import MEASURES, Measure

# The error of the overall rows, beside that of the suites: 5 % in all.
OVERALL_ALPHA = 0.01

# The chance by itself below which a number that is worse than the stored ones is tested beside the base.
SUSPICION = 0.1

NOT_BESIDE = "not tested: the base did not run beside the first trials of every suite"


@dataclass(frozen=True)
class FirstTrials:
    """Everybody's first trials."""

    suites: Sequence[SuiteLooks]

    @property
    def are_made(self) -> bool:
        """Whether each suite has its own, so that they can be looked at together."""
        return bool(self.suites) and all(looks.made for looks in self.suites)

    @property
    def are_beside(self) -> bool:
        """Whether as many of the base ran in the job."""
        return self.are_made and not any(map(missing_of_base, self.suites))

    @property
    def look_worse(self) -> bool:
        """Whether a number that differs in every session is worse than the stored trials lead to expect."""
        return self.are_made and any(map(self._looks_worse, Measure))

    def _looks_worse(self, measure: Measure) -> bool:
        scale = MEASURES[measure].scale
        question = self._question(measure, stored=True) if scale.varies and not scale.of_the_hour else None
        return bool(
            question and question.tails and question.is_worse and tail(scale, question.tails, worse=True).p <= SUSPICION
        )

    def rows(self) -> tuple[MeasureDelta, ...]:
        """Of each number that two suites have on both sides: tested where the base ran, otherwise only shown."""
        is_beside = self.are_beside
        questions = {
            QuestionKey(None, measure.value): question
            for measure in Measure
            if (question := self._question(measure, stored=not is_beside, tested=is_beside))
        }
        answers = _answers(questions)
        rows = (tested_row(measure, questions, answers) for measure in Measure)
        return tuple(row for row in rows if row)

    def _question(self, measure: Measure, *, stored: bool, tested: bool = True) -> Question | None:
        found = ((_sample(looks, measure, stored=stored), looks.tolerance) for looks in self.suites if looks.made)
        samples = [(sample, tolerance) for sample, tolerance in found if sample.answerable]
        if len(samples) < 2:
            return None
        question = ask_overall(measure, samples)
        if not tested:
            return replace(question, method=None, tails=None, not_tested=NOT_BESIDE)
        strata = [_in_proportion(sample) for sample, _ in samples]
        return replace(question, method="permutation", tails=stratified_permutation_test(strata), not_tested="")


def missing_of_base(looks: SuiteLooks) -> int:
    """How many trials of the base a suite has less than first ones of the head."""
    return max(0, looks.looks[0].head - len(looks.base))


def _sample(looks: SuiteLooks, measure: Measure, *, stored: bool) -> Sample:
    first = looks.looks[0].head
    old = looks.stored if stored else looks.base[:first]
    return Sample(_values(old, measure), _values(looks.head[:first], measure), same_job=not stored)


def _values(trials: Iterable[RunMetrics], measure: Measure) -> tuple[float, ...]:
    return tuple(trial.values[measure] for trial in trials if measure in trial.values)


def _in_proportion(sample: Sample) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The numbers of both sides as multiples of their common mean: a dear suite counts as much as a cheap one."""
    whole = mean((*sample.baseline, *sample.candidate)) or 1.0
    return tuple(value / whole for value in sample.baseline), tuple(value / whole for value in sample.candidate)


def _answers(questions: Mapping[QuestionKey, Question]) -> dict[QuestionKey, HypothesisResult]:
    """Corrected among themselves, and measured by an error of their own."""
    tested = {key: question for key, question in questions.items() if question.tails}
    answers = dict.fromkeys(questions, HypothesisResult(1.0, 1.0))
    families = [Family(tuple(_hypotheses(tested.values(), worse=worse)), OVERALL_ALPHA) for worse in (True, False)]
    scale = ALPHA / OVERALL_ALPHA
    for index, key in enumerate(tested):
        worse, better = (min(1.0, scale * family.adjusted[index]) for family in families)
        answers[key] = HypothesisResult(worse, better)
    return answers


def _hypotheses(tested: Iterable[Question], *, worse: bool) -> Iterator[Hypothesis]:
    """Unweighted: here numbers that vary are the point."""
    for question in tested:
        if question.tails:
            yield Hypothesis(tail(question.scale, question.tails, worse=worse))
