"""The runs of one invocation, one after the other or side by side; recovery of killed ones; interruption."""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from time import monotonic

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, EvalContext, RunResult
from zelda_ci.domain.trials import BaseSide, Side
from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import EXIT_INTERRUPTED, StorageError, WorkspaceError
from zelda_ci.events import RunsPlanned, Warned
from zelda_ci.files import locks
from zelda_ci.metrics.base import run_evaluator
from zelda_ci.pipeline.attribution import Investigation
from zelda_ci.pipeline.checking import Checker, about_contents, about_the_tree, check_fair
from zelda_ci.pipeline.evaluation import Tools, with_results
from zelda_ci.pipeline.fingerprints import steering_between
from zelda_ci.pipeline.planning import Budget, Rounds, forecast, known_prices
from zelda_ci.pipeline.run import SuiteRun
from zelda_ci.redact import SafeText
from zelda_ci.storage.codec import transcript_of
from zelda_ci.storage.result_store import RunFolder
from zelda_ci.workspace import folder

# How long what runs have made is removed after a second signal; what is left then, the next start sweeps.
CLEANING_SECONDS = 30.0
POLL_SECONDS = 0.1
# What the API says to a run and would say to every other, by code of the failure.
REFUSALS = {
    "AUTHENTICATION_FAILED": "the API refused the key",
    "BILLING_FAILED": "the account could not pay",
    "ACCESS_DENIED": "the API denied access",
    "MODEL_NOT_FOUND": "the API knew no such model",
    "JUDGE_AUTHENTICATION_FAILED": "the API refused the judge's key",
    "JUDGE_BILLING_FAILED": "the judge's account could not pay",
    "JUDGE_ACCESS_DENIED": "the API denied the judge access",
    "JUDGE_MODEL_NOT_FOUND": "the API knew no such judge's model",
}
# Codes of runs that an API failed which may answer again, and after how many of them in a row nothing more is begun: so
# many for each that runs side by side, since those meet the same minute.
OUTAGES = {"API_FAILED", "API_OVERLOADED", "API_UNREACHABLE", "RATE_LIMITED"}
OUTAGES |= {"JUDGE_API_FAILED", "JUDGE_OVERLOADED", "JUDGE_RATE_LIMITED", "JUDGE_UNREACHABLE"}
MAX_OUTAGES = 3


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
    """The runs of one invocation, by the order or by a search; a checker tries what they need before the first."""

    def __init__(self, tools: Tools, checker: Checker | None, search: Investigation | None = None) -> None:
        self._tools, self._checker, self._search = tools, checker, search
        self._emit, self._prepared = tools.emit, tools.prepared
        self._order, self._suites = self._prepared.order, self._prepared.suites
        self._is_stopped, self._stoppable = False, anyio.CancelScope()
        self._varied = cache(tools.workspaces.varied)
        self._base: BaseSide | None = None
        self._notes: tuple[SafeText, ...] = ()
        self._runs, self._failures, self._outages, self._failing = list[SuiteRun](), 0, 0, dict[str, SafeText]()

    async def run(self, preload: threading.Thread) -> BatchResult:
        """From the first look at what is tested to the last result."""
        # Importing the SDK takes longer than everything that comes before the session: let it begin now. Not earlier:
        # what the event loop imports by itself is no import of ours, and would not wait.
        preload.start()
        locks.on_wait.set(lambda sentence: self._emit(Warned(sentence)))
        async with anyio.create_task_group() as group:
            group.start_soon(self._obey_signals, group)
            with self._until_stopped():
                await self._prepare()
            async with self._tools.proxy, self._tools.judge_proxy:
                if self._checker:
                    with self._until_stopped():
                        self._failing = await self._checker.check_first()
                self._started_at, self._began = datetime.now(UTC), monotonic()
                self._id = f"{self._started_at:%Y-%m-%dT%H-%M-%S}-{uuid.uuid4().hex[:4]}"
                self._schedule()
                with self._until_stopped():
                    async with anyio.create_task_group() as under_way:
                        self._begin(under_way)
            group.cancel_scope.cancel()
        return self._result()

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        """Leave a block as soon as an end is asked for."""
        with anyio.CancelScope() as self._stoppable:
            if self._is_stopped:
                self._stoppable.cancel()
            yield

    async def _obey_signals(self, group: TaskGroup) -> None:
        """The first ends the sessions in good order, the second kills them, the third ends Zelda where it stands."""
        with handlers_kept(), anyio.open_signal_receiver(*ending_signals()) as signals:
            await anext(signals)
            self._is_stopped = True
            self._stoppable.cancel()
            self._emit(Warned("interrupted: ending the sessions and keeping what they did; once more to kill them"))
            await anext(signals)
            self._emit(Warned("interrupted again: killing the sessions and removing what they made"))
            group.start_soon(self._kill)
            await anext(signals)
            _quit()

    async def _kill(self) -> None:
        """Have all processes of runs killed, also those that are started while their runs end."""
        for run in self._runs:
            run.conclusion.cancel()
        with anyio.move_on_after(CLEANING_SECONDS):
            while True:
                await anyio.to_thread.run_sync(folder.kill_supervised)
                await anyio.sleep(POLL_SECONDS)
        _quit()

    async def _prepare(self) -> None:
        """Look at what is tested, and clean up after every dead Zelda process; live ones are not touched."""
        source = await self._tools.workspaces.inspect()
        for sentence in about_the_tree(source):
            self._emit(Warned(sentence))
        self._notes = tuple(map(self._tools.redact, about_contents(source.contents)))
        self._base = await self._found_base(source)
        await self._tools.workspaces.sweep()
        with closing(self._prepared.store.unfinished()) as unfinished:
            while remains := await anyio.to_thread.run_sync(next, unfinished, None):
                await self._recover(*remains)

    async def _found_base(self, tested: WorkspaceSource) -> BaseSide | None:
        """The base, where one is asked for and anything runs beside it."""
        wanted, is_needed = self._order.against, self._order.needs_base
        suites = (*self._suites, *self._prepared.elsewhere)
        if wanted is None or self._search or not self._order.compares(suites):
            return None
        try:
            found = await self._prepared.base_workspaces.inspect()
            check_fair(found.contents, tested.contents)
        except WorkspaceError as problem:
            if is_needed:
                raise
            self._emit(Warned(f"nothing runs side by side with the base: {problem.message}"))
            return BaseSide(wanted=wanted.ref, problem=self._tools.redact(problem.message))
        if found.commit == tested.commit:
            self._emit(Warned("the base is the tested commit itself, so both sides are equal"))
        changed = await steering_between(self._prepared) if is_needed else ()
        return BaseSide(wanted=wanted.ref, commit=found.commit, changed=changed)

    async def _recover(self, remains: RunFolder, run: RunResult) -> None:
        """Store what a killed run has captured."""
        tools, prompt = self._tools, self._tools.redact(run.config.prompt)
        try:
            transcript = await anyio.to_thread.run_sync(lambda: transcript_of(run, prompt, [*remains.records()]))
            # A run that was over, and only found no room for its files, has been evaluated already.
            if not run.evaluations:
                evaluators = tools.evaluators(run.config) if transcript.entries else ()
                context = EvalContext(run.config, None, transcript, run.api, None)
                results = [await run_evaluator(evaluator, context, tools.redact) for evaluator in evaluators]
                run = with_results(run, results, finished_at=max(run.started_at, remains.last_heard))
            await anyio.to_thread.run_sync(remains.finish, run, transcript)
        except StorageError as exc:
            self._emit(Warned(f"{run.run_id} was killed, and its result could not be stored: {exc.message}"))
        else:
            self._emit(Warned(f"{run.run_id} was killed; what it captured is stored as an interrupted run"))

    def _schedule(self) -> None:
        """Say how it goes, once it is known whether there is a base."""
        order, suites, stored = self._order, self._suites, self._order.stored
        has_stored = self._base is not None and any(each.stored for each in stored.values())
        sides = 2 if self._base and self._base.commit else int(has_stored)
        self._rounds: Rounds | Investigation
        self._forecast, self._budget = None, Budget()
        # Who replays spends nothing, whatever the recorded sessions did cost.
        if not order.replay:
            prices = known_prices(self._prepared.store, stored)
            self._forecast = forecast(order, suites, prices, sides=sides)
            self._budget = Budget(self._forecast.budget_usd, prices)
        # One at a time until a price is known: together they could cost any multiple of the budget.
        self._slots = anyio.CapacityLimiter(1 if self._budget.price_is_unknown else order.jobs)
        if self._search:
            self._rounds, self._search.budget, self._forecast = self._search, self._budget, None
        else:
            self._rounds = Rounds(suites, self._emit, self._budget, stored, self._prepared.elsewhere, sides=sides)

    def _begin(self, under_way: TaskGroup) -> None:
        """Let what may run wait for a slot."""
        if self._is_stopped:
            return
        planned, prepared = self._rounds.next(), self._prepared
        if self._search and self._search.attribution.rounds:
            # A kill loses no round that is over.
            prepared.store.keep_attribution(self._id, self._search.attribution)
        expected = {each.label: prepared.expected_seconds.get(each.suite.name) for each in planned}
        if not self._runs:
            confined = f"isolation: {', '.join(sorted({prepared.isolation.of(suite) for suite in self._suites}))}"
            self._emit(RunsPlanned(expected, self._order.jobs, confined, self._forecast))
        elif planned:
            self._emit(RunsPlanned(expected, self._order.jobs))
        for each in planned:
            files = prepared.base_workspaces if each.side is Side.BASE else self._tools.workspaces
            files = self._varied(each.variant) if each.variant else files
            run = SuiteRun(each, self._id, replace(self._tools, workspaces=files))
            self._runs.append(run)
            under_way.start_soon(self._perform, run, under_way)

    async def _perform(self, run: SuiteRun, under_way: TaskGroup) -> None:
        """Carry a run out, if the budget allows it; it may bring more."""
        budget, suite = self._budget, run.planned.suite.name
        async with self._slots:
            try:
                if budget.start(suite):
                    await run.perform()
                    budget.finish(suite, run.result)
            finally:
                self._rounds.take(run.planned, run.result)
            if not budget.price_is_unknown:
                self._slots.total_tokens = self._order.jobs
            if run.result and not budget.closed:
                # Nothing more is begun where every further run would be refused as well, or enough have failed.
                self._failures += run.result.side is Side.HEAD and run_outcome(run.result) > Outcome.PASSED
                failed, most = format_count(self._failures, "run"), self._order.max_failures
                enough = f"{failed} did not pass" if most and self._failures >= most else None
                parts = () if run.result.replayed else (run.result.failure, *run.result.evaluations.values())
                self._outages = self._outages + 1 if any(it and it.code in OUTAGES for it in parts) else 0
                if self._outages >= MAX_OUTAGES * self._order.jobs:
                    enough = f"the API failed {self._outages} runs in a row"
                budget.closed = refused(run.result) or enough
        self._begin(under_way)

    def _result(self) -> BatchResult:
        finished = [run.result for run in self._runs if run.result]
        # Suite by suite, whatever the order in which they ran.
        places = {suite: place for place, suite in enumerate(dict.fromkeys(run.suite for run in finished))}
        finished.sort(key=lambda run: (places[run.suite], run.trial))
        return BatchResult(
            batch_id=self._id,
            started_at=self._started_at,
            finished_at=self._started_at + timedelta(seconds=monotonic() - self._began),
            interrupted=self._is_stopped,
            planned=sum(run.planned.side is Side.HEAD for run in self._runs),
            runs=tuple(run for run in finished if run.side is Side.HEAD),
            base_runs=tuple(run for run in finished if run.side is Side.BASE),
            arms=self._rounds.ends() if isinstance(self._rounds, Rounds) else (),
            base=self._base,
            ended=self._budget.closed if self._budget.skipped else None,
            budget_usd=self._budget.limit_usd,
            notes=self._notes,
            failing_before=self._failing,
        )


def refused(result: RunResult) -> str | None:
    """Why no further run could go better; nothing where one might. A replay asks nobody."""
    # Where it had answers, or the proxy refused what was asked, another run may have its own.
    is_denied = "403" in result.api.errors and not result.api.models
    own = result.failure and (is_denied or result.failure.code != "ACCESS_DENIED") and result.failure.code
    codes = [own, *(each.code for each in result.evaluations.values())]
    return None if result.replayed else next((REFUSALS[code] for code in codes if code in REFUSALS), None)
