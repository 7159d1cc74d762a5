from tests.golden.batches import batch, crowd, files, run
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.workspace import TestedSource
from zelda_ci.report.builders.summary import report_view
from zelda_ci.report.model import ReportView


def view(result: BatchResult) -> ReportView:
    return report_view(result, files(result))


def row(result: BatchResult, label: str) -> list[str]:
    return next([cell.text for cell in row.cells] for row in view(result).summary.rows if row.label == label)


def test_runs_are_grouped_by_suite_in_the_order_they_came() -> None:
    runs = [run("b", trial=1), run("a"), run("b", trial=2)]
    assert [(suite.name, len(suite.runs)) for suite in view(batch(*runs)).suites] == [("b", 2), ("a", 1)]


def test_alike_problems_are_told_once() -> None:
    troubles = view(crowd()).summary.troubles
    assert [trouble.names for trouble in troubles] == [
        "suite-01 (5 trials), suite-03 (5 trials), suite-05 (5 trials), and 7 more suites"
    ]


def test_a_plan_that_was_cut_short_says_so() -> None:
    result = batch(run()).model_copy(update={"interrupted": True, "planned": 3})
    assert row(result, "Suites") == ["1 measured", "2 runs not started"]
    assert row(result, "Exit code") == ["130, interrupted"]
    assert row(result.model_copy(update={"planned": 1}), "Suites") == ["1 measured"]


def test_what_was_tested_is_told_and_what_was_not() -> None:
    copied = batch(run(source=TestedSource(kind="copy", dirty=True)))
    assert row(copied, "Tested") == ["a copy of the folder, outside git"]
    assert "Tested" not in [row.label for row in view(batch(run(source=None))).summary.rows]
