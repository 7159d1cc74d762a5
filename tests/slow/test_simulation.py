"""What is promised about noise, kept in simulated comparisons with fixed seeds.

Few comparisons are simulated and the promise is held against an exact bound on their rate, not against the rate itself.
The rates are in docs/statistics.md; `python -m benchmarks.compare_simulation` measures them.
"""

import random

import pytest

from tests.unit.compare.simulation import Truth, bounds, first_criterion_regressed, regressed, simulate
from zelda_ci.compare.questions import Question, QuestionKey
from zelda_ci.compare.schedule import answered
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.measures import PASS_RATE

PROMISED = 5.0
"""Percent of comparisons of equal sides that may show any false regression."""


@pytest.mark.parametrize("reliability", [0.5, 0.9])
def test_two_equal_sides_are_accused_in_at_most_five_percent_of_comparisons(reliability):
    truth = Truth(suites=4, trials=3, reliability=reliability, fallen=reliability, resources=False)
    assert bounds(map(regressed, simulate(truth, 200, "a")))[1] <= PROMISED


def test_they_regress_no_more_with_all_metrics_and_ten_trials():
    truth = Truth(suites=2, trials=10, reliability=0.8, fallen=0.8, resources=True)
    assert bounds(map(regressed, simulate(truth, 95, "a")))[1] <= PROMISED


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

    assert bounds(map(accuses_others, simulate(truth, 200, "b")))[1] <= PROMISED


def test_ten_trials_usually_see_one_criterion_fall_from_always_to_four_in_ten():
    truth = Truth(suites=1, trials=10, reliability=1.0, fallen=0.4, resources=False)
    assert bounds(map(first_criterion_regressed, simulate(truth, 200, "b")))[0] >= 75
    assert not any(map(first_criterion_regressed, simulate(truth, 200, "a")))


def test_single_trials_of_many_equal_suites_do_not_regress_overall():
    truth = Truth(suites=12, trials=1, reliability=0.8, fallen=0.8, resources=False)

    def claims(comparison):
        return any(row.verdict is Verdict.REGRESSED and row.gates for row in comparison.overall)

    assert bounds(map(claims, simulate(truth, 100, "a")))[1] <= PROMISED


def test_without_correction_the_same_comparisons_would_be_wrong_far_too_often():
    # The simulation itself must be able to fail: raw p-values at 5 % accuse equal sides in four of ten comparisons.
    chance = random.Random(7)
    wrong = corrected = 0
    for _ in range(200):
        questions = {
            QuestionKey("s", str(n), criterion=True): Question(
                PASS_RATE,
                tuple(chance.choice((0.0, 100.0)) for _ in range(8)),
                tuple(chance.choice((0.0, 100.0)) for _ in range(8)),
            ).by("fisherExact")
            for n in range(50)
        }
        answers = answered(questions)
        wrong += any(question.tails.lower.p <= 0.05 for question in questions.values())
        corrected += any(answer.worse <= 0.05 for answer in answers.values())
    assert wrong > 60
    assert corrected <= 10
