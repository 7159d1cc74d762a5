"""The gate's findings in words: why a check is red."""

from collections.abc import Sequence
from typing import assert_never

from zelda_ci.domain.comparison import (
    BelowMinimum,
    CommandsFailed,
    CriterionDelta,
    CriterionFailed,
    EndedAtLimit,
    Evaluation,
    GateReason,
    GateResult,
    MeasureDelta,
    NotJudged,
    NotLoaded,
    NotRun,
    Regression,
    Uncounted,
    UncountedReason,
)
from zelda_ci.domain.measures import MEASURES
from zelda_ci.domain.session import SessionStatus
from zelda_ci.report.builders.phrases import change_words, interval_words, points
from zelda_ci.report.text import sentence

ENDS = {
    SessionStatus.MAX_TURNS: "ran out of turns",
    SessionStatus.BUDGET_EXCEEDED: "ran out of budget",
    SessionStatus.TIMED_OUT: "ran out of time",
}

# The same as a reason for a green check; the first that holds is said.
EXCUSES = {
    Uncounted.NO_BASE: "there is nothing to compare with, and nothing that must pass fails.",
    Uncounted.NOT_PROVEN: "it is not proven that this change makes it worse.",
    Uncounted.ON_BASE: "what fails in the same way on the base is no fault of this change.",
}


def gate_sentences(gate: GateResult) -> list[str]:
    """Each reason as one line, safe to print."""
    return [sentence(gate_sentence(reason)) for reason in gate.reasons]


# Why a failure does not turn the check red.
BECAUSE = {
    Uncounted.ON_BASE: "fails on the base, too",
    Uncounted.NOT_PROVEN: "not proven to be worse than on the base",
    Uncounted.NO_BASE: "nothing to compare with",
}


def uncounted_sentences(gate: GateResult) -> list[str]:
    """What fails and does not count, a line each."""
    return [f"{sentence(gate_sentence(each.reason))}: {uncounted_words(each)}" for each in gate.uncounted]


def uncounted_words(each: UncountedReason) -> str:
    """Why a failure does not turn the check red; where that is not proven, how much worse it may be."""
    words, old, new = BECAUSE[each.because], each.baseline, each.reason
    if old is None or each.interval is None or not isinstance(new, CriterionFailed | EndedAtLimit):
        return words
    passed = round(old.mean * old.trials / 100)
    counts = f"{passed} of {old.trials} there, {new.of - new.trials} of {new.of} here"
    return f"{words} ({counts}: {interval_words(each.interval, points)})"


def gate_sentence(reason: GateReason, *, doubts: bool = True) -> str:
    """One reason, beginning with its suite; not escaped yet.

    Args:
        reason: What the gate found.
        doubts: Also say why a regression may be noise.
    """
    if isinstance(reason, NotLoaded):
        return f"{reason.file} is {reason.effect}"
    return f"{reason.suite or 'all suites'}: {_finding(reason, doubts=doubts)}"


def _finding(reason: Regression | NotJudged | NotRun | Evaluation, *, doubts: bool) -> str:
    match reason:
        case Regression(delta=delta):
            doubt = f" ({delta.reasons[0]})" if doubts and delta.reasons else ""
            return f"{_change(delta)}{doubt}"
        case NotJudged() | NotRun():
            return _unknown(reason)
        case EndedAtLimit():
            return f"the session {ENDS[reason.status]} in {_of(reason.trials, reason.of)}"
        case BelowMinimum():
            return _below(reason)
        case CriterionFailed():
            return f"criterion {reason.criterion!r} failed in {_of(reason.trials, reason.of)}"
        case CommandsFailed():
            return f"build, tests or coverage fell short in {_of(reason.trials, reason.of)}"
        case _:
            assert_never(reason)


def failure_words(reasons: Sequence[Sequence[GateReason]]) -> str:
    """What suites fail in, however they compare; the reasons of each."""
    does, fails = ("does", "fails") if len(reasons) == 1 else ("do", "fail")
    words = {
        CriterionFailed: f"{does} not meet a criterion",
        CommandsFailed: f"{fails} in build, tests or coverage",
        EndedAtLimit: f"{does} not end within the limits",
        BelowMinimum: f"{does} not reach a required score",
    }
    kinds = {type(reason) for each in reasons for reason in each}
    return " and ".join(word for kind, word in words.items() if kind in kinds)


def _change(delta: MeasureDelta | CriterionDelta) -> str:
    assert delta.baseline is not None  # noqa: S101 - only deltas with both sides gate
    assert delta.candidate is not None  # noqa: S101
    if isinstance(delta, CriterionDelta):
        old, new = delta.baseline.mean, delta.candidate.mean
        return f"criterion {delta.criterion!r} passed in {old:.0f} % of trials, now in {new:.0f} %"
    return change_words(delta)


def _below(reason: BelowMinimum) -> str:
    label, minimum = MEASURES[reason.measure].label, _amount(reason.minimum)
    if reason.mean is None:
        return f"{label} has no score though at least {minimum} is required: {reason.reason}"
    return f"{label} is {_amount(reason.mean)}, below the required {minimum}"


def _unknown(reason: NotJudged | NotRun) -> str:
    if isinstance(reason, NotJudged):
        return f"INCOMPLETE in {_of(reason.trials, reason.of)}: {reason.reason}"
    made = f"after {_count(reason.made)}" if reason.made else "before the first trial"
    wanted = f"{_count(reason.trials)} more {'was' if reason.trials == 1 else 'were'} wanted"
    return f"{reason.why} {made}; {wanted}: inconclusive"


def _count(trials: int) -> str:
    return f"{trials} trial" if trials == 1 else f"{trials} trials"


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} trials" if whole > 1 else "the only trial"


def _amount(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.3g}"
