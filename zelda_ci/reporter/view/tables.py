"""Rows and columns as finished strings; how they find room is the renderer's business."""

from dataclasses import dataclass

from zelda_ci.reporter.view.nouns import Cell


@dataclass(frozen=True)
class Column:
    """A column's heading; numbers stand at its right edge."""

    title: str
    right: bool = False


@dataclass(frozen=True)
class Line:
    """A row of a table, and sentences about it."""

    cells: tuple[Cell, ...]
    notes: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Table:
    """Lines under columns. The cell of the leading column gets a line of its own where a row is too wide."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    leading: int = 0
