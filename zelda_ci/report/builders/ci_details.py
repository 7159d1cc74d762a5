"""What can be opened in the comment: changes, failures and runs of each suite."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import CiReport
from zelda_ci.domain.comparison import (
    AcceptedReason,
    Comparison,
    CriterionDelta,
    Delta,
    GateReason,
    GateResult,
    MeasureDelta,
    SuiteComparison,
    Verdict,
)
from zelda_ci.domain.details import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.domain.measures import MEASURES, Metric
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import trials_alone
from zelda_ci.report.builders.ci_headline import capital
from zelda_ci.report.builders.ci_table import ARROW, WORDS, numbers_table, standing_words, trial_table
from zelda_ci.report.builders.comparison import (
    SHOWN_ONCE,
    VERDICTS,
    amount,
    changed,
    criterion_table,
    measure_table,
    notes,
    remarks,
    tool_rows,
    verdict_words,
)
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.figures import equal_figures, figure_table
from zelda_ci.report.builders.gate import gate_sentence, uncounted_words
from zelda_ci.report.builders.judged import VERDICTS as JUDGED
from zelda_ci.report.builders.judged import tool_details
from zelda_ci.report.builders.phrases import quoted
from zelda_ci.report.builders.run import run_view
from zelda_ci.report.builders.standings import SuiteRuns, SuiteStanding, by_suite, is_firm
from zelda_ci.report.builders.summary import spread
from zelda_ci.report.model import NO_FILES, Cell, Details, MetricRow, Priority, Problem, Row, RunView, Section, Tone
from zelda_ci.report.text import sentence, visible

GRAVITY = (
    Verdict.REGRESSED,
    Verdict.CHANGED,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVED,
    Verdict.NEW,
    Verdict.REMOVED,
)
FIRM = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})
MAX_CRITERION_LENGTH = 300
MAX_REASONING_LENGTH = 500
MAX_QUOTE_LENGTH = 160
MAX_CITATIONS = 2
MAX_TOOLS = 10


def change_details(suites: Sequence[SuiteStanding]) -> Iterator[Details]:
    """What is not as it was, suite by suite in one place, the gravest first; the judge's words of both sides."""
    sections = tuple(section for each in suites if (section := _changes_of(each)))
    if sections:
        title = f"What changed in {numbers.format_count(len(sections), 'suite')}: numbers, and the judge's words"
        yield Details(title, Priority.CHANGED, sections)


def _changes_of(each: SuiteStanding) -> Section | None:
    suite = each.compared
    # What broke is told of elsewhere, and what is not there has no details.
    rows = tuple(_rows(suite, each.ran)) if suite and suite.candidate and suite.candidate.valid else ()
    return Section(f"{visible(each.suite)}, {standing_words(each)}", rows) if rows else None


def number_details(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Details]:
    """Every number of every suite."""
    table = numbers_table(report, suites)
    if table.lines:
        yield Details("All numbers of all suites", Priority.FAILED, tables=(table,))


def comparison_details(comparison: Comparison) -> Iterator[Details]:
    """Every number and criterion of every suite."""
    for suite in sorted(comparison.suites, key=_rank):
        deltas = (*suite.measures, *suite.criteria) if suite.reasons else ()
        shown_reasons = SHOWN_ONCE.union(suite.reasons, *(delta.reasons for delta in deltas))
        numbers_of = (measure_table(suite.measures, shown_reasons), criterion_table(suite.criteria, shown_reasons))
        tables = (*numbers_of, figure_table(suite.figures))
        priority = Priority.UNCHANGED if suite.verdict is Verdict.UNCHANGED else Priority.DOUBTFUL
        title = f"{visible(suite.suite)}: all numbers and criteria, {verdict_words(suite.verdict)}"
        about = (*(Row("", (remark,)) for remark in remarks(suite)), *equal_figures(suite.figures))
        sections = (Section("", about),)
        yield Details(title, priority, sections, tuple(table for table in tables if table.lines))


def citation_place(cited: Citation) -> str:
    """Where a verdict can be checked."""
    where = visible(cited.where)
    return f"{where} {quoted(cited.quote, MAX_QUOTE_LENGTH)}" if cited.quote else where


def reasoned(judgement: CriterionJudgement) -> str:
    """A judge's reasoning with what it cites."""
    places = "; ".join(citation_place(cited) for cited in judgement.evidence[:MAX_CITATIONS])
    return f"{sentence(judgement.reasoning, MAX_REASONING_LENGTH)}{f' ({places})' if places else ''}"


def _rank(suite: SuiteComparison) -> int:
    return GRAVITY.index(suite.verdict) if suite.verdict in GRAVITY else len(GRAVITY)


def _rows(suite: SuiteComparison, ran: SuiteRuns | None) -> Iterator[Row]:
    for remark in remarks(suite):
        if remark.tone is Tone.WARN:
            yield Row("", (remark,))
    if suite.verdict not in {Verdict.NEW, Verdict.REMOVED}:
        shown_reasons = SHOWN_ONCE | frozenset(suite.reasons)
        yield from _sorted([_criterion(delta, shown_reasons) for delta in suite.criteria if _is_notable(delta)])
        yield from _sorted([_measure(delta, shown_reasons) for delta in suite.measures if _is_notable(delta)])
    for row in tool_rows(suite.tools):
        if row.label == "Newly missed":
            yield replace(row, lines=tuple(_missed(suite, ran)))
        elif row.label == "No longer missed":
            yield row


def _missed(suite: SuiteComparison, ran: SuiteRuns | None) -> Iterator[Cell]:
    """Why the judge wanted each tool, in the words of the newest run."""
    details = [tool_details(run.evaluations.get(Metric.TOOL_USAGE)) for run in (ran.valid if ran else ())]
    remarks_by_tool = {str(remark.tool): remark for detail in details if detail for remark in detail.missed}
    for change in suite.tools.newly_missed[:MAX_TOOLS]:
        if remark := remarks_by_tool.get(change.tool):
            yield Cell(f"{visible(remark.tool, 80)}: {sentence(remark.reasoning, MAX_REASONING_LENGTH)}", Tone.DIM)


def _is_notable(delta: Delta) -> bool:
    """Whether a reader wants to know: of what cannot be compared, the suite's remark says enough."""
    # Cost, turns and time differ between any two sessions.
    if delta.verdict is Verdict.INCONCLUSIVE:
        return delta.change is not None and is_firm(delta)
    return delta.verdict is not Verdict.UNCHANGED and (
        delta.change is not None or delta.verdict in {Verdict.NEW, Verdict.REMOVED}
    )


def _sorted(rows: list[tuple[Verdict, Row]]) -> Iterator[Row]:
    return (row for _, row in sorted(rows, key=lambda pair: GRAVITY.index(pair[0])))


def _criterion(delta: CriterionDelta, shown_reasons: frozenset[str]) -> tuple[Verdict, Row]:
    sides = ARROW.join(_passes(delta)) if delta.change is not None else ""
    label = ", ".join(part for part in (verdict_words(delta.verdict), sides) if part)
    lines = [*_judged("Before", delta.baseline_judgement), *_judged("Now", delta.candidate_judgement)]
    cells = (Cell(sentence(delta.criterion, MAX_CRITERION_LENGTH), VERDICTS[delta.verdict]),)
    return delta.verdict, Row(label, cells, (*lines, *notes(delta, shown_reasons)))


def _passes(delta: CriterionDelta) -> Iterator[str]:
    for summary in (delta.baseline, delta.candidate):
        if summary is None:
            yield "n/a"
        elif summary.trials == 1:
            yield "pass" if summary.mean else "fail"
        else:
            yield f"{round(summary.mean * summary.trials / 100)} of {summary.trials}"


def _judged(when: str, judgement: CriterionJudgement | None) -> Iterator[Cell]:
    if judgement:
        yield Cell(f"{when} {JUDGED[judgement.verdict].text}: {reasoned(judgement)}", Tone.DIM)


def _measure(delta: MeasureDelta, shown_reasons: frozenset[str]) -> tuple[Verdict, Row]:
    spelled = [amount(delta.measure, side.mean) for side in (delta.baseline, delta.candidate) if side]
    text = f"{MEASURES[delta.measure].heading} {ARROW.join(spelled)}"
    if delta.change is not None:
        text = f"{text}, {changed(delta.measure, delta)}"
    return delta.verdict, Row(
        verdict_words(delta.verdict), (Cell(text, VERDICTS[delta.verdict]),), tuple(notes(delta, shown_reasons))
    )


MAX_REASONS = 30
# Kinds of findings as people call them.
KINDS = {
    "regression": "worse",
    "evaluation": "fails by itself",
    "incomplete": "not judged",
    "budget": "not run",
    "notLoaded": "not loaded",
}
MAX_NOTES = 10
MAX_RUNS = 30
MAX_CRITERIA = 300


def gate_details(gate: GateResult) -> Iterator[Details]:
    """Every finding, also those that follow from another."""
    if gate.reasons:
        rows = [_finding(reason, Tone.BAD, doubts=False) for reason in gate.reasons]
        title = f"Why the check is red: {numbers.format_count(len(rows), 'finding')} of the gate"
        yield Details(title, Priority.GATE, (Section("", capped(rows, MAX_REASONS)),))
    if gate.uncounted:
        rows = [_finding(each.reason, Tone.WARN, because=uncounted_words(each)) for each in gate.uncounted]
        title = f"Fails, and is no reason to be red: {numbers.whole(len(rows))}"
        yield Details(title, Priority.FAILED, (Section("", capped(rows, MAX_REASONS)),))
    if gate.accepted:
        rows = [_accepted(each) for each in gate.accepted]
        title = f"Accepted, so no reason to be red: {numbers.whole(len(rows))}"
        yield Details(title, Priority.FAILED, (Section("", capped(rows, MAX_REASONS)),))


def _finding(reason: GateReason, tone: Tone, *, doubts: bool = True, because: str = "") -> Row:
    words = sentence(gate_sentence(reason, doubts=doubts))
    return Row(KINDS[reason.kind], (Cell(f"{words}: {because}" if because else words, tone),))


def _accepted(each: AcceptedReason) -> Row:
    row, found = _finding(each.reason, Tone.WARN), each.acceptance
    because = sentence(found.because, MAX_REASONING_LENGTH)
    said = Cell(f"accepted by @{visible(found.by, 60)} because {because}", Tone.DIM)
    return replace(row, lines=(said,))


def note_details(notes: Sequence[str]) -> Iterator[Details]:
    """What happened on the way."""
    if notes:
        rows = [Row("", (Cell(capital(sentence(note))),)) for note in notes[:MAX_NOTES]]
        title = f"{numbers.format_count(len(notes), 'note')} on this run"
        yield Details(title, Priority.ABOUT, (Section("", tuple(rows)),))


def broken_details(runs: Sequence[RunResult]) -> Iterator[Details]:
    """Runs that ended otherwise than they should, and those whose build or tests did not pass."""
    rows = [row for run in runs if run_outcome(run) > Outcome.PASSED for row in _broken(run)]
    if rows:
        title = f"{numbers.format_count(len(rows), 'session')} did not go well"
        yield Details(title, Priority.FAILED, (Section("", capped(rows, MAX_RUNS)),))


def unmet_details(runs: Sequence[RunResult], comparison: Comparison | None) -> Iterator[Details]:
    """Criteria that fail, without those that the comparison tells of already."""
    compared = {
        (suite.suite, delta.criterion)
        for suite in (comparison.suites if comparison else ())
        for delta in suite.criteria
        if delta.verdict in FIRM | {Verdict.CHANGED, Verdict.INCONCLUSIVE}
    }
    unchanged = {
        (suite.suite, delta.criterion)
        for suite in (comparison.suites if comparison else ())
        for delta in suite.criteria
        if delta.verdict is Verdict.UNCHANGED
    }
    rows = {
        (run.suite, str(judgement.criterion)): Row(
            visible(run.suite),
            (Cell(sentence(judgement.criterion, MAX_CRITERION_LENGTH), Tone.BAD),),
            (
                Cell(
                    f"{'undecided: ' * (judgement.verdict is CriterionVerdict.UNDECIDED)}{reasoned(judgement)}",
                    Tone.DIM,
                ),
            ),
        )
        for run in runs
        for judgement in failed_criteria(run)
        if (run.suite, str(judgement.criterion)) not in compared
    }
    for again, priority in (("", Priority.FAILED), (" as before", Priority.UNCHANGED)):
        those = [row for key, row in rows.items() if (key in unchanged) == bool(again)]
        if those:
            noun = "criterion fails" if len(those) == 1 else "criteria fail"
            section = Section("", capped(those, MAX_CRITERIA))
            yield Details(f"{numbers.whole(len(those))} {noun}{again}", priority, (section,))


def capped(rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    """The first ones, and how many more there are."""
    if len(rows) <= most:
        return tuple(rows)
    return (*rows[:most], Row("", (Cell(f"and {numbers.whole(len(rows) - most)} more", Tone.DIM),)))


def printed(problem: Problem) -> tuple[Cell, ...]:
    """The last lines of what a command printed, as they are."""
    return (Cell("\n".join(problem.output), Tone.DIM, whole=True),) if problem.output else ()


def _broken(run: RunResult) -> Iterator[Row]:
    problem = run_problem(run, NO_FILES)
    if problem is None or problem.sentence.startswith("Not met: "):
        return
    several = trials_alone(run.config.trials) > 1 or run.trial > 1
    name = f"{visible(run.suite)}, session {run.trial}" if several else visible(run.suite)
    outcome = WORDS[run_outcome(run)]
    lines = (Cell(problem.advice, Tone.DIM), *printed(problem))
    yield Row(f"{name}, {outcome.text}", (Cell(problem.sentence, Tone.BAD),), lines)


def trial_details(runs: Sequence[RunResult]) -> Iterator[Details]:
    """A table of the trials of each suite that has several, and their spread."""
    for suite in by_suite(runs).values():
        if len(suite.runs) > 1:
            deviation = spread(suite.runs)
            rows = [Row(row.label, (Cell(row.mean), *row.span)) for row in deviation.rows] if deviation else []
            sections = (Section(deviation.title, tuple(rows)),) if deviation else ()
            title = f"{visible(suite.suite)}: {len(suite.runs)} sessions"
            yield Details(title, Priority.UNCHANGED, sections, (trial_table(suite.runs),))


def run_details(runs: Sequence[RunResult]) -> Iterator[Details]:
    """Criteria, commands, test counts, tools and use, run by run; those that did not pass first."""
    several = any(run.trial > 1 for run in runs)
    ordered = sorted(runs, key=lambda run: run_outcome(run) <= Outcome.PASSED)
    for view in (run_view(run, NO_FILES, several=several) for run in ordered):
        priority = Priority.RUN_PASSED if view.outcome <= Outcome.PASSED else Priority.RUN_FAILED
        trial = f", {view.trial}" if view.trial else ""
        yield Details(f"{view.verdict.text} {view.suite}{trial} ({view.run_id})", priority, tuple(_sections(view)))


def _sections(view: RunView) -> Iterator[Section]:
    rows = [Row("Ended", view.facts)]
    if view.problem:
        lines = (Cell(view.problem.advice), *printed(view.problem))
        rows.append(Row("Problem", (Cell(view.problem.sentence, Tone.BAD),), lines))
    yield Section("", tuple(rows))
    if view.scores:
        yield Section("Scores", tuple(map(_score, view.scores)))
    yield from view.sections


def _score(row: MetricRow) -> Row:
    return Row(row.label, (row.score, row.note))
