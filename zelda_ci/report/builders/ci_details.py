"""What can be opened in the comment: changes, failures and runs of each suite."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import (
    Comparison,
    CriterionDelta,
    Delta,
    GateResult,
    MeasureDelta,
    SuiteComparison,
    Verdict,
)
from zelda_ci.domain.details import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.domain.measures import MEASURES, Metric
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.ci_table import WORDS, SuiteRuns, by_suite, trial_table
from zelda_ci.report.builders.comparison import (
    NOISE,
    VERDICTS,
    amount,
    changed,
    criterion_table,
    measure_table,
    notes,
    remarks,
    tool_rows,
)
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.builders.judged import VERDICTS as JUDGED
from zelda_ci.report.builders.judged import tool_details
from zelda_ci.report.builders.run import run_view
from zelda_ci.report.builders.summary import spread
from zelda_ci.report.model import NO_FILES, Cell, Details, MetricRow, Priority, Problem, Row, RunView, Section, Tone
from zelda_ci.report.text import sentence, visible

GRAVITY = (Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.IMPROVED, Verdict.NEW, Verdict.REMOVED)
NOUNS = {Verdict.REGRESSED: "regression", Verdict.IMPROVED: "improvement"}
FIRM = frozenset(NOUNS)
MAX_CRITERION_LENGTH = 300
MAX_REASONING_LENGTH = 500
MAX_QUOTE_LENGTH = 160
MAX_CITATIONS = 2
MAX_TOOLS = 10
ARROW = " \u2192 "

TOLD = frozenset({NOISE})
"""Said once, in the first line."""


def change_folds(comparison: Comparison, runs: Sequence[RunResult]) -> Iterator[Details]:
    """A fold per suite in which something is not as it was, the gravest first."""
    ran = by_suite(runs)
    for suite in sorted(comparison.suites, key=_rank):
        rows = tuple(_rows(suite, ran.get(suite.suite))) if suite.candidate and suite.candidate.valid else ()
        if not rows:
            continue  # what broke is told of elsewhere, and what is not there has no details
        firm = any(delta.verdict in FIRM for delta in (*suite.measures, *suite.criteria))
        worth = Priority.CHANGED if firm or suite.tools.newly_missed else Priority.DOUBTFUL
        yield Details(_title(suite), worth, (Section("", rows),))


def comparison_folds(comparison: Comparison) -> Iterator[Details]:
    """Every number and criterion of every suite."""
    for suite in sorted(comparison.suites, key=_rank):
        deltas = (*suite.measures, *suite.criteria) if suite.reasons else ()
        told = TOLD.union(suite.reasons, *(delta.reasons for delta in deltas))
        tables = (measure_table(suite.measures, told), criterion_table(suite.criteria, told))
        worth = Priority.UNCHANGED if suite.verdict is Verdict.UNCHANGED else Priority.DOUBTFUL
        title = f"{visible(suite.suite)}: all numbers and criteria, {suite.verdict.value}"
        sections = (Section("", tuple(Row("", (remark,)) for remark in remarks(suite))),)
        yield Details(title, worth, sections, tuple(table for table in tables if table.lines))


def citation_place(cited: Citation) -> str:
    """Where a verdict can be checked."""
    where = visible(cited.where)
    return f"{where}: {sentence(cited.quote, MAX_QUOTE_LENGTH)}" if cited.quote else where


def reasoned(judgement: CriterionJudgement) -> str:
    """A judge's reasoning with what it cites."""
    places = "; ".join(citation_place(cited) for cited in judgement.evidence[:MAX_CITATIONS])
    return f"{sentence(judgement.reasoning, MAX_REASONING_LENGTH)}{f' ({places})' if places else ''}"


def _rank(suite: SuiteComparison) -> int:
    return GRAVITY.index(suite.verdict) if suite.verdict in GRAVITY else len(GRAVITY)


def _title(suite: SuiteComparison) -> str:
    found = [delta.verdict for delta in (*suite.measures, *suite.criteria)]
    counted = [format_count(found.count(verdict), noun) for verdict, noun in NOUNS.items() if verdict in found]
    return f"{visible(suite.suite)}: {', '.join(counted) or suite.verdict.value}"


def _rows(suite: SuiteComparison, ran: SuiteRuns | None) -> Iterator[Row]:
    for remark in remarks(suite):
        if remark.tone is Tone.WARN:
            yield Row("", (remark,))
    if suite.verdict not in {Verdict.NEW, Verdict.REMOVED}:
        told = TOLD | frozenset(suite.reasons)
        yield from _sorted([_criterion(delta, told) for delta in suite.criteria if _tells(delta)])
        yield from _sorted([_measure(delta, told) for delta in suite.measures if _tells(delta)])
    for row in tool_rows(suite.tools):
        if row.label == "Newly missed":
            yield replace(row, lines=tuple(_missed(suite, ran)))
        elif row.label == "No longer missed":
            yield row


def _missed(suite: SuiteComparison, ran: SuiteRuns | None) -> Iterator[Cell]:
    """Why the judge wanted each tool, in the words of the newest run."""
    details = [tool_details(run.evaluations.get(Metric.TOOL_USAGE)) for run in (ran.valid if ran else ())]
    said = {str(remark.tool): remark for found in details if found for remark in found.missed}
    for change in suite.tools.newly_missed[:MAX_TOOLS]:
        if remark := said.get(change.tool):
            yield Cell(f"{visible(remark.tool, 80)}: {sentence(remark.reasoning, MAX_REASONING_LENGTH)}", Tone.DIM)


def _tells(delta: Delta) -> bool:
    """Whether a reader wants to know: of what cannot be compared, the suite's remark says enough."""
    return delta.verdict is not Verdict.UNCHANGED and (
        delta.change is not None or delta.verdict in {Verdict.NEW, Verdict.REMOVED}
    )


def _sorted(found: list[tuple[Verdict, Row]]) -> Iterator[Row]:
    return (row for _, row in sorted(found, key=lambda pair: GRAVITY.index(pair[0])))


def _criterion(delta: CriterionDelta, told: frozenset[str]) -> tuple[Verdict, Row]:
    sides = ARROW.join(_passes(delta)) if delta.change is not None else ""
    label = ", ".join(part for part in (delta.verdict.value, sides) if part)
    lines = [*_judged("Before", delta.baseline_judgement), *_judged("Now", delta.candidate_judgement)]
    cells = (Cell(sentence(delta.criterion, MAX_CRITERION_LENGTH), VERDICTS[delta.verdict]),)
    return delta.verdict, Row(label, cells, (*lines, *notes(delta, told)))


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


def _measure(delta: MeasureDelta, told: frozenset[str]) -> tuple[Verdict, Row]:
    spelled = [amount(delta.measure, side.mean) for side in (delta.baseline, delta.candidate) if side]
    text = f"{MEASURES[delta.measure].heading} {ARROW.join(spelled)}"
    if delta.change is not None:
        text = f"{text}, {changed(delta.measure, delta)}"
    return delta.verdict, Row(delta.verdict.value, (Cell(text, VERDICTS[delta.verdict]),), tuple(notes(delta, told)))


MAX_REASONS = 30
MAX_RUNS = 30
MAX_CRITERIA = 300


def gate_fold(gate: GateResult) -> Iterator[Details]:
    """Open: nobody should have to look for the reason."""
    if gate.reasons:
        rows = [
            Row(reason.kind, (Cell(sentence(gate_sentence(reason, doubts=False)), Tone.BAD),))
            for reason in gate.reasons
        ]
        title = f"Why the check is red: {numbers.format_count(len(rows), 'reason')}"
        yield Details(title, Priority.GATE, (Section("", capped(rows, MAX_REASONS)),), open=True)


def broken_fold(runs: Sequence[RunResult]) -> Iterator[Details]:
    """Runs that ended otherwise than they should, and those whose build or tests did not pass."""
    rows = [row for run in runs if run_outcome(run) > Outcome.PASSED for row in _broken(run)]
    if rows:
        title = f"{numbers.format_count(len(rows), 'run')} did not go well"
        yield Details(title, Priority.FAILED, (Section("", capped(rows, MAX_RUNS)),))


def unmet_fold(runs: Sequence[RunResult], comparison: Comparison | None) -> Iterator[Details]:
    """Criteria that fail, without those that the comparison tells of already."""
    told = {
        (suite.suite, delta.criterion)
        for suite in (comparison.suites if comparison else ())
        for delta in suite.criteria
        if delta.verdict in {Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE}
    }
    rows = {
        (run.suite, str(found.criterion)): Row(
            visible(run.suite),
            (Cell(sentence(found.criterion, MAX_CRITERION_LENGTH), Tone.BAD),),
            (Cell(f"{'undecided: ' * (found.verdict is CriterionVerdict.UNDECIDED)}{reasoned(found)}", Tone.DIM),),
        )
        for run in runs
        for found in failed_criteria(run)
        if (run.suite, str(found.criterion)) not in told
    }
    if rows:
        noun = "criterion fails" if len(rows) == 1 else "criteria fail"
        again = " as before" if comparison else ""
        section = Section("", capped([*rows.values()], MAX_CRITERIA))
        worth = Priority.UNCHANGED if comparison else Priority.FAILED
        yield Details(f"{numbers.whole(len(rows))} {noun}{again}", worth, (section,))


def capped(rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    """The first ones, and how many more there are."""
    if len(rows) <= most:
        return tuple(rows)
    return (*rows[:most], Row("", (Cell(f"and {numbers.whole(len(rows) - most)} more", Tone.DIM),)))


def printed(found: Problem) -> tuple[Cell, ...]:
    """The last lines of what a command printed, as they are."""
    return (Cell("\n".join(found.output), Tone.DIM, whole=True),) if found.output else ()


def _broken(run: RunResult) -> Iterator[Row]:
    found = run_problem(run, NO_FILES)
    if found is None or found.sentence.startswith("Not met: "):
        return
    name = f"{visible(run.suite)}, trial {run.trial}" if run.config.trials > 1 else visible(run.suite)
    outcome = WORDS[run_outcome(run)]
    lines = (Cell(found.advice, Tone.DIM), *printed(found))
    yield Row(f"{name}, {outcome.text}", (Cell(found.sentence, Tone.BAD),), lines)


def trial_folds(runs: Sequence[RunResult]) -> Iterator[Details]:
    """A table of the trials of each suite that has several, and their spread."""
    for suite in by_suite(runs).values():
        if len(suite.runs) > 1:
            found = spread(suite.runs)
            rows = [Row(row.label, (Cell(row.mean), *row.span)) for row in found.rows] if found else []
            sections = (Section(found.title, tuple(rows)),) if found else ()
            title = f"{visible(suite.suite)}: {len(suite.runs)} trials"
            yield Details(title, Priority.UNCHANGED, sections, (trial_table(suite.runs),))


def run_folds(runs: Sequence[RunResult]) -> Iterator[Details]:
    """Criteria, commands, test counts, tools and use, run by run; those that did not pass first."""
    several = any(run.trial > 1 for run in runs)
    ordered = sorted(runs, key=lambda run: run_outcome(run) <= Outcome.PASSED)
    for view in (run_view(run, NO_FILES, several=several) for run in ordered):
        worth = Priority.RUN_PASSED if view.outcome <= Outcome.PASSED else Priority.RUN_FAILED
        trial = f", {view.trial}" if view.trial else ""
        yield Details(f"{view.verdict.text} {view.suite}{trial} ({view.run_id})", worth, tuple(_sections(view)))


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
