"""A comparison as a report."""

from collections.abc import Iterator, Sequence
from functools import partial

from zelda_ci.domain.comparison import (
    SAME_FILES,
    Comparison,
    CriterionDelta,
    Delta,
    GateResult,
    MeasureDelta,
    SuiteComparison,
    ToolChange,
    ToolDelta,
    Trials,
    TrialStatistics,
    Verdict,
)
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.numbers import format_count, whole
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.report.builders.figures import figure_table
from zelda_ci.report.builders.gate import TESTS, gate_sentence, uncounted_sentences
from zelda_ci.report.builders.phrases import interval_words, points
from zelda_ci.report.model import Cell, Column, ComparisonView, Row, Section, SuiteComparisonView, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible, written
from zelda_ci.report.words import ENDINGS

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
MAX_REASONING_LENGTH = 300

_SIDES = (Column("Baseline", right=True), Column("Candidate", right=True), Column("Change", right=True))
MEASURE_COLUMNS = (Column("Metric"), *_SIDES, Column("Verdict"))
CRITERION_COLUMNS = (Column("Criterion"), *_SIDES, Column("Verdict"))


def measure_table(deltas: tuple[MeasureDelta, ...], shown_reasons: frozenset[str]) -> Table:
    """Metrics side by side; reasons that were `told` already are not repeated."""
    return Table(MEASURE_COLUMNS, tuple(_measure(delta, shown_reasons) for delta in deltas))


def criterion_table(deltas: tuple[CriterionDelta, ...], shown_reasons: frozenset[str]) -> Table:
    """Criteria, old and new."""
    return Table(CRITERION_COLUMNS, tuple(_criterion(delta, shown_reasons) for delta in deltas))


def verdict(value: Verdict) -> Cell:
    """In the colour of its meaning."""
    return Cell(verdict_words(value), VERDICTS[value])


def verdict_words(value: Verdict) -> str:
    """As people read it."""
    return "changed, not proven" if value is Verdict.CHANGED else value.value


def amount(measure: Measure, value: float) -> str:
    """A value of the measure."""
    return written(MEASURES[measure].unit.write, value)


def difference(measure: Measure, value: float) -> str:
    """A difference of the measure, without its sign; of a score in points of 100."""
    return written(MEASURES[measure].unit.difference, value)


def _measure(delta: MeasureDelta, shown_reasons: frozenset[str]) -> TableRow:
    cells = (
        Cell(MEASURES[delta.measure].heading),
        _mean(delta.measure, delta.baseline),
        _mean(delta.measure, delta.candidate),
        _change(delta, changed(delta.measure, delta)),
        verdict(delta.verdict),
    )
    return TableRow(cells, tuple(notes(delta, shown_reasons)))


def _mean(measure: Measure, summary: TrialStatistics | None) -> Cell:
    if summary is None:
        return NOT_THERE
    spread = f" ±{amount(measure, summary.deviation)}" if summary.deviation else ""
    return Cell(amount(measure, summary.mean) + spread)


def changed(measure: Measure, delta: Delta) -> str:
    """The change with its sign and, of a resource, in percent of what it was."""
    change = delta.change or 0.0
    text = f"{'+' if change > 0 else '-'}{difference(measure, abs(change))}"
    relative = MEASURES[measure].unit.relative and delta.change_percent is not None
    return f"{text} ({delta.change_percent:+.1f}%)" if relative else text


def _change(delta: Delta, text: str) -> Cell:
    if delta.change is None:
        return NOT_THERE
    return Cell(text, EFFECTS[delta.effect or "same"]) if delta.change else Cell("0", Tone.DIM)


def _criterion(delta: CriterionDelta, shown_reasons: frozenset[str]) -> TableRow:
    cells = (
        Cell(sentence(delta.criterion)),
        passes(delta.baseline),
        passes(delta.candidate),
        _change(delta, f"{delta.change or 0.0:+.0f} points"),
        verdict(delta.verdict),
    )
    judgements = _judged("was", delta.baseline_judgement), _judged("now", delta.candidate_judgement)
    compared = judgements if delta.change is not None else ()
    return TableRow(cells, (*notes(delta, shown_reasons), *(judgement for judgement in compared if judgement)))


def passes(summary: TrialStatistics | None) -> Cell:
    """How often a criterion passed."""
    if summary is None:
        return NOT_THERE
    passed = round(summary.mean * summary.trials / 100)
    if summary.trials == 1:
        return Cell("pass", Tone.GOOD) if passed else Cell("fail", Tone.BAD)
    return Cell(f"{passed} of {summary.trials}")


def _judged(when: str, judgement: CriterionJudgement | None) -> Cell | None:
    return Cell(f"{when}: {sentence(judgement.reasoning, MAX_REASONING_LENGTH)}", Tone.DIM) if judgement else None


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
        yield Cell(f"{words} (95 % confidence)", Tone.DIM)


NOISE = "1 trial: differences may be noise"
NOT_PROVEN = "one trial on a side proves no change: set `trials: adaptive`, or more trials"
# What is said once for all rows of a report.
SHOWN_ONCE = frozenset({NOISE, NOT_PROVEN})
MAX_FILES = 5
MAX_PATH_LENGTH = 100


def changed_files(changes: Sequence[SteeringChange]) -> Iterator[str]:
    """The files that steer and differ between the sides, each with the first line that does."""
    for change in changes[:MAX_FILES]:
        place = " (removed)" if change.is_gone else f", line {change.line}" if change.line else ""
        yield f"{visible(change.path, MAX_PATH_LENGTH)}{place}"
    if (more := len(changes) - MAX_FILES) > 0:
        yield format_count(more, "more file")


def changed_row(changes: Sequence[SteeringChange]) -> Iterator[Row]:
    """The row that names them, if there are any."""
    if changes:
        yield Row("Changed", tuple(Cell(place, whole=True) for place in changed_files(changes)))


def comparison_view(
    comparison: Comparison,
    gate: GateResult,
    *,
    baseline: str,
    candidate: str,
    changes: Sequence[SteeringChange] = (),
) -> ComparisonView:
    """The view of a comparison; the sides are called as the user called them, and `changes` steer the candidate."""
    sides = (
        Row("Baseline", (Cell(visible(baseline, len(baseline)), whole=True),)),
        Row("Candidate", (Cell(visible(candidate, len(candidate)), whole=True),)),
        *changed_row(changes),
    )
    several = sum(any(row.change is not None for row in suite.measures) for suite in comparison.suites) > 1
    return ComparisonView(
        verdict(comparison.verdict),
        sides,
        measure_table(comparison.overall if several else (), SHOWN_ONCE),
        tuple(map(_suite, comparison.suites)),
        Section("How sure this is", (*certainty(comparison), *_option(comparison))),
        Section("Gate", tuple(_gate(gate))),
    )


def _suite(suite: SuiteComparison) -> SuiteComparisonView:
    rows = (*suite.measures, *suite.criteria) if suite.reasons else ()
    shown_reasons = frozenset({*SHOWN_ONCE, *suite.reasons, *(reason for row in rows for reason in row.reasons)})
    return SuiteComparisonView(
        visible(suite.suite),
        verdict(suite.verdict),
        tuple(_trials(suite)),
        tuple(remarks(suite)),
        measure_table(suite.measures, shown_reasons),
        criterion_table(suite.criteria, shown_reasons),
        figure_table(suite.figures),
        tuple(tool_rows(suite.tools)),
    )


def _trials(suite: SuiteComparison) -> Iterator[Cell]:
    for side, trials in (("baseline", suite.baseline), ("candidate", suite.candidate)):
        yield Cell(f"{side} {_statuses(trials)}" if trials else f"not in the {side}", Tone.DIM)
        if trials and trials.incomplete:
            yield Cell(f"{whole(trials.incomplete)} of them INCOMPLETE", Tone.BAD)


def _statuses(trials: Trials) -> str:
    words = [
        f"{whole(count)} {ENDINGS[status]}{' (left out)' if not status.is_valid else ''}"
        for status, count in sorted(trials.statuses.items())
    ]
    return ", ".join(words)


def remarks(suite: SuiteComparison) -> Iterator[Cell]:
    """What stands in the way of comparing, and what else differs."""
    for reason in suite.reasons:
        yield Cell(sentence(reason), Tone.WARN)
    for note in suite.notes:
        yield Cell(sentence(note), Tone.DIM)


def tool_rows(tools: ToolDelta) -> Iterator[Row]:
    """Tools that one side used or missed, and the other did not."""
    kinds = {
        "Newly used": (tools.newly_used, Tone.NEUTRAL),
        "No longer used": (tools.no_longer_used, Tone.NEUTRAL),
        "Newly missed": (tools.newly_missed, Tone.BAD),
        "No longer missed": (tools.no_longer_missed, Tone.GOOD),
    }
    for label, (changes, tone) in kinds.items():
        if changes:
            yield Row(label, tuple(Cell(_tool(change), tone) for change in changes))


def _tool(change: ToolChange) -> str:
    trials = change.baseline_trials or change.candidate_trials
    return f"{visible(change.tool, 80)} (in {format_count(trials, 'trial')})"


def certainty(comparison: Comparison) -> Iterator[Row]:
    """What a comparison with so many trials can tell and what it cannot."""
    family = comparison.family
    both = [suite for suite in comparison.suites if suite.baseline and suite.candidate]
    if both and all(SAME_FILES in suite.notes for suite in both):
        yield Row("Noise", (Cell(SAME_FILES, Tone.WARN),))
    elif comparison.single_trial:
        advice = (Cell(NOT_PROVEN, Tone.WARN),) if comparison.counts.get(Verdict.CHANGED) else ()
        yield Row("Noise", (Cell(NOISE, Tone.WARN), *advice))
    elif family.hypotheses:
        tested = f"{format_count(family.hypotheses, 'question')} tested together"
        alarm = "if nothing had changed, at most 1 in 20 comparisons would show a false alarm"
        yield Row("Noise", (Cell(f"{tested}: {alarm}"),))
    if comparison.mixed:
        mixed = "the sides differ in more than the steering files; such rows never turn the check red"
        yield Row("Mixed", (Cell(mixed, Tone.WARN),))
    words = ((count, verdict_words(verdict)) for verdict, count in comparison.counts.items())
    yield Row("Verdicts", tuple(Cell(f"{count} {word}") for count, word in words if count))


def _option(comparison: Comparison) -> Iterator[Row]:
    """What the command would show if it were asked to."""
    if any(_is_held_back(row) for suite in comparison.suites for row in (*suite.measures, *suite.criteria)):
        yield Row("Mixed", (Cell("`--allow-mixed` shows these changes too; they never turn the check red", Tone.WARN),))


def _is_held_back(delta: Delta) -> bool:
    """Whether both sides have the number, and only differences beside the steering files keep the change unsaid."""
    return delta.baseline is not None and delta.candidate is not None and delta.change is None


def _gate(gate: GateResult) -> Iterator[Row]:
    if not gate.reasons:
        yield Row("Passed", (Cell("no reason to fail the check", Tone.GOOD),))
    for reason in gate.reasons:
        yield Row(reason.kind.capitalize(), (Cell(sentence(gate_sentence(reason)), Tone.BAD),))
    for text in uncounted_sentences(gate):
        yield Row("Not counted", (Cell(text, Tone.WARN),))
