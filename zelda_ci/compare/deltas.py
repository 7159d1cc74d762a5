"""The answers to all questions of a comparison together, because each hypothesis costs the others certainty."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from zelda_ci.compare.exact_tests import OneSided, Tails
from zelda_ci.compare.intervals import Interval, of_means, of_pairs, of_pass_rates
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis, significant
from zelda_ci.compare.questions import Question
from zelda_ci.compare.sides import mean, summarize
from zelda_ci.domain.comparison import FamilySize, Verdict
from zelda_ci.domain.measure_spec import PASS_RATE, Scale


class QuestionKey(NamedTuple):
    """Which number of which suite; the overall numbers have no suite."""

    suite: str | None
    name: str
    criterion: bool = False


@dataclass(frozen=True, slots=True)
class HypothesisResult:
    """Adjusted p-values of both directions; absent where nothing was tested."""

    worse: float | None = None
    better: float | None = None
    regressed: bool | None = None
    """Whether one of several looks showed a regression; absent where the p-value says it."""


def resolve_questions(
    questions: Mapping[QuestionKey, Question],
) -> tuple[dict[QuestionKey, HypothesisResult], FamilySize]:
    """Correct the two directions apart: a family of regressions, whose error is promised, and one of improvements."""
    tested = {key: question for key, question in questions.items() if question.tails is not None}
    worse, better = _family(tested.values(), worse=True), _family(tested.values(), worse=False)
    answers = dict.fromkeys(questions, HypothesisResult())
    for index, key in enumerate(tested):
        answers[key] = HypothesisResult(worse.adjusted[index], better.adjusted[index])
    return answers, FamilySize(hypotheses=len(tested), testable=len(worse.testable), alpha=ALPHA)


def _family(tested: Iterable[Question], *, worse: bool) -> Family:
    return Family(
        tuple(
            Hypothesis(tail(question.scale, question.tails, worse=worse), question.scale.weight)
            for question in tested
            if question.tails
        )
    )


def tail(scale: Scale, tails: Tails, *, worse: bool) -> OneSided:
    """The test for a change in the worse, or better, direction."""
    return tails.lower if (scale.better == "higher") == worse else tails.higher


SINGLE_TRIAL = "1 trial: differences may be noise"
ONE_TRIAL_PROVES_NOTHING = "one trial on a side proves no change: set `trials: adaptive`, or more trials"
TOO_NOISY = "the change may be noise: it is not significant with these trials"
TOO_FEW = "the change may be noise: no change could be significant with so few trials"

Effect = Literal["better", "worse", "same"]


def describe(question: Question, answer: HypothesisResult) -> dict[str, Any]:
    """The fields of a `Delta`."""
    sample = question.sample
    verdict, reasons = _verdict(question, answer)
    fields: dict[str, Any] = {
        "verdict": verdict,
        "reasons": reasons,
        "better": question.scale.better,
        "baseline": summarize(sample.baseline),
        "candidate": summarize(sample.candidate),
    }
    return fields | _comparison(question, answer) if sample.answerable else fields


def _verdict(question: Question, answer: HypothesisResult) -> tuple[Verdict, tuple[str, ...]]:
    sample = question.sample
    if sample.obstacles and not sample.answerable:
        return Verdict.INCONCLUSIVE, sample.obstacles
    if not sample.baseline:
        return Verdict.NEW, ()
    if not sample.candidate:
        return Verdict.REMOVED, ()
    verdict, reasons = _significance(question, answer)
    if sample.doubts and verdict in {Verdict.REGRESSED, Verdict.CHANGED, Verdict.IMPROVED}:
        return verdict if sample.mixed else Verdict.INCONCLUSIVE, (*sample.obstacles, *reasons, *sample.doubts)
    return verdict, (*sample.obstacles, *reasons)


def _significance(question: Question, answer: HypothesisResult) -> tuple[Verdict, tuple[str, ...]]:
    if question.method == "threshold":
        return _of_one_trial(question)
    if answer.regressed:
        return Verdict.REGRESSED, ()
    if not question.matters:
        return Verdict.UNCHANGED, ()
    if question.method is None:
        return Verdict.INCONCLUSIVE, (question.not_tested,)
    adjusted = answer.worse if question.is_worse else answer.better
    if adjusted is not None and significant(adjusted) and not (question.is_worse and answer.regressed is False):
        return _direction(question), ()
    return Verdict.INCONCLUSIVE, (TOO_NOISY if significant(question.floor) else TOO_FEW,)


def _of_one_trial(question: Question) -> tuple[Verdict, tuple[str, ...]]:
    """One trial on a side: whatever may come out otherwise in the next one is seen, and not proven."""
    if not question.matters:
        return Verdict.UNCHANGED, (SINGLE_TRIAL,)
    if question.scale.varies:
        return Verdict.INCONCLUSIVE, (SINGLE_TRIAL,)
    return (_direction(question), ()) if question.is_fact else (Verdict.CHANGED, (ONE_TRIAL_PROVES_NOTHING,))


def _direction(question: Question) -> Verdict:
    return Verdict.REGRESSED if question.scale.is_worse(question.sample.change) else Verdict.IMPROVED


def _comparison(question: Question, answer: HypothesisResult) -> dict[str, Any]:
    sample, change = question.sample, question.sample.change
    old = mean(sample.baseline)
    effect = _effect(question)
    return {
        "change": change,
        "change_percent": 100 * change / old if old else None,
        "effect": effect,
        "threshold": question.threshold,
        "method": question.method,
        **_p_values(question, answer, effect),
        "interval": _interval(question),
    }


def _effect(question: Question) -> Effect:
    change = question.sample.change
    if not change:
        return "same"
    return "worse" if question.scale.is_worse(change) else "better"


def _p_values(question: Question, answer: HypothesisResult, effect: Effect) -> dict[str, float | None]:
    if question.tails is None:
        return {}
    worse = effect != "better"
    return {
        "p_value": tail(question.scale, question.tails, worse=worse).p,
        "adjusted_p_value": answer.worse if worse else answer.better,
    }


def _interval(question: Question) -> Interval | None:
    """Of the change; nothing where a side has one trial."""
    a, b = question.sample.baseline, question.sample.candidate
    if question.method == "threshold" or min(len(a), len(b)) < 2:
        return None
    if question.differences:
        return of_pairs(question.differences)
    return of_pass_rates(a, b) if question.scale is PASS_RATE else of_means(a, b)
