"""Two arms, head and base, side by side: which trials run next, until every suite is decided or the money is gone."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from zelda_ci.compare.schedule import (
    NextTrials,
    SuiteTrials,
    Wanted,
    next_trials,
    to_decide,
    trials_beside_all,
)
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.arms import MoreTrials, SuiteArms
from zelda_ci.domain.run import RunResult, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import DoneReason, Side, TrialPlan, trials_alone
from zelda_ci.events import Emit
from zelda_ci.pipeline.money import Purse, trials_before
from zelda_ci.pipeline.tools import PlannedRun, label_of


class FixedRounds:
    """One round, settled beforehand; asked again whenever a run is over."""

    def __init__(self, suites: Sequence[ResolvedSuite], purse: Purse) -> None:
        self._purse, self._made = purse, Counter[str]()
        self._plan: Sequence[PlannedRun] = [
            PlannedRun(suite, trial, label_of(suite.name, trial) if trials_alone(suite.trials) > 1 else suite.name)
            for suite in suites
            for trial in range(1, trials_alone(suite.trials) + 1)
        ]

    def next(self) -> Sequence[PlannedRun]:
        plan, self._plan = self._plan, ()
        return plan

    def take(self, planned: PlannedRun, result: RunResult | None) -> None:
        self._made[planned.suite.name] += result is not None

    def ends(self) -> tuple[SuiteArms, ...]:
        """Only suites of which not all was begun: of the others everybody knows."""
        return tuple(
            SuiteArms(suite=suite, head=self._made[suite], reason=self._purse.reason, unpaid=trials)
            for suite, trials in self._purse.unpaid.items()
        )


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
        return max(0, to_decide(self.state) - len(self.state.head) - len(self.state.base) - self.under_way)

    @property
    def missed(self) -> Counter[str]:
        """How often the head did not meet each criterion."""
        return Counter(name for trial in self.state.head for name, value in trial.outcomes.items() if value < 100)


class AdaptiveRounds:
    """Asks the schedule about each suite whose round is over, whatever the others do: suites are decided by themselves.

    A suite whose next look the budget does not allow gets no further trial. Suites that another machine runs
    (`elsewhere`) are compared together with these: each has its share of the error.
    """

    def __init__(
        self,
        suites: Sequence[ResolvedSuite],
        emit: Emit,
        purse: Purse,
        stored: Mapping[str, StoredTrials],
        elsewhere: Sequence[ResolvedSuite] = (),
        *,
        has_base: bool,
    ) -> None:
        states = partial(trials_before, stored=stored, has_base=has_base)
        self._arms = {suite.name: _Arms(suite, states(suite)) for suite in suites}
        self._elsewhere = [states(suite) for suite in elsewhere]
        self._has_looked_over_all = False
        self._emit, self._purse = emit, purse

    def next(self) -> Sequence[PlannedRun]:
        """The trials that lead suites to their next look, of those that have made the last one."""
        idle = {name for name, arms in self._arms.items() if arms.reason is None and not arms.under_way}
        answer = next_trials(self._states, idle) if idle else NextTrials()
        for name, reason in answer.done.items():
            self._end(name, reason)
        begun = self._planned(answer.wanted, keep=True)
        if not begun and not any(arms.under_way for arms in self._arms.values()):
            # What is left decides nothing, and is spent on what can be looked at.
            begun = self._planned(answer.wanted, keep=False)
        return begun or self._over_all()

    def _over_all(self) -> Sequence[PlannedRun]:
        """Once every suite is decided, the trials of the base that numbers over all suites need; all or none."""
        arms = self._arms.values()
        open_ends = {None, DoneReason.BUDGET, DoneReason.ENDED}
        if self._has_looked_over_all or any(each.under_way or each.reason in open_ends for each in arms):
            return []
        self._has_looked_over_all = True
        wanted = [trial for trial in trials_beside_all(self._states) if trial.suite in self._arms]
        if not wanted or not self._purse.reserve([trial.suite for trial in wanted]):
            return []
        for name in dict.fromkeys(trial.suite for trial in wanted):
            self._start(self._arms[name], [trial for trial in wanted if trial.suite == name])
        return [self._run(trial) for trial in wanted]

    @property
    def _states(self) -> list[SuiteTrials]:
        """Of all suites, also those that are done: each has its share of the error."""
        return [*(arms.state for arms in self._arms.values()), *self._elsewhere]

    def _planned(self, wanted: Sequence[Wanted], *, keep: bool) -> list[PlannedRun]:
        """Begin the looks that the budget allows as a whole, of suites that look worst first.

        Args:
            wanted: Trials that lead suites to their next look.
            keep: Whether a suite waits unless the money suffices to decide it, and those that went on before it. Too
                little money that is spread over all suites proves nothing.
        """
        by_suite: dict[str, list[Wanted]] = defaultdict(list)
        for trial in wanted:
            by_suite[trial.suite].append(trial)
        # Worst: by how often the head did not meet the criterion that it met least.
        worst = {name: max(self._arms[name].missed.values(), default=0) for name in by_suite}
        order = sorted(by_suite, key=lambda name: worst[name], reverse=True)
        begun = {name for name in order if self._begin(self._arms[name], by_suite[name], keep=keep)}
        return [self._run(each) for each in wanted if each.suite in begun]

    def _begin(self, arms: _Arms, trials: Sequence[Wanted], *, keep: bool) -> bool:
        name, purse = arms.suite.name, self._purse
        going = [each for each in self._arms.values() if each is arms or (each.goes_on and each.reason is None)]
        if keep and not purse.holds([each.suite.name for each in going for _ in range(each.way)]):
            return False
        if name not in purse.unpaid:
            if purse.reserve([name] * len(trials)):
                self._start(arms, trials)
                return True
            purse.refuse(name, len(trials))
        self._end(name, purse.reason)
        return False

    def _start(self, arms: _Arms, trials: Sequence[Wanted]) -> None:
        arms.under_way = len(trials)
        if arms.made or arms.reason:
            arms.goes_on = True
            sides = Counter(trial.side for trial in trials)
            judged = Counter(name for trial in arms.state.head for name in trial.outcomes)
            more = MoreTrials(
                suite=arms.suite.name,
                head=sides[Side.HEAD],
                base=sides[Side.BASE],
                made=len(arms.state.head),
                look=trials[0].look,
                looks=len(plan.counts) if isinstance(plan := arms.state.plan, TrialPlan) else 1,
                missed=tuple((name, count, judged[name]) for name, count in arms.missed.most_common()),
            )
            self._emit(more)

    def _run(self, trial: Wanted) -> PlannedRun:
        arms = self._arms[trial.suite]
        look = trial.look if isinstance(arms.state.plan, TrialPlan) else None
        label = label_of(trial.suite, trial.number, trial.side)
        return PlannedRun(arms.suite, trial.number, label, trial.side, look)

    def take(self, planned: PlannedRun, result: RunResult | None) -> None:
        """Note a trial that is over, or that was not begun."""
        arms = self._arms[planned.suite.name]
        arms.under_way -= 1
        if result:
            state, trial = arms.state, RunMetrics(result)
            if result.side is Side.BASE:
                arms.state = replace(state, base=(*state.base, trial))
            else:
                arms.state = replace(state, head=(*state.head, trial))
            arms.made[result.side] += 1

    def _end(self, name: str, reason: DoneReason) -> None:
        arms = self._arms[name]
        if arms.reason is None:
            arms.reason = reason
            self._emit(self._told(name, reason))

    def ends(self) -> tuple[SuiteArms, ...]:
        """How far each suite came; one that nothing ended was interrupted."""
        unpaid = self._purse.unpaid
        reasons = {name: arms.reason or DoneReason.INTERRUPTED for name, arms in self._arms.items()}
        reasons |= dict.fromkeys(unpaid, self._purse.reason)
        return tuple(self._told(name, reason, unpaid.get(name, 0)) for name, reason in reasons.items())

    def _told(self, name: str, reason: DoneReason, unpaid: int = 0) -> SuiteArms:
        arms = self._arms[name]
        head, base = arms.made[Side.HEAD], arms.made[Side.BASE]
        return SuiteArms(suite=name, head=head, base=base, reason=reason, unpaid=unpaid, trials=arms.suite.trials)
