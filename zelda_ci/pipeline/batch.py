"""The runs of one invocation, one after the other or side by side; recovery of killed ones; interruption."""

import os
import signal
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from zelda_ci.domain.arms import BaseSide
from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.domain.trials import Side, TrialPlan, plan_of
from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import EXIT_INTERRUPTED, StorageError, WorkspaceError
from zelda_ci.events import BatchStarted, RoundStarted, Warned
from zelda_ci.files import locks
from zelda_ci.metrics.base import run_evaluator
from zelda_ci.pipeline import money
from zelda_ci.pipeline.arms import AdaptiveRounds, FixedRounds
from zelda_ci.pipeline.checking import Checker
from zelda_ci.pipeline.fingerprints import steering_between
from zelda_ci.pipeline.money import Purse
from zelda_ci.pipeline.named_contents import about_contents, about_the_tree, check_fair
from zelda_ci.pipeline.run import SuiteRun
from zelda_ci.pipeline.tools import Tools
from zelda_ci.redact import SafeText
from zelda_ci.storage.fold import transcript_of
from zelda_ci.storage.result_store import RunFolder
from zelda_ci.workspace import folder

# How long what runs have made is removed after a second signal; what is left then, the next start sweeps.
CLEANING_SECONDS = 30.0

POLL_SECONDS = 0.1


def ending_signals() -> list[signal.Signals]:
    """Those that end a run, without what nohup, or a shell in the background, has set to be ignored."""
    known = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Leave signals as they were: an event loop that has handled one sets it to its default, where SIGTERM kills."""
    before = {number: signal.getsignal(number) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _quit() -> None:
    for stream in (1, 2):
        if os.isatty(stream):
            # A live display may have hidden the cursor, and will not come to show it again.
            os.write(stream, b"\x1b[?25h\n")
    os._exit(EXIT_INTERRUPTED)


class Batch:
    """The runs of one invocation, `jobs` at a time; once an end is asked for, what runs ends and nothing more starts.

    Args:
        arms: What the runs of each side work with.
        checker: Tries what they need before the first of them; absent where nothing is tried.
    """

    def __init__(self, arms: Mapping[Side, Tools], checker: Checker | None) -> None:
        self._arms, self._checker, self._tools = arms, checker, arms[Side.HEAD]
        self._emit, self._prepared = self._tools.emit, self._tools.prepared
        self._order, self._suites = self._prepared.order, self._prepared.suites
        self._asked, self._urgent = anyio.Event(), anyio.Event()
        self._base: BaseSide | None = None
        self._notes: tuple[SafeText, ...] = ()
        self._runs: list[SuiteRun] = []
        self._slots = anyio.CapacityLimiter(self._order.jobs)
        self._first = anyio.Lock()
        self._has_begun, self._failures = False, 0

    async def run(self, preload: threading.Thread) -> BatchResult:
        """From the first look at what is tested to the last result."""
        # Importing the SDK takes longer than everything that comes before the session: let it begin now. Not earlier:
        # what the event loop imports by itself is no import of ours, and would not wait.
        preload.start()
        locks.on_wait.set(lambda sentence: self._emit(Warned(sentence)))
        async with anyio.create_task_group() as group:
            group.start_soon(self._heed_signals)
            group.start_soon(self._hasten)
            await self._until_asked(self._prepare)
            async with self._tools.proxy, self._tools.judge_proxy:
                if self._checker:
                    await self._until_asked(self._checker.check_first)
                self._started_at = datetime.now(UTC)
                self._id = f"{self._started_at:%Y-%m-%dT%H-%M-%S}-{uuid.uuid4().hex[:4]}"
                self._schedule()
                await self._until_asked(self._perform_all)
            group.cancel_scope.cancel()
        return self._result()

    async def _prepare(self) -> None:
        """Look at what is tested, and clean up after every dead Zelda process; live ones are not touched."""
        source = await self._tools.workspaces.inspect()
        for sentence in about_the_tree(source):
            self._emit(Warned(sentence))
        self._notes = tuple(map(self._tools.redact, about_contents(source.contents)))
        self._base = await self._found_base(source)
        await self._tools.workspaces.sweep()
        with closing(self._tools.store.unfinished()) as unfinished:
            while remains := await anyio.to_thread.run_sync(next, unfinished, None):
                await self._recover(*remains)

    async def _found_base(self, tested: WorkspaceSource) -> BaseSide | None:
        """The base, where one is asked for and anything runs beside it."""
        wanted, tools, order = self._order.against, self._arms.get(Side.BASE), self._order
        # Who names a base means it; elsewhere fixed numbers of trials are compared with stored ones.
        plans = [plan_of(suite.trials) for suite in (*self._suites, *self._prepared.elsewhere)]
        if not wanted or not tools or not (order.needs_base or any(isinstance(plan, TrialPlan) for plan in plans)):
            return None
        try:
            found = await tools.workspaces.inspect()
            check_fair(found.contents, tested.contents)
        except WorkspaceError as problem:
            if order.needs_base:
                raise
            self._emit(Warned(f"nothing runs side by side with the base: {problem.message}"))
            return BaseSide(wanted=wanted.ref, problem=tools.redact(problem.message))
        if found.commit == tested.commit:
            self._emit(Warned("the base is the tested commit itself, so both sides are equal"))
        sides = tools.workspaces, self._tools.workspaces
        changed = await steering_between(self._suites[0], *sides, tools.redact) if order.needs_base else ()
        return BaseSide(wanted=wanted.ref, commit=found.commit, changed=changed)

    async def _recover(self, remains: RunFolder, run: RunResult) -> None:
        """Store what a killed run has captured."""
        tools = self._tools

        def transcribe() -> SessionTranscript:
            return transcript_of(run, tools.redact(run.config.prompt), [*remains.records()])

        try:
            transcript = await anyio.to_thread.run_sync(transcribe)
            # A run that was over, and only found no room for its files, has been evaluated already.
            if not run.evaluations:
                evaluators = tools.evaluators(run.config) if transcript.entries else ()
                context = EvalContext(run.config, None, transcript, run.api, None)
                results = [await run_evaluator(evaluator, context, tools.redact) for evaluator in evaluators]
                evaluations = {result.metric: result for result in results}
                run = run.replace(finished_at=remains.last_heard, evaluations=evaluations)
            await anyio.to_thread.run_sync(remains.finish, run, transcript)
        except StorageError as exc:
            self._emit(Warned(f"{run.run_id} was killed, and its result could not be stored: {exc.message}"))
        else:
            self._emit(Warned(f"{run.run_id} was killed; what it captured is stored as an interrupted run"))

    def _schedule(self) -> None:
        """Say how it goes, once it is known whether there is a base."""
        order, suites, has_base = self._order, self._suites, bool(self._base and self._base.commit)
        stored = order.stored
        # Who replays spends nothing, whatever the recorded sessions did cost.
        prices = {} if order.replay else money.known_prices(self._prepared.history, stored)
        budget = None if order.replay else money.budget(suites, order.budget_usd)
        self._purse = Purse(budget, prices)
        self._rounds: FixedRounds | AdaptiveRounds = FixedRounds(suites, self._purse)
        sides = 2 if has_base else int(self._base is not None and any(each.stored for each in stored.values()))
        if sides:
            elsewhere = self._prepared.elsewhere
            self._rounds = AdaptiveRounds(suites, self._emit, self._purse, stored, elsewhere, has_base=has_base)
        self._forecast = None
        if not order.replay:
            self._forecast = money.forecast(suites, prices, sides=sides, budget_usd=budget, stored=stored)

    async def _until_asked(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work, and cancel it as soon as an end is asked for."""

        async def cancel() -> None:
            await self._asked.wait()
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(cancel)
            await work()
            group.cancel_scope.cancel()

    async def _heed_signals(self) -> None:
        """The first ends the sessions in good order, the second kills them, the third ends Zelda where it stands."""
        end, kill = "ending the sessions and keeping what they did", "killing the sessions and removing what they made"
        with handlers_kept(), anyio.open_signal_receiver(*ending_signals()) as signals:
            async for _ in signals:
                if self._urgent.is_set():
                    _quit()
                elif self._asked.is_set():
                    self._urgent.set()
                    self._emit(Warned(f"interrupted again: {kill}"))
                else:
                    self._asked.set()
                    self._emit(Warned(f"interrupted: {end}; once more to kill them"))

    async def _hasten(self) -> None:
        """Once it is urgent, have all processes of runs killed, also those that are started while their runs end."""
        await self._urgent.wait()
        for run in self._runs:
            run.hurry()
        with anyio.move_on_after(CLEANING_SECONDS):
            while True:
                await anyio.to_thread.run_sync(folder.kill_supervised)
                await anyio.sleep(POLL_SECONDS)
        _quit()

    async def _perform_all(self) -> None:
        """Whatever may run is waiting for a slot, and each run that ends may bring more."""
        async with anyio.create_task_group() as under_way:
            self._begin(under_way)

    def _begin(self, under_way: TaskGroup) -> None:
        if self._asked.is_set():
            return
        planned, prepared = self._rounds.next(), self._prepared
        labels = tuple(each.label for each in planned)
        expected = tuple(prepared.expected_seconds.get(each.suite.name) for each in planned)
        if not self._has_begun:
            confined = f"isolation: {', '.join(sorted({prepared.isolation.of(suite) for suite in self._suites}))}"
            self._emit(BatchStarted(labels, self._order.jobs, confined, expected, self._forecast))
        elif planned:
            self._emit(RoundStarted(labels, expected))
        self._has_begun = True
        for each in planned:
            run = SuiteRun(each, self._id, self._arms[each.side])
            self._runs.append(run)
            under_way.start_soon(self._take_turn, run, under_way)

    async def _take_turn(self, run: SuiteRun, under_way: TaskGroup) -> None:
        async with self._slots, self._turn_in_the_dark():
            await self._perform(run)
        self._begin(under_way)

    async def _perform(self, run: SuiteRun) -> None:
        price = self._purse.begin(run.planned.suite.name)
        try:
            if price is not None:
                await run.perform()
        finally:
            if price is not None:
                self._purse.settle(price, run.result)
            if run.result and not self._purse.closed:
                # Nothing more is begun where every further run would be refused as well, or enough have failed.
                self._failures += run.result.side is Side.HEAD and run_outcome(run.result) > Outcome.PASSED
                failed, most = format_count(self._failures, "run"), self._order.max_failures
                enough = f"{failed} did not pass" if most and self._failures >= most else None
                self._purse.closed = refused(run.result) or enough
            self._rounds.take(run.planned, run.result)

    @asynccontextmanager
    async def _turn_in_the_dark(self) -> AsyncIterator[None]:
        """One at a time until a price is known: together they could cost any multiple of the budget."""
        async with AsyncExitStack() as held:
            if self._purse.is_in_the_dark:
                await held.enter_async_context(self._first)
                if not self._purse.is_in_the_dark:
                    await held.aclose()
            yield

    def _result(self) -> BatchResult:
        finished = [run.result for run in self._runs if run.result]
        # Suite by suite, whatever the order in which they ran.
        places = {suite: place for place, suite in enumerate(dict.fromkeys(run.suite for run in finished))}
        finished.sort(key=lambda run: (places[run.suite], run.trial))
        return BatchResult(
            batch_id=self._id,
            started_at=self._started_at,
            finished_at=datetime.now(UTC),
            interrupted=self._asked.is_set(),
            planned=sum(run.planned.side is Side.HEAD for run in self._runs),
            runs=tuple(run for run in finished if run.side is Side.HEAD),
            base_runs=tuple(run for run in finished if run.side is Side.BASE),
            arms=self._rounds.ends(),
            base=self._base,
            ended=self._purse.closed if self._purse.unpaid else None,
            budget_usd=self._purse.budget_usd,
            notes=self._notes,
            failing_before=dict(self._checker.failing) if self._checker else {},
        )


# What the API says to a run and would say to every other, by code of the failure.
REFUSALS = {
    "AUTHENTICATION_FAILED": "the API refused the key",
    "BILLING_FAILED": "the account could not pay",
    "MODEL_NOT_FOUND": "the API knew no such model",
    "JUDGE_AUTHENTICATION_FAILED": "the API refused the judge's key",
    "JUDGE_BILLING_FAILED": "the judge's account could not pay",
    "JUDGE_MODEL_NOT_FOUND": "the API knew no such judge's model",
}


def refused(result: RunResult) -> str | None:
    """Why no further run could go better; nothing where one might. A replay asks nobody."""
    codes = [result.failure.code if result.failure else None, *(each.code for each in result.evaluations.values())]
    return None if result.replayed else next((REFUSALS[code] for code in codes if code in REFUSALS), None)
