"""Numbers without a verdict of their own, side by side: tests, coverage, calls by tool, tokens by kind, the judge."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import FigureDelta
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import visible

COLUMNS = (Column("Measured"), *(Column(title, right=True) for title in ("Baseline", "Candidate", "Change")))
TOOL_CALLS = "toolCalls."
MAX_TOOL_LENGTH = 60
NOT_THERE = Cell("N/A", Tone.DIM)


class Spelling(NamedTuple):
    """How one of them is named and written."""

    heading: str
    write: Callable[[float], str]
    better: Literal["higher", "lower"] | None = None


def _percent(value: float) -> str:
    return f"{numbers.average(value)}%"


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


SPELLINGS = {
    "build": Spelling("Builds that succeeded", _percent, "higher"),
    "tests": Spelling("Tests", _number, "higher"),
    "tests.passed": Spelling("Tests passed", _number, "higher"),
    "tests.failed": Spelling("Tests failed", _number, "lower"),
    "tests.skipped": Spelling("Tests skipped", _number, "lower"),
    "coverage.lines": Spelling("Lines covered", _percent, "higher"),
    "coverage.branches": Spelling("Branches covered", _percent, "higher"),
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
    rows = []
    for delta in deltas:
        heading, write, better = _spelling(delta)
        sides = [NOT_THERE if side is None else Cell(write(side)) for side in (delta.baseline, delta.candidate)]
        change = NOT_THERE
        if delta.change is not None:
            is_better = (delta.change > 0) == (better == "higher")
            tone = Tone.NEUTRAL if better is None else Tone.GOOD if is_better else Tone.BAD
            change = Cell(_change(delta.change, delta.baseline, write), tone)
        if delta.change != 0:
            rows.append(TableRow((Cell(heading), *sides, change)))
    return Table(COLUMNS, tuple(rows))


def _spelling(delta: FigureDelta) -> Spelling:
    if delta.name.startswith(TOOL_CALLS):
        return Spelling(f"  {visible(delta.name.removeprefix(TOOL_CALLS), MAX_TOOL_LENGTH)}", _number)
    return SPELLINGS.get(delta.name, Spelling(visible(delta.name), _number))


def _change(change: float, before: float | None, write: Callable[[float], str]) -> str:
    """Of a share in points; of anything else in its own unit, and in percent of what it was."""
    sign, size = "+" if change > 0 else "-", abs(change)
    if write is _percent:
        points = numbers.average(size)
        return f"{sign}{points} {'point' if points == '1' else 'points'}"
    return f"{sign}{write(size)}" + (f" ({100 * change / before:+.1f}%)" if before else "")
