"""Stored runs as a table."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.history import History, StoredRun
from zelda_ci.domain.measures import LISTED, SCORES
from zelda_ci.report.builders.comparison import amount
from zelda_ci.report.builders.correctness import STATUS_WORDS
from zelda_ci.report.builders.run import VERDICTS
from zelda_ci.report.model import Cell, Column, HistoryView, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible

# The first two stand together on a line of their own where a row is too wide.
COLUMNS = (
    Column("Verdict"),
    Column("Run"),
    Column("Suite"),
    Column("Trial", right=True),
    Column("Batch", right=True),
    Column("Commit", right=True),
    Column("Session"),
    *(Column(spec.listed, right=True) for spec in SCORES.values() if spec.listed),
    Column("Cost", right=True),
    Column("Turns", right=True),
    *(Column(name, right=True) for name in LISTED.values()),
)
RUN = 1
SHOWN = tuple(metric for metric, spec in SCORES.items() if spec.listed)
MAX_SUITE_LENGTH = 40
MAX_SKIPPED = 10
COMMIT_LENGTH = 7

NOT_SCORED = Cell("-", Tone.DIM)


def history_view(history: History, *, of: int) -> HistoryView:
    """The view of runs that were chosen among `of` stored ones."""
    lines = tuple(TableRow(tuple(_cells(run))) for run in history.runs)
    return HistoryView(Table(COLUMNS, lines, leading=RUN), tuple(_history_remarks(history, of)))


def _cells(run: StoredRun) -> Iterator[Cell]:
    yield VERDICTS[run.outcome]
    yield Cell(visible(run.run_id, len(run.run_id)), whole=True)
    yield Cell(visible(run.suite, MAX_SUITE_LENGTH))
    yield Cell(numbers.whole(run.trial))
    yield Cell(visible(run.batch_id, len(run.batch_id)), Tone.DIM, whole=True)
    yield Cell(visible(run.commit[:COMMIT_LENGTH])) if run.commit else NOT_SCORED
    yield Cell(STATUS_WORDS[run.status], Tone.DIM)
    for metric in SHOWN:
        score = run.scores.get(metric)
        yield NOT_SCORED if score is None else Cell(numbers.format_score(score))
    cost = run.whole_cost_usd
    yield NOT_SCORED if cost is None else Cell(_price(cost, is_known=run.cost_known))
    yield NOT_SCORED if run.turns is None else Cell(numbers.whole(run.turns))
    for measure in LISTED:
        value = (run.numbers or {}).get(measure)
        yield NOT_SCORED if value is None else Cell(amount(measure, value))


def _price(cost: float, *, is_known: bool) -> str:
    return numbers.money(cost, exact=is_known).replace("about ", "~").replace("less than ", "<")


def _history_remarks(history: History, of: int) -> Iterator[Cell]:
    if not of:
        yield Cell("There are no stored runs yet. Make one with `zelda run`, or watch `zelda demo`.")
    elif not history.runs:
        yield Cell(
            f"None of the {numbers.format_count(of, 'stored run')} is of this suite and time. `zelda list` shows all."
        )
    elif len(history.runs) < of:
        yield Cell(f"{numbers.whole(len(history.runs))} of {numbers.format_count(of, 'stored run')}.", Tone.DIM)
    if history.unfinished:
        noun = "run has" if history.unfinished == 1 else "runs have"
        which = "under way, or killed and recovered by the next `zelda run`"
        yield Cell(f"{numbers.whole(history.unfinished)} more {noun} no result yet: {which}.", Tone.DIM)
    for skipped in history.skipped[:MAX_SKIPPED]:
        yield Cell(f"skipped: {sentence(skipped.message)}", Tone.WARN)
    if len(history.skipped) > MAX_SKIPPED:
        rest = numbers.whole(len(history.skipped) - MAX_SKIPPED)
        yield Cell(f"and {rest} more that could not be read; `zelda list --json` names all.", Tone.WARN)
