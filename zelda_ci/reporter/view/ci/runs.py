"""The runs in full: what the terminal shows of each, for the summary."""

from collections.abc import Iterator, Sequence

from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.reporter.view.ci.failures import printed
from zelda_ci.reporter.view.ci.nouns import Fold, Worth
from zelda_ci.reporter.view.ci.readings import by_suite
from zelda_ci.reporter.view.ci.table import trial_table
from zelda_ci.reporter.view.escape import visible
from zelda_ci.reporter.view.nouns import NO_FILES, Cell, MetricRow, Row, RunView, Section, Tone
from zelda_ci.reporter.view.run import run_view
from zelda_ci.reporter.view.trials import spread


def trial_folds(runs: Sequence[RunResult]) -> Iterator[Fold]:
    """A table of the trials of each suite that has several, and their spread."""
    for suite in by_suite(runs).values():
        if len(suite.runs) > 1:
            found = spread(suite.runs)
            rows = [Row(row.label, (Cell(row.mean), *row.span)) for row in found.rows] if found else []
            sections = (Section(found.title, tuple(rows)),) if found else ()
            title = f"{visible(suite.suite)}: {len(suite.runs)} trials"
            yield Fold(title, Worth.UNCHANGED, sections, (trial_table(suite.runs),))


def run_folds(runs: Sequence[RunResult]) -> Iterator[Fold]:
    """Criteria, commands, test counts, tools and use, run by run; those that did not pass first."""
    several = any(run.trial > 1 for run in runs)
    ordered = sorted(runs, key=lambda run: run_outcome(run) <= Outcome.PASSED)
    for view in (run_view(run, NO_FILES, several=several) for run in ordered):
        worth = Worth.RUN_PASSED if view.outcome <= Outcome.PASSED else Worth.RUN_FAILED
        trial = f", {view.trial}" if view.trial else ""
        yield Fold(f"{view.verdict.text} {view.suite}{trial} ({view.run_id})", worth, tuple(_sections(view)))


def _sections(view: RunView) -> Iterator[Section]:
    told = [Row("Ended", view.facts)]
    if view.problem:
        lines = (Cell(view.problem.advice), *printed(view.problem))
        told.append(Row("Problem", (Cell(view.problem.sentence, Tone.BAD),), lines))
    yield Section("", tuple(told))
    if view.scores:
        yield Section("Scores", tuple(map(_score, view.scores)))
    yield from view.sections


def _score(row: MetricRow) -> Row:
    return Row(row.label, (row.score, row.note))
