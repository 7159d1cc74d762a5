"""What holds for every report, at every width and in every encoding."""

import pytest

from tests.golden.batches import CASES, Case
from tests.golden.test_reports import rendered

WIDTHS = (40, 50, 60, 72, 80, 100, 200)
ENCODINGS = ("ascii", "latin-1", "cp1252", "utf-8", "utf-16")


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    assert isinstance(request.param, Case)
    return request.param


@pytest.mark.parametrize("width", WIDTHS)
def test_only_paths_and_what_cannot_be_broken_are_wider_than_the_terminal(case: Case, width: int) -> None:
    for line in rendered(case.make(), width).splitlines():
        words = max((len(word) for word in line.split()), default=0)
        assert len(line) <= width or "/" in line or words > width // 2


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_ends_in_blanks_and_no_two_are_empty(case: Case, width: int) -> None:
    text = rendered(case.make(), width)
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\n\n\n" not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_paths_are_printed_in_one_piece(case: Case, width: int) -> None:
    batch = case.make()
    text = rendered(batch, width)
    if not any(run.config.trials > 1 for run in batch.runs):
        assert [run.run_id for run in batch.runs if f".zelda/runs/{run.run_id}/result.json" not in text] == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_can_show_it(case: Case, encoding: str) -> None:
    assert "Summary" in rendered(case.make(), 80, encoding=encoding)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_commands_the_log_of_a_ci_service(case: Case, width: int) -> None:
    """As the runner of GitHub reads them: `::` after blanks at the start of a line, `##[` anywhere."""
    for line in rendered(case.make(), width).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_but_lines_reaches_the_terminal(case: Case, width: int) -> None:
    assert [char for char in rendered(case.make(), width) if char != "\n" and not char.isprintable()] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_verdict_is_printed_once_for_each_suite(case: Case, width: int) -> None:
    """At the place where verdicts stand; a session that prints one of its own gets it nowhere near."""
    batch = case.make()
    verdicts = [
        line
        for line in rendered(batch, width).splitlines()
        if line.startswith(("  PASS", "  FAIL", "  ERROR", "  STOP"))
    ]
    assert len(verdicts) == len({run.suite for run in batch.runs})
