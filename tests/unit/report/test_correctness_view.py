"""What the report says of build and tests."""

from typing import Any

import pytest

from tests.golden.batches import command, correctness, run
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.test_run import CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.report.builders.run import run_view
from zelda_ci.report.model import Row, RunFiles, RunView

FILES = RunFiles(
    result="r/result.json", patch="r/changes.patch", setup_log="r/setup.log", build_log="r/b.log", test_log="r/t.log"
)


def view(result: EvalResult, **fields: Any) -> RunView:
    return run_view(run(evaluations={Metric.FUNCTIONAL_CORRECTNESS: result}, **fields), FILES)


def row(shown: RunView, label: str) -> Row:
    return next(row for section in shown.sections for row in section.rows if row.label == label)


def counted(**counts: Any) -> TestSummary:
    return TestSummary(runners=(RunnerCounts(format="pytest", source="report", **counts),))


CASES = [
    (
        correctness(0, "It failed.", build=command("make", 2, "one\ntwo\n")),
        "completed, but the build failed",
        "r/b.log",
        ("one", "two"),
    ),
    (correctness(0, "Late.", build=command("make", None)), "completed, but the build timed out", "r/b.log", ()),
    (
        correctness(0, "It failed.", test=command("t", 1, "no\n"), tests=counted(passed=1, failed=1)),
        "completed, but the tests failed",
        "r/t.log",
        ("no",),
    ),
    (correctness(0, "None.", test=command("t"), tests=counted()), "completed, but the tests failed", "r/t.log", ()),
    (correctness(0, "Late.", test=command("t", None)), "completed, but the tests timed out", "r/t.log", ()),
    (
        correctness(90, "Low.", test=command("t"), coverage=CoverageSummary(lines=3), coverage_threshold=8),
        "completed, but coverage is too low",
        "r/changes.patch",
        (),
    ),
    (
        correctness(90, "Gone.", test=command("t"), coverage=CoverageSummary(note="x"), coverage_threshold=8),
        "completed, but coverage is not known",
        "r/changes.patch",
        (),
    ),
]


@pytest.mark.parametrize(("found", "ending", "look", "output"), CASES)
def test_what_fell_short_is_said_first_with_the_place_to_look(
    found: EvalResult, ending: str, look: str, output: tuple[str, ...]
) -> None:
    shown = view(found)
    assert shown.outcome is Outcome.FAILED
    assert shown.facts[0].text == ending
    assert shown.problem is not None
    assert (shown.problem.look, shown.problem.output) == (look, output)
    assert shown.problem.advice


def test_details_of_another_zelda_are_not_shown_but_decide_nevertheless() -> None:
    told = {**vars(correctness(0, "It failed.")), "details": {"passed": False, "build": 5}}
    strange = EvalResult.model_validate(told)
    shown = view(strange)
    assert shown.outcome is Outcome.FAILED
    assert shown.facts[0].text == "completed, but did not pass"
    assert shown.problem is not None
    assert (shown.problem.sentence, shown.problem.look) == ("It failed.", "r/result.json")
    assert [section.title for section in shown.sections] == ["Scores", "Session"]
