"""The comment as a report; the job summary is the same."""

from collections.abc import Iterator
from datetime import timedelta

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineState
from zelda_ci.domain.comparison import Comparison, SuiteComparison, Verdict
from zelda_ci.domain.outcome import run_outcome
from zelda_ci.report.builders.arms import spent
from zelda_ci.report.builders.context import context_line
from zelda_ci.report.builders.phrases import age_words, capital, joined, line
from zelda_ci.report.builders.standings import GRAVE, standings
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.causes import boxes, causes
from zelda_ci.report.comment.folds import commit_name, details, number_range
from zelda_ci.report.comment.headline import headline, lead
from zelda_ci.report.comment.table import moved_table
from zelda_ci.report.model import Cell, CiView, Line
from zelda_ci.report.text import sentence

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
    # Nobody is asked to look into the folds of a night.
    opened = [note for note in report.notes if report.nightly or note == FOREIGN]
    rest += [line("{}", capital(note)) for note in report.notes if note not in opened]
    return CiView(
        title=sentence(report.title, MAX_TITLE_LENGTH) or "Zelda",
        headline=headline(report, suites),
        lead=(
            *([joined(first, " ")] if first else []),
            *([context_line(report.context_size)] if report.context_size else []),
            *(line("{}", capital(note)) for note in opened[:MAX_NOTES]),
        ),
        causes=shown,
        more_causes=more,
        table=moved_table(report, suites),
        basis=tuple(basis(report)),
        details=tuple(details(report, suites, rest)),
        footer=_footer(report),
        changed=_changed(report),
        failed=report.is_red,
    )


def _changed(report: CiReport) -> bool:
    comparison = report.comparison
    if comparison is None:
        return report.baseline.state is not BaselineState.OFF
    verdicts = {comparison.verdict, *(suite.verdict for suite in comparison.suites)}
    missed = any(suite.tools.newly_missed or suite.tools.no_longer_missed for suite in comparison.suites)
    broken = report.is_cut_short or any(run_outcome(run) in GRAVE for run in report.batch.runs)
    return missed or broken or not verdicts <= {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}


def basis(report: CiReport) -> Iterator[Line]:
    """One paragraph below the table: what was compared with what, how many sessions, and what they cost."""
    sentences: list[Line] = []
    if report.comparison and not report.is_cut_short:
        sentences += _compared(report, report.comparison)
    if runs := (*report.batch.runs, *report.batch.base_runs):
        cost = f"This run cost {spent(report.batch)}{' with the judge' * any(run.judge for run in runs)}"
        is_free = all(run.replayed for run in runs)
        sentences.append(line(f"{'The sessions were replayed, and nothing was spent' if is_free else cost}."))
    if search := sum(found.cost_usd for found in report.attributions):
        sentences.append(line(f"The search for the cause cost {numbers.brief_money(search)} more."))
    if sentences:
        yield joined(sentences, " ")


def _compared(report: CiReport, comparison: Comparison) -> Iterator[Line]:
    """The baseline, and how many sessions of each side; of a base without any, why there are none."""
    origin, suites = report.baseline, comparison.suites
    base = [trials for suite in suites if (trials := _trials_of_base(suite))]
    if base:
        age = report.batch.started_at - origin.created_at if origin.created_at else timedelta()
        facts = [f"{origin.stands_for} has stored no results"] if origin.stands_for else []
        facts += [f"stored by {origin.workflow.rpartition('/')[2]}"] if origin.workflow else []
        facts += [f"{numbers.format_count(origin.behind, 'commit')} behind"] if origin.behind else []
        facts += [age_words(age)] if age > timedelta(days=1) else []
        words = ", ".join(facts)
        name = commit_name(origin.branch, origin.commit)
        against = Cell(name, whole=True) if name else "the results that the workflow names"
        yield line("Compared with {} ({})." if words else "Compared with {}{}.", against, words)
    here = [suite.candidate.valid for suite in suites if suite.candidate and suite.candidate.valid]
    whose = origin.branch or "the base"
    there = f", all as expected; {whose} was not needed"
    if base:
        beside = any(suite.sources and suite.sources.base for suite in suites)
        there = f", {number_range(base)} on the base{', side by side' * beside}"
    elif report.gate.uncounted or report.is_red:
        there = f"; no session of {whose} stands beside them"
    single = ": cost, turns and time differ between any two" * comparison.single_trial
    counts = f"{number_range(here)} session{'s' * (max(here) > 1)} per suite here" if here else ""
    yield line(f"{counts}{{}}{single}.", there) if here else line("No session could be counted.")


def _trials_of_base(suite: SuiteComparison) -> int:
    """Those that the verdict on a suite rests on; stored ones only said what to expect of the head's first."""
    if suite.sources:
        return suite.sources.base
    return suite.baseline.valid if suite.baseline else 0


def _footer(report: CiReport) -> Line:
    """The commit that a reviewer knows, and where everything is."""
    links = report.links
    head = report.head or report.tested or next((run.source.commit for run in report.batch.runs if run.source), None)
    tested = line("Tested {}", Cell(commit_name(None, head), whole=True, url=links.commit)) if head else ()
    places = (
        ("report", links.report),
        ("transcripts and patches", links.transcripts),
        ("results", links.artifact),
        ("workflow run", links.run),
    )
    found = [tested, *((Cell(words, url=url),) for words, url in places if url)]
    return joined(filter(None, found), " \u00b7 ")
