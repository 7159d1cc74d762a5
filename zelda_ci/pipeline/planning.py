"""Which trials run next, a fixed number or side by side, and what they cost by those that are stored."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import median

from zelda_ci.compare import schedule
from zelda_ci.compare.schedule import SuiteTrials, Wanted
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain import trials as records
from zelda_ci.domain.outcome import at_a_glance
from zelda_ci.domain.run import RunResult, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import DoneReason, Side, TrialPlan, plan_of, trials_alone
from zelda_ci.errors import StorageError
from zelda_ci.events import Emit
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.units import Variant

# Newest trials of a suite that say what one costs; older ones may be of another prompt or model.
MAX_PRICED = 20
Suites = Sequence[ResolvedSuite]
Stored = Mapping[str, StoredTrials]


def label_of(suite: str, trial: int, side: Side = Side.HEAD) -> str:
    """The label of one trial of several: names of suites have no @, so it is that of no other run."""
    return f"{suite}@{'base-' if side is Side.BASE else ''}{trial}"


@dataclass(frozen=True)
class PlannedRun:
    """One suite, one trial; no two runs of an invocation share a label, by which cassettes are found."""

    suite: ResolvedSuite
    trial: int
    label: str
    side: Side = Side.HEAD
    look: int | None = None
    variant: Variant | None = None
    """What is changed of the tested files for this run alone."""


def known_prices(history: ResultStore, brought: Mapping[str, StoredTrials]) -> dict[str, records.TrialPrice]:
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
    return {name: records.TrialPrice(usual=median(it), most=max(it), trials=len(it)) for name, it in costs.items()}


@dataclass
class Budget:
    """The money of an invocation. What is under way may finish; no trial is started that would not fit."""

    limit_usd: float | None = None
    known: Mapping[str, records.TrialPrice] = field(default_factory=dict)
    spent_usd: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
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
        cost, planned = (sum(count * self.price(suite) for suite, count in it.items()) for it in (trials, beside))
        left = self.limit_usd - self.spent_usd - planned
        return left > 0 and cost <= left

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

    @property
    def reason(self) -> DoneReason:
        """Why a suite gets no further trial."""
        return DoneReason.ENDED if self.closed else DoneReason.BUDGET

    @property
    def price_is_unknown(self) -> bool:
        """Whether money counts and nobody knows what any trial costs: then one starts as long as something is left."""
        return self.limit_usd is not None and not self.known and not self._paid


def forecast(
    order: RunOrder, suites: Suites, known: Mapping[str, records.TrialPrice], *, sides: int
) -> records.Forecast:
    """Of each suite the fewest and the most sessions beside stored ones; as many `sides` as run until they compare."""
    rows = {suite.name: (trials_alone(suite.trials),) * 2 for suite in suites}
    rows |= schedule.trials_to_come(states(suites, order.stored, has_base=sides > 1)) if sides else {}
    limits = {suite.name: suite.execution.max_cost_usd for suite in suites}
    found = (
        records.SuiteForecast(suite=name, fewest=fewest, most=most, price=known.get(name), limit_usd=limits[name])
        for name, (fewest, most) in rows.items()
    )
    return records.Forecast(suites=tuple(found), budget_usd=budget(suites, None if order.replay else order.budget_usd))


def budget(suites: Suites, given: float | None) -> float | None:
    """Of the whole invocation: what was asked for, which may be nothing at all; else the smallest of the suites."""
    plans = (plan_of(suite.trials) for suite in suites)
    named = [plan.budget_usd for plan in plans if isinstance(plan, TrialPlan) and plan.budget_usd is not None]
    return min(named, default=None) if given is None else given


def states(suites: Suites, stored: Stored, *, has_base: bool) -> list[SuiteTrials]:
    """What is known of suites before any trial of this invocation."""
    known = ((suite, stored.get(suite.name, StoredTrials())) for suite in suites)
    return [schedule.of_stored(suite.name, suite.trials, trials, has_base=has_base) for suite, trials in known]


@dataclass
class _Arms:
    """One suite: its trials, and how far it came."""

    suite: ResolvedSuite
    state: SuiteTrials
    made: Counter[Side] = field(default_factory=Counter)
    """Trials of this invocation."""
    under_way: int = 0
    """Trials that are planned and not over."""
    goes_on: bool = False
    """Whether it was not decided by its first look."""
    reason: DoneReason | None = None

    @property
    def way(self) -> int:
        """Trials that are missing to the look that decides most suites, without those that are under way."""
        return max(0, schedule.to_decide(self.state) - len(self.state.head) - len(self.state.base) - self.under_way)

    @property
    def missed(self) -> Counter[str]:
        """How often the head did not meet each criterion."""
        return Counter(name for trial in self.state.head for name, value in trial.outcomes.items() if value < 100)

    def summary(self, reason: DoneReason, unpaid: int = 0) -> records.SuiteArms:
        """How far it came."""
        name, trials, head, base = self.suite.name, self.suite.trials, self.made[Side.HEAD], self.made[Side.BASE]
        return records.SuiteArms(suite=name, head=head, base=base, reason=reason, unpaid=unpaid, trials=trials)


class Rounds:
    """The trials that run next, asked for whenever one is over: a fixed number where nothing is compared (0 `sides`).

    Else the schedule is asked about each suite whose round is over, whatever the others do. One whose next look the
    budget does not allow gets no further trial. Suites that run `elsewhere` have their share of the error, too.
    """

    def __init__(
        self, suites: Suites, emit: Emit, budget: Budget, stored: Stored, elsewhere: Suites = (), *, sides: int
    ) -> None:
        own, self._elsewhere = (states(each, stored, has_base=sides > 1) for each in (suites, elsewhere))
        self._arms = {suite.name: _Arms(suite, state) for suite, state in zip(suites, own, strict=True)}
        self._emit, self._budget, self._is_compared, self._has_looked_over_all = emit, budget, sides > 0, False
        self._fixed: Sequence[PlannedRun] = [
            PlannedRun(suite, trial, label_of(suite.name, trial) if trials_alone(suite.trials) > 1 else suite.name)
            for suite in suites
            for trial in range(1, trials_alone(suite.trials) + 1)
        ]

    def next(self) -> Sequence[PlannedRun]:
        """The trials that lead suites to their next look, of those that have made the last one."""
        if not self._is_compared:
            fixed, self._fixed = self._fixed, ()
            return fixed
        idle = {name for name, arms in self._arms.items() if arms.reason is None and not arms.under_way}
        answer = schedule.next_trials(self._states, idle) if idle else schedule.NextTrials()
        for name, reason in answer.done.items():
            self._end(self._arms[name], reason)
        begun = self._begin(answer.wanted, keep=True)
        if not begun and not self._planned.total():
            # What is left decides nothing, and is spent on what can be looked at.
            begun = self._begin(answer.wanted, keep=False)
        return begun or self._over_all()

    def _over_all(self) -> Sequence[PlannedRun]:
        """Once every suite is decided, the trials of the base that numbers over all suites need; all or none."""
        open_ends = {None, DoneReason.BUDGET, DoneReason.ENDED}
        if self._has_looked_over_all or any(it.under_way or it.reason in open_ends for it in self._arms.values()):
            return []
        self._has_looked_over_all = True
        wanted = [trial for trial in schedule.next_trials(self._states).wanted if trial.suite in self._arms]
        counts = Counter(trial.suite for trial in wanted)
        if not self._budget.fits(counts, self._planned):
            return []
        for name in counts:
            self._start(self._arms[name], wanted)
        return list(map(self._run, wanted))

    @property
    def _states(self) -> list[SuiteTrials]:
        """Of all suites, also those that are done: each has its share of the error."""
        return [*(arms.state for arms in self._arms.values()), *self._elsewhere]

    @property
    def _planned(self) -> Counter[str]:
        """Trials that are planned and not over."""
        return Counter({name: arms.under_way for name, arms in self._arms.items()})

    def _begin(self, wanted: Sequence[Wanted], *, keep: bool) -> Sequence[PlannedRun]:
        """Begin the looks that the budget allows as a whole, of suites that look worst first.

        To `keep` money, a suite waits unless it suffices to decide it, and those that went on before: too little that
        is spread over all suites proves nothing.
        """
        counts, budget, begun = Counter(trial.suite for trial in wanted), self._budget, set[str]()
        # Worst: by how often the head did not meet the criterion that it met least.
        worst = {name: max(self._arms[name].missed.values(), default=0) for name in counts}
        for name in sorted(counts, key=lambda name: worst[name], reverse=True):
            arms = self._arms[name]
            going = [it for it in self._arms.values() if it is arms or (it.goes_on and it.reason is None)]
            if keep and not budget.fits(Counter({it.suite.name: it.way for it in going}), self._planned):
                continue
            if name not in budget.skipped and budget.fits(Counter({name: counts[name]}), self._planned):
                begun.add(name)
                self._start(arms, wanted)
            else:
                budget.skipped.setdefault(name, counts[name])
                self._end(arms, budget.reason)
        return [self._run(trial) for trial in wanted if trial.suite in begun]

    def _start(self, arms: _Arms, wanted: Sequence[Wanted]) -> None:
        """Note that the trials of a suite begin, and say so where it has had some."""
        name, head = arms.suite.name, arms.state.head
        trials = [trial for trial in wanted if trial.suite == name]
        arms.under_way = len(trials)
        if arms.made or arms.reason:
            arms.goes_on, sides = True, Counter(trial.side for trial in trials)
            judged = Counter(name for trial in head for name in trial.outcomes)
            missed = tuple((name, count, judged[name]) for name, count in arms.missed.most_common())
            looks = trials[0].look, len(arms.state.looks)
            self._emit(records.MoreTrials(name, sides[Side.HEAD], sides[Side.BASE], len(head), *looks, missed))

    def _run(self, trial: Wanted) -> PlannedRun:
        arms, label = self._arms[trial.suite], label_of(trial.suite, trial.number, trial.side)
        return PlannedRun(arms.suite, trial.number, label, trial.side, trial.look if arms.state.adds else None)

    def take(self, planned: PlannedRun, result: RunResult | None) -> None:
        """Note a trial that is over, or that was not begun."""
        arms = self._arms[planned.suite.name]
        arms.under_way -= 1
        if result:
            state, more, is_head = arms.state, (RunMetrics(result),), result.side is Side.HEAD
            arms.state = replace(state, head=state.head + more) if is_head else replace(state, base=state.base + more)
            arms.made[result.side] += 1

    def _end(self, arms: _Arms, reason: DoneReason) -> None:
        if arms.reason is None:
            arms.reason = reason
            self._emit(arms.summary(reason))

    def ends(self) -> tuple[records.SuiteArms, ...]:
        """How far each suite came; where nothing is compared, only those of which not all was begun."""
        compared = self._arms if self._is_compared else {}
        reasons = {name: arms.reason or DoneReason.INTERRUPTED for name, arms in compared.items()}
        reasons |= dict.fromkeys(self._budget.skipped, self._budget.reason)
        return tuple(self._arms[name].summary(reason, self._budget.skipped[name]) for name, reason in reasons.items())
