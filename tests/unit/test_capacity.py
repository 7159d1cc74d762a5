"""The page on capacity says what its benchmark prints."""

from pathlib import Path

import pytest

from benchmarks import capacity

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"


def printed() -> list[str]:
    """The lines of the page's table, its heading first."""
    lines = PAGE.read_text("utf-8").splitlines()
    start = lines.index(capacity.row(capacity.HEADINGS))
    return lines[start : start + 2 + len(capacity.LINES)]


def test_the_page_has_every_line_of_the_table() -> None:
    inputs = [(line.suites, line.stored, line.tier.name, line.machines) for line in capacity.LINES]
    shown = [line.strip("| ").split(" | ")[:4] for line in printed()[2:]]
    assert shown == [[f"{suites:,}", str(stored), tier, str(machines)] for suites, stored, tier, machines in inputs]


@pytest.mark.parametrize("number", [number for number, line in enumerate(capacity.LINES) if line.suites == 10])
def test_the_figures_are_those_of_today(number: int) -> None:
    """Of the small lines: the others take minutes, and come from the same code."""
    assert printed()[2 + number] == capacity.row(capacity.cells(capacity.LINES[number]))
