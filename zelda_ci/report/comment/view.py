"""The comment as a report; the job summary is the same."""

from collections.abc import Iterator

from zelda_ci.domain.ci import BaselineState
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.outcome import run_outcome
from zelda_ci.report.builders.nights import trend_details
from zelda_ci.report.builders.phrases import joined, line
from zelda_ci.report.builders.standings import GRAVE, SuiteStanding, standings
from zelda_ci.report.comment.basis import about_details, basis, footer
from zelda_ci.report.comment.causes import boxes, causes
from zelda_ci.report.comment.folds import (
    broken_details,
    gate_details,
    note_details,
    number_details,
    unmet_details,
)
from zelda_ci.report.comment.headline import capital, headline, lead
from zelda_ci.report.comment.table import moved_table
from zelda_ci.report.model import CiView, Details, Line
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.told import CiReport

MAX_TITLE_LENGTH = 80
MAX_NOTES = 10
# Sentences below the first line; the others can be opened.
MAX_LEAD = 3
FOREIGN = "These results were made by the workflow run of a fork's pull request, whose author controls what it does."
NOT_STORED = "The results were not stored as an artifact"
NO_REPORT = "The HTML report could not be stored"
NO_JUNIT = "There is no JUnit XML"


def ci_view(report: CiReport) -> CiView:
    """The view that comment and summary are rendered from."""
    suites = standings(report)
    shown, more = boxes(report, [] if report.is_cut_short else causes(report, suites))
    first, rest = (found := [*lead(report, suites)])[:MAX_LEAD], found[MAX_LEAD:]
    return CiView(
        title=visible(report.title.strip(), MAX_TITLE_LENGTH) or "Zelda",
        headline=headline(report, suites),
        lead=(*([joined(first, " ")] if first else []), *_open_notes(report)),
        causes=shown,
        more_causes=more,
        table=moved_table(report, suites),
        basis=tuple(basis(report)),
        details=tuple(_details(report, suites, rest)),
        footer=footer(report),
        changed=_changed(report),
        failed=report.is_red,
    )


def _open_notes(report: CiReport) -> Iterator[Line]:
    """Of what happened on the way, what nobody may overlook; of a night, all: nobody is asked to look into folds."""
    for note in report.notes[:MAX_NOTES]:
        if report.nights or note == FOREIGN:
            yield line("{}", capital(sentence(note)))


def _details(report: CiReport, suites: tuple[SuiteStanding, ...], rest: list[Line]) -> Iterator[Details]:
    """What matters most comes first: where there is no room for all, the last ones are left out."""
    if report.nights:
        yield from trend_details(report.nights)
    if not report.is_cut_short:
        yield from gate_details(report.gate)
    yield from broken_details(report.batch.runs)
    yield from unmet_details(report.batch.runs, report.comparison)
    notes = () if report.nights else [note for note in report.notes if note != FOREIGN]
    yield from note_details(rest, notes)
    yield about_details(report)
    yield from number_details(report, suites)


def _changed(report: CiReport) -> bool:
    comparison = report.comparison
    if comparison is None:
        return report.baseline.state is not BaselineState.OFF
    cut_short = report.is_cut_short or any(run_outcome(run) in GRAVE for run in report.batch.runs)
    return cut_short or _differs(comparison)


def _differs(comparison: Comparison) -> bool:
    calm = {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    tools = any(suite.tools.newly_missed or suite.tools.no_longer_missed for suite in comparison.suites)
    return tools or comparison.verdict not in calm or any(suite.verdict not in calm for suite in comparison.suites)
