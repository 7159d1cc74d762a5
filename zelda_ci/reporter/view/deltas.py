"""One number or criterion on both sides, as a line of a table."""

from collections.abc import Callable, Iterator

from zelda_ci.domain.comparison import CriterionDelta, Delta, Measure, MeasureDelta, Summary, Verdict
from zelda_ci.domain.judgement import CriterionJudgement
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence
from zelda_ci.reporter.view.nouns import Cell, Tone
from zelda_ci.reporter.view.tables import Column, Line, Table

LABELS = {
    Measure.EFFICIENCY: "Efficiency",
    Measure.FUNCTIONAL_CORRECTNESS: "Functional correctness",
    Measure.REQUIREMENT_FULFILLMENT: "Requirement fulfillment",
    Measure.TOOL_USAGE: "Tool usage",
    Measure.COST: "Cost",
    Measure.TOKENS: "Tokens",
    Measure.TURNS: "Turns",
    Measure.DURATION: "Time",
}

SPELL: dict[Measure, Callable[[float], str]] = {
    Measure.COST: numbers.money,
    Measure.TOKENS: numbers.whole,
    Measure.TURNS: numbers.average,
    Measure.DURATION: numbers.duration,
}
"""Scores are all spelled alike."""

VERDICTS = {
    Verdict.REGRESSED: Tone.BAD,
    Verdict.IMPROVED: Tone.GOOD,
    Verdict.INCONCLUSIVE: Tone.WARN,
    Verdict.UNCHANGED: Tone.DIM,
    Verdict.NEW: Tone.NEUTRAL,
    Verdict.REMOVED: Tone.NEUTRAL,
}
EFFECTS = {"better": Tone.GOOD, "worse": Tone.BAD, "same": Tone.DIM}
TESTS = {"fisherExact": "Fisher's exact test", "permutation": "permutation test", "signFlip": "sign-flip test"}
NOT_THERE = Cell("N/A", Tone.DIM)
LONGEST_REASONING = 300

_SIDES = (Column("Baseline", right=True), Column("Candidate", right=True), Column("Change", right=True))
MEASURES = (Column("Metric"), *_SIDES, Column("Verdict"))
CRITERIA = (Column("Criterion"), *_SIDES, Column("Verdict"))


def measure_table(deltas: tuple[MeasureDelta, ...], told: frozenset[str]) -> Table:
    """Metrics side by side; reasons that were `told` already are not repeated."""
    return Table(MEASURES, tuple(_measure(delta, told) for delta in deltas))


def criterion_table(deltas: tuple[CriterionDelta, ...], told: frozenset[str]) -> Table:
    """Criteria, old and new."""
    return Table(CRITERIA, tuple(_criterion(delta, told) for delta in deltas))


def verdict(found: Verdict) -> Cell:
    """In the colour of its meaning."""
    return Cell(found.value, VERDICTS[found])


def amount(measure: Measure, value: float) -> str:
    """A value of the measure."""
    return SPELL.get(measure, numbers.score)(value)


def difference(measure: Measure, value: float) -> str:
    """A difference of the measure, without its sign; of a score in percent of its full range."""
    match measure:
        case Measure.COST | Measure.TOKENS | Measure.DURATION:
            return amount(measure, value)
        case Measure.TURNS:
            return f"{numbers.average(value)} {'turn' if value == 1 else 'turns'}"
        case _:
            return f"{numbers.score(value)}%"


def _measure(delta: MeasureDelta, told: frozenset[str]) -> Line:
    cells = (
        Cell(LABELS[delta.measure]),
        _mean(delta.measure, delta.baseline),
        _mean(delta.measure, delta.candidate),
        _change(delta, changed(delta.measure, delta)),
        verdict(delta.verdict),
    )
    return Line(cells, tuple(notes(delta, told)))


def _mean(measure: Measure, summary: Summary | None) -> Cell:
    if summary is None:
        return NOT_THERE
    spread = f" ±{amount(measure, summary.deviation)}" if summary.deviation else ""
    return Cell(amount(measure, summary.mean) + spread)


def changed(measure: Measure, delta: Delta) -> str:
    """The change with its sign and, of a resource, in percent of what it was."""
    change = delta.change or 0.0
    text = f"{'+' if change > 0 else '-'}{difference(measure, abs(change))}"
    relative = measure in SPELL and delta.change_percent is not None
    return f"{text} ({delta.change_percent:+.1f}%)" if relative else text


def _change(delta: Delta, text: str) -> Cell:
    if delta.change is None:
        return NOT_THERE
    return Cell(text, EFFECTS[delta.effect or "same"]) if delta.change else Cell("0", Tone.DIM)


def _criterion(delta: CriterionDelta, told: frozenset[str]) -> Line:
    cells = (
        Cell(sentence(delta.criterion)),
        passes(delta.baseline),
        passes(delta.candidate),
        _change(delta, f"{delta.change or 0.0:+.0f}%"),
        verdict(delta.verdict),
    )
    judgements = _judged("was", delta.baseline_judgement), _judged("now", delta.candidate_judgement)
    compared = judgements if delta.change is not None else ()
    return Line(cells, (*notes(delta, told), *(found for found in compared if found)))


def passes(summary: Summary | None) -> Cell:
    """How often a criterion passed."""
    if summary is None:
        return NOT_THERE
    passed = round(summary.mean * summary.trials / 100)
    if summary.trials == 1:
        return Cell("pass", Tone.GOOD) if passed else Cell("fail", Tone.BAD)
    return Cell(f"{passed} of {summary.trials}")


def _judged(when: str, judgement: CriterionJudgement | None) -> Cell | None:
    return Cell(f"{when}: {sentence(judgement.reasoning, LONGEST_REASONING)}", Tone.DIM) if judgement else None


def notes(delta: Delta, told: frozenset[str]) -> Iterator[Cell]:
    """How sure the verdict is, and why it is no firmer."""
    firm = delta.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
    if firm and delta.adjusted_p_value is not None and delta.method in TESTS:
        yield Cell(f"p = {delta.adjusted_p_value:.2g} after correction, {TESTS[delta.method]}", Tone.DIM)
    for reason in delta.reasons:
        if reason not in told:
            yield Cell(sentence(reason), Tone.WARN)
    if delta.trials_needed:
        yield Cell(f"{delta.trials_needed} trials per side would tell, if the change lasts", Tone.DIM)
