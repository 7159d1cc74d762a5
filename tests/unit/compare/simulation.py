"""Simulated comparisons: two sides of which the truth is known."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import exp, fsum, lgamma, log, log1p
from statistics import fmean

from tests.unit.compare.runs import efficiency, fulfillment, tool_usage, trials
from zelda_ci.compare.comparison import compare
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.measures import EvalResult, Measure
from zelda_ci.domain.run import RunResult

FULFILLMENT = Measure.REQUIREMENT_FULFILLMENT


@dataclass(frozen=True)
class Truth:
    """What is so: every criterion's reliability, and the first one's of the first suite where it fell."""

    suites: int
    trials: int
    reliability: float
    fallen: float
    resources: bool
    criteria: int = 5


Trial = tuple[EvalResult, ...]


judged = cache(fulfillment)


def trial(chance: random.Random, truth: Truth, *, first: bool) -> Trial:
    """One trial; `first` says whether it passes the first criterion."""
    rest = (chance.random() < truth.reliability for _ in range(truth.criteria - 1))
    verdicts = "".join("P" if passed else "F" for passed in (first, *rest))
    found = [judged(verdicts)]
    if truth.resources:
        turns = max(1, round(chance.gauss(20, 4)))
        found += [
            efficiency(100 - turns, turns / 40, turns * 2000, turns, turns * chance.uniform(4, 6)),
            tool_usage(min(100.0, 5.0 * round(chance.gauss(17, 1)))),
        ]
    return tuple(found)


class Population:
    """Trials of some suites, drawn from a pool per suite and side."""

    def __init__(self, truth: Truth, pool: int = 60) -> None:
        self.truth = truth
        self.pool = pool
        self.chance = random.Random(truth.trials)
        self.pools = {
            (number, label): self._pool(truth.fallen if (number, label) == (0, "b") else truth.reliability)
            for number in range(truth.suites)
            for label in "ab"
        }
        self._runs: dict[tuple[int, str], list[RunResult]] = {}

    def _pool(self, first: float) -> list[Trial]:
        passes = round(self.pool * first)
        return [trial(self.chance, self.truth, first=number < passes) for number in range(self.pool)]

    def side(self, label: str) -> list[RunResult]:
        """Results of trials of every suite, taken from its pool, the oldest first."""
        numbers = range(self.pool)
        drawn = ((suite, sorted(self.chance.sample(numbers, self.truth.trials))) for suite in range(self.truth.suites))
        return [self._results(suite, label)[number] for suite, taken in drawn for number in taken]

    def _results(self, suite: int, label: str) -> list[RunResult]:
        if (suite, label) not in self._runs:
            self._runs[suite, label] = trials(*self.pools[suite, label], suite=f"suite-{suite}")
        return self._runs[suite, label]


def regressed(comparison: Comparison) -> bool:
    """Whether any row says so, overall rows included."""
    return comparison.verdict is Verdict.REGRESSED


def first_criterion_regressed(comparison: Comparison) -> bool:
    return comparison.suites[0].criteria[0].verdict is Verdict.REGRESSED


def simulate(truth: Truth, comparisons: int, second: str, pool: int = 60) -> Iterator[Comparison]:
    population = Population(truth, pool)
    # One after the other: thousands of comparisons held at once would keep the garbage collector busy.
    return (compare(population.side("a"), population.side(second)) for _ in range(comparisons))


def percent(event: Callable[[Comparison], bool], comparisons: Iterable[Comparison]) -> float:
    return 100 * fmean(map(event, comparisons))


def bounds(events: Iterable[bool]) -> tuple[float, float]:
    """Percentages between which the probability of an event lies after so many observations.

    Clopper and Pearson, The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial (1934): exact,
    and each bound is wrong in at most 1 % of simulations.
    """
    outcomes = list(events)
    happened, of = sum(outcomes), len(outcomes)
    low = _crossing(lambda p: at_most(happened - 1, of, p) - 0.99) if happened else 0.0
    high = _crossing(lambda p: at_most(happened, of, p) - 0.01) if happened < of else 1.0
    return 100 * low, 100 * high


def at_most(happened: int, of: int, probability: float) -> float:
    """The chance that so many of the independent events, or fewer, happen."""
    odds, ways = log(probability), [lgamma(each + 1) for each in range(of + 1)]
    return fsum(
        exp(ways[of] - ways[each] - ways[of - each] + each * odds + (of - each) * log1p(-probability))
        for each in range(happened + 1)
    )


def _crossing(falling: Callable[[float], float]) -> float:
    """The place between 0 and 1 where a falling function is zero."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low
