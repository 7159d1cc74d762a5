"""The answers to all questions of a comparison together, because each hypothesis costs the others certainty."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from zelda_ci.compare.exact_tests import OneSided, Tails
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis, significant
from zelda_ci.compare.power import (
    detectable_difference,
    detectable_paired,
    detectable_pass_drop,
    pooled_deviation,
    trials_for_difference,
    trials_for_pass_rates,
)
from zelda_ci.compare.questions import Question
from zelda_ci.compare.sides import mean, summarize
from zelda_ci.domain.comparison import FamilySize, Verdict
from zelda_ci.domain.measure_spec import Scale


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
    level: float = ALPHA
    """What a p-value of a worsening must reach in this comparison."""
    eventual_level: float = ALPHA
    """The same once every hypothesis has trials enough to count."""
    regressed: bool | None = None
    """Whether one of several looks showed a regression; absent where the p-value says it."""


def resolve_questions(
    questions: Mapping[QuestionKey, Question],
) -> tuple[dict[QuestionKey, HypothesisResult], FamilySize]:
    """Correct the two directions apart: a family of regressions, whose error is promised, and one of improvements."""
    tested = {key: question for key, question in questions.items() if question.tails is not None}
    worse, better = _family(tested.values(), worse=True), _family(tested.values(), worse=False)
    answers = dict.fromkeys(questions, HypothesisResult())
    for index, (key, question) in enumerate(tested.items()):
        answers[key] = HypothesisResult(
            worse.adjusted[index],
            better.adjusted[index],
            worse.level(index, question.floor),
            worse.eventual_level(index),
        )
    size = FamilySize(
        hypotheses=len(tested),
        testable=len(worse.testable),
        alpha=ALPHA,
        trials_needed=trials_for_pass_rates(1.0, 0.0, ALPHA / max(1.0, _eventual_weight(questions.values()))),
    )
    return answers, size


def _eventual_weight(questions: Iterable[Question]) -> float:
    """Weight of the hypotheses once there are trials: those of a single trial may turn out to vary."""
    single = sum(question.scale.weight for question in questions if question.method == "threshold")
    varying = (q.scale.weight for q in questions if q.tails and min(q.tails.lower.floor, q.tails.higher.floor) < 1)
    return single + sum(varying)


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
CALIBRATED = "the calibration saw such changes between runs of one commit"
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
    return fields | _comparison(question, answer, verdict) if sample.answerable else fields


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
    return Verdict.INCONCLUSIVE, (TOO_NOISY if _detectable(question, answer) is not None else TOO_FEW,)


def _of_one_trial(question: Question) -> tuple[Verdict, tuple[str, ...]]:
    """One trial on a side: whatever may come out otherwise in the next one is seen, and not proven."""
    if not question.matters:
        return Verdict.UNCHANGED, (SINGLE_TRIAL,)
    if abs(question.sample.change) < question.noise:
        return Verdict.INCONCLUSIVE, (SINGLE_TRIAL, CALIBRATED)
    if question.scale.varies:
        return Verdict.INCONCLUSIVE, (SINGLE_TRIAL,)
    return (_direction(question), ()) if question.is_fact else (Verdict.CHANGED, (ONE_TRIAL_PROVES_NOTHING,))


def _direction(question: Question) -> Verdict:
    return Verdict.REGRESSED if question.scale.is_worse(question.sample.change) else Verdict.IMPROVED


def _comparison(question: Question, answer: HypothesisResult, verdict: Verdict) -> dict[str, Any]:
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
        "detectable": _detectable(question, answer),
        "trials_needed": _trials_needed(question, answer, verdict),
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


def _detectable(question: Question, answer: HypothesisResult) -> float | None:
    """The smallest worsening that is significant and exceeds the threshold."""
    a, b, level = question.sample.baseline, question.sample.candidate, answer.level
    match question.method:
        case "fisherExact":
            change = detectable_pass_drop(sum(map(bool, a)), len(a), len(b), level)
        case "permutation":
            change = detectable_difference(pooled_deviation(a, b), len(a), len(b), level)
        case "signFlip":
            change = detectable_paired(question.differences, level)
        case _:
            change = None
    worst = -1.0 if question.scale.better == "higher" else 1.0
    return None if change is None else max(change, question.scale.threshold(mean(a), worst))


def _trials_needed(question: Question, answer: HypothesisResult, verdict: Verdict) -> int | None:
    """Only where trials are what is missing: for the change that was seen, if there are trials to judge its noise."""
    a, b = question.sample.baseline, question.sample.candidate
    if verdict is not Verdict.INCONCLUSIVE:
        return None
    if question.method == "fisherExact":
        return trials_for_pass_rates(mean(a) / 100, mean(b) / 100, answer.eventual_level)
    if question.method == "permutation":
        return trials_for_difference(question.sample.change, pooled_deviation(a, b), answer.eventual_level)
    return None
