"""The files in which a step speaks to the runner."""

from pathlib import Path

import pytest

from zelda_ci.github.workflow_commands import CUT, StepSummary


@pytest.mark.parametrize("before", ["", "short\n", "long, longer, longest\n" * 100])
def test_a_summary_takes_the_place_of_an_earlier_one(tmp_path: Path, before: str) -> None:
    path = tmp_path / "summary"
    path.write_text(before)
    StepSummary(path).replace("### Results")
    assert path.read_text() == "### Results\n"


def test_a_summary_that_takes_the_place_of_another_is_cut_between_lines(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("x" * 90)
    StepSummary(path, limit=100).replace("one\ntwo " + "x" * 100)
    assert path.read_text() == "one" + CUT


def test_a_summary_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "summary").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic link"):
        StepSummary(tmp_path / "summary").replace("x")
    assert not (tmp_path / "other").exists()


def test_without_a_summary_nothing_is_written() -> None:
    StepSummary(None).replace("x")
