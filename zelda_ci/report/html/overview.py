"""The first page: the verdict in a sentence, what regressed first, and every suite with every number and its spread."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from zelda_ci import __version__
from zelda_ci.domain.comparison import MeasureDelta
from zelda_ci.domain.measures import MEASURES, Measure, values
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import PageLink, anchors_of
from zelda_ci.report.builders.comparison import EFFECTS, certainty, changed_files, measure_table
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.gate import uncounted_sentences
from zelda_ci.report.builders.run import VERDICTS
from zelda_ci.report.builders.standings import ORDER, SuiteRuns, SuiteStanding, by_suite, standings
from zelda_ci.report.builders.summary import COUNTED, tested_name
from zelda_ci.report.comment.basis import basis
from zelda_ci.report.comment.causes import EXPLAINED, Cause, causes
from zelda_ci.report.comment.headline import headline, lead
from zelda_ci.report.comment.table import SHOWN, means
from zelda_ci.report.html.model import NumberCell
from zelda_ci.report.html.sides import chosen_pair
from zelda_ci.report.html.suite import SuiteSessions
from zelda_ci.report.model import Cell, Section, Tone, plain
from zelda_ci.report.text import sentence, visible, written
from zelda_ci.report.told import CiReport

MAX_WORST = 12
MAX_DOTS = 60
MAX_CHOICES = 40
MINUS = "\u2212"


def sessions_of(report: CiReport, *, with_texts: bool) -> tuple[SuiteSessions, ...]:
    """Every suite of a report with its sessions, what a reader has to know of first."""
    head = report.batch.runs
    anchors = anchors_of(report)
    base = anchors.base
    heads, bases = by_suite(head), by_suite(base)
    known = {each.suite: each for each in standings(report)}

    def place(name: str) -> tuple[int, datetime, str]:
        began = min(run.started_at for run in (*_runs(heads, name), *_runs(bases, name)))
        return _rank(known.get(name)), began, name

    names = sorted(dict.fromkeys([*heads, *bases]), key=place)
    return tuple(
        SuiteSessions(name, _runs(heads, name), _runs(bases, name), known.get(name), anchors, with_texts)
        for name in names
    )


def _rank(standing: SuiteStanding | None) -> int:
    """What has to be looked at comes first."""
    if standing is None:
        return 2 * len(ORDER)
    return ORDER.index(standing.standing) + len(ORDER) * (not standing.is_bad)


def _runs(suites: Mapping[str, SuiteRuns], name: str) -> tuple[RunResult, ...]:
    """By trial: stored runs come with the newest first."""
    return tuple(sorted(suites[name].runs, key=lambda run: run.trial)) if name in suites else ()


def overview_page(report: CiReport, suites: Sequence[SuiteSessions], left_out: tuple[str, ...]) -> dict[str, Any]:
    """The first page of a report, for its template."""
    columns = tuple(measure for measure in SHOWN if any(_has(suite, measure) for suite in suites))
    lines = tuple((suite, tuple(_number(suite, measure) for measure in columns)) for suite in suites)
    comparison, known = report.comparison, standings(report)
    # A check that is green over something worse is not all well.
    tone = Tone.BAD if report.is_red else Tone.WARN if any(map(_is_doubtful, known)) else Tone.GOOD
    overall = measure_table(comparison.overall, frozenset()) if comparison and len(suites) > 1 else None
    return {
        "title": page_title(report),
        "verdict": replace(VERDICTS[report.outcome], tone=tone),
        "headline": Cell(headline(report, known), tone),
        "lead": (*_subject(report), *map(plain, (*lead(report, known), *basis(report)))),
        "remarks": (*map(sentence, report.notes), *uncounted_sentences(report.gate)),
        "worst": tuple(_worst(report, suites))[:MAX_WORST],
        "columns": tuple(MEASURES[measure].column for measure in columns),
        "lines": lines,
        "verdicts": Counter(suite.verdict.text for suite in suites).most_common(MAX_CHOICES),
        "tags": Counter(tag for suite in suites for tag in suite.tags).most_common(MAX_CHOICES),
        "overall": overall if overall and overall.lines else None,
        "sections": (Section("How sure this is", tuple(certainty(comparison))),) if comparison else (),
        "has_base": any(suite.base for suite in suites),
        "left_out": left_out,
        "made": f"zelda {__version__}, {report.batch.finished_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }


def page_title(report: CiReport) -> str:
    """Tells apart the reports of several projects."""
    return sentence(f"{report.subject}: {report.title}" if report.subject else report.title, 100)


def tested_state(report: CiReport) -> str:
    """Which commit or working tree was tested; empty where nothing says it."""
    return _name(report.batch.runs) or (f"commit {report.tested[:12]}" if report.tested else "")


def _subject(report: CiReport) -> Iterator[str]:
    """What was tested, against what, when; and which files that steer differ."""
    tested = tested_state(report)
    base = _name(report.baseline_batch.runs if report.baseline_batch else report.batch.base_runs)
    base = base or (f"commit {report.baseline.commit[:12]}" if report.baseline.commit else "")
    against = f", compared with {base}" if base and report.comparison else ""
    if tested:
        yield f"Tested: {tested}{against}, {report.batch.started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC."
    if changed := ", ".join(changed_files(report.changes.steering)):
        yield f"Changed files that steer Claude Code: {changed}."


def _name(runs: Sequence[RunResult]) -> str:
    return next((tested_name(run.source) for run in runs if run.source), "")


def _is_doubtful(suite: SuiteStanding) -> bool:
    return suite.is_bad or suite.standing in EXPLAINED or bool(suite.accepted)


# --- what is the matter, first ----------------------------------------------------------------------------------


def _worst(report: CiReport, suites: Sequence[SuiteSessions]) -> Iterator[tuple[Cell, PageLink]]:
    """The causes in the comment's order and words, then sessions that failed without one, then what passes hide."""
    by_name = {suite.name: suite for suite in suites}
    told = causes(report, standings(report))
    for cause in (each for of_suite in told for each in of_suite):
        words = f"{visible(cause.suite.suite, 80)}: {cause.sentence}"
        yield Cell(words, Tone.BAD if cause.is_red else Tone.WARN), _place(cause, by_name.get(cause.suite.suite))
    named = {of_suite[0].suite.suite for of_suite in told}
    for suite in suites:
        if suite.name not in named:
            yield from _failed(suite)
    for suite in suites:
        found = hidden_findings(suite.head)
        if found and not any(run_outcome(run) > Outcome.PASSED for run in suite.head):
            yield Cell(f"{visible(suite.name, 80)}: passes, but {found}", Tone.WARN), suite.link


def _place(cause: Cause, suite: SuiteSessions | None) -> PageLink:
    """Where a cause is seen: both sides of what is worse than before, else the first session that failed."""
    if suite is None:
        return PageLink("")
    if cause.suite.compared and not cause.suite.is_new and chosen_pair(suite):
        return PageLink("base and head", suite.anchors.sides(suite.name))
    runs = suite.head or suite.base
    failed = [run for run in runs if any(one.criterion == cause.criterion for one in failed_criteria(run))]
    failed = failed or [run for run in runs if run_outcome(run) > Outcome.PASSED]
    if not failed:
        return suite.link
    return next(session.link for session in suite.all if session.run is failed[0])


def _failed(suite: SuiteSessions) -> Iterator[tuple[Cell, PageLink]]:
    bad = [run for run in suite.head if run_outcome(run) > Outcome.PASSED]
    if bad:
        word, plural = COUNTED[max(map(run_outcome, bad))]
        counted = f"{len(bad)} of {len(suite.head)} sessions {plural}" if len(suite.head) > 1 else word
        link = next(session.link for session in suite.of(Side.HEAD) if session.run is bad[0])
        yield Cell(f"{visible(suite.name, 80)}: {counted}", Tone.WARN), link


# --- suites by numbers ------------------------------------------------------------------------------------------


def _has(suite: SuiteSessions, measure: Measure) -> bool:
    return any(measure in values(session.run.evaluations) for session in suite.all)


def _number(suite: SuiteSessions, measure: Measure) -> NumberCell | None:
    """The mean of the head; of a suite that only the base has, that of the base."""
    counted = SuiteRuns(suite.name, suite.head or suite.base)
    mean = means(counted.valid).get(measure)
    if mean is None:
        return None
    delta = next((d for d in suite.compared.measures if d.measure is measure), None) if suite.compared else None
    spec = MEASURES[measure]
    title = f"{suite.name}, {spec.heading}"
    return NumberCell(
        written(spec.unit.brief, mean), _change(measure, delta), tuple(_dots(suite, measure)), visible(title)
    )


def _change(measure: Measure, delta: MeasureDelta | None) -> Cell | None:
    if delta is None or not delta.change:
        return None
    text = _brief_change(measure, delta)
    return Cell(text, EFFECTS[delta.effect or "same"]) if text else None


def _brief_change(measure: Measure, delta: MeasureDelta) -> str:
    """Points of a score, per cent of what sessions use; empty where nothing is left after rounding."""
    change, spec = delta.change or 0.0, MEASURES[measure]
    is_share = spec.unit.brief_relative and delta.change_percent is not None
    text = f"{abs(delta.change_percent or 0.0):,.0f}%" if is_share else written(spec.unit.brief, abs(change))
    return f"{'+' if change > 0 else MINUS}{text}" if text.strip("$0.,% s") else ""


def _dots(suite: SuiteSessions, measure: Measure) -> Iterator[tuple[float, Side, str]]:
    """Scores on their own scale, everything else from nothing to the largest."""
    spec = MEASURES[measure]
    found = [(session, values(session.run.evaluations).get(measure)) for session in suite.all]
    known = [(session, value) for session, value in found if value is not None]
    top = 100.0 if spec.limit else max((value for _, value in known), default=0.0) or 1.0
    for side in Side:
        of_side = [one for one in known if one[0].side is side]
        for session, value in of_side[:MAX_DOTS]:
            place = 100 * min(max(value / top, 0.0), 1.0)
            yield place, side, f"{session.title}: {written(spec.unit.write, value)}"
