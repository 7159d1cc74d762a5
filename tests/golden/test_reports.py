"""Whole reports against expected files, which people have looked at.

After a wanted change: `UPDATE_GOLDEN=1 pytest tests/golden`, then read the difference in `tests/golden/expected/`.
"""

import io
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from tests.golden.batches import CASES, Case, files
from tests.golden.ci_reports import REPORTS
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.run import BatchResult
from zelda_ci.report.builders.comparison import changed_row, comparison_view, untold
from zelda_ci.report.builders.summary import by_name
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.model import Detail
from zelda_ci.report.terminal.pages import Page, print_closing, print_suite, print_verdict

EXPECTED = Path(__file__).parent / "expected"

Print = Callable[[Console], None]


def printed(show: Print, width: int, *, colour: bool = False, encoding: str = "utf-8") -> str:
    """What a console of this width, of a terminal or not, gets to show."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    console = Console(
        file=stream, width=width, force_terminal=colour, color_system="standard" if colour else None, _environ={}
    )
    show(console)
    stream.seek(0)
    return stream.read()


def rendered(batch: BatchResult, width: int, *, colour: bool = False, encoding: str = "utf-8") -> str:
    files_of = files(batch).__getitem__

    def show(console: Console) -> None:
        page = Page(console)
        for runs in by_name(batch.runs).values():
            page.line()
            print_suite(page, runs, files_of)
        page.show()
        print_closing(console, batch, GateResult(), files_of, Detail.FULL)

    return printed(show, width, colour=colour, encoding=encoding)


def expect_file(file: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def compare(name: str, text: str) -> None:
    expect_file(EXPECTED / f"{name}.txt", text)


PLAIN = [(case, width) for case in CASES for width in case.widths]


@pytest.mark.parametrize(("case", "width"), PLAIN, ids=[f"{case.name}-{width}" for case, width in PLAIN])
def test_the_report_looks_as_it_should(case: Case, width: int) -> None:
    compare(f"{case.name}-{width}", rendered(case.make(), width))


COLOURED = [case for case in CASES if case.name in {"one-rich", "tool-usage"}]


@pytest.mark.parametrize("case", COLOURED, ids=lambda case: case.name)
def test_the_report_is_coloured_on_a_terminal(case: Case) -> None:
    compare(f"{case.name}-80-colour", rendered(case.make(), 80, colour=True))


def test_a_terminal_that_knows_only_ascii_gets_a_report_too() -> None:
    case = next(case for case in CASES if case.name == "trials")
    compare("trials-80-ascii", rendered(case.make(), 80, encoding="ascii"))


ENDED = ("not-correct", "trials")


@pytest.mark.parametrize("name", ENDED)
def test_a_run_ends_with_what_went_wrong(name: str) -> None:
    made = next(case.make for case in CASES if case.name == name)()
    files_of = files(made).__getitem__
    show = partial(print_closing, batch=made, gate=GateResult(), files_of=files_of, detail=Detail.LINES)
    compare(f"{name}-end-80", printed(show, 80))


def test_two_sides_end_as_the_comment_does() -> None:
    report = REPORTS["regression"]()
    assert report.comparison
    gate = comparison_view(report.comparison, report.gate, baseline="", candidate="").gate
    changed = [*changed_row(report.changes.steering)]
    told = replace(report, tested=None)
    gate = untold(report.gate, gate)
    compare("two-sides-80", printed(lambda console: print_verdict(console, ci_view(told), changed, gate), 80))
    # Where the table has no room, its numbers say what they are.
    narrow = printed(lambda console: print_verdict(console, ci_view(told), changed, gate), 50)
    assert "criteria met 3 → 2 of 3 · tests 14 of 14\n" in narrow


def test_every_expected_file_is_compared() -> None:
    compared = {f"{case.name}-{width}" for case, width in PLAIN} | {f"{case.name}-80-colour" for case in COLOURED}
    others = {"trials-80-ascii", "two-sides-80", *(f"{name}-end-80" for name in ENDED)}
    assert {file.stem for file in EXPECTED.iterdir()} == compared | others
