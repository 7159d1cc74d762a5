"""What can be opened in the comment: findings of the gate, failures, notes, and every number."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import AcceptedReason, Comparison, GateReason, GateResult, Verdict
from zelda_ci.domain.details import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import trials_alone
from zelda_ci.report.builders.correctness import failure_problem
from zelda_ci.report.builders.gate import gate_sentence, uncounted_words
from zelda_ci.report.builders.phrases import quoted
from zelda_ci.report.builders.standings import SuiteStanding
from zelda_ci.report.comment.headline import capital
from zelda_ci.report.comment.table import numbers_table
from zelda_ci.report.model import NO_FILES, Cell, Details, Line, Row, Section, Tone, plain
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.told import CiReport
from zelda_ci.report.words import OUTCOMES

MAX_CRITERION_LENGTH = 300
MAX_REASONING_LENGTH = 500
MAX_QUOTE_LENGTH = 160
MAX_CITATIONS = 2
MAX_REASONS = 30
MAX_NOTES = 10
MAX_RUNS = 30
MAX_CRITERIA = 300
# Kinds of findings as people call them.
KINDS = {
    "regression": "worse",
    "evaluation": "fails by itself",
    "incomplete": "not judged",
    "budget": "not run",
    "notLoaded": "not loaded",
}


def number_details(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Details]:
    """Every number of every suite."""
    table = numbers_table(report, suites)
    if table.lines:
        yield Details("All numbers of all suites", tables=(table,))


def citation_place(cited: Citation) -> str:
    """Where a verdict can be checked."""
    where = visible(cited.where)
    return f"{where} {quoted(cited.quote, MAX_QUOTE_LENGTH)}" if cited.quote else where


def _reasoned(judgement: CriterionJudgement) -> str:
    """A judge's reasoning with what it cites."""
    undecided = "undecided: " * (judgement.verdict is CriterionVerdict.UNDECIDED)
    places = "; ".join(citation_place(cited) for cited in judgement.evidence[:MAX_CITATIONS])
    return f"{undecided}{sentence(judgement.reasoning, MAX_REASONING_LENGTH)}{f' ({places})' if places else ''}"


def gate_details(gate: GateResult) -> Iterator[Details]:
    """Every finding, also those that follow from another."""
    if gate.reasons:
        rows = [_finding(reason, Tone.BAD) for reason in gate.reasons]
        title = f"Why the check is red: {numbers.format_count(len(rows), 'finding')} of the gate"
        yield _fold(title, rows, MAX_REASONS)
    if gate.uncounted:
        rows = [_finding(each.reason, Tone.WARN, uncounted_words(each)) for each in gate.uncounted]
        yield _fold(f"Fails, and is no reason to be red: {numbers.whole(len(rows))}", rows, MAX_REASONS)
    if gate.accepted:
        rows = [_accepted(each) for each in gate.accepted]
        yield _fold(f"Accepted, so no reason to be red: {numbers.whole(len(rows))}", rows, MAX_REASONS)


def _finding(reason: GateReason, tone: Tone, because: str = "") -> Row:
    words = sentence(gate_sentence(reason))
    return Row(KINDS[reason.kind], (Cell(f"{words}: {because}" if because else words, tone),))


def _accepted(each: AcceptedReason) -> Row:
    row, found = _finding(each.reason, Tone.WARN), each.acceptance
    because = sentence(found.because, MAX_REASONING_LENGTH)
    said = Cell(f"accepted by @{visible(found.by, 60)} because {because}", Tone.DIM)
    return replace(row, lines=(said,))


def note_details(remarks: Sequence[Line], notes: Sequence[str]) -> Iterator[Details]:
    """What else there is to know of the comparison, and what happened on the way."""
    told = [*map(plain, remarks), *(capital(sentence(note)) for note in notes)]
    if told:
        rows = [Row("", (Cell(words),)) for words in told]
        yield _fold(f"{numbers.format_count(len(rows), 'note')} on this run", rows, MAX_NOTES)


def broken_details(runs: Sequence[RunResult]) -> Iterator[Details]:
    """Runs that ended otherwise than they should, and those whose build or tests did not pass."""
    rows = [row for run in runs if run_outcome(run) > Outcome.PASSED for row in _broken(run)]
    if rows:
        yield _fold(f"{numbers.format_count(len(rows), 'session')} with a problem", rows, MAX_RUNS)


def _broken(run: RunResult) -> Iterator[Row]:
    problem = failure_problem(run, NO_FILES)
    if problem is None:
        return
    several = trials_alone(run.config.trials) > 1 or run.trial > 1
    name = f"{visible(run.suite)}, session {run.trial}" if several else visible(run.suite)
    # The last lines of what a command printed, as they are.
    printed = [Cell("\n".join(problem.output), Tone.DIM, whole=True)] if problem.output else []
    lines = (Cell(problem.advice, Tone.DIM), *printed)
    yield Row(f"{name}, {OUTCOMES[run_outcome(run)].word}", (Cell(problem.sentence, Tone.BAD),), lines)


def unmet_details(runs: Sequence[RunResult], comparison: Comparison | None) -> Iterator[Details]:
    """Criteria that fail, each with what the judge said of the newest session; those that fail as before come last."""
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
            (Cell(_reasoned(judgement), Tone.DIM),),
        )
        for run in runs
        for judgement in failed_criteria(run)
    }
    for again in ("", " as before"):
        those = [row for key, row in rows.items() if (key in unchanged) == bool(again)]
        if those:
            noun = "criterion fails" if len(those) == 1 else "criteria fail"
            yield _fold(f"{numbers.whole(len(those))} {noun}{again}", those, MAX_CRITERIA)


def _fold(title: str, rows: Sequence[Row], most: int) -> Details:
    """The first rows, and how many more there are."""
    more = [Row("", (Cell(f"and {numbers.whole(len(rows) - most)} more", Tone.DIM),))] if len(rows) > most else []
    return Details(title, (Section("", (*rows[:most], *more)),))
