"""What a comparison says of trials that were added where they were needed."""

import random
from collections import Counter
from dataclasses import replace
from math import comb

import pytest

from tests.unit.compare.adaptive import MIXED, PullRequest, Truth
from tests.unit.compare.runs import efficiency, evaluation, fulfillment, gate_of, tool_usage, trials
from tests.unit.compare.test_schedule import made
from zelda_ci.compare.comparison import NOT_STORED, compare_trials
from zelda_ci.compare.schedule import NOT_BESIDE, SuiteTrials, next_trials
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.comparison import Comparison, CriterionDelta, MeasureDelta, TrialSources, Verdict
from zelda_ci.domain.details import CorrectnessDetails, RunnerCounts, TestSummary
from zelda_ci.domain.measures import EvalResult, Measure, Metric
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.domain.trials import DoneReason, Side, TrialPlan

PLAN = TrialPlan()


def of(
    head: tuple[RunMetrics, ...] = (),
    base: tuple[RunMetrics, ...] = (),
    stored: tuple[RunMetrics, ...] = (),
) -> Comparison:
    return compare_trials([SuiteTrials("alpha", head, base, stored)])


def regressions(found: Comparison) -> list[str]:
    return [reason.kind for reason in gate_of(found).reasons if reason.kind == "regression"]


def first(found: Comparison) -> CriterionDelta:
    return found.suites[0].criteria[0]


@pytest.mark.parametrize(
    ("head", "stored", "reason"),
    [(["PP"] * 3, [], "passes in all first trials"), (["P", "F", "P"], [*["P"] * 16, *["F"] * 4], "as expected")],
)
def test_a_suite_that_passes_or_looks_as_stored_trials_lead_to_expect_is_unchanged(head, stored, reason):
    found = of(head=made(*head), stored=made(*stored, label="old"))
    assert (found.verdict, first(found).verdict) == (Verdict.UNCHANGED, Verdict.UNCHANGED)
    assert reason in first(found).reasons[0]
    assert found.suites[0].sources == TrialSources(head=3, stored=len(stored), ended=DoneReason.AS_EXPECTED)


def scored(label: str, *scores: float, tests: int = 50) -> tuple[RunMetrics, ...]:
    """Trials that meet their criterion and have a score of tool usage, and so many tests that passed."""
    runner = RunnerCounts(format="pytest", source="summary", passed=tests)
    passed = CorrectnessDetails(passed=True, tests=TestSummary(runners=(runner,)))
    commands = evaluation(Metric.FUNCTIONAL_CORRECTNESS, passed, 100.0)
    found = ([fulfillment("P"), commands, tool_usage(score)] for score in scores)
    return tuple(map(RunMetrics, trials(*found, label=label)))


def test_with_nothing_stored_only_what_passes_in_all_trials_is_unchanged():
    """A score of tool usage, or a number of tests, says nothing by itself."""
    found = of(head=scored("head", 20, 20, 20, tests=1))
    rows = {row.measure: row for row in found.suites[0].measures}
    assert (first(found).verdict, found.suites[0].verdict) == (Verdict.UNCHANGED, Verdict.UNCHANGED)
    assert rows[Measure.FUNCTIONAL_CORRECTNESS].verdict is Verdict.UNCHANGED
    assert {(rows[each].verdict, rows[each].reasons) for each in (Measure.TOOL_USAGE, Measure.TESTS)} == {
        (Verdict.NEW, (NOT_STORED,))
    }
    alone = tuple(map(RunMetrics, trials(*[[tool_usage(20.0)]] * 3)))
    assert (of(head=alone).verdict, of(head=alone).suites[0].verdict) == (Verdict.UNCHANGED, Verdict.NEW)
    assert of(head=scored("head", 100, 100, 100)).suites[0].measures[-2].verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("stored", [[90.0], [90.0, 95.0], [90.0] * 6])
def test_tool_usage_that_fell_as_far_as_the_trials_can_show_is_not_as_expected(stored):
    known = SuiteTrials("alpha", scored("head", 20, 25, 20), stored=scored("old", *stored))
    assert {trial.side for trial in next_trials([known]).wanted} == {Side.HEAD, Side.BASE}
    usual = replace(known, head=scored("head", *[stored[0] - 5] * 3))
    assert next_trials([usual]).done == {"alpha": DoneReason.AS_EXPECTED}


@pytest.mark.parametrize(
    ("failed", "failed_on_base", "trials_of_each", "verdict"),
    [
        (0, 3, 6, Verdict.UNCHANGED),
        (1, 0, 6, Verdict.UNCHANGED),
        (1, 0, 10, Verdict.UNCHANGED),
        (2, 0, 10, Verdict.INCONCLUSIVE),
        (3, 1, 10, Verdict.INCONCLUSIVE),
        (3, 3, 10, Verdict.UNCHANGED),
    ],
)
def test_a_suite_that_ends_without_proof_is_unchanged_only_if_no_more_than_one_trial_makes_the_difference(
    failed, failed_on_base, trials_of_each, verdict
):
    head, base = (["F"] * count + ["P"] * (trials_of_each - count) for count in (failed, failed_on_base))
    found = of(head=made(*head), base=made(*base, label="base"))
    assert found.suites[0].sources is not None
    assert found.suites[0].sources.ended is DoneReason.AS_EXPECTED
    assert (first(found).verdict, found.suites[0].verdict) == (verdict, verdict)
    assert ("not shown to be worse" in str(first(found).reasons)) == (verdict is Verdict.INCONCLUSIVE)


def test_a_criterion_that_seldom_passes_and_never_does_in_three_trials_is_as_expected():
    found = of(head=made("F", "F", "F"), stored=made(*["P"] * 4, *["F"] * 16, label="old"))
    assert (first(found).verdict, first(found).change) == (Verdict.UNCHANGED, -20)


def test_three_of_three_against_none_of_three_is_not_proven_and_more_trials_are_wanted():
    found = of(head=made("F", "F", "F"), stored=made("P", "P", "P", label="old"))
    assert (found.verdict, first(found).verdict) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
    assert first(found).reasons == ("changed, not proven: more trials were wanted than were made",)
    assert found.suites[0].sources == TrialSources(head=3, stored=3)
    assert regressions(found) == []


def test_what_is_not_different_needs_no_word_about_the_trials_that_are_missing():
    found = of(head=made("FP", "FP", "FP"), base=made("PP", "PP", "PP", label="base"))
    assert [(row.verdict, bool(row.reasons)) for row in found.suites[0].criteria] == [
        (Verdict.INCONCLUSIVE, True),
        (Verdict.UNCHANGED, False),
    ]


def test_side_by_side_it_is_proven_with_six_trials_each():
    found = of(head=made(*["F"] * 6), base=made(*["P"] * 6, label="base"), stored=made("P", "P", "P", label="old"))
    assert (found.verdict, first(found).verdict, first(found).gates) == (Verdict.REGRESSED, Verdict.REGRESSED, True)
    adjusted = first(found).adjusted_p_value
    assert adjusted is not None
    assert adjusted <= 0.04
    assert found.suites[0].sources == TrialSources(head=6, base=6, stored=3, ended=DoneReason.REGRESSED)
    # The call stands when later trials are kinder.
    head, base = made(*["F"] * 6, "P", "P", "P", "P"), made(*["P"] * 10, label="base")
    assert first(of(head=head, base=base)).verdict is Verdict.REGRESSED


def test_first_trials_that_others_follow_are_not_called_the_only_ones():
    head, base = made("P", "F", "F", "F", "P", "P"), made(*"PPPPPP", label="base")
    suites = [SuiteTrials(name, head, base, (), TrialPlan(first=1)) for name in ("alpha", "beta")]
    found = compare_trials(suites)
    assert found.overall
    assert not found.single_trial


def test_a_difference_of_a_single_trial_is_never_a_regression():
    plan = TrialPlan(first=1, looks=(2,))
    found = compare_trials([SuiteTrials("alpha", head=made("F"), stored=made("P", label="old"), plan=plan)])
    assert (found.verdict, first(found).verdict) == (Verdict.INCONCLUSIVE, Verdict.CHANGED)
    assert first(found).reasons == ("changed, not proven: more trials were wanted than were made",)
    assert regressions(found) == []
    old = made("P", label="old")
    ended = compare_trials([SuiteTrials("alpha", made("F", "F"), stored=old, plan=plan, has_base=False)])
    assert (ended.verdict, first(ended).verdict) == (Verdict.CHANGED, Verdict.CHANGED)


def with_tests(*counts: int, label: str = "a") -> tuple[RunMetrics, ...]:
    """Trials whose tests all passed, so many of them."""

    def result(count: int) -> EvalResult:
        runner = RunnerCounts(format="pytest", source="summary", passed=count)
        details = CorrectnessDetails(passed=True, tests=TestSummary(runners=(runner,)))
        return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, 100.0)

    return tuple(map(RunMetrics, trials(*([result(count)] for count in counts), label=label)))


def test_tests_that_are_gone_lead_to_more_trials_and_are_a_regression_once_proven():
    known = SuiteTrials("alpha", head=with_tests(1, 1, 1), stored=with_tests(50, 51, 50, label="old"))
    step = next_trials([known])
    assert {wanted.side for wanted in step.wanted} == {Side.HEAD, Side.BASE}
    proven = replace(known, head=with_tests(*[1] * 10), base=with_tests(*[50] * 10, label="base"), stored=())
    found = compare_trials([proven])
    assert (found.verdict, regressions(found)) == (Verdict.REGRESSED, ["regression"])


def test_what_was_not_run_for_lack_of_money_is_inconclusive_never_unchanged():
    known = SuiteTrials("alpha", stored=made("P", "P", label="old"))
    found = compare_trials([known])
    assert (found.verdict, found.suites[0].reasons) == (Verdict.INCONCLUSIVE, ("not run",))
    found = compare_trials([replace(known, head=made("P"))])
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("cli", ["2.1.0", "2.2.0"])
@pytest.mark.parametrize("has_base", [True, False])
def test_stored_trials_blame_nobody_on_whatever_platform_and_whether_or_not_the_base_can_be_run(cli, has_base):
    head, stored = made("F", "F", "F", cli=cli), made(*["P"] * 200, label="old")
    found = compare_trials([SuiteTrials("alpha", head, stored=stored, has_base=has_base)])
    assert (found.verdict, regressions(found)) == (Verdict.INCONCLUSIVE, [])


def test_the_number_of_suites_shares_the_error():
    fallen = SuiteTrials("alpha", head=made(*["F"] * 6), base=made(*["P"] * 6, label="base"))
    others = [SuiteTrials(f"s{number}") for number in range(3)]
    alone, among = compare_trials([fallen]), compare_trials([fallen, *others])
    one, four = first(alone).adjusted_p_value, first(among).adjusted_p_value
    assert one is not None
    assert four is not None
    assert four == pytest.approx(4 * one)


def test_suites_with_a_fixed_number_are_corrected_together_with_the_sum_of_their_shares():
    fixed, passes = 6, ["P"] * 6
    fallen = SuiteTrials("alpha", made(*["F"] * 6), made(*passes, label="base"), plan=fixed)
    calm = SuiteTrials("beta", made(*passes), made(*passes, label="base"), plan=fixed)
    alone = first(compare_trials([fallen, calm]))
    among = first(compare_trials([fallen, calm, SuiteTrials("gamma"), SuiteTrials("delta")]))
    # Criterion and score have the error of both suites: the other one's cannot show anything.
    assert alone.adjusted_p_value == pytest.approx(2 / comb(12, 6))
    assert among.adjusted_p_value == pytest.approx(4 / comb(12, 6))
    assert alone.gates
    assert among.gates


def test_a_fixed_number_is_compared_with_trials_of_the_job_and_never_with_stored_ones():
    known = SuiteTrials("alpha", made(*["F"] * 9), stored=made(*["P"] * 20, label="old"), plan=9)
    found = compare_trials([known])
    assert (found.verdict, found.suites[0].verdict, found.suites[0].sources) == (Verdict.UNCHANGED, Verdict.NEW, None)


def costing(cost: float, label: str, count: int, suite: str) -> tuple[RunMetrics, ...]:
    chance = random.Random(f"{suite}{label}")
    found = ([efficiency(cost=cost * chance.uniform(0.9, 1.1)), fulfillment("P")] for _ in range(count))
    return tuple(map(RunMetrics, trials(*found, label=label, suite=suite)))


def costly(cost: float, base: float | None = None, suites: int = 5) -> list[SuiteTrials]:
    names = [f"s{number}" for number in range(suites)]
    return [
        SuiteTrials(
            name,
            head=costing(cost, "b", 3, name),
            base=costing(base, "base", 3, name) if base else (),
            stored=costing(0.10, "a", 6, name),
        )
        for name in names
    ]


def cost_of(found: Comparison) -> MeasureDelta:
    return next(row for row in found.overall if row.measure is Measure.COST)


def test_a_cost_that_rose_over_all_suites_runs_the_base_of_every_suite_and_is_called_by_it_alone():
    """Not by the stored trials, however many: the price may have risen for everybody."""
    assert len(next_trials(costly(0.10)).done) == 5
    risen = costly(0.20)
    step = next_trials(risen)
    assert step.done == {}
    assert Counter((trial.suite, trial.side) for trial in step.wanted) == {
        (f"s{number}", Side.BASE): 3 for number in range(5)
    }
    for known in (risen, [*costly(0.20, 0.10)[:4], risen[4]]):
        row = cost_of(found := compare_trials(known))
        assert (row.verdict, row.gates, row.reasons) == (Verdict.INCONCLUSIVE, False, (NOT_BESIDE,))
        # Trials that were wanted for this leave no suite open.
        assert (found.verdict, {suite.verdict for suite in found.suites}) == (Verdict.UNCHANGED, {Verdict.UNCHANGED})
    for base, verdict in ((0.10, Verdict.REGRESSED), (0.20, Verdict.UNCHANGED)):
        known = costly(0.20, base)
        assert len(next_trials(known).done) == 5
        row = cost_of(found := compare_trials(known))
        assert (row.verdict, row.gates) == (verdict, verdict is Verdict.REGRESSED)
        assert found.verdict is verdict
        # Of a single suite it is shown and says nothing.
        assert {suite.verdict for suite in found.suites} == {Verdict.UNCHANGED}


def test_a_slower_hour_than_that_of_the_stored_trials_blames_nobody():
    def taking(seconds: float, label: str, count: int, suite: str) -> tuple[RunMetrics, ...]:
        found = ([efficiency(seconds=seconds + number, cost=0.1), fulfillment("P")] for number in range(count))
        return tuple(map(RunMetrics, trials(*found, label=label, suite=suite)))

    names = [f"s{number}" for number in range(10)]
    known = [SuiteTrials(name, head=taking(95, "b", 3, name), stored=taking(60, "a", 20, name)) for name in names]
    found = compare_trials(known)
    row = next(row for row in found.overall if row.measure is Measure.DURATION)
    assert (row.verdict, row.gates, row.effect) == (Verdict.INCONCLUSIVE, False, "worse")
    assert (found.verdict, regressions(found)) == (Verdict.UNCHANGED, [])


@pytest.mark.parametrize("tolerance", [{}, {"requirement_fulfillment": 10}, {"requirement_fulfillment": 30}])
def test_what_ends_a_suite_is_what_turns_the_check_red(tolerance):
    settings = GateSettings(tolerance=ScoreLimits(**tolerance))
    chance = random.Random(3)
    calls: Counter[str] = Counter()
    for fallen_to in (None, 0.0) * 5:
        request = PullRequest(chance, Truth(MIXED, chance.choice((0, 10)), gate=settings), 2, fallen_to)
        done = request.run()
        found = compare_trials(request.suites)
        red = {reason.suite for reason in gate_of(found).reasons}
        assert {name for name, why in done.items() if why is DoneReason.REGRESSED} == red
        assert {suite.suite for suite in found.suites if suite.verdict is Verdict.REGRESSED} == red
        calls["red" if red else "green"] += 1
    # One of five criteria that falls takes 20 points from the score.
    assert calls["red"] == (0 if tolerance == {"requirement_fulfillment": 30} else 5)


def test_a_look_at_sides_that_cannot_be_compared_ends_no_suite_as_regressed():
    head, base = made(*["FP"] * 6), made(*["PP"] * 6, label="base")
    assert next_trials([SuiteTrials("alpha", head, base)]).done == {"alpha": DoneReason.REGRESSED}
    for differs in ({"prompt": "Do something else."}, {"undecided": "ignore"}):
        known = [SuiteTrials("alpha", head, made(*["PP"] * 6, label="base", **differs))]
        assert DoneReason.REGRESSED not in next_trials(known).done.values()
        assert regressions(compare_trials(known)) == []


def test_a_budget_that_ends_blames_nobody_and_decides_nothing():
    chance = random.Random(1)
    for _ in range(10):
        request = PullRequest(chance, Truth(MIXED), 3)
        request.run(budget=10)
        assert request.sessions <= 10
        assert compare_trials(request.suites).verdict in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
