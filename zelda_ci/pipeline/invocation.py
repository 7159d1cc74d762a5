"""One invocation from its first look at the project to its last result: what is tested, and what it may cost."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from zelda_ci.compare.schedule import of_stored
from zelda_ci.domain.arms import BaseSide, Forecast, TrialPrice
from zelda_ci.domain.run import BatchResult, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side, TrialPlan, plan_of, trials_alone
from zelda_ci.domain.workspace import SettingFinding, WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.events import Emit, Warned
from zelda_ci.files import locks
from zelda_ci.overrides import Overrides
from zelda_ci.pipeline import checking, money
from zelda_ci.pipeline.arms import AdaptiveRounds, FixedRounds, Rounds
from zelda_ci.pipeline.batch import Batch, BatchOrder, Interruption, recover
from zelda_ci.pipeline.checking import Checker, about_the_tree
from zelda_ci.pipeline.fingerprints import steering_between
from zelda_ci.pipeline.money import Purse
from zelda_ci.pipeline.named_contents import about_contents, check_fair
from zelda_ci.pipeline.tools import PlannedRun, Tools, label_of
from zelda_ci.redact import SafeText
from zelda_ci.workspace.base_commit import BaseOrder
from zelda_ci.workspace.workspaces import Workspaces


@dataclass(frozen=True)
class RunOrder:
    """What `zelda run` was asked for; without names and tags, every suite."""

    names: Sequence[str] = ()
    tags: Sequence[str] = ()
    overrides: Overrides = field(default_factory=Overrides)
    jobs: int = 1
    record: Path | None = None
    replay: Path | None = None
    unsafe: bool = False
    """Whether a run may have no isolation at all."""
    overruled: Mapping[str, tuple[SettingFinding, ...]] = field(default_factory=dict)
    """By suite, what a pull request wanted to set, and may not."""
    is_own_content: bool = False
    """Whether the project is Zelda's own, so that nobody need accept weak isolation for it."""
    conclusion_seconds: float = 60
    """Most that changes and evaluation may take once a run was interrupted."""
    check: bool = True
    """Whether what a run needs is tried first; a replay spends nothing and needs no check."""
    despite_failing: bool = True
    """Whether suites run whose build or tests fail before any session."""
    working_tree: bool = False
    """Whether the files are tested as they are, and not as they were last committed."""
    commit: BaseOrder | None = None
    """The commit that is tested in place of the last one."""
    against: BaseOrder | None = None
    """The commit that runs side by side with the tested one."""
    needs_base: bool = True
    """Whether nothing runs where that commit cannot be had; otherwise each suite runs as often as without it."""
    stored: Mapping[str, StoredTrials] = field(default_factory=dict)
    """By suite, stored trials that count or say what to expect."""
    budget_usd: float | None = None
    """For the whole invocation, judges included; above what the suites say."""
    max_failures: int | None = None
    """Runs that do not pass, after which nothing more is begun."""
    elsewhere: Sequence[str] = ()
    """Suites that other machines run, and that are compared together with these."""


def first_failure(group: BaseExceptionGroup) -> BaseException:
    """The failure that a task group wraps; of several the first, unless somebody wanted it to end."""
    leaves = [first_failure(inner) if isinstance(inner, BaseExceptionGroup) else inner for inner in group.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, KeyboardInterrupt)), leaves[0])


async def check_sides_differ(order: RunOrder, head: Workspaces, base: Workspaces) -> None:
    """See to it that a comparison can find something: between the same files every difference is noise.

    Raises:
        WorkspaceError: Both sides have the same files, or one of them cannot be tested.
    """
    assert order.against  # noqa: S101 - whoever compares names a base
    if await head.content_key() != await base.content_key():
        return
    ref, tested = order.against.ref, await head.inspect()
    if tested.commit is None:
        return
    if not order.working_tree and tested.changed:
        meant = f"`zelda run --against {ref}` without --commit compares your files as they are"
    else:
        meant = "change a file that sessions see, or name an older commit, as in `zelda run --against HEAD~1`"
    side = "The tested commit has" if not order.working_tree else "Your files are"
    message = f"{side} exactly the files of {ref}, so nothing was run: {meant}."
    raise WorkspaceError(message, code="SAME_FILES")


def foretell(order: RunOrder, suites: Sequence[ResolvedSuite], results_dir: Path) -> Forecast:
    """What a run of what was ordered may cost, before anything is started."""
    sides = 2 if order.against else 0
    if order.replay:
        return money.forecast(suites, {}, sides=sides, budget_usd=None).replace(budget_usd=None, replayed=True)
    known = money.known_prices(results_dir, order.stored)
    return money.forecast(suites, known, sides=sides, budget_usd=order.budget_usd, stored=order.stored)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What is run, and with what; built by `app`."""

    order: RunOrder
    suites: Sequence[ResolvedSuite]
    arms: Mapping[Side, Tools]
    known_prices: Mapping[str, TrialPrice]
    """By suite, what a trial costs, as stored ones say."""
    elsewhere: Sequence[ResolvedSuite] = ()
    """Suites that other machines run, and that are compared together with these."""

    async def run(self, emit: Emit, preload: threading.Thread, checker: Checker | None) -> BatchResult:
        """From the first look to the last result."""
        # Importing the SDK takes longer than everything that comes before the session: let it begin now. Not earlier:
        # what the event loop imports by itself is no import of ours, and would not wait.
        preload.start()
        tools = self.arms[Side.HEAD]
        interruption = Interruption()
        locks.on_wait.set(lambda sentence: emit(Warned(sentence)))
        async with anyio.create_task_group() as group:
            group.start_soon(interruption.heed_signals, emit)
            group.start_soon(interruption.hasten)
            base, notes = await self._prepare(interruption, emit)
            async with tools.proxy, tools.judging.proxy:
                failing = await checking.check_first(checker, interruption, emit) if checker else {}
                order = replace(
                    self._order(base, emit), notes=notes, failing_before=failing, max_failures=self.order.max_failures
                )
                batch = await Batch(order, self.arms, emit, interruption).run()
            group.cancel_scope.cancel()
        return batch

    async def _prepare(self, interruption: Interruption, emit: Emit) -> tuple[BaseSide | None, tuple[SafeText, ...]]:
        """Look at what is tested and clean up after the dead, unless interrupted.

        Returns the base, where one is asked for, and what submodules and files of Git LFS are not tested.
        """
        base, notes = None, tuple[SafeText, ...]()
        async with anyio.create_task_group() as group:
            group.start_soon(interruption.cancel, group.cancel_scope)
            tools = self.arms[Side.HEAD]
            source = await tools.workspaces.inspect()
            for sentence in about_the_tree(source):
                emit(Warned(sentence))
            notes = tuple(map(tools.redact, about_contents(source.contents)))
            base = await self._base(source, emit)
            await recover(tools, emit)
            group.cancel_scope.cancel()
        return base, notes

    async def _base(self, tested: WorkspaceSource, emit: Emit) -> BaseSide | None:
        wanted, tools = self.order.against, self.arms.get(Side.BASE)
        if wanted is None or tools is None or not self._runs_beside():
            return None
        try:
            found = await tools.workspaces.inspect()
            check_fair(found.contents, tested.contents)
        except WorkspaceError as problem:
            if self.order.needs_base:
                raise
            emit(Warned(f"nothing runs side by side with the base: {problem.message}"))
            return BaseSide(wanted=wanted.ref, problem=tools.redact(problem.message))
        if found.commit == tested.commit:
            emit(Warned("the base is the tested commit itself, so both sides are equal"))
        if not self.order.needs_base:
            return BaseSide(wanted=wanted.ref, commit=found.commit)
        head = self.arms[Side.HEAD].workspaces
        changed = await steering_between(self.suites[0], tools.workspaces, head, tools.redact)
        return BaseSide(wanted=wanted.ref, commit=found.commit, changed=changed)

    def _order(self, base: BaseSide | None, emit: Emit) -> BatchOrder:
        """How it goes, once it is known whether there is a base."""
        order, has_base = self.order, bool(base and base.commit)
        # Who replays spends nothing, whatever the recorded sessions did cost.
        budget = None if order.replay else money.chosen_budget(order.budget_usd, self.suites)
        purse = Purse(budget, self.known_prices)
        rounds: Rounds = FixedRounds(self._plan(), purse)
        sides = 2 if has_base else int(base is not None and any(each.stored for each in order.stored.values()))
        if sides:
            stored, overruled = order.stored, order.overruled
            rounds = AdaptiveRounds(self.suites, emit, purse, stored, overruled=overruled, has_base=has_base)
            rounds.share_error_with(
                of_stored(each.name, plan_of(each.trials), stored.get(each.name, StoredTrials()), has_base=has_base)
                for each in self.elsewhere
            )
        forecast = money.forecast(self.suites, self.known_prices, sides=sides, budget_usd=budget, stored=order.stored)
        return BatchOrder(rounds, purse, order.jobs, None if order.replay else forecast, base)

    def _runs_beside(self) -> bool:
        """Who names a base means it; elsewhere fixed numbers of trials are compared with stored ones."""
        suites = (*self.suites, *self.elsewhere)
        return self.order.needs_base or any(isinstance(plan_of(suite.trials), TrialPlan) for suite in suites)

    def _plan(self) -> list[PlannedRun]:
        """What runs where there is no base."""
        return [
            PlannedRun(
                suite,
                trial,
                label_of(suite.name, trial) if trials_alone(suite.trials) > 1 else suite.name,
                self.order.overruled.get(suite.name, ()),
            )
            for suite in self.suites
            for trial in range(1, trials_alone(suite.trials) + 1)
        ]
