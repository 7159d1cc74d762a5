"""The first page: the verdict in a sentence, what regressed first, and every suite with every number and its spread."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from zelda_ci import __version__
from zelda_ci.domain.ci import CiReport
from zelda_ci.domain.comparison import CriterionDelta, CriterionFailed, GateReason, MeasureDelta, Regression
from zelda_ci.domain.measure_spec import written
from zelda_ci.domain.measures import MEASURES, Measure, values
from zelda_ci.domain.outcome import Outcome, batch_outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.ci_table import SHOWN, SuiteRuns, brief_change, by_suite, means, rank
from zelda_ci.report.builders.ci_verdict import verdict_rows
from zelda_ci.report.builders.comparison import EFFECTS, certainty, measure_table, verdict_words
from zelda_ci.report.builders.gate import gate_sentence, on_base_sentences
from zelda_ci.report.builders.page_anchors import PageAnchors
from zelda_ci.report.builders.page_suite import SuiteSessions
from zelda_ci.report.builders.run import VERDICTS
from zelda_ci.report.builders.summary import COUNTED
from zelda_ci.report.model import Cell, Row, Section, Tone
from zelda_ci.report.page_model import Choice, Dot, NumberCell, OverviewPage, PageLink, SuiteLine
from zelda_ci.report.text import sentence, visible

MAX_WORST = 12
MAX_DOTS = 60


def sessions_of(report: CiReport, *, with_texts: bool) -> tuple[SuiteSessions, ...]:
    """Every suite of a report with its sessions, what a reader has to know of first."""
    head = report.batch.runs
    base = (*report.batch.base_runs, *(report.baseline_batch.runs if report.baseline_batch else ()))
    anchors = PageAnchors(head, base)
    heads, bases = by_suite(head), by_suite(base)
    compared = {suite.suite: suite for suite in report.comparison.suites} if report.comparison else {}

    def place(name: str) -> tuple[int, datetime, str]:
        began = min(run.started_at for run in (*_runs(heads, name), *_runs(bases, name)))
        return rank(heads.get(name), compared.get(name)), began, name

    names = sorted(dict.fromkeys([*heads, *bases]), key=place)
    return tuple(
        SuiteSessions(name, _runs(heads, name), _runs(bases, name), compared.get(name), anchors, with_texts)
        for name in names
    )


def _runs(suites: Mapping[str, SuiteRuns], name: str) -> tuple[RunResult, ...]:
    """By trial: stored runs come with the newest first."""
    return tuple(sorted(suites[name].runs, key=lambda run: run.trial)) if name in suites else ()


def overview_page(report: CiReport, suites: Sequence[SuiteSessions], left_out: tuple[str, ...]) -> OverviewPage:
    """The first page of a report."""
    columns = tuple(measure for measure in SHOWN if any(_has(suite, measure) for suite in suites))
    lines = tuple(_line(suite, columns) for suite in suites)
    comparison = report.comparison
    overall = measure_table(comparison.overall, frozenset()) if comparison and len(suites) > 1 else None
    return OverviewPage(
        title=sentence(report.title, 100),
        verdict=_verdict(report),
        findings=tuple(tuple(_row_cells(row)) for row in verdict_rows(report)),
        remarks=tuple(Cell(sentence(note), Tone.WARN) for note in (*report.notes, *on_base_sentences(report.gate))),
        worst=tuple(_worst(report, suites))[:MAX_WORST],
        columns=tuple(MEASURES[measure].column for measure in columns),
        lines=lines,
        verdicts=tuple(_choices(Counter(line.key for line in lines), {line.key: line.key for line in lines})),
        tags=tuple(_choices(Counter(tag for line in lines for tag in line.tags), {})),
        overall=overall if overall and overall.lines else None,
        sections=(Section("How sure this is", tuple(certainty(comparison))),) if comparison else (),
        has_base=any(suite.base for suite in suites),
        left_out=left_out,
        made=f"zelda {__version__}, {report.batch.finished_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _row_cells(row: Row) -> Iterator[Cell]:
    if row.label:
        yield Cell(row.label, Tone.DIM)
    yield from row.cells


def _verdict(report: CiReport) -> Cell:
    """What the exit code says, in a word."""
    outcome = batch_outcome(report.batch)
    if outcome >= Outcome.INCOMPLETE:
        return VERDICTS[outcome]
    if report.gate.exit_code == Outcome.INCOMPLETE.exit_code:
        return VERDICTS[Outcome.INCOMPLETE]
    if report.gate.reasons:
        return VERDICTS[Outcome.FAILED]
    # What fails on the base, too, does not fail the check.
    return VERDICTS[Outcome.PASSED if report.comparison else outcome]


# --- what is the matter, first ----------------------------------------------------------------------------------


def _worst(report: CiReport, suites: Sequence[SuiteSessions]) -> Iterator[tuple[Cell, PageLink]]:
    """Findings of the gate, regressions first, each once, then sessions that failed without one."""
    by_name = {suite.name: suite for suite in suites}
    reasons = sorted(report.gate.reasons, key=lambda reason: not isinstance(reason, Regression))
    told = set()
    for reason in reasons:
        suite = by_name.get(reason.suite or "")
        criterion = _criterion(reason)
        if criterion and (reason.suite, criterion) in told:
            continue
        told.add((reason.suite, criterion))
        yield Cell(sentence(gate_sentence(reason)), Tone.BAD), _place(reason, suite)
    named = {reason.suite for reason in reasons}
    for suite in suites:
        if suite.name not in named:
            yield from _failed(suite)


def _criterion(reason: GateReason) -> str | None:
    match reason:
        case Regression(delta=CriterionDelta(criterion=criterion)) | CriterionFailed(criterion=criterion):
            return criterion
        case _:
            return None


def _place(reason: GateReason, suite: SuiteSessions | None) -> PageLink:
    """Where a finding is seen: the two sides of a regression, else the first session that failed, else the suite."""
    if suite is None:
        return PageLink("")
    if isinstance(reason, Regression) and suite.base and suite.head:
        return PageLink("base and head", suite.anchors.sides(suite.name))
    runs = suite.head or suite.base
    criterion = _criterion(reason)
    failed = [run for run in runs if any(one.criterion == criterion for one in failed_criteria(run))]
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


def _line(suite: SuiteSessions, columns: Sequence[Measure]) -> SuiteLine:
    runs = suite.head or suite.base
    outcome = COUNTED[max(map(run_outcome, runs))][0]
    return SuiteLine(
        anchor=suite.anchors.suite(suite.name),
        name=visible(suite.name, 80),
        verdict=suite.verdict,
        key=verdict_words(suite.compared.verdict) if suite.compared else outcome,
        tags=tuple(visible(tag, 40) for tag in runs[0].config.tags),
        sessions=tuple(session.card for session in suite.all),
        numbers=tuple(_number(suite, measure) for measure in columns),
    )


def _number(suite: SuiteSessions, measure: Measure) -> NumberCell | None:
    """The mean of the head; of a suite that only the base has, that of the base."""
    counted = SuiteRuns(suite.name, suite.head or suite.base)
    mean = means(counted.valid).get(measure)
    if mean is None:
        return None
    delta = next((d for d in suite.compared.measures if d.measure is measure), None) if suite.compared else None
    spec = MEASURES[measure]
    title = f"{suite.name}, {spec.heading}"
    return NumberCell(written(spec.brief, mean), _change(measure, delta), tuple(_dots(suite, measure)), visible(title))


def _change(measure: Measure, delta: MeasureDelta | None) -> Cell | None:
    if delta is None or not delta.change:
        return None
    text = brief_change(measure, delta)
    return Cell(text, EFFECTS[delta.effect or "same"]) if text else None


def _dots(suite: SuiteSessions, measure: Measure) -> Iterator[Dot]:
    """Scores on their own scale, everything else from nothing to the largest."""
    spec = MEASURES[measure]
    found = [(session, values(session.run.evaluations).get(measure)) for session in suite.all]
    known = [(session, value) for session, value in found if value is not None]
    top = 100.0 if spec.limit else max((value for _, value in known), default=0.0) or 1.0
    for side in Side:
        of_side = [one for one in known if one[0].side is side]
        for session, value in of_side[:MAX_DOTS]:
            place = 100 * min(max(value / top, 0.0), 1.0)
            yield Dot(place, session.card.side, f"{session.title}: {written(spec.write, value)}")


def _choices(counted: Counter[str], words: Mapping[str, str]) -> Iterator[Choice]:
    return (Choice(key, words.get(key, key), count) for key, count in counted.most_common(40))
