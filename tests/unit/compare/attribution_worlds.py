"""Worlds in which it is known which unit of a change made a suite worse, searched by the product's own code."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp
from random import Random
from statistics import median

from zelda_ci.compare.attribution import Arm, Search
from zelda_ci.compare.inference import ALPHA, pass_rate_test, permutation_test, significant
from zelda_ci.domain.trials import TrialPlan

TRIALS = (10,)
"""Of each side, when they are compared."""
LOOKS = TrialPlan().looks


@dataclass(frozen=True)
class World:
    """What sessions do, and which names are right."""

    felt: Callable[[Arm], float]
    """Share of the change that a session feels without some units."""
    right: frozenset[int] = frozenset()
    healthy: float = 0.95
    """Pass rate of the base, or mean of a measure."""
    broken: float = 0.40
    is_measure: bool = False
    spread: float = 0.0


def culprit(unit: int, **other) -> World:
    return World(lambda arm: float(unit not in arm), frozenset({unit}), **other)


def together(one: int, two: int, **other) -> World:
    return World(lambda arm: float(not {one, two} & arm), frozenset({one, two}), **other)


def either(one: int, two: int, **other) -> World:
    return World(lambda arm: float(not {one, two} <= arm), **other)


def chance(rate: float) -> World:
    """The comparison found a regression where there is none."""
    return World(lambda _: 0.0, healthy=rate, broken=rate)


def elsewhere(**other) -> World:
    return World(lambda _: 1.0, **other)


@dataclass
class Tally:
    """What searches came to."""

    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    sessions: list[int] = field(default_factory=list)
    """Of the search, without those that confirm."""

    @property
    def median(self) -> float:
        return median(self.sessions)


def search(
    world: World, units: int, random: Random, lengths: list[int] | None = None, looks: Sequence[int] = TRIALS
) -> tuple[Search, int]:
    """The search after a comparison that found the world worse, and its sessions without those that confirm."""

    def outcome(felt: float) -> float:
        level = world.healthy + felt * (world.broken - world.healthy)
        return exp(random.gauss(level, world.spread)) if world.is_measure else 100.0 * (random.random() < level)

    def is_worse() -> bool:
        for look in looks:
            for side, felt in ((base, 0.0), (head, 1.0)):
                side += [outcome(felt) for _ in range(look - len(side))]
            tails = (permutation_test if world.is_measure else pass_rate_test)(base, head)
            if significant((tails.higher if world.is_measure else tails.lower).p, ALPHA / len(looks)):
                return True
        return False

    base, head = list[float](), list[float]()
    while not is_worse():
        base, head = [], []
    found, sessions = Search(units, base=base, head=head, lengths=lengths), 0
    while arms := found.next_arms():
        sessions += 0 if {*arms} == {frozenset({found.confirming})} else len(arms)
        found.observe(arms, [outcome(world.felt(arm)) for arm in arms])
    return found, sessions


def simulate(
    make: Callable[[Random], World],
    units: int,
    times: int,
    lengths: list[int] | None = None,
    looks: Sequence[int] = TRIALS,
) -> Tally:
    tally, random = Tally(), Random(f"{units} units")
    for _ in range(times):
        world = make(random)
        found, sessions = search(world, units, random, lengths, looks)
        tally.verdicts[found.verdict] += 1
        tally.wrong += found.verdict == "named" and found.confirming not in world.right
        tally.sessions.append(sessions)
    return tally
