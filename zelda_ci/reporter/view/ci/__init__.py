"""What CI is told about one invocation: first line, table, what can be opened, and annotations; pure."""

from collections.abc import Iterator
from itertools import islice

from zelda_ci.domain.ci import BaselineState, CiReport
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.reporter.view.ci.about import about_fold
from zelda_ci.reporter.view.ci.annotations import Annotation, annotations
from zelda_ci.reporter.view.ci.changes import change_folds, comparison_folds
from zelda_ci.reporter.view.ci.failures import broken_fold, gate_fold, unmet_fold
from zelda_ci.reporter.view.ci.nouns import CiView, Fold, Link
from zelda_ci.reporter.view.ci.runs import run_folds, trial_folds
from zelda_ci.reporter.view.ci.table import suite_table
from zelda_ci.reporter.view.ci.verdict import HASH, verdict_rows
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Tone

__all__ = ["Annotation", "CiView", "annotations", "ci_view"]

LONGEST_TITLE = 80
MOST_NOTES = 10
MOST_FOLDS = 500
GRAVE = {Outcome.INCOMPLETE, Outcome.BROKEN, Outcome.INTERRUPTED}


def ci_view(report: CiReport) -> CiView:
    """The view that comment and summary are rendered from."""
    return CiView(
        title=visible(report.title.strip(), LONGEST_TITLE) or "Zelda",
        verdict=tuple(verdict_rows(report)),
        remarks=tuple(_remarks(report)),
        table=suite_table(report.batch, report.comparison),
        folds=tuple(_folds(report)),
        evidence=tuple(_evidence(report)),
        tested=_tested(report),
        links=tuple(_links(report)),
        changed=_changed(report),
        failed=bool(report.gate.reasons) or batch_outcome(report.batch) in GRAVE,
    )


def _folds(report: CiReport) -> Iterator[Fold]:
    runs, comparison = report.batch.runs, report.comparison
    yield from gate_fold(report.gate)
    yield from broken_fold(runs)
    if comparison:
        yield from _some(change_folds(comparison, runs))
    yield from unmet_fold(runs, comparison)
    yield about_fold(report)


def _evidence(report: CiReport) -> Iterator[Fold]:
    if report.comparison:
        yield from _some(comparison_folds(report.comparison))
    yield from _some(trial_folds(report.batch.runs))
    yield from _some(run_folds(report.batch.runs))


def _some(folds: Iterator[Fold]) -> Iterator[Fold]:
    """More than any page has room for need not be made; that there is more is said."""
    last = None
    for last in islice(folds, MOST_FOLDS):
        yield last
    if last and next(folds, None):
        yield Fold(f"More than {MOST_FOLDS} of them: all are in the artifact", last.worth)


def _remarks(report: CiReport) -> Iterator[Cell]:
    """Why there is nothing to compare with, and what happened on the way."""
    if report.comparison is None and report.baseline.state is not BaselineState.OFF and report.baseline.sentence:
        yield Cell(_capital(sentence(report.baseline.sentence)), Tone.WARN)
    if report.batch.interrupted:
        yield Cell("The run was cancelled. This is what had been done until then.", Tone.WARN)
    for note in report.notes[:MOST_NOTES]:
        yield Cell(_capital(sentence(note)))


def _capital(text: str) -> str:
    """As a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _tested(report: CiReport) -> Row:
    commit = report.tested or next((run.source.commit for run in report.batch.runs if run.source), None)
    return Row("Tested", (Cell(visible(commit, 80)[:HASH], whole=True),) if commit else ())


def _links(report: CiReport) -> Iterator[Link]:
    links = report.links
    for text, url in (("commit", links.commit), ("workflow run", links.run), ("artifact", links.artifact)):
        if url:
            yield Link(text, url)


def _changed(report: CiReport) -> bool:
    comparison = report.comparison
    if comparison is None:
        return report.baseline.state is not BaselineState.OFF
    cut_short = report.batch.interrupted or any(run_outcome(run) in GRAVE for run in report.batch.runs)
    return cut_short or _differs(comparison)


def _differs(comparison: Comparison) -> bool:
    calm = {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    tools = any(suite.tools.newly_missed or suite.tools.no_longer_missed for suite in comparison.suites)
    return tools or comparison.verdict not in calm or any(suite.verdict not in calm for suite in comparison.suites)
