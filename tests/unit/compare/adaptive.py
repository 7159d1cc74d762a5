"""Simulated pull requests of which the truth is known, run trial by trial as the product's own schedule wants them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from statistics import fmean

from tests.unit.compare.runs import START, fulfillment, run
from zelda_ci.compare.comparison import compare_trials
from zelda_ci.compare.schedule import SuiteTrials, next_trials
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.suite import GateSettings
from zelda_ci.domain.trials import DoneReason, Plan, Side, TrialPlan

Rates = tuple[float, ...]
SURE: Rates = (1.0,) * 5
MIXED: Rates = (1.0, 1.0, 0.97, 0.9, 1.0)
WAVERING: Rates = (0.9,) * 5
PLAN = TrialPlan()


def fallen(rates: Rates, to: float) -> Rates:
    """The first criterion is met so often and no more."""
    return (to, *rates[1:])


@dataclass(frozen=True)
class Truth:
    """What is so in every suite; what is stored lies before."""

    base: Rates
    stored: int = 0
    """Trials of the base that were made before."""
    drift: Callable[[random.Random], float] | None = None
    """How much a criterion lost since the trials were stored; no version shows it."""
    gate: GateSettings = field(default_factory=GateSettings)


@cache
def trial_of(verdicts: str, gate: GateSettings) -> RunMetrics:
    return RunMetrics(run([fulfillment(verdicts)], gate=gate))


@cache
def read(suite: str, label: str, number: int, verdicts: str, gate: GateSettings) -> RunMetrics:
    """A trial; what says which one it is is all that differs."""
    known = trial_of(verdicts, gate)
    which = {"suite": suite, "run_id": f"{suite}-{label}-{number}", "trial": number}
    moment = START + timedelta(minutes=number)
    return replace(known, run=known.run.model_copy(update=which | {"started_at": moment}))


class PullRequest:
    """One comparison: suites whose trials are drawn when they are wanted."""

    def __init__(self, chance: random.Random, truth: Truth, suites: int, fallen_to: float | None = None) -> None:
        self.chance, self.gate = chance, truth.gate
        self.sessions = 0
        self.base, self.head = {}, {}
        self.suites: list[SuiteTrials] = []
        for index in range(suites):
            name = f"suite-{index}"
            lost = tuple(truth.drift(chance) if truth.drift else 0.0 for _ in truth.base)
            today = tuple(max(0.0, rate - loss) for rate, loss in zip(truth.base, lost, strict=True))
            self.base[name] = today
            self.head[name] = fallen(today, fallen_to) if fallen_to is not None and index == 0 else today
            stored = tuple(self.trial(name, "stored", number, truth.base) for number in range(1, truth.stored + 1))
            self.suites.append(SuiteTrials(name, stored=stored))

    def trial(self, suite: str, label: str, number: int, rates: Rates) -> RunMetrics:
        verdicts = "".join("P" if self.chance.random() < rate else "F" for rate in rates)
        return read(suite, label, number, verdicts, self.gate)

    def run(self, plan: Plan = PLAN, budget: int | None = None) -> Mapping[str, DoneReason]:
        """Until nothing more is wanted, or so many sessions were run; why each suite is done."""
        while True:
            found = next_trials([replace(suite, plan=plan) for suite in self.suites])
            wanted = found.wanted[: None if budget is None else max(0, budget - self.sessions)]
            if not wanted:
                return found.done
            made: dict[str, dict[Side, list[RunMetrics]]] = {}
            for trial in wanted:
                rates = self.head if trial.side is Side.HEAD else self.base
                reading = self.trial(trial.suite, trial.side.value, trial.number, rates[trial.suite])
                made.setdefault(trial.suite, {Side.HEAD: [], Side.BASE: []})[trial.side].append(reading)
            self.sessions += len(wanted)
            self.suites = [_with(suite, made.get(suite.suite)) for suite in self.suites]


def _with(suite: SuiteTrials, made: Mapping[Side, Sequence[RunMetrics]] | None) -> SuiteTrials:
    return replace(suite, head=(*suite.head, *made[Side.HEAD]), base=(*suite.base, *made[Side.BASE])) if made else suite


@dataclass(frozen=True)
class Tally:
    """What came of many comparisons."""

    red: tuple[bool, ...]
    sessions: float
    """Per suite, in the mean."""


def is_red(plan: Plan, request: PullRequest, asked: Mapping[str, DoneReason]) -> bool:
    """Whether these suites are red, for the schedule and for the comparison."""
    return (
        DoneReason.REGRESSED in asked.values()
        and compare_trials([replace(suite, plan=plan) for suite in request.suites]).verdict is Verdict.REGRESSED
    )


def simulate(
    truth: Truth,
    suites: int,
    comparisons: int,
    fallen_to: float | None = None,
    plan: Plan = PLAN,
    seed: int = 16,
    *,
    reruns: int = 0,
) -> Tally:
    """Red: any suite regressed, in every attempt; where something fell, that suite."""
    chance = random.Random(seed)
    red, sessions = [], []
    for _ in range(comparisons):
        request = PullRequest(chance, truth, suites, fallen_to)
        done = request.run(plan)
        asked = done if fallen_to is None else {"suite-0": done["suite-0"]}
        verdicts = [is_red(plan, request, asked)]
        for _ in range(reruns):
            again = request.run(plan)
            verdicts.append(is_red(plan, request, {name: again[name] for name in asked}))
        red.append(all(verdicts))
        sessions.append(request.sessions / suites)
    return Tally(tuple(red), fmean(sessions))
