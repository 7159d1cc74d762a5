"""Simulated comparisons: how often two equal sides "regress", and how often a real drop is seen.

Usage: python benchmarks/compare_simulation.py [comparisons per row, default 500]
"""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from tests.unit.compare.runs import efficiency, fulfillment, tool_usage, trials
from zelda_ci.compare.comparison import compare
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.run import RunResult

CRITERIA = 5
POOL = 60


def evaluations(chance: random.Random, reliability: float, *, first: bool, resources: bool) -> list[EvalResult]:
    """One trial; `first` says whether it passes the first criterion."""
    rest = (chance.random() < reliability for _ in range(CRITERIA - 1))
    verdicts = "".join("P" if passed else "F" for passed in (first, *rest))
    found = [fulfillment(verdicts)]
    if resources:
        turns = max(1, round(chance.gauss(20, 4)))
        found += [
            efficiency(100 - turns, turns / 40, turns * 2000, turns, turns * chance.uniform(4, 6)),
            tool_usage(min(100.0, 5.0 * round(chance.gauss(17, 1)))),
        ]
    return found


@dataclass(frozen=True)
class Truth:
    """What is so: every criterion's reliability, and the first one's of the first suite where it fell."""

    suites: int
    trials: int
    reliability: float
    fallen: float
    resources: bool


class Population:
    """Runs of some suites, drawn from a pool per suite and side."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.chance = random.Random(truth.trials)
        self.pools = {
            (number, label): self._pool(
                f"suite-{number}", truth.fallen if (number, label) == (0, "b") else truth.reliability
            )
            for number in range(truth.suites)
            for label in "ab"
        }

    def _pool(self, suite: str, first: float) -> list[RunResult]:
        found = (
            evaluations(
                self.chance,
                self.truth.reliability,
                first=number < round(POOL * first),
                resources=self.truth.resources,
            )
            for number in range(POOL)
        )
        return trials(*found, suite=suite)

    def side(self, label: str) -> list[RunResult]:
        """Trials of every suite, drawn with replacement."""
        return [
            run.model_copy(update={"run_id": f"{suite}-{number}"})
            for suite in range(self.truth.suites)
            for number, run in enumerate(self.chance.choices(self.pools[suite, label], k=self.truth.trials))
        ]


def regressed(comparison: Comparison) -> bool:
    """Whether any row says so, overall rows included."""
    return comparison.verdict is Verdict.REGRESSED


def first_criterion_regressed(comparison: Comparison) -> bool:
    return comparison.suites[0].criteria[0].verdict is Verdict.REGRESSED


def simulate(truth: Truth, comparisons: int, second: str) -> list[Comparison]:
    population = Population(truth)
    return [compare(population.side("a"), population.side(second)) for _ in range(comparisons)]


def percent(event: Callable[[Comparison], bool], comparisons: list[Comparison]) -> float:
    return 100 * sum(map(event, comparisons)) / len(comparisons)


def main() -> None:
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"{comparisons} comparisons a row, {CRITERIA} criteria a suite")
    print("Two equal sides: comparisons with any false `regressed`")
    for resources, suites, trials_each, reliability in product((False, True), (1, 10), (3, 5, 10), (0.5, 0.7, 0.9)):
        truth = Truth(suites, trials_each, reliability, reliability, resources)
        found = percent(regressed, simulate(truth, comparisons, "a"))
        print(f"  {label(truth)}, criteria at {reliability:.0%}: {found:.1f} %")
    print("One criterion falls from 100 % to 40 %: comparisons that call it `regressed`")
    for resources, suites, trials_each in product((False, True), (1, 3, 10), (3, 5, 10, 15, 20)):
        truth = Truth(suites, trials_each, 1.0, 0.4, resources)
        print(f"  {label(truth)}: {percent(first_criterion_regressed, simulate(truth, comparisons, 'b')):.0f} %")


def label(truth: Truth) -> str:
    metrics = "all metrics" if truth.resources else "criteria only"
    return f"{metrics}, {truth.suites} suites x {truth.trials} trials"


if __name__ == "__main__":
    main()
