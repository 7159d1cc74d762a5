"""One answered question as it is stored and shown."""

from typing import Any, Literal

from zelda_ci.compare.answers import Answer, tail
from zelda_ci.compare.detectable import (
    detectable_difference,
    detectable_paired,
    detectable_pass_drop,
    pooled_deviation,
    trials_for_difference,
    trials_for_pass_rates,
)
from zelda_ci.compare.multiplicity import significant
from zelda_ci.compare.questions import Question
from zelda_ci.compare.summary import mean, summarize
from zelda_ci.domain.comparison import Verdict

SINGLE_TRIAL = "1 trial: differences may be noise"
CALIBRATED = "the calibration saw such changes between runs of one commit"
TOO_NOISY = "the change may be noise: it is not significant with these trials"
TOO_FEW = "the change may be noise: no change could be significant with so few trials"

Effect = Literal["better", "worse", "same"]


def describe(question: Question, answer: Answer) -> dict[str, Any]:
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


def _verdict(question: Question, answer: Answer) -> tuple[Verdict, tuple[str, ...]]:
    sample = question.sample
    if sample.obstacles and not sample.answerable:
        return Verdict.INCONCLUSIVE, sample.obstacles
    if not sample.baseline:
        return Verdict.NEW, ()
    if not sample.candidate:
        return Verdict.REMOVED, ()
    verdict, reasons = _significance(question, answer)
    return verdict, (*sample.obstacles, *reasons)


def _significance(question: Question, answer: Answer) -> tuple[Verdict, tuple[str, ...]]:
    change = question.sample.change
    reasons = (SINGLE_TRIAL,) if question.method == "threshold" else ()
    if abs(change) <= _threshold(question) * (1 + 1e-9):
        return Verdict.UNCHANGED, reasons
    if question.method == "threshold" and abs(change) < question.noise:
        return Verdict.INCONCLUSIVE, (*reasons, CALIBRATED)
    if question.method == "threshold" and question.scale.varies:
        return Verdict.INCONCLUSIVE, reasons
    worse = question.scale.is_worse(change)
    adjusted = answer.worse if worse else answer.better
    if adjusted is None or significant(adjusted):
        return Verdict.REGRESSED if worse else Verdict.IMPROVED, reasons
    return Verdict.INCONCLUSIVE, (TOO_NOISY if _detectable(question, answer) is not None else TOO_FEW,)


def _comparison(question: Question, answer: Answer, verdict: Verdict) -> dict[str, Any]:
    sample, change = question.sample, question.sample.change
    old = mean(sample.baseline)
    effect = _effect(question)
    return {
        "change": change,
        "change_percent": 100 * change / old if old else None,
        "effect": effect,
        "threshold": _threshold(question),
        "method": question.method,
        **_p_values(question, answer, effect),
        "detectable": _detectable(question, answer),
        "trials_needed": _trials_needed(question, answer, verdict),
    }


def _threshold(question: Question) -> float:
    return question.scale.threshold(mean(question.sample.baseline), question.sample.change)


def _effect(question: Question) -> Effect:
    change = question.sample.change
    if not change:
        return "same"
    return "worse" if question.scale.is_worse(change) else "better"


def _p_values(question: Question, answer: Answer, effect: Effect) -> dict[str, float | None]:
    if question.tails is None:
        return {}
    worse = effect != "better"
    return {
        "p_value": tail(question.scale, question.tails, worse=worse).p,
        "adjusted_p_value": answer.worse if worse else answer.better,
    }


def _detectable(question: Question, answer: Answer) -> float | None:
    """The smallest worsening that is significant and exceeds the threshold."""
    a, b, level = question.sample.baseline, question.sample.candidate, answer.level
    match question.method:
        case "fisherExact":
            found = detectable_pass_drop(sum(map(bool, a)), len(a), len(b), level)
        case "permutation":
            found = detectable_difference(pooled_deviation(a, b), len(a), len(b), level)
        case "signFlip":
            found = detectable_paired(question.differences, level)
        case _:
            found = None
    worst = -1.0 if question.scale.better == "higher" else 1.0
    return None if found is None else max(found, question.scale.threshold(mean(a), worst))


def _trials_needed(question: Question, answer: Answer, verdict: Verdict) -> int | None:
    """Only where trials are what is missing: for the change that was seen, if there are trials to judge its noise."""
    a, b = question.sample.baseline, question.sample.candidate
    if verdict is not Verdict.INCONCLUSIVE:
        return None
    if question.method == "fisherExact":
        return trials_for_pass_rates(mean(a) / 100, mean(b) / 100, answer.eventual_level)
    if question.method == "permutation":
        return trials_for_difference(question.sample.change, pooled_deviation(a, b), answer.eventual_level)
    return None
