"""Plans that everybody makes alike, how evenly they deal, and what is made of parts."""

import random
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

from tests.builders import START, suite
from zelda_ci.compare.shards import budget_of, deal, difference, longest_suite
from zelda_ci.domain.run import BatchResult, ShardPlan, shard_of
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.shards import make_plan, merged_id


def plan_of(seconds: dict[str, float], shards: int, trials: int = 1, commit: str = "c" * 40, **order: Any) -> ShardPlan:
    suites = [suite(name=name, trials=trials) for name in seconds]
    return make_plan(RunOrder(**order), suites, commit, seconds, shards)


def loads(plan: ShardPlan) -> list[float]:
    return [sum(each.seconds for each in plan.suites_of(number)) for number in range(1, plan.shards + 1)]


def test_the_longest_suites_are_dealt_first_and_equals_by_name() -> None:
    assert deal({"a": 1, "b": 9, "c": 5, "d": 4, "e": 1}, 2) == {"b": 1, "c": 2, "d": 2, "a": 1, "e": 2}
    assert deal({"b": 2, "a": 2, "c": 2}, 3) == {"a": 1, "b": 2, "c": 3}
    # What takes no time is spread as well.
    assert sorted(deal(dict.fromkeys("abcd", 0.0), 2).values()) == [1, 1, 2, 2]


def test_stored_durations_spread_the_work_evenly_over_many_random_plans() -> None:
    """The longest shard has at most 1.3 times the mean, where none is filled by one suite alone."""
    chance = random.Random(20)
    spreads: list[float] = []
    while len(spreads) < 40:
        shards = chance.randint(2, 8)
        names = [f"suite-{number}" for number in range(chance.randint(3 * shards // 2 + 1, 12 * shards))]
        seconds = {name: chance.lognormvariate(4, chance.choice([0.2, 0.6, 1.0])) for name in names}
        plan = plan_of(seconds, shards, trials=chance.randint(1, 4))
        assert [each.name for each in plan.suites] == names
        # The order in which suites are known changes nothing.
        assert deal(dict(chance.sample(list(seconds.items()), len(seconds))), shards) == deal(seconds, shards)
        if longest_suite(plan) is None:
            spreads.append(max(loads(plan)) / fmean(loads(plan)))
    assert max(spreads) <= 1.3
    assert fmean(spreads) <= 1.05


def test_a_suite_that_alone_takes_more_than_a_share_is_named() -> None:
    assert longest_suite(plan_of({"a": 1.0, "b": 1.0}, 2)) is None
    longest = longest_suite(plan_of({"a": 1.0, "b": 1.5, "c": 0.25}, 2))
    assert longest
    assert longest.name == "b"
    assert longest_suite(plan_of({"a": 1.0, "b": 2.0}, 1)) is None


def test_a_budget_is_divided_as_the_time_is_and_never_exceeded() -> None:
    plan = plan_of({"a": 60, "b": 30, "c": 10}, 3, budget_usd=10.0)
    assert [budget_of(plan, number) for number in (1, 2, 3)] == [6.0, 3.0, 1.0]
    chance = random.Random(3)
    for _ in range(50):
        seconds = {f"s{number}": chance.uniform(0.1, 500) for number in range(chance.randint(1, 30))}
        plan = plan_of(seconds, chance.randint(1, 9), budget_usd=chance.uniform(0.01, 50))
        parts = [budget_of(plan, number) or 0.0 for number in range(1, plan.shards + 1)]
        assert sum(parts) <= (plan.budget_usd or 0) + 1e-9


def test_two_plans_that_differ_say_in_what_and_what_to_do() -> None:
    seconds = {"a": 60.0, "b": 30.0}
    plan = plan_of(seconds, 2)
    suites = plan.suites
    others = {
        "number of shards: 2 and 3. Give all jobs": plan_of(seconds, 3),
        "tested commit: ccccccc and ddddddd. Give all jobs": plan_of(seconds, 2, commit="d" * 40),
        "budget: none and 3.0. Give all jobs": plan_of(seconds, 2, budget_usd=3.0),
        "choice of c. Give all jobs": plan_of({**seconds, "c": 1.0}, 2),
        "choice of c, d, e and 1 more. Give all jobs": plan_of({**seconds, **dict.fromkeys("cdef", 1.0)}, 2),
        "settings of a, b. Give all jobs": plan_of(seconds, 2, trials=2),
        "stored trials of a. Give all jobs": plan.replace(suites=(suites[0].replace(stored="x"), suites[1])),
        "stored trials of b. Give all jobs": plan.replace(suites=(suites[0], suites[1].replace(trials=9))),
        "stored durations of b. Give all jobs": plan_of({**seconds, "b": 31.0}, 2),
        "version of Zelda: ": plan.replace(zelda="0"),
        "order of the suites. Give all jobs": plan.replace(suites=suites[::-1]),
    }
    for said, other in others.items():
        assert difference(plan, other).startswith(f"Different {said}")
    assert difference(plan, plan) == ""


@pytest.mark.parametrize("text", ["", "0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "01/2", "1/257", "-1/2", "1 / 2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2/4"):
        shard_of(text)


def test_the_same_parts_make_the_same_run_whatever_their_order() -> None:
    batches = [
        BatchResult(batch_id=f"2026-01-01T00-00-0{number}-abcd", started_at=START, finished_at=START, runs=())
        for number in range(3)
    ]
    assert merged_id(batches) == merged_id(batches[::-1])
    assert all(merged_id([*pair]) != merged_id(batches) for pair in pairwise(batches))
