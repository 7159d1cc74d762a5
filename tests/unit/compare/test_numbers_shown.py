"""What is shown or forecast beside verdicts: figures, durations, trials to come, and pairs of different suites."""

from datetime import timedelta
from itertools import zip_longest
from typing import Any

import pytest

from tests.golden.batches import command
from tests.unit.compare.runs import (
    batch,
    efficiency,
    evaluation,
    judged,
    redact,
    run,
    trials,
)
from tests.unit.compare.test_schedule import made
from zelda_ci.compare.comparison import compare, figure_deltas
from zelda_ci.compare.gate import gate
from zelda_ci.compare.schedule import SuiteTrials, to_decide, trials_to_come
from zelda_ci.compare.shards import expected_to_take, trial_seconds
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.comparison import NotJudged, Verdict
from zelda_ci.domain.details import CorrectnessDetails, CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import Failure, JudgeUsage, RunResult
from zelda_ci.domain.session import ModelUsage, SessionStatus
from zelda_ci.domain.trials import DoneReason, SuiteArms, TrialPlan

COUNTS = RunnerCounts(format="pytest", source="summary", passed=3, failed=1, errored=2, skipped=4)
MEASURED = CorrectnessDetails(
    passed=False,
    build=command("make", 0),
    tests=TestSummary(runners=(COUNTS,)),
    coverage=CoverageSummary(format="lcov", lines=80.0, branches=0.0),
)


def test_figures_are_means_of_the_trials_that_have_them_and_a_tool_that_is_not_named_was_not_called() -> None:
    found = evaluation(Metric.FUNCTIONAL_CORRECTNESS, MEASURED, 50.0)
    judge = JudgeUsage(models={"m": ModelUsage(input_tokens=7, output_tokens=3, cost_usd=0.5)})
    old = [RunMetrics(each) for each in trials([efficiency(tools={"Read": 2, "Bash": 1})], [efficiency()])]
    new = [
        RunMetrics(each.replace(judge=judge))
        for each in trials([efficiency(tools={"Bash": 5}, tokens=11), found], label="b")
    ]
    figures = {
        each.name: (each.baseline, each.candidate, each.change) for each in figure_deltas(old, new, comparable=True)
    }
    assert list(figures)[:9] == [
        *("build", "tests", "tests.passed", "tests.failed", "tests.skipped", "coverage.lines", "coverage.branches"),
        *("toolCalls", "toolCalls.Bash"),
    ]
    assert [figures[name][1] for name in list(figures)[:7]] == [100.0, 10.0, 3.0, 3.0, 4.0, 80.0, 0.0]
    assert figures["build"] == (None, 100.0, None)
    assert figures["toolCalls"] == (1.5, 5.0, 3.5)
    assert figures["toolCalls.Read"] == (1.0, 0.0, -1.0)
    assert figures["toolCalls.Bash"] == (0.5, 5.0, 4.5)
    assert figures["tokens.input"] == (10_000, 11.0, -9989.0)
    assert figures["judge.costUsd"] == (None, 0.5, None)
    assert figures["judge.tokens"] == (None, 10.0, None)
    assert {each.change for each in figure_deltas(old, new, comparable=False)} == {None}
    failed = evaluation(Metric.FUNCTIONAL_CORRECTNESS, CorrectnessDetails(passed=False, build=command("make", 2)), 0.0)
    (shown, *_) = figure_deltas(old, [RunMetrics(run([failed]))], comparable=True)
    assert (shown.name, shown.candidate) == ("build", 0.0)


def test_a_trial_takes_the_median_of_the_newest_that_say_something_and_others_what_is_usual() -> None:
    def lasting(*minutes: int, suite: str = "alpha", **given: Any) -> list[RunResult]:
        made = judged(*"P" * len(minutes), suite=suite, **given)
        return [
            each.replace(finished_at=each.started_at + timedelta(minutes=number))
            for each, number in zip(made, minutes, strict=True)
        ]

    runs = [
        *lasting(1, 8, 7, 6, 5, 90),
        *lasting(99, label="failed", status=SessionStatus.FAILED),
        *lasting(98, label="replayed", replayed=True),
        *lasting(10, suite="beta"),
    ]
    found = trial_seconds([*runs, *runs], replayed=False)
    assert found == {"alpha": 420.0, "beta": 600.0}
    assert trial_seconds(runs, replayed=True) == {"alpha": 98 * 60.0}
    assert expected_to_take(found, {"alpha": 2, "new": 3, "beta": 0}) == {"alpha": 840.0, "new": 1530.0, "beta": 0.0}
    assert expected_to_take({}, {"new": 2}) == {"new": 120.0}


def test_the_fewest_and_the_most_trials_that_will_run_are_told() -> None:
    plan = TrialPlan(first=3, looks=(6, 16))
    suites = [
        SuiteTrials("new", plan=plan),
        SuiteTrials("begun", head=made("P", "F", "P", suite="begun"), plan=plan),
        SuiteTrials("done", head=made("P", "P", "P", suite="done"), plan=plan),
        SuiteTrials("alone", plan=plan, has_base=False),
        SuiteTrials("fixed", plan=2),
    ]
    assert trials_to_come(suites) == {
        "new": (3, 32), "begun": (9, 29), "done": (0, 0), "alone": (3, 16), "fixed": (4, 4),
    }  # fmt: skip
    assert [to_decide(suite) for suite in suites] == [12, 12, 12, 0, 4]


def test_the_only_suites_of_two_sides_may_be_paired_and_never_gate() -> None:
    old, new = judged(*["P"] * 20), judged(*["F"] * 20, suite="beta")
    apart = compare(old, new)
    assert [suite.verdict for suite in apart.suites] == [Verdict.REMOVED, Verdict.NEW]
    (pair,) = compare(old, new, pair_suites=True).suites
    assert (pair.suite, pair.verdict) == ("alpha -> beta", Verdict.REGRESSED)
    assert [row.gates for row in pair.criteria] == [False]
    both = [*new, *judged("P", suite="gamma")]
    assert len(compare(old, both, pair_suites=True).suites) == 3
    assert [suite.suite for suite in compare(old, judged("P"), pair_suites=True).suites] == ["alpha"]


@pytest.mark.parametrize(
    ("status", "reason", "told"),
    [
        (SessionStatus.FAILED, DoneReason.FAILED, "sessions of the base failed, so nothing could be compared: no CLI"),
        (SessionStatus.INTERRUPTED, DoneReason.FAILED, "so nothing could be compared: they ended early"),
        (SessionStatus.COMPLETED, DoneReason.FAILED, None),
        (SessionStatus.FAILED, DoneReason.PLAN_ENDED, None),
    ],
)
def test_where_the_base_cannot_run_nobody_knows_whether_the_suite_is_worse(
    status: SessionStatus, reason: DoneReason, told: str | None
) -> None:
    failures = [Failure(code="X", message=redact(why)) for why in ("no git", "no CLI")] if "no CLI" in str(told) else []
    broken = [each.replace(failure=failure) for each, failure in zip_longest(judged("P", "P", status=status), failures)]
    bases = [*broken, *judged("P", label="other"), *judged("P", suite="beta", status=SessionStatus.FAILED)]
    arms = (SuiteArms(suite="alpha", head=1, base=3, reason=reason, trials=3),)
    found = gate(batch(judged("P"), bases).replace(arms=arms), {})
    said = [(each.trials, each.of, each.reason) for each in found.reasons if isinstance(each, NotJudged)]
    assert [(count, of, reason.endswith(told or "")) for count, of, reason in said] == [(2, 3, True)] * bool(told)
