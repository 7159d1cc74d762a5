"""Stored runs as a table."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC

from zelda_ci.domain.evaluation import Metric
from zelda_ci.domain.history import History, StoredRun
from zelda_ci.domain.session import SessionStatus
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Tone
from zelda_ci.reporter.view.problems import STATUS_WORDS
from zelda_ci.reporter.view.tables import Column, Line, Table

COLUMNS = (
    Column("Date (UTC)"),
    Column("Run"),
    Column("Suite"),
    Column("Status"),
    Column("Fulfil %", right=True),
    Column("Tools %", right=True),
    Column("Correct %", right=True),
    Column("Cost", right=True),
    Column("Turns", right=True),
)
RUN = 1
SHOWN = (Metric.REQUIREMENT_FULFILLMENT, Metric.TOOL_USAGE, Metric.FUNCTIONAL_CORRECTNESS)
LONGEST_SUITE = 40
MOST_SKIPPED = 10

OUTCOMES = {
    "measured": Cell("measured"),
    "passed": Cell("passed", Tone.GOOD),
    "failed": Cell("failed", Tone.BAD),
    "incomplete": Cell("INCOMPLETE", Tone.BAD),
    "broken": Cell("error", Tone.BAD),
    "interrupted": Cell("interrupted", Tone.WARN),
}
NOT_SCORED = Cell("-", Tone.DIM)


@dataclass(frozen=True)
class HistoryView:
    """A table of runs, and what else is to be said."""

    table: Table
    remarks: tuple[Cell, ...]


def history_view(history: History, *, of: int) -> HistoryView:
    """The view of runs that were chosen among `of` stored ones."""
    lines = tuple(Line(tuple(_cells(run))) for run in history.runs)
    return HistoryView(Table(COLUMNS, lines, leading=RUN), tuple(_remarks(history, of)))


def _cells(run: StoredRun) -> Iterator[Cell]:
    yield Cell(f"{run.started_at.astimezone(UTC):%Y-%m-%d %H:%M}", Tone.DIM)
    yield Cell(visible(run.run_id, len(run.run_id)), whole=True)
    yield Cell(visible(run.suite, LONGEST_SUITE))
    yield _status(run)
    for metric in SHOWN:
        score = run.scores.get(metric)
        yield NOT_SCORED if score is None else Cell(numbers.score(score))
    yield NOT_SCORED if run.cost_usd is None else Cell(_price(run))
    yield NOT_SCORED if run.turns is None else Cell(numbers.whole(run.turns))


def _price(run: StoredRun) -> str:
    return numbers.money(run.cost_usd or 0.0, known=run.cost_known).replace("about ", "~").replace("less than ", "<")


def _status(run: StoredRun) -> Cell:
    """Of a session that completed, what became of its evaluation."""
    if run.status is SessionStatus.COMPLETED:
        return OUTCOMES[run.outcome]
    return Cell(STATUS_WORDS[run.status], Tone.WARN if run.status is SessionStatus.INTERRUPTED else Tone.BAD)


def _remarks(history: History, of: int) -> Iterator[Cell]:
    if not of:
        yield Cell("There are no stored runs yet. Make one with `zelda run`, or watch `zelda demo`.")
    elif not history.runs:
        yield Cell(f"None of the {numbers.count(of, 'stored run')} is of this suite and time. `zelda list` shows all.")
    elif len(history.runs) < of:
        yield Cell(f"{numbers.whole(len(history.runs))} of {numbers.count(of, 'stored run')}.", Tone.DIM)
    if history.unfinished:
        noun = "run has" if history.unfinished == 1 else "runs have"
        which = "under way, or killed and recovered by the next `zelda run`"
        yield Cell(f"{numbers.whole(history.unfinished)} more {noun} no result yet: {which}.", Tone.DIM)
    for skipped in history.skipped[:MOST_SKIPPED]:
        yield Cell(f"skipped: {sentence(skipped.message)}", Tone.WARN)
    if len(history.skipped) > MOST_SKIPPED:
        rest = numbers.whole(len(history.skipped) - MOST_SKIPPED)
        yield Cell(f"and {rest} more that could not be read; `zelda list --json` names all.", Tone.WARN)
