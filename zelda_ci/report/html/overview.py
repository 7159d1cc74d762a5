"""The first page: the verdict in a sentence, what regressed first, and every suite with every number and its spread."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from zelda_ci import __version__
from zelda_ci.domain.comparison import MeasureDelta
from zelda_ci.domain.measures import MEASURES, Measure, values
from zelda_ci.domain.outcome import Outcome, failed_criteria
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import anchors_of, base_runs
from zelda_ci.report.builders.comparison import EFFECTS, certainty, changed_files, measure_table
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.gate import uncounted_sentences
from zelda_ci.report.builders.routing import routing_tables
from zelda_ci.report.builders.standings import ORDER, SuiteStanding, standings
from zelda_ci.report.builders.summary import tested_name
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.causes import EXPLAINED, Cause, causes
from zelda_ci.report.comment.headline import headline, lead
from zelda_ci.report.comment.table import SHOWN, means
from zelda_ci.report.comment.view import basis
from zelda_ci.report.html.suite import SuiteSessions
from zelda_ci.report.model import Cell, Section, Tone, plain
from zelda_ci.report.text import sentence, visible, written
from zelda_ci.report.words import OUTCOMES

MAX_WORST = 12
MAX_CHOICES = 40
MINUS = "\u2212"


def sessions_of(report: CiReport, *, with_texts: bool) -> list[SuiteSessions]:
    """Every suite of a report with its sessions, what a reader has to know of first."""
    anchors, known = anchors_of(report), {each.suite: each for each in standings(report)}
    sides: dict[str, tuple[list[RunResult], list[RunResult]]] = {}
    for place, runs in enumerate((report.batch.runs, base_runs(report))):
        # Stored runs come with the newest first.
        for run in sorted(runs, key=lambda run: run.trial):
            sides.setdefault(run.suite, ([], []))[place].append(run)

    def rank(name: str) -> tuple[int, datetime, str]:
        standing = known.get(name)
        place = ORDER.index(standing.standing) + len(ORDER) * (not standing.is_bad) if standing else 2 * len(ORDER)
        return place, min(run.started_at for runs in sides[name] for run in runs), name

    return [
        SuiteSessions(name, *sides[name], known.get(name), anchors, with_texts=with_texts)
        for name in sorted(sides, key=rank)
    ]


def overview_page(report: CiReport, suites: Sequence[SuiteSessions]) -> dict[str, Any]:
    """The first page of a report, for its template."""
    known_measures = {it for suite in suites for session in suite.all for it in values(session.run.evaluations)}
    columns = [measure for measure in SHOWN if measure in known_measures]
    comparison, known = report.comparison, standings(report)
    # A check that is green over something worse is not all well.
    doubtful = any(suite.is_bad or suite.standing in EXPLAINED or suite.accepted for suite in known)
    tone = Tone.BAD if report.is_red else Tone.WARN if doubtful else Tone.GOOD
    return {
        # Tells apart the reports of several projects.
        "title": sentence(f"{report.subject}: {report.title}" if report.subject else report.title, 100),
        "state": _tested(report),
        "verdict": replace(OUTCOMES[report.outcome].verdict, tone=tone),
        "headline": Cell(headline(report, known), tone),
        "lead": (*_subject(report), *map(plain, (*lead(report, known), *basis(report)))),
        "remarks": (*map(sentence, report.notes), *uncounted_sentences(report.gate)),
        "worst": list(islice(_worst(report, known, suites), MAX_WORST)),
        "columns": [MEASURES[measure].column for measure in columns],
        "lines": [(suite, [_number(suite, measure) for measure in columns]) for suite in suites],
        "verdicts": Counter(suite.verdict.text for suite in suites).most_common(MAX_CHOICES),
        "tags": Counter(tag for suite in suites for tag in suite.tags).most_common(MAX_CHOICES),
        "overall": measure_table(comparison.overall, frozenset()) if comparison and len(suites) > 1 else None,
        "sections": (Section("How sure this is", tuple(certainty(comparison))),) if comparison else (),
        "routing": [*routing_tables(report.batch.runs, base_runs(report))],
        "has_base": any(suite.base for suite in suites),
        "made": f"zelda {__version__}, {report.batch.finished_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }


def _tested(report: CiReport) -> str:
    """Which commit or working tree was tested; empty where nothing says it."""
    return _name(report.batch.runs) or (f"commit {report.tested[:12]}" if report.tested else "")


def _subject(report: CiReport) -> Iterator[str]:
    """What was tested, against what, when; and which files that steer differ."""
    tested = _tested(report)
    base = _name(report.baseline_batch.runs if report.baseline_batch else report.batch.base_runs)
    base = base or (f"commit {report.baseline.commit[:12]}" if report.baseline.commit else "")
    against = f", compared with {base}" if base and report.comparison else ""
    if tested:
        yield f"Tested: {tested}{against}, {report.batch.started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC."
    if changed := ", ".join(changed_files(report.changes.steering)):
        yield f"Changed files that steer Claude Code: {changed}."


def _name(runs: Sequence[RunResult]) -> str:
    return next((tested_name(run.source) for run in runs if run.source), "")


def _worst(
    report: CiReport, known: Sequence[SuiteStanding], suites: Sequence[SuiteSessions]
) -> Iterator[tuple[Cell, str, str]]:
    """What to look at first, each with the anchor of where it is seen, and with what is there.

    The causes in the comment's order and words, then sessions that failed without one, then what passes hide.
    """
    by_name = {suite.name: suite for suite in suites}
    told = [cause for of_suite in causes(report, known) for cause in of_suite]
    for cause in told:
        words = Cell(f"{visible(cause.suite.suite, 80)}: {cause.sentence}", Tone.BAD if cause.is_red else Tone.WARN)
        yield words, *_place(cause, by_name.get(cause.suite.suite))
    hiding = []
    for suite in suites:
        bad = [session for session in suite.head if session.outcome > Outcome.PASSED]
        if bad and suite.name not in {cause.suite.suite for cause in told}:
            worst = OUTCOMES[max(session.outcome for session in bad)]
            counted = f"{len(bad)} of {len(suite.head)} sessions {worst.several}" if len(suite.head) > 1 else worst.word
            yield Cell(f"{suite.text}: {counted}", Tone.WARN), bad[0].anchor, bad[0].text
        elif suite.head and not bad and (found := hidden_findings(suite.runs)):
            hiding.append((Cell(f"{suite.text}: passes, but {found}", Tone.WARN), suite.anchor, suite.text))
    yield from hiding


def _place(cause: Cause, suite: SuiteSessions | None) -> tuple[str, str]:
    """Where a cause is seen: both sides of what is worse than before, else the first session that failed."""
    if suite is None:
        return "", ""
    if cause.suite.compared and not cause.suite.is_new and suite.pair:
        return suite.sides, "base and head"
    sessions = suite.head or suite.base
    failed = [each for each in sessions if any(one.criterion == cause.criterion for one in failed_criteria(each.run))]
    failed = failed or [each for each in sessions if each.outcome > Outcome.PASSED]
    place = failed[0] if failed else suite
    return place.anchor, place.text


class Number(NamedTuple):
    """A number of a suite: its mean, how it changed, and each session as a dot."""

    mean: str
    change: Cell | None
    dots: list[tuple[float, Side, str]]
    """Each with its place on a scale from 0 to 100, and its title."""
    title: str


def _number(suite: SuiteSessions, measure: Measure) -> Number | None:
    """The mean of the head; of a suite that only the base has, that of the base."""
    mean = means(run for run in suite.runs if run.status.is_valid).get(measure)
    if mean is None:
        return None
    spec = MEASURES[measure]
    deltas = suite.compared.measures if suite.compared else ()
    known = [
        (one, value)
        for one in (*suite.head, *suite.base)
        if (value := values(one.run.evaluations).get(measure)) is not None
    ]
    # Scores on their own scale, everything else from nothing to the largest.
    top = 100.0 if spec.limit else max((value for _, value in known), default=0.0) or 1.0
    dots = [
        (100 * min(max(value / top, 0.0), 1.0), one.side, f"{one.text}: {written(spec.unit.write, value)}")
        for one, value in known
    ]
    change = next((_change(delta) for delta in deltas if delta.measure is measure), None)
    return Number(written(spec.unit.brief, mean), change, dots, f"{suite.text}, {spec.heading}")


def _change(delta: MeasureDelta) -> Cell | None:
    """Points of a score, per cent of what sessions use; nothing where nothing is left after rounding."""
    unit, change = MEASURES[delta.measure].unit, delta.change or 0.0
    is_share = unit.brief_relative and delta.change_percent is not None
    size = f"{abs(delta.change_percent or 0.0):,.0f}%" if is_share else written(unit.brief, abs(change))
    if not change or not re.search("[1-9]", size):
        return None
    return Cell(f"{'+' if change > 0 else MINUS}{size}", EFFECTS[delta.effect or "same"])
