"""Simulated comparisons: two sides of which the truth is known."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from tests.unit.compare.runs import efficiency, fulfillment, tool_usage, trials
from zelda_ci.compare.comparison import compare
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.run import RunResult


@dataclass(frozen=True)
class Truth:
    """What is so: every criterion's reliability, and the first one's of the first suite where it fell."""

    suites: int
    trials: int
    reliability: float
    fallen: float
    resources: bool
    criteria: int = 5


def evaluations(chance: random.Random, truth: Truth, *, first: bool) -> list[EvalResult]:
    """One trial; `first` says whether it passes the first criterion."""
    rest = (chance.random() < truth.reliability for _ in range(truth.criteria - 1))
    verdicts = "".join("P" if passed else "F" for passed in (first, *rest))
    found = [fulfillment(verdicts)]
    if truth.resources:
        turns = max(1, round(chance.gauss(20, 4)))
        found += [
            efficiency(100 - turns, turns / 40, turns * 2000, turns, turns * chance.uniform(4, 6)),
            tool_usage(min(100.0, 5.0 * round(chance.gauss(17, 1)))),
        ]
    return found


class Population:
    """Runs of some suites, drawn from a pool per suite and side."""

    def __init__(self, truth: Truth, pool: int = 60) -> None:
        self.truth = truth
        self.pool = pool
        self.chance = random.Random(truth.trials)
        self.pools = {
            (number, label): self._pool(
                f"suite-{number}", truth.fallen if (number, label) == (0, "b") else truth.reliability
            )
            for number in range(truth.suites)
            for label in "ab"
        }

    def _pool(self, suite: str, first: float) -> list[RunResult]:
        passes = round(self.pool * first)
        found = (evaluations(self.chance, self.truth, first=number < passes) for number in range(self.pool))
        return trials(*found, suite=suite)

    def side(self, label: str) -> list[RunResult]:
        """Trials of every suite."""
        return [
            run
            for suite in range(self.truth.suites)
            for run in self.chance.sample(self.pools[suite, label], self.truth.trials)
        ]


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
