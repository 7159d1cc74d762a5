"""What holds for every report, at every width and in every encoding."""

from itertools import pairwise, product

from tests.golden.batches import CASES, Case
from tests.golden.test_reports import rendered
from tests.support.cases import for_each

VERDICTS = ("  MEASURED", "  PASS", "  FAIL", "  INCOMPLETE", "  ERROR", "  STOP")


@for_each(product(CASES, (40, 60, 80, 200)))
def test_only_paths_are_wide_and_nothing_acts_or_forges_a_verdict(case: Case, width: int) -> None:
    batch = case.make()
    text = rendered(batch, width)
    lines = text.splitlines()
    assert [line for line in lines if len(line) > width and ".zelda/runs/" not in line] == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert [pair for pair in pairwise(lines) if pair == ("", "")] == []
    # In one piece, so that it can be copied.
    assert [run.run_id for run in batch.runs if f".zelda/runs/{run.run_id}/" not in text] == []
    # As the runner of GitHub reads commands: `::` after blanks at the start of a line, `##[` anywhere.
    assert [line for line in lines if line.lstrip().startswith("::") or "##[" in line] == []
    assert [line for line in lines if not line.isprintable()] == []
    # A session that prints a verdict of its own gets it nowhere near.
    assert len([line for line in lines if line.startswith(VERDICTS)]) == len({run.suite for run in batch.runs})


@for_each(product(CASES, ("ascii", "cp1252", "utf-16")))
def test_every_encoding_can_show_it(case: Case, encoding: str) -> None:
    assert "Summary" in rendered(case.make(), 80, encoding=encoding)
