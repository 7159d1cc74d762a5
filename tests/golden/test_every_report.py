"""What holds for every report, at every width and in every encoding."""

from functools import cache
from itertools import pairwise, product

from tests.golden.batches import CASES, Case
from tests.golden.test_reports import rendered
from tests.support.cases import for_each

WIDTHS = (40, 50, 60, 72, 80, 100, 200)
ENCODINGS = ("ascii", "latin-1", "cp1252", "utf-8", "utf-16")
VERDICTS = ("  MEASURED", "  PASS", "  FAIL", "  INCOMPLETE", "  ERROR", "  STOP")

every_width = for_each(product(CASES, WIDTHS))


@cache
def lines(case: Case, width: int) -> list[str]:
    return rendered(case.make(), width).splitlines()


@every_width
def test_only_paths_are_wider_than_the_terminal(case: Case, width: int) -> None:
    assert [line for line in lines(case, width) if len(line) > width and ".zelda/runs/" not in line] == []


@every_width
def test_no_line_ends_in_blanks_and_no_two_are_empty(case: Case, width: int) -> None:
    shown = lines(case, width)
    assert [line for line in shown if line != line.rstrip()] == []
    assert [pair for pair in pairwise(shown) if pair == ("", "")] == []


@every_width
def test_every_run_has_a_path_in_one_piece(case: Case, width: int) -> None:
    shown = "\n".join(lines(case, width))
    assert [run.run_id for run in case.make().runs if f".zelda/runs/{run.run_id}/" not in shown] == []


@every_width
def test_no_line_commands_the_log_of_a_ci_service(case: Case, width: int) -> None:
    """As the runner of GitHub reads them: `::` after blanks at the start of a line, `##[` anywhere."""
    assert [line for line in lines(case, width) if line.lstrip().startswith("::") or "##[" in line] == []


@every_width
def test_nothing_but_printable_lines_reaches_the_terminal(case: Case, width: int) -> None:
    assert [line for line in lines(case, width) if not line.isprintable()] == []


@every_width
def test_a_verdict_stands_where_verdicts_stand_once_for_each_suite(case: Case, width: int) -> None:
    """A session that prints a verdict of its own gets it nowhere near."""
    verdicts = [line for line in lines(case, width) if line.startswith(VERDICTS)]
    assert len(verdicts) == len({run.suite for run in case.make().runs})


@for_each(product(CASES, ENCODINGS))
def test_every_encoding_can_show_it(case: Case, encoding: str) -> None:
    assert "Summary" in rendered(case.make(), 80, encoding=encoding)
