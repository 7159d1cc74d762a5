"""What a comparison says of trials that were added where they were needed."""

import random
from dataclasses import replace

import pytest

from tests.unit.compare.adaptive import MIXED, PullRequest, Truth
from tests.unit.compare.runs import efficiency, evaluation, fulfillment, judged, trials
from tests.unit.compare.test_schedule import made
from zelda_ci.compare.adaptive import compare_trials
from zelda_ci.compare.gate import gate
from zelda_ci.compare.schedule import SuiteTrials, next_trials, suite_trials
from zelda_ci.compare.sides import RunMetrics, read_metrics
from zelda_ci.domain.comparison import Comparison, CriterionDelta, TrialSources, Verdict
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import Measure, Metric
from zelda_ci.domain.test_run import CorrectnessDetails, RunnerCounts, TestSummary
from zelda_ci.domain.trials import DoneReason, Side, TrialPlan

PLAN = TrialPlan()


def of(
    head: tuple[RunMetrics, ...] = (),
    base: tuple[RunMetrics, ...] = (),
    pool: tuple[RunMetrics, ...] = (),
    hints: tuple[RunMetrics, ...] = (),
) -> Comparison:
    return compare_trials(PLAN, [SuiteTrials("alpha", head, base, pool, hints)])


def regressions(found: Comparison) -> list[str]:
    return [reason.kind for reason in gate(found, {}).reasons if reason.kind == "regression"]


def first(found: Comparison) -> CriterionDelta:
    return found.suites[0].criteria[0]


@pytest.mark.parametrize(
    ("head", "stored", "reason"),
    [(["PP"] * 3, [], "passes in all first trials"), (["P", "F", "P"], [*["P"] * 16, *["F"] * 4], "as expected")],
)
def test_a_suite_that_passes_or_looks_as_stored_trials_lead_to_expect_is_unchanged(head, stored, reason):
    found = of(head=made(*head), hints=made(*stored, label="old"))
    assert (found.verdict, first(found).verdict) == (Verdict.UNCHANGED, Verdict.UNCHANGED)
    assert reason in first(found).reasons[0]
    assert found.suites[0].sources == TrialSources(head=3, hints=len(stored), ended=DoneReason.AS_EXPECTED)


def test_three_of_three_against_none_of_three_is_not_proven_and_more_trials_are_wanted():
    found = of(head=made("F", "F", "F"), hints=made("P", "P", "P", label="old"))
    assert (found.verdict, first(found).verdict) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
    assert first(found).reasons == ("changed, not proven: more trials were wanted than were made",)
    assert found.suites[0].sources == TrialSources(head=3, hints=3)
    assert regressions(found) == []


def test_side_by_side_it_is_proven_with_six_trials_each():
    found = of(head=made(*["F"] * 6), base=made(*["P"] * 6, label="base"), hints=made("P", "P", "P", label="old"))
    assert (found.verdict, first(found).verdict, first(found).gates) == (Verdict.REGRESSED, Verdict.REGRESSED, True)
    adjusted = first(found).adjusted_p_value
    assert adjusted is not None
    assert adjusted <= 0.04
    assert found.suites[0].sources == TrialSources(head=6, base=6, hints=3, ended=DoneReason.REGRESSED)
    # The call stands when later trials are kinder.
    head, base = made(*["F"] * 6, "P", "P", "P", "P"), made(*["P"] * 10, label="base")
    assert first(of(head=head, base=base)).verdict is Verdict.REGRESSED


def test_a_difference_of_a_single_trial_is_never_a_regression():
    plan = TrialPlan(first=1, looks=(2,))
    found = compare_trials(plan, [SuiteTrials("alpha", head=made("F"), pool=made("P", label="old"))])
    assert (found.verdict, first(found).verdict) == (Verdict.INCONCLUSIVE, Verdict.CHANGED)
    assert first(found).reasons == ("changed, not proven: more trials were wanted than were made",)
    assert regressions(found) == []
    old = made("P", label="old")
    ended = compare_trials(plan, [SuiteTrials("alpha", made("F", "F"), pool=old, has_base=False)])
    assert (ended.verdict, first(ended).verdict) == (Verdict.CHANGED, Verdict.CHANGED)


def with_tests(*counts: int, label: str = "a") -> tuple[RunMetrics, ...]:
    """Trials whose tests all passed, so many of them."""

    def result(count: int) -> EvalResult:
        runner = RunnerCounts(format="pytest", source="summary", passed=count)
        details = CorrectnessDetails(passed=True, tests=TestSummary(runners=(runner,)))
        return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, 100.0)

    return tuple(map(read_metrics, trials(*([result(count)] for count in counts), label=label)))


def test_tests_that_are_gone_lead_to_more_trials_and_are_a_regression_once_proven():
    known = SuiteTrials("alpha", head=with_tests(1, 1, 1), pool=with_tests(50, 51, 50, label="old"))
    step = next_trials(PLAN, [known])
    assert {wanted.side for wanted in step.wanted} == {Side.HEAD, Side.BASE}
    proven = replace(known, head=with_tests(*[1] * 10), base=with_tests(*[50] * 10, label="base"), pool=())
    found = compare_trials(PLAN, [proven])
    assert (found.verdict, regressions(found)) == (Verdict.REGRESSED, ["regression"])


def test_what_was_not_run_for_lack_of_money_is_inconclusive_never_unchanged():
    known = SuiteTrials("alpha", pool=made("P", "P", label="old"))
    found = compare_trials(PLAN, [known])
    assert (found.verdict, found.suites[0].reasons) == (Verdict.INCONCLUSIVE, ("not run",))
    found = compare_trials(PLAN, [replace(known, head=made("P"))])
    assert found.verdict is Verdict.INCONCLUSIVE


def test_results_are_taken_by_suite_with_the_plan_that_they_were_run_with():
    head = [*judged(*["F"] * 6, label="b", trials=TrialPlan(looks=(6,))), *judged("P", suite="beta", label="b")]
    suites = suite_trials(head, judged(*["P"] * 6), suites=["alpha", "beta", "gamma"])
    assert [(suite.suite, len(suite.head), len(suite.base)) for suite in suites] == [
        ("alpha", 6, 6), ("beta", 1, 0), ("gamma", 0, 0),
    ]  # fmt: skip
    assert [suite.plan for suite in suites] == [TrialPlan(looks=(6,)), TrialPlan(), None]
    found = compare_trials(PLAN, suites)
    assert [suite.verdict for suite in found.suites] == [Verdict.REGRESSED, Verdict.INCONCLUSIVE]


def test_stored_trials_of_another_platform_that_were_given_as_the_pool_blame_nobody():
    found = of(head=made("F", "F", "F", cli="2.2.0"), pool=made(*["P"] * 20, label="old"))
    assert (found.verdict, regressions(found)) == (Verdict.INCONCLUSIVE, [])


def test_the_number_of_suites_shares_the_error():
    fallen = SuiteTrials("alpha", head=made(*["F"] * 6), base=made(*["P"] * 6, label="base"))
    others = [SuiteTrials(f"s{number}") for number in range(3)]
    alone, among = compare_trials(PLAN, [fallen]), compare_trials(PLAN, [fallen, *others])
    one, four = first(alone).adjusted_p_value, first(among).adjusted_p_value
    assert one is not None
    assert four is not None
    assert four == pytest.approx(4 * one)


def costing(cost: float, label: str, count: int, suite: str) -> tuple[RunMetrics, ...]:
    chance = random.Random(f"{suite}{label}")
    found = ([efficiency(cost=cost * chance.uniform(0.9, 1.1)), fulfillment("P")] for _ in range(count))
    return tuple(map(read_metrics, trials(*found, label=label, suite=suite)))


@pytest.mark.parametrize(("cost", "verdict"), [(0.10, Verdict.UNCHANGED), (0.16, Verdict.REGRESSED)])
def test_cost_is_compared_once_over_all_suites_on_first_trials(cost, verdict):
    names = [f"s{number}" for number in range(10)]
    suites = [SuiteTrials(name, head=costing(cost, "b", 3, name), pool=costing(0.10, "a", 20, name)) for name in names]
    found = compare_trials(PLAN, suites)
    row = next(row for row in found.overall if row.measure is Measure.COST)
    assert (row.verdict, row.gates) == (verdict, verdict is Verdict.REGRESSED)
    # Of a single suite it is shown and says nothing.
    assert {suite.verdict for suite in found.suites} == {Verdict.UNCHANGED}


def test_the_comparison_calls_what_the_schedule_decided():
    chance = random.Random(3)
    calls = set()
    for fallen_to in (None, 0.2) * 6:
        request = PullRequest(chance, Truth(MIXED, stored=chance.choice((0, 10))), 2, fallen_to)
        done = request.run()
        found = compare_trials(PLAN, request.suites)
        for suite in found.suites:
            assert (suite.verdict is Verdict.REGRESSED) == (done[suite.suite] is DoneReason.REGRESSED)
            calls.add(suite.verdict)
    assert {Verdict.REGRESSED, Verdict.UNCHANGED} <= calls


def test_a_budget_that_ends_blames_nobody_and_decides_nothing():
    chance = random.Random(1)
    for _ in range(10):
        request = PullRequest(chance, Truth(MIXED), 3)
        request.run(budget=10)
        assert request.sessions <= 10
        assert compare_trials(PLAN, request.suites).verdict in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
