"""The comment's table: a line per suite, with what changed in each number."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import Comparison, MeasureDelta, SuiteComparison, Verdict
from zelda_ci.domain.measure_spec import written
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.measures import values as values_of
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.report.builders.comparison import verdict
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import visible

LEFT_OUT = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}

WORDS = {
    Outcome.MEASURED: Cell("measured"),
    Outcome.PASSED: Cell("passed", Tone.GOOD),
    Outcome.FAILED: Cell("failed", Tone.BAD),
    Outcome.INCOMPLETE: Cell("INCOMPLETE", Tone.BAD),
    Outcome.BROKEN: Cell("error", Tone.BAD),
    Outcome.INTERRUPTED: Cell("interrupted", Tone.WARN),
}


@dataclass(frozen=True)
class SuiteRuns:
    """Every trial of one suite."""

    suite: str
    runs: tuple[RunResult, ...]

    @property
    def valid(self) -> tuple[RunResult, ...]:
        """The runs that say something."""
        return tuple(run for run in self.runs if run.status not in LEFT_OUT)

    @property
    def outcome(self) -> Outcome:
        return max(map(run_outcome, self.runs))


def by_suite(runs: Iterable[RunResult]) -> dict[str, SuiteRuns]:
    """Suites in the order in which they ran."""
    runs_of: dict[str, list[RunResult]] = {}
    for run in runs:
        runs_of.setdefault(run.suite, []).append(run)
    return {suite: SuiteRuns(suite, tuple(those)) for suite, those in runs_of.items()}


def outcome_cell(runs: Sequence[RunResult]) -> Cell:
    """`passed`, or `3 of 5 passed`."""
    outcomes = [run_outcome(run) for run in runs]
    worst = WORDS[max(outcomes)]
    if len(set(outcomes)) == 1:
        return worst
    return Cell(f"{outcomes.count(Outcome.PASSED)} of {numbers.whole(len(outcomes))} passed", worst.tone)


def means(runs: Iterable[RunResult]) -> dict[Measure, float]:
    """Over the runs that have the number."""
    collected: dict[Measure, list[float]] = {}
    for run in runs:
        for measure, value in values_of(run.evaluations).items():
            collected.setdefault(measure, []).append(value)
    return {measure: fmean(values) for measure, values in collected.items()}


FIRST = (Measure.REQUIREMENT_FULFILLMENT, Measure.TOOL_USAGE, Measure.FUNCTIONAL_CORRECTNESS)
SHOWN = (*FIRST, *(measure for measure, spec in MEASURES.items() if spec.column and measure not in FIRST))
NUMBERS = tuple(Column(MEASURES[measure].column, right=True) for measure in SHOWN)
COLUMNS = (Column("Suite"), Column("Status"), *NUMBERS)
TRIAL_COLUMNS = (Column("Trial"), Column("Status"), *NUMBERS)

UP, DOWN = "\u25b2", "\u25bc"
NOTHING = Cell("n/a", Tone.DIM)
MAX_SUITE_NAME_LENGTH = 60

RANKS = {
    Verdict.REGRESSED: 0,
    Verdict.CHANGED: 2,
    Verdict.INCONCLUSIVE: 3,
    Verdict.IMPROVED: 4,
    Verdict.NEW: 5,
    Verdict.REMOVED: 6,
}
BROKEN_RANK, FAILED_RANK, CALM_RANK = 1, 7, 8


def suite_table(batch: BatchResult, comparison: Comparison | None) -> Table:
    """Suites with regressions first, then what broke, what is in doubt, what improved, and the rest."""
    ran = by_suite(batch.runs)
    compared = {suite.suite: suite for suite in comparison.suites} if comparison else {}
    names = [*ran, *(name for name in compared if name not in ran)]
    ranked = sorted(names, key=lambda name: rank(ran.get(name), compared.get(name)))
    absent = Cell("not run", Tone.WARN) if batch.interrupted else None
    lines = [_line(name, ran.get(name), compared.get(name), absent) for name in ranked]
    if comparison and sum(any(row.change is not None for row in suite.measures) for suite in comparison.suites) > 1:
        lines.append(_overall(comparison))
    return Table(COLUMNS, tuple(lines))


def trial_table(runs: tuple[RunResult, ...]) -> Table:
    """A line per trial."""
    return Table(TRIAL_COLUMNS, tuple(TableRow(tuple(_trial(run))) for run in runs))


def rank(ran: SuiteRuns | None, compared: SuiteComparison | None) -> int:
    """The smaller, the more a reader has to know."""
    by_verdict = RANKS.get(compared.verdict, CALM_RANK) if compared else CALM_RANK
    if by_verdict and ran and ran.outcome in {Outcome.INCOMPLETE, Outcome.BROKEN, Outcome.INTERRUPTED}:
        return BROKEN_RANK
    return min(by_verdict, FAILED_RANK) if ran and ran.outcome is Outcome.FAILED else by_verdict


def _line(name: str, ran: SuiteRuns | None, compared: SuiteComparison | None, absent: Cell | None) -> TableRow:
    """`absent` is the status of a suite that only the baseline has, where it was not removed."""
    status = (absent,) if absent and ran is None else tuple(_status(ran, compared))
    joined = Cell(", ".join(cell.text for cell in status), status[0].tone)
    return TableRow((Cell(visible(name, MAX_SUITE_NAME_LENGTH)), joined, *_numbers(ran, compared)))


def _status(ran: SuiteRuns | None, compared: SuiteComparison | None) -> Iterator[Cell]:
    """The comparison's verdict, unless nothing was there to compare; then how the runs went."""
    if compared and (ran is None or ran.valid):
        yield verdict(compared.verdict)
    if ran is not None and (compared is None or ran.outcome is not Outcome.PASSED):
        yield outcome_cell(ran.runs)


def _numbers(ran: SuiteRuns | None, compared: SuiteComparison | None) -> Iterator[Cell]:
    if compared is None:
        values = means(ran.valid) if ran else {}
        return (_plain(measure, values) for measure in SHOWN)
    deltas = {delta.measure: delta for delta in compared.measures}
    return (_delta(measure, deltas.get(measure)) for measure in SHOWN)


def _trial(run: RunResult) -> Iterator[Cell]:
    yield Cell(f"trial {run.trial}")
    yield outcome_cell([run])
    values = values_of(run.evaluations)
    for measure in SHOWN:
        yield _plain(measure, values)


def _overall(comparison: Comparison) -> TableRow:
    deltas = {delta.measure: delta for delta in comparison.overall}
    worst = next((d.verdict for d in deltas.values() if d.verdict is Verdict.REGRESSED), None)
    status = verdict(worst) if worst else Cell("")
    return TableRow((Cell("Mean of all"), status, *(_delta(measure, deltas.get(measure)) for measure in SHOWN)))


def _plain(measure: Measure, values: Mapping[Measure, float]) -> Cell:
    return Cell(_spelled(measure, values[measure])) if measure in values else NOTHING


def _delta(measure: Measure, delta: MeasureDelta | None) -> Cell:
    if delta is None or (delta.candidate is None and delta.baseline is None):
        return NOTHING
    if delta.candidate is None or delta.baseline is None:
        return _one_sided(measure, delta)
    text = _spelled(measure, delta.candidate.mean)
    change = brief_change(measure, delta)
    tone = Tone.BAD if delta.verdict is Verdict.REGRESSED else Tone.NEUTRAL
    return Cell(f"{text} ({change})" if change else text, tone)


def _one_sided(measure: Measure, delta: MeasureDelta) -> Cell:
    if delta.candidate is not None:
        return Cell(_spelled(measure, delta.candidate.mean))
    assert delta.baseline is not None  # noqa: S101 - one of the two is there
    return Cell(f"(was {_spelled(measure, delta.baseline.mean)})", Tone.DIM)


def brief_change(measure: Measure, delta: MeasureDelta) -> str:
    """Points of a score, per cent of a resource; nothing where nothing is left after rounding."""
    change = delta.change or 0.0
    if MEASURES[measure].brief_relative and delta.change_percent is not None:
        text = f"{abs(delta.change_percent):,.0f}%"
    else:
        text = _spelled(measure, abs(change))
    return f"{UP if change > 0 else DOWN}{text}" if text.strip("$0.,% s") else ""


def _spelled(measure: Measure, value: float) -> str:
    return written(MEASURES[measure].brief, value)
