"""Numbers summarised, and a suite calibrated against itself."""

import random
from itertools import combinations
from statistics import stdev

import pytest
from scipy import stats

from tests.unit.compare.runs import efficiency, fulfillment, judged, trials
from zelda_ci.compare.calibration import calibrate, flip_rate
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.deltas import CALIBRATED, SINGLE_TRIAL
from zelda_ci.compare.sides import sides, summarize
from zelda_ci.domain.comparison import Calibration, Verdict
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.session import SessionStatus


def test_numbers_are_summarised_by_mean_range_and_spread():
    found, single = summarize([4, 8]), summarize([4])
    assert found
    assert single
    assert (found.trials, found.mean, found.minimum, found.maximum) == (2, 6, 4, 8)
    assert found.deviation == pytest.approx(stdev([4, 8]))
    assert single.deviation is None
    assert summarize([]) is None


def test_suites_are_apart_and_invalid_runs_only_counted():
    runs = [*judged("PP"), *judged("F", suite="beta"), *judged("F", label="x", status=SessionStatus.FAILED)]
    alpha, beta = sides(runs).values()
    assert (alpha.suite, alpha.trials.valid, alpha.trials.invalid) == ("alpha", 1, 1)
    assert (beta.suite, [beta.outcomes(criterion) for criterion in beta.criteria]) == ("beta", [(0.0,)])


@pytest.mark.parametrize("outcomes", ["PF", "PPPF", "PPPFFFFFFF", "PPP"])
def test_the_flip_rate_is_the_share_of_pairs_that_disagree(outcomes):
    pairs = list(combinations(outcomes, 2))
    expected = 100 * sum(one != other for one, other in pairs) / len(pairs)
    assert flip_rate(outcomes.count("P"), len(outcomes)) == pytest.approx(expected)


def calibration_of(runs) -> Calibration:
    (found,) = calibrate(runs)
    return found


def test_calibration_reports_how_often_criteria_flip_and_how_widely_numbers_spread():
    chance = random.Random(1)
    runs = trials(*([fulfillment("P" + "PF"[n % 5 == 0]), efficiency(cost=chance.gauss(1, 0.1))] for n in range(10)))
    found = calibration_of(runs)
    steady, shaky = found.criteria
    assert (steady.flip_rate, shaky.passes.mean) == (0, 80)
    assert shaky.flip_rate == pytest.approx(100 * 16 / 45)
    cost = next(noise for noise in found.measures if noise.measure is Measure.COST)
    assert cost.summary.deviation == pytest.approx(0.1, rel=0.5)
    assert found.hypotheses == 3  # the shaky criterion, the score made of it, the cost
    assert found.reasons == ()


def test_more_trials_detect_smaller_drops():
    chance = random.Random(2)
    found = calibration_of(trials(*([fulfillment("P"), efficiency(cost=chance.gauss(1, 0.1))] for _ in range(10))))
    steady = found.criteria[0].detectable
    assert steady == {1: 100, 5: 80, 10: 50}
    cost = next(noise for noise in found.measures if noise.measure is Measure.COST)
    assert list(cost.detectable) == [1, 5, 10]  # with three trials none can be
    assert cost.detectable[5] > cost.detectable[10]
    assert cost.detectable[1] == pytest.approx(stats.t.isf(0.04, 9) * cost.summary.deviation * 2**0.5)


def test_a_criterion_that_fails_one_time_in_ten_says_nothing_with_one_trial():
    assert 1 not in calibration_of(judged(*["P"] * 9, "F")).criteria[0].detectable


def test_a_criterion_that_never_passed_cannot_drop():
    assert calibration_of(judged("F", "F", "F")).criteria[0].detectable == {}


def test_numbers_seen_once_have_no_noise_to_report():
    found = calibration_of(judged("P"))
    assert (found.criteria, found.measures) == ((), ())


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"commit": "beef"}, "different commits: beef, c0ffee"),
        ({"model": "model-2"}, "different session models: model-1, model-2"),
        ({"dirty": True}, "uncommitted changes in the tested tree"),
        ({"judge_model": "judge-2"}, "different judge models: judge-1, judge-2"),
    ],
)
def test_runs_that_are_not_alike_are_named(config, reason):
    one = trials([fulfillment("P", judge=None)], judge_model="judge-1")
    other = trials([fulfillment("P", judge=None)], label="b", **({"judge_model": "judge-1"} | config))
    assert calibration_of([*one, *other]).reasons == (reason,)


def test_a_single_trial_is_not_accused_of_what_the_calibration_saw_without_any_change():
    shaky = calibration_of(judged("PP", "PF", "PP", "PF", "PP"))
    found = compare(judged("PP"), judged("FF", label="b"), calibrations={"alpha": shaky}).suites[0]
    steady, wavering = found.criteria
    assert steady.verdict is Verdict.CHANGED
    assert wavering.verdict is Verdict.INCONCLUSIVE
    assert wavering.reasons == (SINGLE_TRIAL, CALIBRATED)
    assert not wavering.gates


def test_a_single_cost_is_told_apart_from_the_calibrated_spread_and_never_accused():
    chance = random.Random(1)
    known = calibration_of(trials(*([efficiency(cost=chance.gauss(1, 0.2))] for _ in range(10))))
    for cost, reasons in ((1.35, (SINGLE_TRIAL, CALIBRATED)), (3.0, (SINGLE_TRIAL,))):
        found = compare(
            trials([efficiency(cost=1.0)]), trials([efficiency(cost=cost)], label="b"), calibrations={"alpha": known}
        )
        delta = next(d for d in found.suites[0].measures if d.measure is Measure.COST)
        assert (delta.verdict, delta.reasons) == (Verdict.INCONCLUSIVE, reasons)


def test_a_calibration_survives_being_written_and_is_quoted_by_comparisons():
    found = calibration_of(judged("P", "F", "P"))
    again = Calibration.model_validate_json(found.model_dump_json(by_alias=True, exclude_none=True))
    assert again == found
    assert compare(judged("P"), judged("F", label="b"), calibrations={"alpha": again}).suites[0].calibration == found
