"""Numbers without a verdict of their own, side by side: tests, coverage, calls by tool, tokens by kind, the judge."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import FigureDelta
from zelda_ci.report.model import Cell, Column, Row, Table, TableRow, Tone
from zelda_ci.report.text import visible

COLUMNS = (
    Column("Measured"),
    Column("Baseline", right=True),
    Column("Candidate", right=True),
    Column("Change", right=True),
)
TOOL_CALLS = "toolCalls."
MAX_TOOL_LENGTH = 60
NOT_THERE = Cell("N/A", Tone.DIM)


class Spelling(NamedTuple):
    """How one of them is named and written."""

    heading: str
    write: Callable[[float], str]
    better: Literal["higher", "lower"] | None = None
    points: bool = False
    """Whether it is in percent, so that its change is in points and not in percent of what it was."""


def _percent(value: float) -> str:
    return f"{numbers.average(value)}%"


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


SPELLINGS = {
    "build": Spelling("Builds that succeeded", _percent, "higher", points=True),
    "tests": Spelling("Tests", _number, "higher"),
    "tests.passed": Spelling("Tests passed", _number, "higher"),
    "tests.failed": Spelling("Tests failed", _number, "lower"),
    "tests.skipped": Spelling("Tests skipped", _number, "lower"),
    "coverage.lines": Spelling("Lines covered", _percent, "higher", points=True),
    "coverage.branches": Spelling("Branches covered", _percent, "higher", points=True),
    "toolCalls": Spelling("Tool calls", _number),
    "toolErrors": Spelling("Tool errors", _number, "lower"),
    "deniedCalls": Spelling("Denied calls", _number, "lower"),
    "apiRetries": Spelling("API retries", _number, "lower"),
    "tokens.input": Spelling("Tokens in", _number, "lower"),
    "tokens.output": Spelling("Tokens out", _number, "lower"),
    "tokens.cacheRead": Spelling("Cache read", _number),
    "tokens.cacheWrite": Spelling("Cache written", _number),
    "judge.costUsd": Spelling("Judge cost", numbers.money),
    "judge.tokens": Spelling("Judge tokens", _number),
}


def figure_table(deltas: Sequence[FigureDelta]) -> Table:
    """Those that differ, or that cannot be compared."""
    return Table(COLUMNS, tuple(_line(delta) for delta in deltas if delta.change != 0))


def equal_figures(deltas: Sequence[FigureDelta]) -> tuple[Row, ...]:
    """Those that are the same on both sides, in one row."""
    equal = [delta for delta in deltas if delta.change == 0]
    cells = (Cell(f"{_name(delta)} {_written(delta, delta.candidate).text}", Tone.DIM) for delta in equal)
    return (Row("Unchanged", tuple(cells)),) if equal else ()


def _line(delta: FigureDelta) -> TableRow:
    name = _spelling(delta).heading
    cells = (_written(delta, delta.baseline), _written(delta, delta.candidate), _change(delta))
    return TableRow((Cell(name), *cells))


def _name(delta: FigureDelta) -> str:
    """Inside a line."""
    heading = _spelling(delta).heading.strip()
    is_name = heading.startswith("API") or delta.name.startswith(TOOL_CALLS)
    return heading if is_name else heading[0].lower() + heading[1:]


def _spelling(delta: FigureDelta) -> Spelling:
    if delta.name.startswith(TOOL_CALLS):
        return Spelling(f"  {visible(delta.name.removeprefix(TOOL_CALLS), MAX_TOOL_LENGTH)}", _number)
    return SPELLINGS.get(delta.name, Spelling(visible(delta.name), _number))


def _written(delta: FigureDelta, value: float | None) -> Cell:
    return NOT_THERE if value is None else Cell(_spelling(delta).write(value))


def _change(delta: FigureDelta) -> Cell:
    if delta.change is None:
        return NOT_THERE
    spelling, size = _spelling(delta), abs(delta.change)
    sign = "+" if delta.change > 0 else "-"
    if spelling.points:
        shown = numbers.average(size)
        text = f"{sign}{shown} {'point' if shown == '1' else 'points'}"
    else:
        text = f"{sign}{spelling.write(size)}"
        text += f" ({100 * delta.change / delta.baseline:+.1f}%)" if delta.baseline else ""
    if spelling.better is None:
        return Cell(text)
    is_better = (delta.change > 0) == (spelling.better == "higher")
    return Cell(text, Tone.GOOD if is_better else Tone.BAD)
