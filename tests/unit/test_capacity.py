"""The page on capacity says what its benchmark prints."""

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]

# Of 10 suites each: the others take minutes, and come from the same code.
SMALL_LINES = 4


def test_the_figures_of_the_page_are_those_of_today() -> None:
    command = [sys.executable, "-m", "benchmarks.capacity", str(SMALL_LINES)]
    done = subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True)
    printed = done.stdout.splitlines()
    assert len(printed) == 2 + SMALL_LINES
    page = (TOP / "docs" / "capacity.md").read_text("utf-8").splitlines()
    start = page.index(printed[0])
    assert page[start : start + len(printed)] == printed
