"""Money: what trials cost by those that are stored, and a budget that is kept."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

from zelda_ci.compare.schedule import of_stored, trials_to_come
from zelda_ci.domain.arms import Forecast, SuiteForecast, TrialPrice
from zelda_ci.domain.history import at_a_glance
from zelda_ci.domain.run import RunResult, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import DoneReason, TrialPlan, plan_of, trials_alone
from zelda_ci.errors import StorageError
from zelda_ci.storage.result_store import ResultStore

# Newest trials of a suite that say what one costs; older ones may be of another prompt or model.
MAX_PRICED = 20


def known_prices(history: ResultStore, brought: Mapping[str, StoredTrials]) -> dict[str, TrialPrice]:
    """By suite, what a trial costs by the newest that are stored here, or that somebody brought along."""
    # What is stored here may have been brought along as well.
    found = [at_a_glance(run) for each in brought.values() for run in each.all]
    with suppress(StorageError):
        found += history.overview().runs
    unique = {(run.batch_id, run.run_id): run for run in found}
    costs: dict[str, list[float]] = defaultdict(list)
    for run in sorted(unique.values(), key=lambda run: run.finished_at, reverse=True):
        # Replays cost nothing and say nothing.
        is_priced = run.cost_usd is not None and not run.replayed and run.status.is_valid
        if is_priced and len(costs[run.suite]) < MAX_PRICED:
            costs[run.suite].append(run.whole_cost_usd or 0.0)
    return {name: TrialPrice(usual=median(each), most=max(each), trials=len(each)) for name, each in costs.items()}


@dataclass
class Budget:
    """The money of an invocation. What is under way may finish; no trial is started that would not fit.

    A trial whose price nobody knows is started as long as something is left: whoever runs several at once waits for
    the price of the first (`price_is_unknown`).
    """

    limit_usd: float | None = None
    known: Mapping[str, TrialPrice] = field(default_factory=dict)
    spent_usd: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
    """By suite, trials that were not started."""
    closed: str | None = None
    """Why nothing is started any more, whatever is left."""
    _under_way: Counter[str] = field(default_factory=Counter)
    _paid: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def price(self, suite: str) -> float:
        """What a trial is expected to cost: by this invocation's own, by stored ones, by those of other suites."""
        if own := self._paid.get(suite):
            return median(own)
        if suite in self.known:
            return self.known[suite].usual
        others = [*chain(*self._paid.values())] or [price.usual for price in self.known.values()]
        return median(others) if others else 0.0

    def fits(self, trials: Counter[str], beside: Counter[str]) -> bool:
        """Whether so many trials of each suite may be paid beside others that are planned."""
        if self.closed or self.limit_usd is None:
            return not self.closed
        left = self.limit_usd - self.spent_usd - self._cost(beside)
        return left > 0 and self._cost(trials) <= left

    def start(self, suite: str) -> bool:
        """Whether a trial may start now; otherwise it is skipped."""
        fits = self.fits(Counter([suite]), self._under_way)
        (self._under_way if fits else self.skipped)[suite] += 1
        return fits

    def finish(self, suite: str, run: RunResult | None) -> None:
        """Note what a trial has cost."""
        self._under_way[suite] -= 1
        if run:
            self.spent_usd += run.whole_cost_usd
            if run.status.is_valid:
                self._paid[suite].append(run.whole_cost_usd)

    def _cost(self, trials: Counter[str]) -> float:
        return sum(count * self.price(suite) for suite, count in trials.items())

    @property
    def reason(self) -> DoneReason:
        """Why a suite gets no further trial."""
        return DoneReason.ENDED if self.closed else DoneReason.BUDGET

    @property
    def price_is_unknown(self) -> bool:
        """Whether money counts and nobody knows what any trial costs."""
        return self.limit_usd is not None and not self.known and not self._paid


def forecast(
    suites: Sequence[ResolvedSuite],
    known: Mapping[str, TrialPrice],
    *,
    sides: int,
    budget_usd: float | None = None,
    stored: Mapping[str, StoredTrials] | None = None,
) -> Forecast:
    """The plan: of each suite the fewest and the most sessions, and what they cost by the known prices.

    As many `sides` run as often as it takes to compare them: both, the head alone, or none. Stored trials, by suite,
    need not be run again. Without a budget of the whole, that of the suites counts.
    """
    if sides:
        known_trials = ((it, (stored or {}).get(it.name, StoredTrials())) for it in suites)
        rows = trials_to_come([of_stored(it.name, it.trials, each, has_base=sides > 1) for it, each in known_trials])
    else:
        rows = {suite.name: (trials_alone(suite.trials),) * 2 for suite in suites}
    limits = {suite.name: suite.execution.max_cost_usd for suite in suites}
    found = (
        SuiteForecast(suite=name, fewest=fewest, most=most, price=known.get(name), limit_usd=limits[name])
        for name, (fewest, most) in rows.items()
    )
    return Forecast(suites=tuple(found), budget_usd=budget(suites, budget_usd))


def budget(suites: Sequence[ResolvedSuite], given: float | None = None) -> float | None:
    """Of the whole invocation: what was asked for, which may be nothing at all; else the smallest of the suites."""
    plans = [plan_of(suite.trials) for suite in suites]
    named = [plan.budget_usd for plan in plans if isinstance(plan, TrialPlan) and plan.budget_usd is not None]
    return min(named, default=None) if given is None else given
