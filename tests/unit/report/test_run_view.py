from typing import Any

import pytest

from tests.golden.batches import broken, efficiency, run, suite, unscored
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.workspace import ChangeSummary
from zelda_ci.report.builders.run import run_view
from zelda_ci.report.model import Cell, Row, RunFiles, RunView, Tone

FILES = RunFiles(result="r/result.json", transcript="r/transcript.json", patch="r/changes.patch")


def view(result: RunResult) -> RunView:
    return run_view(result, FILES)


def row(result: RunResult, label: str) -> list[str]:
    rows = [row for section in view(result).sections for row in section.rows]
    return next([cell.text for cell in row.cells] for row in rows if row.label == label)


def rows(result: RunResult) -> list[Row]:
    return [row for section in view(result).sections for row in section.rows]


def used(**numbers: Any) -> dict[Metric, EvalResult]:
    return {Metric.EFFICIENCY: efficiency(**numbers)}


@pytest.mark.parametrize("status", SessionStatus)
def test_every_status_has_words_and_without_criteria_a_completed_one_is_measured(status: SessionStatus) -> None:
    shown = view(run(status=status))
    assert shown.facts[0].text
    assert ("your tests pass" in shown.facts[0].text) is (status is SessionStatus.COMPLETED)
    assert (shown.verdict == Cell("MEASURED")) is (status is SessionStatus.COMPLETED)
    assert (shown.problem is None) is (status is SessionStatus.COMPLETED)


def test_unscored_is_not_zero() -> None:
    evaluations = used() | {Metric.TOOL_USAGE: unscored(Metric.TOOL_USAGE, "no tools\nat all")}
    shown = view(run(evaluations=evaluations)).sections[0].rows[1]
    assert shown.cells == (Cell("unscored", Tone.DIM), Cell("no tools at all", Tone.DIM))


def test_targets_are_met_at_their_value_and_missed_above() -> None:
    config = suite(efficiency_targets={"turns": 9, "tokens": 100_000, "durationSeconds": 83.1})
    result = run(config=config)
    assert "target 9 met" in row(result, "Turns")
    assert "target 100,000 missed" in row(result, "Tokens")
    assert "target 1m 23s missed" in row(result, "Session time")
    assert row(result, "Session cost") == ["$0.1789"]


def test_a_session_that_changed_nothing_is_remarkable_and_a_guessed_cost_says_why() -> None:
    shown = next(row for row in rows(run(changes=ChangeSummary())) if row.label == "Changes")
    assert shown.cells == (Cell("none: the session changed no file", Tone.WARN),)
    assert row(run(evaluations=used(cost_known=False)), "Session cost") == ["about $0.1789", "no list price known"]


@pytest.mark.parametrize(
    ("code", "word"),
    [("AUTHENTICATION_FAILED", "ANTHROPIC_API_KEY"), ("CLI_KILLED", "memory"), ("NEVER_HEARD_OF", "transcript")],
)
def test_every_problem_comes_with_a_next_step(code: str, word: str) -> None:
    problem = view(run(**broken(code, "It failed."))).problem
    assert problem
    assert problem.sentence == "It failed."
    assert word in problem.advice
