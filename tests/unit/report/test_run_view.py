from typing import Any

import pytest

from tests.builders import safe
from tests.golden.batches import broken, command, correctness, efficiency, run
from zelda_ci.domain.details import CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.workspace import ChangeSummary, IsolationReport, SettingFinding
from zelda_ci.report.builders.run import run_facts, run_problem, run_sections
from zelda_ci.report.model import Cell, Row, RunFiles, Tone

FILES = RunFiles(
    result="r/result.json", patch="r/changes.patch", setup_log="r/setup.log", build_log="r/b.log", test_log="r/t.log"
)


def row(result: RunResult, label: str) -> Row:
    return next(row for section in run_sections(result) for row in section.rows if row.label == label)


def ending(result: RunResult) -> str:
    return run_facts(result)[0].text


@pytest.mark.parametrize("status", SessionStatus)
def test_every_status_has_words_and_without_criteria_a_completed_one_is_measured(status: SessionStatus) -> None:
    shown, is_completed = run(status=status), status is SessionStatus.COMPLETED
    assert ending(shown)
    assert ("your tests pass" in ending(shown)) is is_completed
    assert (run_outcome(shown) is Outcome.MEASURED) is is_completed
    assert (run_problem(shown, FILES) is None) is is_completed


def test_what_a_key_of_zeldas_own_lets_in_is_not_among_what_did_not_take_effect() -> None:
    found = {"isolation.mods": "It runs.", "apiKeyHelper": "It did not take effect."}
    findings = tuple(SettingFinding(file=safe("f"), setting=safe(it), effect=safe(why)) for it, why in found.items())
    shown = run(isolation=IsolationReport(level="full", findings=findings))
    assert [cell.text for cell in row(shown, "Let in").cells] == ["It runs."]
    assert [cell.text for cell in row(shown, "Overruled").lines] == ["apiKeyHelper (f)"]


def test_a_session_that_changed_nothing_is_remarkable_and_a_guessed_cost_says_why() -> None:
    assert row(run(changes=ChangeSummary()), "Changes").cells == (Cell("none: the session changed no file", Tone.WARN),)
    guessed = row(run(evaluations={Metric.EFFICIENCY: efficiency(cost_known=False)}), "Session cost")
    assert [cell.text for cell in guessed.cells] == ["about $0.1789", "no list price known"]


@pytest.mark.parametrize(
    ("code", "word"),
    [("AUTHENTICATION_FAILED", "ANTHROPIC_BASE_URL"), ("CLI_KILLED", "memory"), ("NEVER_HEARD_OF", "transcript")],
)
def test_every_problem_comes_with_a_next_step(code: str, word: str) -> None:
    problem = run_problem(run(**broken(code, "It failed.")), FILES)
    assert problem
    assert problem.sentence == "It failed."
    assert word in problem.advice


NO_TESTS = TestSummary(runners=(RunnerCounts(format="pytest", source="report"),))


def covered(**found: Any) -> EvalResult:
    return correctness(90, "Low.", test=command("t"), coverage=CoverageSummary(**found), coverage_threshold=8)


CASES = [
    (correctness(0, "No.", build=command("make", 2, "one\ntwo\n")), "the build failed", "b.log", ("one", "two")),
    (correctness(0, "Late.", build=command("make", None)), "the build timed out", "b.log", ()),
    (correctness(0, "None.", test=command("t"), tests=NO_TESTS), "the tests failed", "t.log", ()),
    (correctness(0, "Late.", test=command("t", None)), "the tests timed out", "t.log", ()),
    (covered(lines=3), "coverage is too low", "changes.patch", ()),
    (covered(note="x"), "coverage is not known", "changes.patch", ()),
]


@pytest.mark.parametrize(("found", "words", "look", "output"), CASES)
def test_what_fell_short_is_said_first_with_the_place_to_look(
    found: EvalResult, words: str, look: str, output: tuple[str, ...]
) -> None:
    shown = run(evaluations={Metric.FUNCTIONAL_CORRECTNESS: found})
    problem = run_problem(shown, FILES)
    assert run_outcome(shown) is Outcome.FAILED
    assert ending(shown) == f"completed, but {words}"
    assert problem is not None
    assert (problem.look, problem.output) == (f"r/{look}", output)
    assert problem.advice


def test_details_of_another_zelda_are_not_shown_but_decide_nevertheless() -> None:
    told = {**vars(correctness(0, "It failed.")), "details": {"passed": False, "build": 5}}
    strange = EvalResult.model_validate(told)
    shown = run(evaluations={Metric.FUNCTIONAL_CORRECTNESS: strange})
    problem = run_problem(shown, FILES)
    assert run_outcome(shown) is Outcome.FAILED
    assert ending(shown) == "completed, but did not pass"
    assert problem is not None
    assert (problem.sentence, problem.look) == ("It failed.", "r/result.json")
    assert [section.title for section in run_sections(shown)] == ["Scores", "Session"]
