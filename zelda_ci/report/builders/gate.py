"""The gate's findings in words: why a check is red."""

from typing import assert_never

from zelda_ci.domain.comparison import (
    BelowMinimum,
    CommandsFailed,
    ContextTooLarge,
    CriterionDelta,
    CriterionFailed,
    EndedAtLimit,
    GateReason,
    GateResult,
    NotJudged,
    NotLoaded,
    NotRun,
    Refusal,
    Regression,
    Uncounted,
    UncountedReason,
    Verdict,
)
from zelda_ci.domain.measures import MEASURES
from zelda_ci.domain.numbers import format_count, whole
from zelda_ci.report.builders.phrases import change_words, interval_words, line, passed, points, quoted
from zelda_ci.report.model import Cell, Line, plain
from zelda_ci.report.text import sentence, written
from zelda_ci.report.words import ENDINGS

TESTS = {"fisherExact": "Fisher's exact test", "permutation": "permutation test"}
# Kinds of findings as people call them.
KINDS = {
    "regression": "worse",
    "evaluation": "fails by itself",
    "incomplete": "not judged",
    "budget": "not run",
    "notLoaded": "not loaded",
    "context": "too large",
}
# Why a failure does not turn the check red.
BECAUSE = {
    Uncounted.NO_BASE: "nothing to compare with",
    Uncounted.NOT_PROVEN: "not proven to be worse than on the base",
    Uncounted.ON_BASE: "fails on the base, too",
}
MAX_CRITERION_LENGTH = 160
THE_BASE = Cell("the base")


def gate_sentences(gate: GateResult) -> list[str]:
    """Each reason as one line."""
    return list(map(gate_sentence, gate.reasons))


def uncounted_sentences(gate: GateResult) -> list[str]:
    """What fails and does not count, a line each."""
    return [f"{gate_sentence(each.reason)}: {uncounted_words(each)}" for each in gate.uncounted]


def uncounted_words(each: UncountedReason) -> str:
    """Why a failure does not turn the check red; where that is not proven, how much worse it may be."""
    words, old, new = BECAUSE[each.because], each.baseline, each.reason
    if old is None or each.interval is None or not isinstance(new, CriterionFailed | EndedAtLimit):
        return words
    counts = f"{passed(old)} of {old.trials} on the base, {new.of - new.trials} of {new.of} here"
    return f"{words} ({counts}: {interval_words(each.interval, points)})"


def gate_sentence(reason: GateReason) -> str:
    """One reason, beginning with its suite."""
    found = plain(finding(reason))
    return found if isinstance(reason, Refusal) else f"{sentence(reason.suite or 'all suites')}: {found}"


def finding(reason: GateReason) -> Line:
    """What the gate found, without its suite and without a full stop: in the same words wherever it is told."""
    often = ""
    if isinstance(reason, NotJudged | CriterionFailed | CommandsFailed) and reason.of > 1:
        often = f" in {reason.trials} of {reason.of} sessions"
    match reason:
        case NotLoaded():
            return line("{} is {}", reason.file, reason.effect)
        case ContextTooLarge(tokens=tokens, maximum=maximum):
            return line(
                f"{'about ' * reason.is_estimated}{whole(tokens)} tokens are always in context, and at most "
                f"{whole(maximum)} are allowed (gate.maxAlwaysOnTokens): {whole(tokens - maximum)} too many"
            )
        case Regression(delta=delta):
            return fallen(delta) if isinstance(delta, CriterionDelta) else line(change_words(delta))
        case NotJudged():
            return line(f"not judged completely{often}: {{}}", reason.reason.rstrip("."))
        case NotRun(made=made, trials=trials):
            after = f"after {format_count(made, 'session')}" if made else "before the first session"
            more = f"{format_count(trials, 'more session')} {'was' if trials == 1 else 'were'} wanted"
            return line(f"{{}} {after}, and {more}", reason.why)
        case EndedAtLimit():
            which = "the session" if reason.of == 1 else f"{reason.trials} of {reason.of} sessions"
            return line(f"{which} {ENDINGS[reason.status]}")
        case BelowMinimum(mean=mean):
            spec = MEASURES[reason.measure]
            minimum, why = f"at least {written(spec.unit.write, reason.minimum)} is required", reason.reason
            if mean is not None:
                return line(f"{spec.label} is {written(spec.unit.write, mean)}, and {minimum}")
            return line(f"{spec.label} has no value, and {minimum}: {{}}", (why or "not computed").rstrip("."))
        case CriterionFailed():
            return line(f"{{}} is not met{often}", quoted(reason.criterion, MAX_CRITERION_LENGTH))
        case CommandsFailed():
            return line(f"build, tests or coverage fall short{often}")
        case _:
            assert_never(reason)


def fallen(delta: CriterionDelta, base: Cell = THE_BASE) -> Line:
    """A criterion that is met less often than on the base, and how sure that is."""
    old, new = delta.baseline, delta.candidate
    assert old is not None  # noqa: S101 - a criterion is worse only where both sides have it
    assert new is not None  # noqa: S101
    name = quoted(delta.criterion, MAX_CRITERION_LENGTH)
    if old.trials == new.trials == 1:
        return line("{} was met on {} and is not met here", name, base)
    certainty = ", which may be chance with so few sessions" if delta.verdict is Verdict.INCONCLUSIVE else ""
    if delta.verdict is Verdict.REGRESSED and delta.adjusted_p_value is not None and delta.method in TESTS:
        certainty = f" (p = {delta.adjusted_p_value:.2g})"
    sessions = f"{passed(old)} of {format_count(old.trials, 'session')}"
    here = f" and in {passed(new)} of {whole(new.trials)} here{certainty}"
    return line(f"{{}} was met in {sessions} on {{}}{here}", name, base)
