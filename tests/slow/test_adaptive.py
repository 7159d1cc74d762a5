"""Simulated pull requests whose trials were added where needed: rarely red in vain, and red where one fell."""

import random

import pytest

from tests.unit.compare.adaptive import MIXED, SURE, PullRequest, Truth, simulate
from tests.unit.compare.simulation import bounds
from zelda_ci.compare.comparison import compare_trials
from zelda_ci.compare.schedule import next_trials
from zelda_ci.domain.comparison import Verdict

# Percent of comparisons, and sessions per suite; the seeds are fixed, and `python -m benchmarks.adaptive_simulation`
# counts thousands.


@pytest.mark.parametrize(("suites", "stored", "count"), [(1, 0, 400), (3, 20, 150)])
def test_equal_sides_are_hardly_ever_accused_and_few_sessions_are_run(suites, stored, count):
    found = simulate(Truth(MIXED, stored), suites, count)
    assert bounds(found.red)[0] <= 1
    assert sum(found.red) <= 2
    assert found.sessions <= (4.7 if stored else 7.2)


@pytest.mark.parametrize(("suites", "stored", "count"), [(1, 0, 150), (3, 20, 80)])
def test_a_criterion_that_falls_to_four_in_ten_is_seen(suites, stored, count):
    """So few comparisons say little: 80 % must be within their error, and it must not be far from what is promised."""
    found = simulate(Truth(SURE, stored), suites, count, fallen_to=0.4)
    low, high = bounds(found.red)
    assert low >= 65
    assert high >= 80


def test_a_platform_that_drifted_blames_nobody():
    def drift(chance: random.Random) -> float:
        return 0.5 if chance.random() < 0.2 else 0.0

    found = simulate(Truth(MIXED, 20, drift), 3, 100)
    assert sum(found.red) <= 2


def test_running_again_adds_up_and_turns_no_regression_green():
    chance = random.Random(2)
    seen = 0
    for _ in range(50):
        request = PullRequest(chance, Truth(SURE), 1, fallen_to=0.4)
        verdicts = []
        for _ in range(3):
            request.run()
            verdicts.append(compare_trials(request.suites).verdict)
        assert len(set(verdicts)) == 1
        assert not next_trials(request.suites).wanted
        seen += verdicts[0] is Verdict.REGRESSED
    assert seen >= 40
