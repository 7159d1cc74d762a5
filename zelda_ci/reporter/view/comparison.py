"""A comparison as finished strings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zelda_ci.domain.comparison import (
    Calibration,
    Comparison,
    GateResult,
    SuiteComparison,
    ToolChange,
    ToolDelta,
    Trials,
)
from zelda_ci.domain.session import SessionStatus
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.deltas import criterion_table, measure_table, verdict
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Section, Tone
from zelda_ci.reporter.view.problems import STATUS_WORDS
from zelda_ci.reporter.view.tables import Table

NOISE = "1 trial: differences may be noise"
LEFT_OUT = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}


@dataclass(frozen=True)
class SuiteComparisonView:
    """One suite on both sides; tables without lines are left out by whoever prints."""

    name: str
    verdict: Cell
    facts: tuple[Cell, ...]
    remarks: tuple[Cell, ...]
    measures: Table
    criteria: Table
    tools: tuple[Row, ...]


@dataclass(frozen=True)
class ComparisonView:
    """Everything that is said about two sides."""

    verdict: Cell
    sides: tuple[Row, ...]
    overall: Table
    suites: tuple[SuiteComparisonView, ...]
    certainty: Section
    gate: Section


def comparison_view(comparison: Comparison, gate: GateResult, *, baseline: str, candidate: str) -> ComparisonView:
    """The view of a comparison; the sides are called as the user called them."""
    sides = (
        Row("Baseline", (Cell(visible(baseline, len(baseline)), whole=True),)),
        Row("Candidate", (Cell(visible(candidate, len(candidate)), whole=True),)),
    )
    several = sum(any(row.change is not None for row in suite.measures) for suite in comparison.suites) > 1
    return ComparisonView(
        verdict(comparison.verdict),
        sides,
        measure_table(comparison.overall if several else (), frozenset({NOISE})),
        tuple(map(_suite, comparison.suites)),
        Section("How sure this is", tuple(certainty(comparison))),
        Section("Gate", tuple(_gate(gate))),
    )


def _suite(suite: SuiteComparison) -> SuiteComparisonView:
    rows = (*suite.measures, *suite.criteria) if suite.reasons else ()
    told = frozenset({NOISE, *suite.reasons, *(reason for row in rows for reason in row.reasons)})
    return SuiteComparisonView(
        visible(suite.suite),
        verdict(suite.verdict),
        tuple(_trials(suite)),
        tuple(remarks(suite)),
        measure_table(suite.measures, told),
        criterion_table(suite.criteria, told),
        tuple(tool_rows(suite.tools)),
    )


def _trials(suite: SuiteComparison) -> Iterator[Cell]:
    for side, trials in (("baseline", suite.baseline), ("candidate", suite.candidate)):
        yield Cell(f"{side} {_statuses(trials)}" if trials else f"not in the {side}", Tone.DIM)
        if trials and trials.incomplete:
            yield Cell(f"{numbers.whole(trials.incomplete)} of them INCOMPLETE", Tone.BAD)


def _statuses(trials: Trials) -> str:
    words = [
        f"{numbers.whole(count)} {STATUS_WORDS[status]}{' (left out)' if status in LEFT_OUT else ''}"
        for status, count in sorted(trials.statuses.items())
    ]
    return ", ".join(words)


def remarks(suite: SuiteComparison) -> Iterator[Cell]:
    """What stands in the way of comparing, and what else differs."""
    for reason in suite.reasons:
        yield Cell(sentence(reason), Tone.WARN)
    for note in suite.notes:
        yield Cell(sentence(note), Tone.DIM)
    if suite.calibration:
        yield Cell(_quoted(suite.calibration), Tone.DIM)


def _quoted(calibration: Calibration) -> str:
    """What the noise of equal runs is known to be."""
    flips = max((found.flip_rate for found in calibration.criteria), default=None)
    told = f", criteria flip in up to {numbers.score(flips)}% of pairs of equal runs" if flips is not None else ""
    return f"calibrated with {numbers.count(calibration.trials.valid, 'trial')}{told}"


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
    seen = change.baseline_trials or change.candidate_trials
    return f"{visible(change.tool, 80)} (in {numbers.count(seen, 'trial')})"


def certainty(comparison: Comparison) -> Iterator[Row]:
    """What a comparison with so many trials can tell and what it cannot."""
    family = comparison.family
    if comparison.single_trial:
        yield Row("Noise", (Cell(NOISE, Tone.WARN),))
    elif family.hypotheses:
        tested = f"{numbers.count(family.hypotheses, 'hypothesis', 'hypotheses')} corrected together"
        yield Row("Noise", (Cell(f"{tested}; a false alarm anywhere in at most 5% of comparisons of equal sides"),))
    if comparison.mixed:
        mixed = "the sides differ in more than the steering files; such rows never turn the check red"
        yield Row("Mixed", (Cell(mixed, Tone.WARN),))
    yield Row("Detectable", (Cell(_detectable(comparison)),))
    counts = comparison.counts.model_dump()
    yield Row("Verdicts", tuple(Cell(f"{count} {word}") for word, count in counts.items() if count))


def _detectable(comparison: Comparison) -> str:
    family = comparison.family
    if family.detectable_drop is not None:
        return f"the smallest drop of a pass rate that could have been detected is {family.detectable_drop:.0f}%"
    if not any(suite.criteria for suite in comparison.suites):
        return "no criteria were judged"
    text = "no drop of a single criterion could have been told from noise"
    if family.trials_needed:
        return f"{text}; with {family.trials_needed} trials per side, a fall from always to never could"
    return text


def _gate(gate: GateResult) -> Iterator[Row]:
    if not gate.reasons:
        yield Row("Passed", (Cell("nothing stands against the candidate", Tone.GOOD),))
    for reason in gate.reasons:
        yield Row(reason.kind.capitalize(), (Cell(sentence(reason.sentence), Tone.BAD),))


def gate_sentences(gate: GateResult) -> Sequence[str]:
    """For standard error, beside a report that a program reads."""
    return [sentence(reason.sentence) for reason in gate.reasons]
