"""The runs of a suite as numbers, for rows that no comparison speaks of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from zelda_ci.domain.comparison import Measure
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.nouns import Cell, Tone
from zelda_ci.reporter.view.usage import used

IMPLAUSIBLE = 1e15
"""Results of a fork are written by strangers; a number beyond this upsets the arithmetic."""

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
        """The gravest."""
        return max(map(run_outcome, self.runs))


def by_suite(runs: Iterable[RunResult]) -> dict[str, SuiteRuns]:
    """Suites in the order in which they ran."""
    found: dict[str, list[RunResult]] = {}
    for run in runs:
        found.setdefault(run.suite, []).append(run)
    return {suite: SuiteRuns(suite, tuple(those)) for suite, those in found.items()}


def outcome_cell(runs: Sequence[RunResult]) -> Cell:
    """`passed`, or `3 of 5 passed`."""
    outcomes = [run_outcome(run) for run in runs]
    worst = WORDS[max(outcomes)]
    if len(set(outcomes)) == 1:
        return worst
    return Cell(f"{outcomes.count(Outcome.PASSED)} of {numbers.whole(len(outcomes))} passed", worst.tone)


def measured(run: RunResult) -> dict[Measure, float]:
    """The numbers that a run has."""
    scores = {Measure(metric.value): found.score for metric, found in run.evaluations.items()}
    use = used(run)
    resources: dict[Measure, float | None] = {}
    if use and use.details:
        details = use.details
        resources = {
            Measure.COST: details.cost_usd,
            Measure.TOKENS: details.usage.total,
            Measure.TURNS: details.turns,
            Measure.DURATION: details.wall_seconds,
        }
    return {
        measure: float(value)
        for measure, value in (scores | resources).items()
        if value is not None and abs(value) < IMPLAUSIBLE
    }


def means(runs: Iterable[RunResult]) -> dict[Measure, float]:
    """Over the runs that have the number."""
    found: dict[Measure, list[float]] = {}
    for run in runs:
        for measure, value in measured(run).items():
            found.setdefault(measure, []).append(value)
    return {measure: fmean(values) for measure, values in found.items()}
