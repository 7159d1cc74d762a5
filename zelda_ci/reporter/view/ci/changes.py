"""What changed in one suite: numbers, criteria with old and new reasoning, tools."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from zelda_ci.domain.comparison import Comparison, CriterionDelta, Delta, MeasureDelta, SuiteComparison, Verdict
from zelda_ci.domain.evaluation import Metric
from zelda_ci.domain.judgement import Citation, CriterionJudgement
from zelda_ci.domain.run import RunResult
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.ci.nouns import Fold, Worth
from zelda_ci.reporter.view.ci.readings import SuiteRuns, by_suite
from zelda_ci.reporter.view.comparison import NOISE, remarks, tool_rows
from zelda_ci.reporter.view.criteria import VERDICTS as JUDGED
from zelda_ci.reporter.view.deltas import LABELS, VERDICTS, amount, changed, criterion_table, measure_table, notes
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Section, Tone
from zelda_ci.reporter.view.tool_usage import tool_details

GRAVITY = (Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.IMPROVED, Verdict.NEW, Verdict.REMOVED)
NOUNS = {Verdict.REGRESSED: "regression", Verdict.IMPROVED: "improvement"}
FIRM = frozenset(NOUNS)
LONGEST_CRITERION = 300
LONGEST_REASONING = 500
LONGEST_QUOTE = 160
MOST_CITATIONS = 2
MOST_TOOLS = 10
ARROW = " \u2192 "

TOLD = frozenset({NOISE})
"""Said once, in the first line."""


def change_folds(comparison: Comparison, runs: Sequence[RunResult]) -> Iterator[Fold]:
    """A fold per suite in which something is not as it was, the gravest first."""
    ran = by_suite(runs)
    for suite in sorted(comparison.suites, key=_rank):
        rows = tuple(_rows(suite, ran.get(suite.suite))) if suite.candidate and suite.candidate.valid else ()
        if not rows:
            continue  # what broke is told of elsewhere, and what is not there has no details
        firm = any(delta.verdict in FIRM for delta in (*suite.measures, *suite.criteria))
        worth = Worth.CHANGED if firm or suite.tools.newly_missed else Worth.DOUBTFUL
        yield Fold(_title(suite), worth, (Section("", rows),))


def comparison_folds(comparison: Comparison) -> Iterator[Fold]:
    """Every number and criterion of every suite."""
    for suite in sorted(comparison.suites, key=_rank):
        deltas = (*suite.measures, *suite.criteria) if suite.reasons else ()
        told = TOLD.union(suite.reasons, *(delta.reasons for delta in deltas))
        tables = (measure_table(suite.measures, told), criterion_table(suite.criteria, told))
        worth = Worth.UNCHANGED if suite.verdict is Verdict.UNCHANGED else Worth.DOUBTFUL
        title = f"{visible(suite.suite)}: all numbers and criteria, {suite.verdict.value}"
        sections = (Section("", tuple(Row("", (remark,)) for remark in remarks(suite))),)
        yield Fold(title, worth, sections, tuple(table for table in tables if table.lines))


def place(cited: Citation) -> str:
    """Where a verdict can be checked."""
    where = visible(cited.where)
    return f"{where}: {sentence(cited.quote, LONGEST_QUOTE)}" if cited.quote else where


def reasoned(judgement: CriterionJudgement) -> str:
    """A judge's reasoning with what it cites."""
    places = "; ".join(place(cited) for cited in judgement.evidence[:MOST_CITATIONS])
    return f"{sentence(judgement.reasoning, LONGEST_REASONING)}{f' ({places})' if places else ''}"


def _rank(suite: SuiteComparison) -> int:
    return GRAVITY.index(suite.verdict) if suite.verdict in GRAVITY else len(GRAVITY)


def _title(suite: SuiteComparison) -> str:
    found = [delta.verdict for delta in (*suite.measures, *suite.criteria)]
    counted = [numbers.count(found.count(verdict), noun) for verdict, noun in NOUNS.items() if verdict in found]
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
    for change in suite.tools.newly_missed[:MOST_TOOLS]:
        if remark := said.get(change.tool):
            yield Cell(f"{visible(remark.tool, 80)}: {sentence(remark.reasoning, LONGEST_REASONING)}", Tone.DIM)


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
    cells = (Cell(sentence(delta.criterion, LONGEST_CRITERION), VERDICTS[delta.verdict]),)
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
    text = f"{LABELS[delta.measure]} {ARROW.join(spelled)}"
    if delta.change is not None:
        text = f"{text}, {changed(delta.measure, delta)}"
    return delta.verdict, Row(delta.verdict.value, (Cell(text, VERDICTS[delta.verdict]),), tuple(notes(delta, told)))
