"""Coverage as a table: a row for each file that steers, a column for each suite."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.kinds import FOLLOWED, KINDS, ItemKind
from zelda_ci.domain.steering import SteeringCoverage, SuiteUse, Unit, UnitCoverage
from zelda_ci.report.model import Cell, Column, HistoryView, Table, TableRow, Tone
from zelda_ci.report.text import visible

NONE = Cell("-", Tone.DIM)
# Beyond these, the suites that felt a unit stand in its row, and have no columns.
MAX_COLUMNS = 8
MAX_NAMED = 6

MEANING = (
    "loaded: the session had it (of skills and sub-agents the description, of rules and CLAUDE.md files the text). "
    "used: it was called, its file was read, or the judge says that it applied. missed, broken: the judge says so. "
    "Numbers are trials."
)


def coverage_view(coverage: SteeringCoverage) -> HistoryView:
    """The view of a coverage: what no suite touches comes first."""
    trials = {it.suite: it.trials for it in coverage.suites}
    wide = len(trials) <= MAX_COLUMNS
    titles = [f"{visible(name, 40)} ({count})" for name, count in trials.items()] if wide else ["Suites"]
    columns = (Column("Name"), Column("Kind"), *(Column(title, right=wide) for title in titles))
    rows = tuple(_row(unit, trials, wide=wide) for unit in coverage.units)
    return HistoryView(Table(columns, rows), tuple(_remarks(coverage)))


def _row(row: UnitCoverage, trials: dict[str, int], *, wide: bool) -> TableRow:
    name = Cell(_named(row.unit), Tone.NEUTRAL if row.touched else Tone.WARN)
    by_suite = {part.suite: part for part in row.suites}
    if wide:
        cells = [_cell(by_suite.get(suite)) for suite in trials]
    else:
        felt = [f"{visible(it.suite, 40)} {_words(it)}" for it in row.suites if it.used or it.missed or it.broken]
        more = [f"{len(felt) - MAX_NAMED} more"] if len(felt) > MAX_NAMED else []
        loaded = f"loaded by {len(row.suites)}" if row.suites else "-"
        cells = [Cell("; ".join([*felt[:MAX_NAMED], *more]) or loaded)]
    return TableRow((name, Cell(KINDS[row.unit.kind].word, Tone.DIM), *cells))


def _named(unit: Unit) -> str:
    """Skills and the like by name, the rest by file."""
    by_file = unit.kind in FOLLOWED | {ItemKind.SETTINGS}
    return visible(unit.path if by_file else unit.name, 60)


def _cell(part: SuiteUse | None) -> Cell:
    if part is None:
        return NONE
    tone = Tone.BAD if part.broken else Tone.WARN if part.missed else Tone.GOOD if part.used else Tone.DIM
    return Cell(_words(part), tone)


def _words(part: SuiteUse) -> str:
    counts = (("used", part.used), ("missed", part.missed), ("broken", part.broken))
    return ", ".join(f"{word} {count}" for word, count in counts if count) or "loaded"


def _remarks(coverage: SteeringCoverage) -> Iterator[Cell]:
    if untouched := sum(not row.touched for row in coverage.units):
        yield Cell(f"No suite touches {numbers.format_count(untouched, 'unit')}: the first of the table.", Tone.WARN)
    if idle := [it.suite for it in coverage.suites if not it.touches]:
        yield Cell(f"Suites that use nothing of it: {visible(', '.join(idle), 400)}.", Tone.WARN)
    if coverage.unknown:
        names = visible(", ".join(coverage.unknown), 400)
        yield Cell(f"Nothing is known of {names}: run them once more with this version.", Tone.WARN)
    if coverage.units:
        yield Cell(MEANING, Tone.DIM)
    elif not coverage.unknown:
        yield Cell("No stored trial: `zelda run` makes some.")
