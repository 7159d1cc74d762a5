"""Simulated comparisons: two sides of which the truth is known."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from scipy.stats import binomtest

from tests.unit.compare.runs import efficiency, fulfillment, tool_usage, trials
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.deltas import QuestionKey
from zelda_ci.compare.questions import Question, Sample, ask_number, ask_overall, ask_pass_rate
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import MEASURES, Measure
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


@dataclass(frozen=True)
class Trial:
    verdicts: str
    evaluations: tuple[EvalResult, ...]


Draw = list[tuple[int, list[int]]]
"""Of each suite, which trials of its pool are taken, the oldest first."""

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
    return Trial(verdicts, tuple(found))


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

    def draw(self) -> Draw:
        numbers = range(self.pool)
        return [(suite, sorted(self.chance.sample(numbers, self.truth.trials))) for suite in range(self.truth.suites)]

    def side(self, label: str) -> list[RunResult]:
        """Results of trials of every suite."""
        return self.results(label, self.draw())

    def results(self, label: str, draw: Draw) -> list[RunResult]:
        return [self._results(suite, label)[number] for suite, numbers in draw for number in numbers]

    def _results(self, suite: int, label: str) -> list[RunResult]:
        if (suite, label) not in self._runs:
            found = (trial.evaluations for trial in self.pools[suite, label])
            self._runs[suite, label] = trials(*found, suite=f"suite-{suite}")
        return self._runs[suite, label]

    def questions(self, baseline: tuple[str, Draw], candidate: tuple[str, Draw]) -> dict[QuestionKey, Question]:
        """What a comparison asks of trials that have nothing but criteria, without the results between."""
        questions, scores = {}, []
        for (suite, old), (_, new) in zip(baseline[1], candidate[1], strict=True):
            name = f"suite-{suite}"
            a = tuple(self.pools[suite, baseline[0]][number].verdicts for number in old)
            b = tuple(self.pools[suite, candidate[0]][number].verdicts for number in new)
            scores.append(Sample(tuple(map(score, a)), tuple(map(score, b))))
            questions[QuestionKey(name, FULFILLMENT.value)] = ask_score(scores[-1])
            for criterion in range(self.truth.criteria):
                key = QuestionKey(name, f"criterion {criterion + 1}", criterion=True)
                questions[key] = ask_criterion("".join(v[criterion] for v in a), "".join(v[criterion] for v in b))
        overall = ask_overall(MEASURES[FULFILLMENT].scale, scores) if len(scores) > 1 else None
        return questions | ({QuestionKey(None, FULFILLMENT.value): overall} if overall else {})


@cache
def score(verdicts: str) -> float:
    return 100 * verdicts.count("P") / len(verdicts)


@cache
def ask_score(sample: Sample) -> Question:
    return ask_number(MEASURES[FULFILLMENT].scale, sample)


@cache
def ask_criterion(old: str, new: str) -> Question:
    return ask_pass_rate(Sample(tuple(map(score, old)), tuple(map(score, new))))


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
    interval = binomtest(sum(outcomes), len(outcomes)).proportion_ci(confidence_level=0.98, method="exact")
    return 100 * interval.low, 100 * interval.high
