"""Whole comparisons, from stored runs to verdicts."""

import random
from typing import Any

import pytest

from tests.unit.compare.runs import (
    compare_beside,
    correctness,
    efficiency,
    evaluation,
    fulfillment,
    judged,
    run,
    tool_usage,
    trials,
    unscored,
)
from zelda_ci.compare.comparison import TOO_FEW, TOO_NOISY, compare, compare_trials
from zelda_ci.compare.questions import ONCE, TOLERATED
from zelda_ci.compare.schedule import SuiteTrials
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.comparison import ONE_TRIAL_PROVES_NOTHING, SINGLE_TRIAL, Verdict
from zelda_ci.domain.details import CorrectnessDetails, RunnerCounts, TestSummary
from zelda_ci.domain.measures import EvalResult, Measure, Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.report.builders.comparison import certainty

REGRESSED, IMPROVED, UNCHANGED = Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNCHANGED
INCONCLUSIVE, NEW, REMOVED = Verdict.INCONCLUSIVE, Verdict.NEW, Verdict.REMOVED
CHANGED = Verdict.CHANGED


def criterion(comparison, number=1, suite=0) -> Any:
    return next(d for d in comparison.suites[suite].criteria if d.criterion == f"criterion {number}")


def measure(comparison, wanted, suite=0) -> Any:
    return next(delta for delta in comparison.suites[suite].measures if delta.measure is wanted)


def overall(comparison, wanted) -> Any:
    return next(delta for delta in comparison.overall if delta.measure is wanted)


def with_efficiency(*numbers, label="a", **config) -> list[RunResult]:
    return trials(*([efficiency(**found)] for found in numbers), label=label, **config)


# --- one trial ---------------------------------------------------------------------------------------------------


def test_a_difference_of_one_trial_is_changed_and_not_proven_and_says_what_would_prove_it():
    found = compare(judged("PPP"), judged("PFP", label="b"))
    assert [delta.verdict for delta in found.suites[0].criteria] == [UNCHANGED, CHANGED, UNCHANGED]
    one, two = criterion(found, 1), criterion(found, 2)
    assert (one.reasons, two.reasons) == ((SINGLE_TRIAL,), (ONE_TRIAL_PROVES_NOTHING,))
    assert "`trials: adaptive`" in ONE_TRIAL_PROVES_NOTHING
    assert (two.method, two.effect, two.p_value, two.gates) == ("threshold", "worse", None, False)
    assert (found.single_trial, found.verdict) == (True, CHANGED)
    assert (found.counts[Verdict.REGRESSED], found.counts[Verdict.CHANGED]) == (0, 2)


def test_the_suites_with_one_trial_are_named_where_others_have_more():
    old, new = (
        [*judged("P", suite="alpha", label=label), *judged("P", "P", suite="beta", label=label)] for label in "ab"
    )
    (noise, *_) = certainty(compare(old, new))
    assert noise.cells[0].text == f"alpha: {SINGLE_TRIAL}"


@pytest.mark.parametrize(("old", "new"), [(1, 1), (10, 1), (1, 10)])
@pytest.mark.parametrize("letters", ["PF", "FP"])
def test_one_trial_on_either_side_proves_no_change_in_either_direction(old, new, letters):
    found = compare(judged(*[letters[0]] * old), judged(*[letters[1]] * new, label="b"))
    assert criterion(found).verdict is CHANGED
    assert criterion(found).method == "threshold"
    assert measure(found, Measure.REQUIREMENT_FULFILLMENT).verdict is CHANGED
    assert overall(found, Measure.REQUIREMENT_FULFILLMENT).verdict is CHANGED
    assert found.counts[Verdict.REGRESSED] == found.counts[Verdict.IMPROVED] == 0


def scored(*results, label="a") -> list[RunResult]:
    return trials(*([result] for result in results), label=label)


@pytest.mark.parametrize("trials_of_other_side", [1, 5])
def test_commands_that_passed_on_the_base_and_fail_on_the_head_are_a_fact_of_one_trial(trials_of_other_side):
    passing, failing = correctness(100.0), correctness(60.0, passed=False)
    fell = measure(
        compare(scored(*[passing] * trials_of_other_side), scored(failing, label="b")), Measure.FUNCTIONAL_CORRECTNESS
    )
    assert (fell.verdict, fell.gates) == (REGRESSED, True)
    rose = measure(
        compare(scored(failing), scored(*[passing] * trials_of_other_side, label="b")), Measure.FUNCTIONAL_CORRECTNESS
    )
    assert rose.verdict is IMPROVED


def test_tests_that_are_gone_are_a_fact_of_one_trial():
    def counted(passed: int) -> EvalResult:
        runner = RunnerCounts(format="pytest", source="summary", passed=passed)
        details = CorrectnessDetails(passed=True, tests=TestSummary(runners=(runner,)))
        return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, 100.0)

    found = compare(scored(counted(14)), scored(counted(5), label="b"))
    assert measure(found, Measure.TESTS).verdict is REGRESSED


def test_commands_that_fail_on_both_sides_show_no_more_than_a_change():
    found = compare(scored(correctness(80.0)), scored(correctness(40.0), label="b"))
    fell = measure(found, Measure.FUNCTIONAL_CORRECTNESS)
    assert (fell.verdict, fell.gates) == (CHANGED, False)


@pytest.mark.parametrize(
    ("wanted", "old", "new", "verdict", "effect"),
    [
        (Measure.COST, {"cost": 0.10}, {"cost": 0.125}, REGRESSED, "worse"),
        (Measure.COST, {"cost": 0.10}, {"cost": 0.115}, UNCHANGED, "worse"),
        (Measure.COST, {"cost": 0.001}, {"cost": 0.009}, UNCHANGED, "worse"),
        (Measure.TOKENS, {"tokens": 10_000}, {"tokens": 7_000}, IMPROVED, "better"),
        (Measure.TURNS, {"turns": 3}, {"turns": 4}, UNCHANGED, "worse"),
        (Measure.TURNS, {"turns": 10}, {"turns": 13}, REGRESSED, "worse"),
        (Measure.DURATION, {"seconds": 100.0}, {"seconds": 65.0}, IMPROVED, "better"),
        (Measure.EFFICIENCY, {"score": 80.0}, {"score": 95.0}, IMPROVED, "better"),
        (Measure.EFFICIENCY, {"score": 80.0}, {"score": 80.0}, UNCHANGED, "same"),
    ],
)
def test_every_measure_knows_its_better_direction_and_what_is_too_small_to_matter(wanted, old, new, verdict, effect):
    # Five equal trials a side: what is said of the change is settled by its size and direction alone.
    sides = with_efficiency(*[old] * 5), with_efficiency(*[new] * 5, label="b")
    delta = measure(compare_beside(*sides), wanted)
    assert (delta.verdict, delta.effect) == (verdict, effect)


@pytest.mark.parametrize("wanted", [Measure.DURATION, Measure.EFFICIENCY])
def test_what_depends_on_the_hour_is_called_only_against_trials_of_the_same_job(wanted):
    """Neither in a suite nor over all; cost, which does not depend on it, is called in both cases."""

    def of_suites(label, **used) -> list[RunResult]:
        return [run for n in range(10) for run in with_efficiency(*[used] * 8, label=label, suite=f"s{n}")]

    old = of_suites("a", seconds=60.0, score=90.0, cost=0.1)
    slow = of_suites("b", seconds=90.0, score=60.0, cost=0.1)
    dear = of_suites("b", seconds=90.0, score=60.0, cost=0.2)
    for side_by_side in (True, False):
        made = compare_beside if side_by_side else compare
        found = made(old, slow)
        rows = (measure(found, wanted), overall(found, wanted))
        verdict = REGRESSED if side_by_side else INCONCLUSIVE
        assert {(row.verdict, row.gates) for row in rows} == {(verdict, side_by_side)}
        assert {suite.verdict for suite in found.suites} | {found.verdict} == {REGRESSED if side_by_side else UNCHANGED}
        assert rows[0].change == rows[1].change
        assert overall(made(old, dear), Measure.COST).gates


@pytest.mark.parametrize("trials_of_each", [1, 10])
def test_a_tolerated_drop_is_unchanged_and_single_criteria_are_shown_and_not_tested(trials_of_each):
    # A changed gate is meant to take effect: the newest run's counts.
    gate, earlier = (GateSettings(tolerance=ScoreLimits(requirement_fulfillment=each)) for each in (40, 2))
    found = compare(
        judged(*["PPP"] * trials_of_each, gate=earlier), judged(*["PPF"] * trials_of_each, label="b", gate=gate)
    )
    assert measure(found, Measure.REQUIREMENT_FULFILLMENT).verdict is UNCHANGED
    assert measure(found, Measure.REQUIREMENT_FULFILLMENT).threshold == 40
    shown = criterion(found, 3)
    assert (shown.verdict, shown.change, shown.reasons, shown.gates) == (INCONCLUSIVE, -100, (TOLERATED,), False)
    assert (found.suites[0].verdict, found.verdict) == (UNCHANGED, UNCHANGED)


def test_a_tolerated_drop_hides_no_rise():
    gate = GateSettings(tolerance=ScoreLimits(requirement_fulfillment=40))
    risen = compare(judged(*["PPF"] * 10, gate=gate), judged(*["PPP"] * 10, label="b", gate=gate))
    assert measure(risen, Measure.REQUIREMENT_FULFILLMENT).verdict is IMPROVED


# --- several trials ----------------------------------------------------------------------------------------------


def test_a_criterion_that_always_passed_and_never_does_now_regressed_with_ten_trials_and_improved_the_other_way():
    old, new = judged(*["PP"] * 10), judged(*["FP"] * 10, label="b")
    found = criterion(compare(old, new))
    assert (found.verdict, found.method, found.change, found.gates) == (REGRESSED, "fisherExact", -100, True)
    assert found.p_value == pytest.approx(1 / 184_756)
    back = criterion(compare(new, old))
    assert (back.verdict, back.gates) == (IMPROVED, False)


def test_three_trials_cannot_show_a_total_drop_and_show_how_large_it_may_be():
    found = criterion(compare(judged(*["PP"] * 3), judged(*["FP"] * 3, label="b")))
    assert (found.verdict, found.reasons, found.gates) == (INCONCLUSIVE, (TOO_FEW,), False)
    low, high = found.interval
    assert low == -100 < high < 0


@pytest.mark.parametrize(("failed", "verdict", "reasons"), [(3, INCONCLUSIVE, (TOO_NOISY,)), (1, UNCHANGED, ())])
def test_a_change_within_the_noise_is_inconclusive_and_one_below_the_threshold_is_none(failed, verdict, reasons):
    found = criterion(compare(judged(*["P"] * 10), judged(*["P"] * (10 - failed), *["F"] * failed, label="b")))
    assert (found.verdict, found.reasons) == (verdict, reasons)


@pytest.mark.parametrize(("suites", "method"), [(6, "threshold"), (7, "permutation")])
def test_single_trials_are_tested_over_all_suites_from_as_many_on_as_could_prove_something(suites, method):
    old, new = ([run for n in range(suites) for run in judged(it, suite=f"s{n}", label=it.lower())] for it in "PF")
    assert compare(old, new).overall[0].method == method


def test_of_a_number_that_differs_in_every_session_it_is_said_where_it_is_compared_though_trials_are_added():
    head, base = (tuple(map(RunMetrics, trials(*[[efficiency(cost=usd)]] * 6, label=f"{usd}"))) for usd in (2.0, 1.0))
    (suite,) = compare_trials([SuiteTrials("alpha", head=head, base=base)]).suites
    cost = next(row for row in suite.measures if row.measure is Measure.COST)
    assert (cost.verdict, cost.change, cost.reasons) == (INCONCLUSIVE, 1.0, (ONCE,))


def test_numbers_are_compared_by_permutation_and_small_changes_do_not_count_though_significant():
    chance = random.Random(1)
    old = with_efficiency(*({"cost": 0.20 + chance.random() / 1000} for _ in range(10)))
    dearer = with_efficiency(*({"cost": 0.30 + chance.random() / 1000} for _ in range(10)), label="b")
    slightly = with_efficiency(*({"cost": 0.21 + chance.random() / 1000} for _ in range(10)), label="b")
    risen, same = (measure(compare(old, new), Measure.COST) for new in (dearer, slightly))
    assert (risen.verdict, risen.gates) == (REGRESSED, True)
    assert (same.verdict, same.adjusted_p_value < 0.01) == (UNCHANGED, True)


def test_more_suites_demand_more_evidence():
    def side(suites, label, verdicts) -> list[RunResult]:
        return [found for number in range(suites) for found in judged(*verdicts, label=label, suite=f"s{number:02}")]

    changed = ["F"] * 5 + ["P"] * 5
    shaky = ["P"] * 5 + ["F"] * 5
    alone = compare(side(1, "a", ["P"] * 10), side(1, "b", changed))
    rest_old = [found for n in range(1, 40) for found in judged(*shaky, suite=f"t{n}")]
    rest_new = [found for n in range(1, 40) for found in judged(*shaky, label="b", suite=f"t{n}")]
    among = compare(side(1, "a", ["P"] * 10) + rest_old, side(1, "b", changed) + rest_new)
    assert criterion(alone).verdict is REGRESSED
    assert criterion(among).p_value == criterion(alone).p_value
    assert criterion(among).verdict is INCONCLUSIVE


def test_many_suites_with_one_trial_each_can_show_an_overall_drop():
    def side(score, label) -> list[RunResult]:
        chance = random.Random(label)
        found = (judged("PPPPP" if chance.random() < score else "PPFFP", suite=f"s{n}", label=label) for n in range(12))
        return [item for items in found for item in items]

    row = overall(compare(side(1.0, "a"), side(0.0, "b")), Measure.REQUIREMENT_FULFILLMENT)
    assert (row.verdict, row.method, row.gates) == (REGRESSED, "permutation", True)
    assert row.p_value == pytest.approx(2**-12)


@pytest.mark.parametrize("second", ["P", "F"])
def test_two_suites_with_one_trial_have_an_overall_row_that_does_not_gate(second):
    old = judged("P", suite="a") + judged("P", suite="b")
    new = judged("F", suite="a", label="n") + judged(second, suite="b", label="n")
    found = compare(old, new)
    row = overall(found, Measure.REQUIREMENT_FULFILLMENT)
    assert (row.verdict, row.method, row.gates) == (CHANGED, "threshold", False)
    assert found.verdict is CHANGED


@pytest.mark.parametrize(("tolerance", "verdict"), [(None, REGRESSED), (15, REGRESSED), (25, UNCHANGED)])
def test_a_drop_that_every_suite_tolerates_is_tolerated_over_all(tolerance, verdict):
    gate = GateSettings(tolerance=ScoreLimits(requirement_fulfillment=tolerance))
    old = [found for n in range(8) for found in judged(*["PPPPP"] * 3, suite=f"s{n}", gate=gate)]
    new = [found for n in range(8) for found in judged(*["PPPPF"] * 3, suite=f"s{n}", gate=gate, label="b")]
    row = overall(compare(old, new), Measure.REQUIREMENT_FULFILLMENT)
    assert (row.verdict, row.gates) == (verdict, verdict is REGRESSED)


def test_uneven_trials_do_not_bias_the_overall_test():
    # A single pass lies above the mean of 30 trials in nine suites of ten though nothing changed.
    old = [found for n in range(8) for found in judged(*["P"] * 27, *["F"] * 3, suite=f"s{n}")]
    new = [found for n in range(8) for found in judged("P", suite=f"s{n}", label="b")]
    row = overall(compare(old, new), Measure.REQUIREMENT_FULFILLMENT)
    assert row.change == pytest.approx(10)
    assert row.verdict is INCONCLUSIVE


# --- what one side lacks -----------------------------------------------------------------------------------------


def test_suites_that_one_side_lacks_are_new_or_removed():
    found = compare(judged("P", suite="old"), judged("F", suite="young"))
    assert [(suite.suite, suite.verdict) for suite in found.suites] == [("old", REMOVED), ("young", NEW)]
    assert found.suites[0].candidate is None
    assert {delta.verdict for delta in found.suites[1].criteria} == {NEW}
    assert not any(delta.gates for suite in found.suites for delta in (*suite.criteria, *suite.measures))
    assert found.overall == ()


def test_a_metric_switched_on_is_new_and_one_switched_off_is_removed():
    found = compare(trials([correctness(), fulfillment("P")]), trials([fulfillment("P"), tool_usage()], label="b"))
    verdicts = {delta.measure: delta.verdict for delta in found.suites[0].measures}
    assert verdicts[Measure.FUNCTIONAL_CORRECTNESS] is REMOVED
    assert verdicts[Measure.TOOL_USAGE] is NEW
    assert verdicts[Measure.REQUIREMENT_FULFILLMENT] is UNCHANGED
    assert Measure.COST not in verdicts


def test_what_was_not_scored_or_judged_is_inconclusive_with_the_reason_and_never_a_failure():
    old = trials([tool_usage(), fulfillment("PP")])
    found = compare(old, trials([unscored(Metric.TOOL_USAGE), unscored(Metric.REQUIREMENT_FULFILLMENT)], label="b"))
    assert measure(found, Measure.TOOL_USAGE).verdict is INCONCLUSIVE
    assert "the judge did not answer" in measure(found, Measure.TOOL_USAGE).reasons[0]
    assert (criterion(found).verdict, criterion(found).candidate) == (INCONCLUSIVE, None)
    found = compare(old, judged("P?", label="b"))
    assert (criterion(found, 2).verdict, criterion(found, 2).candidate) == (INCONCLUSIVE, None)
    assert measure(found, Measure.REQUIREMENT_FULFILLMENT).verdict is INCONCLUSIVE
    assert found.suites[0].candidate is not None
    assert found.suites[0].candidate.incomplete == 1
    # Of several trials it is left out.
    found = compare(judged("PP", "P?", "PP"), judged("PP", "PP", "PP", label="b"))
    assert criterion(found, 2).baseline.trials == 2


def test_undecided_is_not_met_unless_both_sides_ignore_it():
    found = compare(judged("PP"), judged("PU", label="b"))
    assert criterion(found, 2).candidate.mean == 0
    found = compare(judged("PP", undecided="ignore"), judged("PU", label="b", undecided="ignore"))
    assert criterion(found, 2).reasons == ("undecided on the head's side",)
    found = compare(judged("PP"), judged("PU", label="b", undecided="ignore"))
    assert "different treatments of undecided criteria: fail, ignore" in criterion(found, 1).reasons


def test_failed_and_interrupted_runs_are_counted_and_never_scored_as_zero():
    broken = [
        run([unscored(Metric.REQUIREMENT_FULFILLMENT)], run_id="x", at=8, status=SessionStatus.FAILED),
        run([], run_id="y", at=9, status=SessionStatus.INTERRUPTED),
    ]
    found = compare(judged("P", "P"), judged("P", "P", label="b") + broken)
    candidate: Any = found.suites[0].candidate
    assert (candidate.valid, candidate.invalid) == (2, 2)
    assert criterion(found).candidate.trials == 2
    assert found.suites[0].verdict is UNCHANGED


def test_a_side_without_any_valid_run_is_inconclusive_and_one_that_ended_at_a_limit_is_valid():
    found = compare(judged("P"), judged("P", label="b", status=SessionStatus.FAILED))
    assert {found.verdict, found.suites[0].verdict, criterion(found).verdict} == {INCONCLUSIVE}
    assert "no valid run on the head's side: 1 failed or interrupted" in found.suites[0].reasons
    found = compare(judged("P"), judged("F", label="b", status=SessionStatus.TIMED_OUT))
    candidate: Any = found.suites[0].candidate
    assert (candidate.statuses, criterion(found).verdict) == ({SessionStatus.TIMED_OUT: 1}, CHANGED)


# --- criteria and tools ------------------------------------------------------------------------------------------


def test_a_changed_criterion_shows_a_typical_judgement_of_each_side_and_another_none():
    found = criterion(compare(judged("P", "P", "F"), judged("F", "F", "P", label="b")))
    assert found.baseline_judgement.verdict == "PASS"
    assert (found.candidate_judgement.verdict, found.candidate_judgement.reasoning) == ("FAIL", "criterion 1: F")
    assert criterion(compare(judged("P"), judged("P", label="b"))).baseline_judgement is None


def test_criteria_with_the_same_text_are_told_apart():
    twice = ["same", "same"]
    old = trials([fulfillment("PP", twice)])
    new = trials([fulfillment("PF", twice)], label="b")
    found = {delta.criterion: delta.verdict for delta in compare(old, new).suites[0].criteria}
    assert found == {"same": UNCHANGED, "same (2)": CHANGED}


def test_tools_newly_used_and_newly_missed_are_named_with_their_trials():
    old = trials([tool_usage(used={"Read": 3, "Skill(api)": 1})], [tool_usage(used={"Read": 1}, missed=["mcp__db"])])
    new = trials(
        [tool_usage(used={"Read": 3, "Grep": 1}, missed=["Skill(api)"])],
        [tool_usage(used={"Read": 3, "Grep": 1})],
        label="b",
    )
    tools = compare(old, new).suites[0].tools
    assert [(change.tool, change.candidate_trials) for change in tools.newly_used] == [("Grep", 2)]
    assert [(change.tool, change.baseline_trials) for change in tools.no_longer_used] == [("Skill(api)", 1)]
    assert [change.tool for change in tools.newly_missed] == ["Skill(api)"]
    assert [change.tool for change in tools.no_longer_missed] == ["mcp__db"]
    # Without that metric the details of efficiency name them.
    found = compare(with_efficiency({"tools": {"Read": 1}}), with_efficiency({"tools": {"Grep": 1}}, label="b"))
    assert [change.tool for change in found.suites[0].tools.newly_used] == ["Grep"]


def test_details_and_numbers_that_cannot_be_meant_are_missing_and_break_nothing():
    known = efficiency()
    details = known.details.model_dump(by_alias=True)
    for stored, lost in (
        ({"usage": "lots"}, {Measure.COST, Measure.TOKENS, Measure.TURNS, Measure.DURATION}),
        (details | {"costUsd": float("nan")}, {Measure.COST}),
        (details | {"costUsd": float("inf")}, {Measure.COST}),
        (details | {"usage": {"inputTokens": 10**400}}, {Measure.TOKENS}),
    ):
        strange = EvalResult.model_validate({**vars(known), "details": stored})
        found = compare(trials([strange], [strange]), trials([strange], [strange], label="b"))
        left = {delta.measure for delta in found.suites[0].measures}
        assert Measure.EFFICIENCY in left
        assert not left & lost


# --- properties --------------------------------------------------------------------------------------------------


def random_side(chance, label, suites=3, n=4) -> list[RunResult]:
    return [
        found
        for suite in range(suites)
        for found in trials(
            *(
                [
                    fulfillment("".join(chance.choice("PPPF") for _ in range(4))),
                    tool_usage(float(chance.randrange(50, 101, 5))),
                ]
                for _ in range(n)
            ),
            label=label,
            suite=f"s{suite}",
        )
    ]


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_runs_does_not_matter_and_a_run_given_twice_counts_once(seed):
    chance = random.Random(seed)
    old, new = random_side(chance, "a"), random_side(chance, "b")
    expected = compare(old, new)
    assert compare(chance.sample(old, len(old)), [*reversed(new), new[0]]) == expected


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n", [1, 4])
def test_swapping_the_sides_swaps_regressed_and_improved(seed, n):
    chance = random.Random(seed)
    old, new = random_side(chance, "a", n=n), random_side(chance, "b", n=n)
    there, back = compare(old, new), compare(new, old)
    assert (there.counts[Verdict.REGRESSED], there.counts[Verdict.IMPROVED]) == (
        back.counts[Verdict.IMPROVED],
        back.counts[Verdict.REGRESSED],
    )
    assert there.counts[Verdict.INCONCLUSIVE] == back.counts[Verdict.INCONCLUSIVE]
    assert there.counts[Verdict.CHANGED] == back.counts[Verdict.CHANGED]
    assert bool(there.counts[Verdict.CHANGED]) == (n == 1)


def test_a_side_against_itself_is_unchanged_everywhere():
    side = random_side(random.Random(3), "a", n=6)
    found = compare(side, side)
    assert found.verdict is UNCHANGED
    assert found.counts[Verdict.UNCHANGED] == sum(len(suite.criteria) + len(suite.measures) for suite in found.suites)
