"""Two sides and the gate in words: what it finds, why a check is red, and every number side by side."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from zelda_ci.domain import comparison as findings
from zelda_ci.domain.comparison import (
    Comparison,
    CriterionDelta,
    Delta,
    GateReason,
    GateResult,
    MeasureDelta,
    SuiteComparison,
    Verdict,
)
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.numbers import format_count, some_of, whole
from zelda_ci.report import model
from zelda_ci.report.builders.phrases import change_words, interval_words, line, passed, points, quoted
from zelda_ci.report.model import Cell, Column, Line, Row, Section, Table, TableRow, Tone, plain
from zelda_ci.report.text import sentence, visible, written

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
    findings.Uncounted.NO_BASE: "nothing to compare with",
    findings.Uncounted.NOT_PROVEN: "not proven to be worse than on the base",
    findings.Uncounted.ON_BASE: "fails on the base, too",
}
MAX_CRITERION_LENGTH = 160


def uncounted_sentences(gate: GateResult) -> list[str]:
    """What fails and does not count, a line each."""
    return [f"{gate_sentence(each.reason)}: {uncounted_words(each)}" for each in gate.uncounted]


def uncounted_words(each: findings.UncountedReason) -> str:
    """Why a failure does not turn the check red; where that is not proven, how much worse it may be."""
    words, old, new = BECAUSE[each.because], each.baseline, each.reason
    if old is None or each.interval is None or not isinstance(new, findings.CriterionFailed | findings.EndedAtLimit):
        return words
    counts = f"{passed(old)} of {old.trials} on the base, {new.of - new.trials} of {new.of} here"
    return f"{words} ({counts}: {interval_words(each.interval, points)})"


def gate_sentence(reason: GateReason) -> str:
    """One reason, beginning with its suite."""
    found = plain(finding(reason))
    return found if isinstance(reason, findings.Refusal) else f"{sentence(reason.suite or 'all suites')}: {found}"


def finding(reason: GateReason) -> Line:
    """What the gate found, without its suite and without a full stop: in the same words wherever it is told."""
    often = ""
    if isinstance(reason, findings.NotJudged | findings.CriterionFailed | findings.CommandsFailed) and reason.of > 1:
        often = f" in {reason.trials} of {reason.of} sessions"
    match reason:
        case findings.NotLoaded():
            return line("{} is {}", reason.file, reason.effect)
        case findings.ContextTooLarge(tokens=tokens, maximum=maximum):
            return line(
                f"{'about ' * reason.is_estimated}{whole(tokens)} tokens are always in context, and at most "
                f"{whole(maximum)} are allowed (gate.maxAlwaysOnTokens): {whole(tokens - maximum)} too many"
            )
        case findings.Regression(delta=delta):
            return fallen(delta) if isinstance(delta, CriterionDelta) else line(change_words(delta))
        case findings.NotJudged():
            return line(f"not judged completely{often}: {{}}", reason.reason.rstrip("."))
        case findings.NotRun(made=made, trials=trials):
            after = f"after {format_count(made, 'session')}" if made else "before the first session"
            more = f"{format_count(trials, 'more session')} {'was' if trials == 1 else 'were'} wanted"
            return line(f"{{}} {after}, and {more}", reason.why)
        case findings.EndedAtLimit():
            which = "the session" if reason.of == 1 else f"{reason.trials} of {reason.of} sessions"
            return line(f"{which} {model.ENDINGS[reason.status]}")
        case findings.BelowMinimum(mean=mean):
            spec = MEASURES[reason.measure]
            minimum, why = f"at least {written(spec.unit.write, reason.minimum)} is required", reason.reason
            if mean is not None:
                return line(f"{spec.label} is {written(spec.unit.write, mean)}, and {minimum}")
            return line(f"{spec.label} has no value, and {minimum}: {{}}", (why or "not computed").rstrip("."))
        case findings.CriterionFailed():
            return line(f"{{}} is not met{often}", quoted(reason.criterion, MAX_CRITERION_LENGTH))
        case findings.CommandsFailed():
            return line(f"build, tests or coverage fall short{often}")


def fallen(delta: CriterionDelta, branch: str | None = None) -> Line:
    """A criterion that is met less often than on the base, or its branch, and how sure that is."""
    base = Cell(visible(branch, 80), whole=True) if branch else Cell("the base")
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


VERDICTS = {
    Verdict.REGRESSED: Tone.BAD,
    Verdict.CHANGED: Tone.WARN,
    Verdict.IMPROVED: Tone.GOOD,
    Verdict.INCONCLUSIVE: Tone.WARN,
    Verdict.UNCHANGED: Tone.DIM,
    Verdict.NEW: Tone.NEUTRAL,
    Verdict.REMOVED: Tone.NEUTRAL,
}
EFFECTS = {"better": Tone.GOOD, "worse": Tone.BAD, "same": Tone.DIM}
NOT_THERE = Cell("N/A", Tone.DIM)
SIDES = (Column("Base", right=True), Column("Head", right=True), Column("Change", right=True))
# What is said once for all rows of a report.
SHOWN_ONCE = frozenset({findings.SINGLE_TRIAL, findings.ONE_TRIAL_PROVES_NOTHING})
MAX_FILES = 5


def verdict(value: Verdict) -> Cell:
    return Cell(verdict_words(value), VERDICTS[value])


def verdict_words(value: Verdict) -> str:
    return {"changed": "changed, not proven", "regressed": "worse", "improved": "better"}.get(value, value.value)


def amount(measure: Measure, value: float) -> str:
    return written(MEASURES[measure].unit.write, value)


def difference(measure: Measure, value: float) -> str:
    """A difference of the measure, without its sign; of a score in points of 100."""
    return written(MEASURES[measure].unit.difference, value)


def measure_table(deltas: Sequence[MeasureDelta], shown_reasons: frozenset[str]) -> Table:
    """Metrics side by side, with the reasons that are not shown elsewhere."""
    rows = []
    for delta in deltas:
        measure, change = delta.measure, delta.change or 0.0
        spec, sides = MEASURES[measure], []
        for side in (delta.baseline, delta.candidate):
            spread = f" ±{amount(measure, side.deviation)}" if side and side.deviation else ""
            sides.append(Cell(amount(measure, side.mean) + spread) if side else NOT_THERE)
        words = f"{'+' if change > 0 else '-'}{difference(measure, abs(change))}"
        percent = delta.change_percent if spec.unit.relative else None
        changed = _change(delta, words if percent is None else f"{words} ({percent:+.1f}%)")
        cells = (Cell(spec.heading), *sides, changed, verdict(delta.verdict))
        rows.append(TableRow(cells, tuple(notes(delta, shown_reasons))))
    return Table((Column("Metric"), *SIDES, Column("Verdict")), tuple(rows))


def criterion_table(deltas: Sequence[CriterionDelta], shown_reasons: frozenset[str]) -> Table:
    """Criteria side by side; of those that changed, with what the judge said."""
    rows = []
    for delta in deltas:
        changed = _change(delta, f"{delta.change or 0.0:+.0f} points")
        sides = passes(delta.baseline), passes(delta.candidate)
        cells = (Cell(sentence(delta.criterion)), *sides, changed, verdict(delta.verdict))
        said = {"was": delta.baseline_judgement, "now": delta.candidate_judgement} if delta.change is not None else {}
        judged = [Cell(f"{when}: {sentence(it.reasoning, 300)}", Tone.DIM) for when, it in said.items() if it]
        rows.append(TableRow(cells, (*notes(delta, shown_reasons), *judged)))
    return Table((Column("Criterion"), *SIDES, Column("Verdict")), tuple(rows))


def figure_table(deltas: Sequence[findings.FigureDelta]) -> Table:
    """Numbers without a verdict of their own that differ or cannot be compared, named as in JSON."""
    rows = []
    for delta in deltas:
        if delta.change != 0:
            group, _, part = delta.name.partition(".")
            name = re.sub("[A-Z]", lambda capital: f" {capital[0].lower()}", group).capitalize()
            numbers = ((delta.baseline, ""), (delta.candidate, ""), (delta.change, "+"))
            cells = (NOT_THERE if it is None else Cell(f"{round(it, 4):{sign},.12g}") for it, sign in numbers)
            rows.append(TableRow((Cell(visible(f"{name}: {part}" if part else name, 80)), *cells)))
    return Table((Column("Measured"), *SIDES), tuple(rows))


def _change(delta: Delta, text: str) -> Cell:
    if delta.change is None:
        return NOT_THERE
    return Cell(text, effect_tone(delta)) if delta.change else Cell("0", Tone.DIM)


def effect_tone(delta: Delta) -> Tone:
    """What a change means; none that the verdict takes for noise has a colour."""
    return EFFECTS["same" if delta.verdict is Verdict.UNCHANGED else delta.effect or "same"]


def passes(summary: findings.TrialStatistics | None) -> Cell:
    """How often a criterion passed."""
    if summary is None:
        return NOT_THERE
    if summary.trials == 1:
        return Cell("pass", Tone.GOOD) if passed(summary) else Cell("fail", Tone.BAD)
    return Cell(f"{passed(summary)} of {summary.trials}")


def notes(delta: Delta, shown_reasons: frozenset[str]) -> Iterator[Cell]:
    """How sure the verdict is, and why it is no firmer."""
    firm = delta.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
    if firm and delta.adjusted_p_value is not None and delta.method in TESTS:
        yield Cell(f"p = {delta.adjusted_p_value:.2g} after correction, {TESTS[delta.method]}", Tone.DIM)
    for reason in delta.reasons:
        if reason not in shown_reasons:
            yield Cell(sentence(reason), Tone.WARN)
    if delta.interval and delta.verdict is not Verdict.UNCHANGED:
        write = partial(difference, delta.measure) if isinstance(delta, MeasureDelta) else points
        words = interval_words(delta.interval, write, delta.better)
        yield Cell(f"{words} (95% confidence)", Tone.DIM)


def changed_files(changes: Sequence[SteeringChange]) -> Iterator[str]:
    """The files that steer and differ between the sides, each with the first line that does."""
    for change in changes[:MAX_FILES]:
        place = " (removed)" if change.is_gone else f" (from line {change.line})" if change.line else ""
        yield f"{visible(change.path, 100)}{place}"
    if (more := len(changes) - MAX_FILES) > 0:
        yield format_count(more, "more file")


def changed_row(changes: Sequence[SteeringChange]) -> Iterator[Row]:
    """The row that names them, if there are any."""
    if changes:
        yield Row("Changed", tuple(Cell(place, whole=True) for place in changed_files(changes)))


def comparison_view(
    comparison: Comparison, gate: GateResult, *, baseline: str, candidate: str, changes: Sequence[SteeringChange] = ()
) -> model.ComparisonView:
    """The view of a comparison; the sides are called as the user called them, and `changes` steer the head."""
    names = (("Base", baseline), ("Head", candidate))
    sides = (Row(side, (Cell(visible(name, len(name)), whole=True),)) for side, name in names)
    deltas = [(*suite.measures, *suite.criteria) for suite in comparison.suites]
    several = sum(any(row.change is not None for row in suite.measures) for suite in comparison.suites) > 1
    sure = [*certainty(comparison)]
    if any(row.baseline and row.candidate and row.change is None for rows in deltas for row in rows):
        words = "`--allow-mixed` shows these changes too; they never turn the check red"
        sure.append(Row("Mixed", (Cell(words, Tone.WARN),)))
    against = [Row(KINDS[it.kind].capitalize(), (Cell(gate_sentence(it), Tone.BAD),)) for it in gate.reasons]
    against = against or [Row("Passed", (Cell("no reason to fail the check", Tone.GOOD),))]
    against += [Row("Not counted", (Cell(text, Tone.WARN),)) for text in uncounted_sentences(gate)]
    return model.ComparisonView(
        verdict(comparison.verdict),
        (*sides, *changed_row(changes)),
        measure_table(comparison.overall if several else (), SHOWN_ONCE),
        tuple(map(_suite, comparison.suites)),
        Section("How sure this is", tuple(sure)),
        Section("Gate", tuple(against)),
    )


def untold(gate: GateResult, shown: Section) -> Section:
    """What is `shown` of a gate, a row for each reason first, without what made a suite worse."""
    both = zip_longest(shown.rows, gate.reasons[: len(shown.rows)])
    return replace(shown, rows=tuple(row for row, it in both if not (isinstance(it, findings.Regression) and it.suite)))


def _suite(suite: SuiteComparison) -> model.SuiteView:
    rows = (*suite.measures, *suite.criteria) if suite.reasons else ()
    shown_reasons = frozenset({*SHOWN_ONCE, *suite.reasons, *(reason for row in rows for reason in row.reasons)})
    facts = []
    for side, trials in (("base", suite.baseline), ("head", suite.candidate)):
        statuses = sorted(trials.statuses.items()) if trials else ()
        counts = [f"{whole(n)} {model.ENDINGS[it]}{' (left out)' * (not it.is_valid)}" for it, n in statuses]
        facts.append(Cell(f"{side} {', '.join(counts)}" if trials else f"not in the {side}", Tone.DIM))
        if trials and trials.incomplete:
            facts.append(Cell(f"{whole(trials.incomplete)} of them INCOMPLETE", Tone.BAD))
    # Tools that one side used or missed, and the other did not.
    tools = []
    for label, changes, tone in (
        ("Newly used", suite.tools.newly_used, Tone.NEUTRAL),
        ("No longer used", suite.tools.no_longer_used, Tone.NEUTRAL),
        ("Newly missed", suite.tools.newly_missed, Tone.BAD),
        ("No longer missed", suite.tools.no_longer_missed, Tone.GOOD),
    ):
        counted = ((it.tool, format_count(it.baseline_trials or it.candidate_trials, "trial")) for it in changes)
        if cells := tuple(Cell(f"{visible(tool, 80)} (in {trials})", tone) for tool, trials in counted):
            tools.append(Row(label, cells))
    return model.SuiteView(
        visible(suite.suite),
        verdict(suite.verdict),
        tuple(facts),
        tuple(remarks(suite)),
        measure_table(suite.measures, shown_reasons),
        criterion_table(suite.criteria, shown_reasons),
        tuple(tools),
    )


def remarks(suite: SuiteComparison) -> Iterator[Cell]:
    """What stands in the way of comparing, and what else differs."""
    yield from (Cell(sentence(reason), Tone.WARN) for reason in suite.reasons)
    yield from (Cell(sentence(note), Tone.DIM) for note in suite.notes)


def certainty(comparison: Comparison) -> Iterator[Row]:
    """What a comparison with so many trials can tell and what it cannot."""
    both = [suite for suite in comparison.suites if suite.baseline and suite.candidate]
    if both and all(findings.SAME_FILES in suite.notes for suite in both):
        yield Row("Noise", (Cell(findings.SAME_FILES, Tone.WARN),))
    elif comparison.single_trial:
        advice = (Cell(findings.ONE_TRIAL_PROVES_NOTHING, Tone.WARN),) if comparison.counts.get(Verdict.CHANGED) else ()
        single = [suite.suite for suite in both if 1 in {it.valid for it in (suite.baseline, suite.candidate) if it}]
        of = f"{some_of(single)}: " if 0 < len(single) < len(both) else ""
        yield Row("Noise", (Cell(f"{visible(of)}{findings.SINGLE_TRIAL}", Tone.WARN), *advice))
    elif hypotheses := comparison.family.hypotheses:
        tested = f"{format_count(hypotheses, 'question')} tested together"
        alarm = "if nothing had changed, at most 1 in 20 comparisons would show a false alarm"
        yield Row("Noise", (Cell(f"{tested}: {alarm}"),))
    if comparison.mixed:
        mixed = "the sides differ in more than the steering files; such rows never turn the check red"
        yield Row("Mixed", (Cell(mixed, Tone.WARN),))
    counts = ((count, verdict_words(value)) for value, count in comparison.counts.items())
    yield Row("Verdicts", tuple(Cell(f"{count} {words}") for count, words in counts if count))
