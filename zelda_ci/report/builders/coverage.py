"""Coverage as a table: a row for each file that steers, a column for each suite."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.kinds import FOLLOWED, KINDS
from zelda_ci.domain.manifest import SteeringCoverage, SuiteUse
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import visible

# Beyond these, the suites that felt a unit stand in its row, and have no columns.
MAX_COLUMNS = 8
MAX_NAMED = 6

MEANING = (
    "loaded: the session had it (of skills and sub-agents the description, of rules and CLAUDE.md files the text). "
    "used: it was called, its file was read, or the judge says that it applied. missed, broken: the judge says so. "
    "Numbers are trials."
)


def coverage_table(coverage: SteeringCoverage) -> Table:
    """What no suite touches comes first."""
    trials = {it.suite: it.trials for it in coverage.suites}
    wide = len(trials) <= MAX_COLUMNS
    titles = [f"{visible(name, 40)} ({count})" for name, count in trials.items()] if wide else ["Suites"]
    rows = []
    for row in coverage.units:
        by_suite = {part.suite: part for part in row.suites}
        cells = [_cell(by_suite.get(suite)) for suite in trials] if wide else [Cell(_felt(row.suites))]
        # Skills and the like by name, the rest by file.
        by_file = row.unit.kind in FOLLOWED
        name = visible(row.unit.path if by_file else row.unit.name, 60)
        kind = Cell(KINDS[row.unit.kind].word, Tone.DIM)
        rows.append(TableRow((Cell(name, Tone.NEUTRAL if row.touched else Tone.WARN), kind, *cells)))
    columns = (Column("Name"), Column("Kind"), *(Column(title, right=wide) for title in titles))
    return Table(columns, tuple(rows), remarks=tuple(_remarks(coverage)))


def _cell(part: SuiteUse | None) -> Cell:
    if part is None:
        return Cell("-", Tone.DIM)
    tone = Tone.BAD if part.broken else Tone.WARN if part.missed else Tone.GOOD if part.used else Tone.DIM
    return Cell(_words(part), tone)


def _words(part: SuiteUse) -> str:
    counts = (("used", part.used), ("missed", part.missed), ("broken", part.broken))
    return ", ".join(f"{word} {count}" for word, count in counts if count) or "loaded"


def _felt(parts: tuple[SuiteUse, ...]) -> str:
    felt = [f"{visible(it.suite, 40)} {_words(it)}" for it in parts if it.used or it.missed or it.broken]
    more = [f"{len(felt) - MAX_NAMED} more"] if len(felt) > MAX_NAMED else []
    return "; ".join([*felt[:MAX_NAMED], *more]) or (f"loaded by {len(parts)}" if parts else "-")


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
