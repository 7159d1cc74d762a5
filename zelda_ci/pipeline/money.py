"""Money: what trials cost by those that are stored, and a budget that is kept."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

from zelda_ci.compare.schedule import SuiteTrials, of_stored, trials_to_come
from zelda_ci.domain.arms import Forecast, SuiteForecast, TrialPrice
from zelda_ci.domain.history import StoredRun, at_a_glance
from zelda_ci.domain.run import RunResult, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import DoneReason, TrialPlan, plan_of, trials_alone
from zelda_ci.errors import StorageError
from zelda_ci.storage.history import RunHistory

# Newest trials of a suite that say what one costs; older ones may be of another prompt or model.
MAX_PRICED = 20


def known_prices(history: RunHistory, brought: Mapping[str, StoredTrials]) -> dict[str, TrialPrice]:
    """By suite, what a trial costs by the newest that are stored here, or that somebody brought along."""
    trials = [run for each in brought.values() for run in each.all]
    stored: Sequence[StoredRun] = ()
    with suppress(StorageError):
        stored = history.overview().runs
    # What is stored here may have been brought along as well.
    unique = {(run.batch_id, run.run_id): run for run in (*stored, *map(at_a_glance, trials))}
    costs: dict[str, list[float]] = defaultdict(list)
    for run in sorted(unique.values(), key=lambda run: run.finished_at, reverse=True):
        # Replays cost nothing and say nothing.
        if run.cost_usd is not None and not run.replayed and run.status.is_valid:
            costs[run.suite].append(run.whole_cost_usd or 0.0)
    newest = {suite: found[:MAX_PRICED] for suite, found in costs.items()}
    return {
        suite: TrialPrice(usual=median(found), most=max(found), trials=len(found)) for suite, found in newest.items()
    }


def cost_of(run: RunResult) -> float:
    """Of session and judge."""
    return run.api.cost_usd + (run.judge.cost_usd if run.judge else 0.0)


@dataclass
class Purse:
    """The budget of an invocation. What is under way may finish; nothing is begun that would not fit.

    A trial whose price nobody knows is begun as long as something is left: whoever runs several at once waits for the
    price of the first (`is_in_the_dark`).
    """

    budget_usd: float | None = None
    known: Mapping[str, TrialPrice] = field(default_factory=dict)
    spent_usd: float = 0.0
    unpaid: Counter[str] = field(default_factory=Counter)
    """By suite, trials that were not begun."""
    closed: str | None = None
    """Why nothing is begun any more, whatever is left."""
    _reserved: Counter[str] = field(default_factory=Counter)
    """By suite, trials that are planned and not begun."""
    _paid: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _under_way: list[float] = field(default_factory=list)

    def price(self, suite: str) -> float:
        """What a trial is expected to cost: by this invocation's own, by stored ones, by those of other suites."""
        if own := self._paid.get(suite):
            return median(own)
        if suite in self.known:
            return self.known[suite].usual
        others = [cost for costs in self._paid.values() for cost in costs]
        others = others or [price.usual for price in self.known.values()]
        return median(others) if others else 0.0

    def holds(self, suites: Sequence[str]) -> bool:
        """Whether one more trial of each of these (a suite may occur often) fits beside what is reserved."""
        return self._fits(suites, sum(trials * self.price(suite) for suite, trials in self._reserved.items()))

    def reserve(self, suites: Sequence[str]) -> bool:
        """Whether these fit so; they are reserved then, until they begin."""
        fits = self.holds(suites)
        if fits:
            self._reserved.update(suites)
        return fits

    def _fits(self, suites: Sequence[str], reserved: float) -> bool:
        if self.closed or self.budget_usd is None:
            return not self.closed
        left = self.budget_usd - self.spent_usd - sum(self._under_way) - reserved
        return left > 0 and sum(map(self.price, suites)) <= left

    @property
    def reason(self) -> DoneReason:
        """Why a suite gets no further trial."""
        return DoneReason.ENDED if self.closed else DoneReason.BUDGET

    @property
    def is_in_the_dark(self) -> bool:
        """Whether money counts and nobody knows what any trial costs."""
        return self.budget_usd is not None and not self.known and not self._paid

    def begin(self, suite: str) -> float | None:
        """Put the price of a trial aside; nothing where it does not fit, which is noted."""
        self._reserved -= Counter([suite])
        if not self._fits([suite], 0):
            self.refuse(suite)
            return None
        price = self.price(suite)
        self._under_way.append(price)
        return price

    def refuse(self, suite: str, trials: int = 1) -> None:
        """Note trials that are not begun."""
        self.unpaid[suite] += trials

    def settle(self, price: float, run: RunResult | None) -> None:
        """A trial for which this price was put aside is over."""
        self._under_way.remove(price)
        if run:
            self.spent_usd += cost_of(run)
            if run.status.is_valid:
                self._paid[run.suite].append(cost_of(run))


def trials_before(suite: ResolvedSuite, stored: Mapping[str, StoredTrials], *, has_base: bool) -> SuiteTrials:
    """What is known of a suite before anything has run, by stored trials of all suites."""
    return of_stored(suite.name, plan_of(suite.trials), stored.get(suite.name, StoredTrials()), has_base=has_base)


def forecast(
    suites: Sequence[ResolvedSuite],
    known: Mapping[str, TrialPrice],
    *,
    sides: int,
    budget_usd: float | None = None,
    stored: Mapping[str, StoredTrials] | None = None,
) -> Forecast:
    """The plan: of each suite the fewest and the most sessions, and what they cost.

    Args:
        suites: All that run.
        known: By suite, what a trial costs.
        sides: How many run as often as it takes to compare them: both, the head alone, or none.
        budget_usd: Of the whole; otherwise what the suites say.
        stored: By suite, trials that need not be run again.
    """
    if sides:
        rows = trials_to_come([trials_before(suite, stored or {}, has_base=sides > 1) for suite in suites])
    else:
        rows = {suite.name: (trials_alone(suite.trials),) * 2 for suite in suites}
    limits = {suite.name: suite.execution.max_cost_usd for suite in suites}
    found = (
        SuiteForecast(suite=name, fewest=fewest, most=most, price=known.get(name), limit_usd=limits.get(name))
        for name, (fewest, most) in rows.items()
    )
    return Forecast(suites=tuple(found), budget_usd=budget(suites, budget_usd))


def budget(suites: Sequence[ResolvedSuite], given: float | None = None) -> float | None:
    """Of the whole invocation: what was asked for, which may be nothing at all; else the smallest of the suites."""
    if given is not None:
        return given
    plans = [plan_of(suite.trials) for suite in suites]
    named = [plan.budget_usd for plan in plans if isinstance(plan, TrialPlan) and plan.budget_usd is not None]
    return min(named, default=None)
