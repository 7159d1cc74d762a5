"""Numbers summarised, and a suite calibrated against itself."""

import random
from statistics import stdev

import pytest

from tests.unit.compare.runs import efficiency, fulfillment, judged, trials
from zelda_ci.compare.calibration import calibrate
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
    assert steady.detectable == {1: 100, 5: 100, 10: 60}
    cost = next(noise for noise in found.measures if noise.measure is Measure.COST)
    assert cost.summary.deviation == pytest.approx(0.1, rel=0.5)
    assert found.reasons == ()
    assert calibration_of([*judged("P"), *judged("P", label="b", commit="beef")]).reasons == (
        "different commits: beef, c0ffee",
    )


def test_a_single_trial_is_not_accused_of_what_the_calibration_saw_without_any_change():
    shaky = calibration_of(judged("PP", "PF", "PP", "PF", "PP"))
    found = compare(judged("PP"), judged("FF", label="b"), calibrations={"alpha": shaky}).suites[0]
    steady, wavering = found.criteria
    assert (steady.verdict, found.calibration) == (Verdict.CHANGED, shaky)
    assert (wavering.verdict, wavering.gates) == (Verdict.INCONCLUSIVE, False)
    assert wavering.reasons == (SINGLE_TRIAL, CALIBRATED)
