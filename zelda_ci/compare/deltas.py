"""The row of one number: its verdict, and how sure that is."""

from typing import Any, Literal

from zelda_ci.compare.intervals import Interval, of_means, of_pairs, of_pass_rates
from zelda_ci.compare.looks import AdjustedAnswer
from zelda_ci.compare.multiplicity import significant
from zelda_ci.compare.questions import Question
from zelda_ci.compare.sides import mean, summarize
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.measures import PASS_RATE

SINGLE_TRIAL = "1 trial: differences may be noise"
ONE_TRIAL_PROVES_NOTHING = "one trial on a side proves no change: set `trials: adaptive`, or more trials"
TOO_NOISY = "the change may be noise: it is not significant with these trials"
TOO_FEW = "the change may be noise: no change could be significant with so few trials"

Effect = Literal["better", "worse", "same"]


def describe(question: Question, answer: AdjustedAnswer) -> dict[str, Any]:
    """The fields of a `Delta`."""
    sample = question.sample
    verdict, reasons = _verdict(question, answer)
    fields: dict[str, Any] = {
        "verdict": verdict,
        "reasons": reasons,
        "better": question.scale.better,
        "baseline": summarize(sample.baseline),
        "candidate": summarize(sample.candidate),
        "gates": verdict is Verdict.REGRESSED and question.may_gate,
    }
    return fields | _comparison(question, answer) if sample.answerable else fields


def _verdict(question: Question, answer: AdjustedAnswer) -> tuple[Verdict, tuple[str, ...]]:
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


def _significance(question: Question, answer: AdjustedAnswer) -> tuple[Verdict, tuple[str, ...]]:
    if question.method == "threshold":
        return _of_one_trial(question)
    if answer.regressed:
        return Verdict.REGRESSED, ()
    if not question.matters:
        return Verdict.UNCHANGED, ()
    if question.method is None:
        return Verdict.INCONCLUSIVE, (question.not_tested,)
    if significant(answer.better) and not question.is_worse:
        return Verdict.IMPROVED, ()
    return Verdict.INCONCLUSIVE, (TOO_NOISY if significant(question.floor) else TOO_FEW,)


def _of_one_trial(question: Question) -> tuple[Verdict, tuple[str, ...]]:
    """One trial on a side: whatever may come out otherwise in the next one is seen, and not proven."""
    if not question.matters:
        return Verdict.UNCHANGED, (SINGLE_TRIAL,)
    if question.scale.varies:
        return Verdict.INCONCLUSIVE, (SINGLE_TRIAL,)
    if not question.is_fact:
        return Verdict.CHANGED, (ONE_TRIAL_PROVES_NOTHING,)
    return Verdict.REGRESSED if question.is_worse else Verdict.IMPROVED, ()


def _comparison(question: Question, answer: AdjustedAnswer) -> dict[str, Any]:
    sample, change = question.sample, question.sample.change
    old, effect = mean(sample.baseline), _effect(question)
    fields = {
        "change": change,
        "change_percent": 100 * change / old if old else None,
        "effect": effect,
        "threshold": question.threshold,
        "method": question.method,
        "interval": _interval(question),
    }
    if not question.is_tested:
        return fields
    is_worse = effect != "better"
    adjusted = answer.worse if is_worse else answer.better
    return fields | {"p_value": question.tail(worse=is_worse).p, "adjusted_p_value": adjusted}


def _effect(question: Question) -> Effect:
    change = question.sample.change
    if not change:
        return "same"
    return "worse" if question.scale.is_worse(change) else "better"


def _interval(question: Question) -> Interval | None:
    """Of the change; nothing where a side has one trial."""
    a, b = question.sample.baseline, question.sample.candidate
    if question.method == "threshold" or min(len(a), len(b)) < 2:
        return None
    if question.strata:
        return of_pairs([new - old for old, new in zip(a, b, strict=True)])
    return of_pass_rates(a, b) if question.scale is PASS_RATE else of_means(a, b)
