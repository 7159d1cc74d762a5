"""Stored runs as a table."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.measures import LISTED, SCORES
from zelda_ci.domain.outcome import History, StoredRun
from zelda_ci.report.builders.comparison import amount
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.words import ENDINGS, OUTCOMES

MAX_SUITE_LENGTH = 40
MAX_SKIPPED = 10
COMMIT_LENGTH = 7


def history_table(history: History, *, of: int) -> Table:
    """Runs that were chosen among `of` stored ones."""
    titles = (*(spec.listed for spec in SCORES.values() if spec.listed), "Cost", "Turns", *LISTED.values())
    columns = (
        *map(Column, ("Verdict", "Run", "Suite")),
        *(Column(title, right=True) for title in ("Trial", "Batch", "Commit")),
        Column("Session"),
        *(Column(title, right=True) for title in titles),
    )
    lines = tuple(TableRow(tuple(_cells(run))) for run in history.runs)
    # The first two stand together on a line of their own where a row is too wide.
    return Table(columns, lines, leading=1, remarks=tuple(_remarks(history, of)))


def _cells(run: StoredRun) -> Iterator[Cell]:
    yield OUTCOMES[run.outcome].verdict
    yield Cell(run.run_id, whole=True)
    yield Cell(visible(f"{run.suite}, {run.variant}" if run.variant else run.suite, MAX_SUITE_LENGTH))
    yield Cell(numbers.whole(run.trial))
    yield Cell(run.batch_id, Tone.DIM, whole=True)
    yield Cell(run.commit[:COMMIT_LENGTH]) if run.commit else Cell("-", Tone.DIM)
    yield Cell(ENDINGS[run.status], Tone.DIM)
    cost = None if run.whole_cost_usd is None else numbers.money(run.whole_cost_usd, exact=run.cost_known)
    scores = (run.scores.get(metric) for metric, spec in SCORES.items() if spec.listed)
    values = ((measure, (run.numbers or {}).get(measure)) for measure in LISTED)
    for text in (
        *(None if score is None else numbers.format_score(score) for score in scores),
        cost,
        None if run.turns is None else numbers.whole(run.turns),
        *(None if value is None else amount(measure, value) for measure, value in values),
    ):
        yield Cell(text) if text else Cell("-", Tone.DIM)


def _remarks(history: History, of: int) -> Iterator[Cell]:
    stored = numbers.format_count(of, "stored run")
    if not of:
        yield Cell("There are no stored runs yet. Make one with `zelda run`, or watch `zelda demo`.")
    elif not history.runs:
        yield Cell(f"None of the {stored} is of this suite and time. `zelda list` shows all.")
    elif len(history.runs) < of:
        yield Cell(f"{numbers.whole(len(history.runs))} of {stored}.", Tone.DIM)
    if history.unfinished:
        more = numbers.format_count(history.unfinished, "more run has", "more runs have")
        yield Cell(f"{more} no result yet: under way, or killed and recovered by the next `zelda run`.", Tone.DIM)
    for skipped in history.skipped[:MAX_SKIPPED]:
        yield Cell(f"skipped: {sentence(skipped.message)}", Tone.WARN)
    if (rest := len(history.skipped) - MAX_SKIPPED) > 0:
        yield Cell(f"and {rest} more that could not be read; `zelda list --json` names all.", Tone.WARN)
