"""What is promised about noise, kept in simulated comparisons with fixed seeds."""

import random

import pytest

from tests.unit.compare.simulation import Truth, first_criterion_regressed, percent, regressed, simulate
from zelda_ci.compare.answers import Key, settle
from zelda_ci.compare.questions import Sample, ask_pass_rate
from zelda_ci.domain.comparison import Verdict


def test_two_equal_sides_regress_in_at_most_five_percent_of_two_thousand_comparisons():
    truth = Truth(suites=10, trials=3, reliability=0.7, fallen=0.7, resources=False)
    assert percent(regressed, simulate(truth, 2000, "a")) <= 5


@pytest.mark.parametrize("reliability", [0.5, 0.9])
def test_so_they_do_with_steadier_and_with_shakier_criteria(reliability):
    truth = Truth(suites=10, trials=3, reliability=reliability, fallen=reliability, resources=False)
    assert percent(regressed, simulate(truth, 400, "a")) <= 5


def test_so_they_do_with_all_metrics_and_ten_trials():
    truth = Truth(suites=5, trials=10, reliability=0.8, fallen=0.8, resources=True)
    assert percent(regressed, simulate(truth, 200, "a")) <= 5


def test_sure_criteria_do_not_make_a_false_regression_of_an_unsure_one_more_likely():
    # One criterion really fell, so its test is no longer noise; the other criteria still must not be accused.
    truth = Truth(suites=10, trials=5, reliability=0.6, fallen=0.0, resources=False)

    def accuses_others(comparison):
        return any(
            delta.verdict is Verdict.REGRESSED
            for suite in comparison.suites
            for delta in suite.criteria
            if (suite.suite, delta.criterion) != ("suite-0", "criterion 1")
        )

    assert percent(accuses_others, simulate(truth, 400, "b")) <= 5


def test_ten_trials_usually_see_one_criterion_fall_from_always_to_four_in_ten():
    truth = Truth(suites=1, trials=10, reliability=1.0, fallen=0.4, resources=False)
    assert percent(first_criterion_regressed, simulate(truth, 300, "b")) >= 75
    assert percent(first_criterion_regressed, simulate(truth, 300, "a")) == 0


def test_single_trials_of_many_equal_suites_do_not_regress_overall():
    truth = Truth(suites=12, trials=1, reliability=0.8, fallen=0.8, resources=False)

    def claims(comparison):
        return any(row.verdict is Verdict.REGRESSED and row.gates for row in comparison.overall)

    assert percent(claims, simulate(truth, 500, "a")) <= 5


def test_without_correction_the_same_comparisons_would_be_wrong_far_too_often():
    # The simulation itself must be able to fail: raw p-values at 5 % accuse equal sides in four of ten comparisons.
    chance = random.Random(7)
    wrong = corrected = 0
    for _ in range(200):
        samples = [
            Sample(
                tuple(chance.choice((0.0, 100.0)) for _ in range(8)),
                tuple(chance.choice((0.0, 100.0)) for _ in range(8)),
            )
            for _ in range(50)
        ]
        questions = {Key("s", str(n), criterion=True): ask_pass_rate(sample) for n, sample in enumerate(samples)}
        answers, _ = settle(questions)
        wrong += any(question.tails.lower.p <= 0.05 for question in questions.values() if question.tails)
        corrected += any(answer.worse is not None and answer.worse <= 0.05 for answer in answers.values())
    assert wrong > 60
    assert corrected <= 10
