import pytest

from tests.golden.batches import batch, crowd, files, run
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState, GateResult, MeasureDelta, Verdict
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import DoneReason, MoreTrials, SuiteArms, TrialPlan
from zelda_ci.domain.workspace import TestedSource
from zelda_ci.report.builders.comparison import measure_table
from zelda_ci.report.builders.summary import affected_names, closing_rows, more_trials, suite_table, troubles
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.view import closing_line
from zelda_ci.report.model import Tone


def rows(result: BatchResult) -> dict[str, list[str]]:
    return {row.label: [cell.text for cell in row.cells] for row in closing_rows(result, GateResult())}


def test_runs_are_grouped_by_suite_in_the_order_they_came() -> None:
    table = suite_table(batch(run("b", trial=1), run("a"), run("b", trial=2)))
    assert [[cell.text for cell in line.cells[1:3]] for line in table.lines] == [["b", "2 of 2"], ["a", ""]]


def test_alike_problems_are_told_once() -> None:
    made = crowd()
    ((_, affected),) = troubles(made.runs, files(made).__getitem__)
    names = "suite-01 (5 trials), suite-03 (5 trials), suite-05 (5 trials), and 7 more suites"
    assert affected_names(affected, made.runs) == names


def test_a_plan_that_was_cut_short_says_so() -> None:
    result = batch(run()).model_copy(update={"interrupted": True, "planned": 3})
    assert rows(result)["Suites"] == ["1 measured", "2 runs not started"]
    assert rows(result)["Exit code"] == ["130, interrupted"]
    assert rows(result.model_copy(update={"planned": 1}))["Suites"] == ["1 measured"]


def test_a_budget_that_ended_is_no_judge_that_failed() -> None:
    unpaid = SuiteArms(suite="a", head=0, reason=DoneReason.BUDGET, unpaid=1, trials=TrialPlan())
    for runs, why in ((), "left no session"), ((run("a"),), "ended before all sessions had run"):
        result = batch(*runs).replace(planned=2, arms=(unpaid,))
        assert rows(result)["Exit code"] == [f"2, the budget {why}"]
        report = CiReport(result, GateResult(), BaselineOrigin(state=BaselineState.OFF, sentence=""))
        assert closing_line(report) == f"INCOMPLETE: the budget {why}, so this is no pass. Exit code 2."


def test_what_was_tested_is_told_and_what_was_not() -> None:
    copied = batch(run(source=TestedSource(kind="copy", dirty=True)))
    assert rows(copied)["Tested"] == ["a copy of the folder, outside git"]
    assert "Tested" not in rows(batch(run(source=None)))


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [(Verdict.UNCHANGED, Tone.DIM), (Verdict.INCONCLUSIVE, Tone.BAD), (Verdict.REGRESSED, Tone.BAD)],
)
def test_a_change_that_the_verdict_takes_for_noise_has_no_colour(verdict: Verdict, tone: Tone) -> None:
    delta = MeasureDelta(measure=Measure.COST, verdict=verdict, better="lower", change=0.01, effect="worse")
    (row,) = measure_table([delta], frozenset()).lines
    assert [cell.tone for cell in row.cells if cell.text.startswith("+$0.01")] == [tone]


def test_why_a_suite_goes_on_names_criteria_by_whole_words() -> None:
    criterion = "`total_cents()` is 10 percent lower after the code is applied, and rounded half up to whole cents"
    event = MoreTrials(suite="example", head=3, base=5, made=2, look=2, looks=2, missed=((criterion, 2, 2),))
    named = "“`total_cents()` is 10 percent lower after the code is applied, and rounded half …” failed in 2 of 2"
    assert more_trials(event).startswith(f"{named}: 3 ")
