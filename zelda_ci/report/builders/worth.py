"""What parts of the files that steer are worth, as a table."""

from zelda_ci.domain.attribution import CriterionWorth, PassCount, WorthReport
from zelda_ci.domain.numbers import brief_money
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible

MAX_CRITERION_LENGTH = 50


def worth_table(report: WorthReport) -> Table:
    """A row for each part and suite, with the criterion that fell most without it."""
    columns = (*map(Column, ("Without", "Suite", "Criterion")), Column("Inert text", right=True), Column("Result"))
    rows = []
    for row in report.rows:
        cells = (visible(row.part), visible(row.suite), sentence(row.criterion, MAX_CRITERION_LENGTH))
        inert = of(row.inert) if row.inert else "-"
        tone = Tone.BAD if row.verdict == "worse" else Tone.NEUTRAL
        rows.append(TableRow((*map(Cell, cells), Cell(inert), Cell(worth_words(row), tone))))
    remarks = (Cell(f"The sessions cost {brief_money(report.cost_usd)}.", Tone.DIM),) if report.cost_usd else ()
    return Table(columns, tuple(rows), remarks=remarks)


def worth_words(row: CriterionWorth) -> str:
    """`3 of 6 instead of 6 of 6`, or how much worse it may be at most."""
    both = f"{of(row.without)} instead of {of(row.whole)}"
    if row.verdict != "none":
        return both
    differs = row.without.passed * row.whole.sessions != row.whole.passed * row.without.sessions
    limit = f"at most {row.at_most:.0f} points with 95 %"
    return f"{both}, not proven: {limit}" if differs else f"no difference was found: {limit}"


def of(count: PassCount) -> str:
    """`3 of 6`."""
    return f"{count.passed} of {count.sessions}"
