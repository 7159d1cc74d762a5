"""Looking back through the real command: lists by verdict, batches by name, comparisons of all that was measured."""

import json
from pathlib import Path

from tests.builders import safe
from tests.support.command import zelda
from tests.support.history import store
from tests.support.projects import Project, folder
from tests.unit.compare.runs import efficiency, evaluation, fulfillment
from zelda_ci.domain.details import (
    CommandResult,
    CorrectnessDetails,
    CoverageSummary,
    EfficiencyDetails,
    RunnerCounts,
    TestSummary,
)
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.session import SessionStatus, Usage
from zelda_ci.domain.trials import Side
from zelda_ci.storage.result_store import ResultStore


def project_with(tmp_path: Path) -> Project:
    return folder(tmp_path)


def three_batches(project: Project) -> None:
    """`alpha` alone, then `alpha` twice and `beta`, then `beta` alone."""
    store(project.results, "alpha", 0, [efficiency(cost=0.1), fulfillment("PP")], batch="2026-02-13T14-30-00-aaaa")
    for trial in (1, 2):
        evaluations = [efficiency(cost=0.2), fulfillment("PF")]
        store(project.results, "alpha", 10, evaluations, batch="2026-02-13T14-40-00-bbbb", trial=trial)
    store(project.results, "beta", 10, [efficiency()], batch="2026-02-13T14-40-00-bbbb")
    store(project.results, "beta", 20, [efficiency()], batch="2026-02-13T14-50-00-cccc", status=SessionStatus.FAILED)


def test_runs_are_counted_back_from_the_latest(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    # What ran beside them is nobody's latest run.
    beside = store(project.results, "alpha", 30, [efficiency()], batch="2026-02-13T14-50-00-cccc")
    ResultStore(project.results).run(beside.run_id).rewrite(beside.replace(side=Side.BASE))
    for reference, run in (("latest~1", "beta-2026-02-13T14-40-00"), ("latest:alpha~2", "alpha-2026-02-13T14-30-00")):
        shown = zelda(project, "show", reference, "--json")
        assert json.loads(shown.stdout)["runId"] == run, shown.stderr


def test_the_newest_batch_is_compared_with_the_one_before_and_a_suite_with_all_its_trials(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    for arguments, sides in (
        ([], [["alpha", "beta"], ["beta"]]),
        (["latest:alpha~1", "latest:alpha"], [["alpha"], ["alpha"]]),
        (["2026-02-13T14-30"], [["alpha -> beta"], ["alpha -> beta"]]),
    ):
        compared = json.loads(zelda(project, "compare", *arguments, "--json").stdout)["suites"]
        for side, suites in zip(("baseline", "candidate"), sides, strict=True):
            assert sorted(suite["suite"] for suite in compared if side in suite) == suites
        if len(arguments) == 2:
            assert (compared[0]["baseline"]["valid"], compared[0]["candidate"]["valid"]) == (1, 2)


def test_what_is_not_there_is_said_with_what_is(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    project.write({"zelda/test-alpha.yaml": "prompt: Hello.\nacceptanceCriteria: [It greets.]\n"})
    store(project.results, "alpha", 0, [efficiency()])
    for arguments, message in (
        (["compare"], "There is no latest~1: 1 batch stored."),
        (["compare", "latest:alpha~1"], "There is no latest:alpha~1: 1 batch stored of the suite alpha."),
        (["show", "latest:alfa"], "Did you mean latest:alpha?"),
        (["history", "alfa"], "There are no results of the suite 'alfa'."),
        (["coverage", "."], ". holds no zelda-results.json."),
        (["why"], "latest was compared with nothing"),
        (["run", "--replay", "gone"], "Directory 'gone' does not exist."),
    ):
        done = zelda(project, *arguments)
        assert (done.returncode, message in " ".join(done.stderr.split())) == (2, True)
        # The message says all there is.
        assert "debug log" not in done.stderr


def with_tests(passed: int, *, failed: int = 0, skipped: int = 0, lines: float = 80.0) -> EvalResult:
    runner = RunnerCounts(format="pytest", source="report", passed=passed, failed=failed, skipped=skipped)
    command = CommandResult(command=safe("make"), exit_code=0, seconds=1, output=safe(""), output_bytes=0)
    details = CorrectnessDetails(
        passed=not failed,
        build=command,
        test=command,
        tests=TestSummary(runners=(runner,)),
        coverage=CoverageSummary(format="x", lines=lines),
    )
    return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, 100.0 if not failed else 50.0)


def session_with(tokens: Usage, tools: dict[str, int], errors: int = 0, retries: int = 0) -> EvalResult:
    numbers = {"turns": 8, "subagentTurns": 0, "wallSeconds": 60.0, "apiSeconds": 30.0, "deniedCalls": 0}
    details = EfficiencyDetails.model_validate(
        {**numbers, "usage": tokens, "models": {}, "costUsd": 0.1, "costKnown": True, "toolCalls": tools}
        | {"toolErrors": errors, "apiRetries": retries, "parts": {}}
    )
    return evaluation(Metric.EFFICIENCY, details, 80.0)


def store_pair(project: Project, old: list[EvalResult], new: list[EvalResult]) -> None:
    store(project.results, "alpha", 0, old, batch="old")
    store(project.results, "alpha", 10, new, batch="new")


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_comparison_shows_the_change_of_everything_that_was_measured(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    little, much = Usage(input_tokens=100, output_tokens=10), Usage(input_tokens=150, output_tokens=10)
    store_pair(
        project,
        [session_with(little, {"Read": 4, "Bash": 1}), with_tests(48, skipped=2, lines=80.0)],
        [session_with(much, {"Read": 1, "Edit": 3}, errors=2, retries=1), with_tests(47, skipped=3, lines=70.5)],
    )
    shown = zelda(project, "compare").stdout
    assert "Tests run 48 47 -1 (-2.1%) unchanged" in lines_of(shown), shown
    compared = json.loads(zelda(project, "compare", "--json").stdout)
    figures = {it.pop("name"): tuple(it.values()) for it in compared["suites"][0]["figures"]}
    expected = {
        "tests.passed": (48, 47, -1),
        "tests.skipped": (2, 3, 1),
        "coverage.lines": (80, 70.5, -9.5),
        "toolCalls.Read": (4, 1, -3),
        "toolCalls.Edit": (0, 3, 3),
        "toolCalls.Bash": (1, 0, -1),
        "toolErrors": (0, 2, 2),
        "apiRetries": (0, 1, 1),
        "tokens.input": (100, 150, 50),
    }
    assert figures | expected == figures, figures


def test_a_result_that_lost_its_tests_is_a_regression_although_all_that_are_left_pass(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    store_pair(project, [with_tests(50)], [with_tests(1)])
    done = zelda(project, "compare")
    assert done.returncode == 1
    assert "alpha: tests run went from 50 to 1" in " ".join(done.stdout.split())
