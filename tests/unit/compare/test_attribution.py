"""The search for the unit that made a suite worse, in worlds where it is known."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.unit.compare.attribution_worlds import (
    LOOKS,
    World,
    chance,
    culprit,
    either,
    elsewhere,
    simulate,
    together,
)
from zelda_ci.compare.attribution import CONFIRMING, Search

ONE = frozenset({0})
PASSED, FAILED = 100.0, 0.0


def begun(units: int = 3) -> Search:
    return Search(units, base=[PASSED] * 10, head=[PASSED] * 3 + [FAILED] * 7)


def test_one_unit_needs_no_session() -> None:
    assert (begun(1).verdict, begun(1).next_arms()) == ("only", ())


def test_what_is_named_was_confirmed() -> None:
    search = begun()
    while (arms := search.next_arms()) and search.confirming is None:
        assert len(arms) == 4
        search.observe(arms, [PASSED if 0 in arm else FAILED for arm in arms])
    assert (search.verdict, search.confirming, arms) == ("undecided", 0, (ONE,) * CONFIRMING)
    search.observe(arms, [None] * CONFIRMING)
    assert search.next_arms() == arms
    search.observe(arms, [PASSED] * CONFIRMING)
    # That much may still be chance.
    arms = search.next_arms()
    assert (search.verdict, len(arms)) == ("undecided", 4)
    search.observe(arms, [PASSED if 0 in arm else FAILED for arm in arms])
    assert (search.verdict, search.suspicions()[0].unit, search.next_arms()) == ("named", 0, ())


def test_what_is_not_confirmed_is_not_named() -> None:
    search = begun()
    search.observe([ONE] * 4, [PASSED] * 4)
    search.observe([frozenset({1, 2})] * 4, [FAILED] * 4)
    assert search.confirming == 0
    search.observe(search.next_arms(), [FAILED] * CONFIRMING)
    assert (search.verdict, search.confirming) != ("named", 0)


@pytest.mark.parametrize(
    ("make", "units", "sessions"),
    [
        (lambda random: culprit(random.randrange(2)), 2, 20),
        (lambda random: culprit(random.randrange(8)), 8, 20),
        (lambda random: culprit(random.randrange(8), healthy=0.97, broken=0.1), 8, 12),
    ],
)
def test_a_culprit_is_named(make: Callable[[Random], World], units: int, sessions: int) -> None:
    tally = simulate(make, units, 40)
    assert tally.wrong == 0
    assert tally.verdicts["named"] >= 32
    assert tally.median <= sessions


def test_chance_names_hardly_anybody_after_adaptive_trials() -> None:
    assert simulate(lambda _: chance(0.75), 2, 100, looks=LOOKS).wrong <= 1


@pytest.mark.parametrize(
    "make",
    [
        lambda _: chance(0.8),
        lambda _: elsewhere(),
        lambda random: together(*random.sample(range(4), 2)),
    ],
)
def test_nobody_is_named_wrongly(make: Callable[[Random], World]) -> None:
    assert simulate(make, 4, 10).wrong == 0


def test_one_of_two_that_each_break_it_is_rarely_named() -> None:
    assert simulate(lambda random: either(*random.sample(range(4), 2)), 4, 40).wrong <= 2


LENGTHS = [100, 2000, 1200, 400]


def dearer(world: World) -> World:
    return replace(world, healthy=0.0, broken=0.6, spread=0.25, is_measure=True)


def test_a_measure_tells_a_culprit_from_the_length() -> None:
    named = simulate(lambda random: dearer(culprit(random.randrange(4))), 4, 15, LENGTHS)
    assert (named.wrong, named.verdicts["named"] >= 12) == (0, True)
    longer = dearer(World(lambda arm: 1 - sum(LENGTHS[unit] for unit in arm) / sum(LENGTHS)))
    long = simulate(lambda _: longer, 4, 15, LENGTHS)
    assert (long.wrong, long.verdicts["length"] >= 8) == (0, True)
