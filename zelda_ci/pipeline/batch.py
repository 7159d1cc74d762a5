"""The runs of one invocation, one after the other or side by side; recovery of killed ones; interruption."""

import os
import signal
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from zelda_ci.domain.arms import BaseSide, Forecast
from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import EXIT_INTERRUPTED, StorageError
from zelda_ci.events import BatchStarted, Emit, RoundStarted, Warned
from zelda_ci.metrics.base import run_evaluator
from zelda_ci.pipeline.arms import Rounds
from zelda_ci.pipeline.money import Purse
from zelda_ci.pipeline.run import SuiteRun
from zelda_ci.pipeline.tools import Tools
from zelda_ci.redact import SafeText
from zelda_ci.storage.run_folder import InterruptedRun
from zelda_ci.workspace import folder


async def recover(tools: Tools, emit: Emit) -> None:
    """Clean up after every dead Zelda process of this project; live ones are not touched."""
    await tools.workspaces.sweep()
    with closing(tools.store.unfinished()) as unfinished:
        while remains := await anyio.to_thread.run_sync(next, unfinished, None):
            await _recovered(remains, tools, emit)


async def _recovered(remains: InterruptedRun, tools: Tools, emit: Emit) -> None:
    run_id = remains.provisional.run_id
    try:
        await _finish(remains, tools)
    except StorageError as exc:
        emit(Warned(f"{run_id} was killed, and its result could not be stored: {exc.message}"))
    else:
        emit(Warned(f"{run_id} was killed; what it captured is stored as an interrupted run"))


async def _finish(remains: InterruptedRun, tools: Tools) -> None:
    transcript = await anyio.to_thread.run_sync(remains.transcript)
    run = remains.provisional
    # A run that was over, and only found no room for its files, has been evaluated already.
    if not run.evaluations:
        evaluators = tools.evaluators(run.config) if transcript.entries else ()
        context = EvalContext(run.config, None, transcript, run.api, None)
        results = [await run_evaluator(evaluator, context, tools.redact) for evaluator in evaluators]
        evaluations = {result.metric: result for result in results}
        run = run.replace(finished_at=remains.last_heard, evaluations=evaluations)
    await anyio.to_thread.run_sync(remains.folder.finish, run, transcript)


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


class Interruption:
    """Of one invocation."""

    def __init__(self) -> None:
        self.asked, self.urgent = anyio.Event(), anyio.Event()

    async def cancel(self, scope: anyio.CancelScope) -> None:
        """Cancel what is under way as soon as it is asked for."""
        await self.asked.wait()
        scope.cancel()

    async def heed_signals(self, emit: Emit) -> None:
        """The first ends the sessions in good order, the second kills them, the third ends Zelda where it stands."""
        with handlers_kept(), anyio.open_signal_receiver(*ending_signals()) as signals:
            async for _ in signals:
                if self.urgent.is_set():
                    _quit()
                elif self.asked.is_set():
                    self.urgent.set()
                    emit(Warned("interrupted again: killing the sessions and removing what they made"))
                else:
                    self.asked.set()
                    emit(Warned("interrupted: ending the sessions and keeping what they did; once more to kill them"))

    async def hasten(self) -> None:
        """Have all processes of runs killed, also those that are started while their runs end."""
        await self.urgent.wait()
        with anyio.move_on_after(CLEANING_SECONDS):
            while True:
                await anyio.to_thread.run_sync(folder.kill_supervised)
                await anyio.sleep(POLL_SECONDS)
        _quit()


def _quit() -> None:
    _show_cursor()
    os._exit(EXIT_INTERRUPTED)


def _show_cursor() -> None:
    """A live display may have hidden it, and will not come to show it again."""
    for stream in (1, 2):
        if os.isatty(stream):
            os.write(stream, b"\x1b[?25h\n")


@dataclass(frozen=True)
class BatchOrder:
    """How an invocation goes."""

    rounds: Rounds
    purse: Purse
    jobs: int
    forecast: Forecast | None = None
    base: BaseSide | None = None
    notes: tuple[SafeText, ...] = ()
    """What to know of the tested tree."""
    failing_before: Mapping[str, SafeText] = field(default_factory=dict)
    """By suite, what of its build and tests fails before any session."""
    max_failures: int | None = None
    """Runs of the head that do not pass, after which nothing more is begun."""


class Batch:
    """The runs of one invocation, `jobs` at a time; once an end is asked for, what runs ends and nothing more starts.

    Args:
        order: How it goes.
        arms: What the runs of each side work with.
        emit: Who listens.
        interruption: Says when to end.
    """

    def __init__(self, order: BatchOrder, arms: Mapping[Side, Tools], emit: Emit, interruption: Interruption) -> None:
        self._order, self._arms, self._emit, self._interruption = order, arms, emit, interruption
        self._started_at = datetime.now(UTC)
        self._id = f"{self._started_at:%Y-%m-%dT%H-%M-%S}-{uuid.uuid4().hex[:4]}"
        self._runs: list[SuiteRun] = []
        self._slots = anyio.CapacityLimiter(order.jobs)
        self._first = anyio.Lock()
        self._has_begun = False
        self._failures = 0

    async def run(self) -> BatchResult:
        """Carry it out: whatever may run is waiting for a slot, and each run that ends may bring more."""
        async with anyio.create_task_group() as group:
            group.start_soon(_hurry, self._interruption.urgent, self._runs)
            async with anyio.create_task_group() as turns:
                turns.start_soon(self._interruption.cancel, turns.cancel_scope)
                async with anyio.create_task_group() as under_way:
                    self._begin(under_way)
                turns.cancel_scope.cancel()
            group.cancel_scope.cancel()
        return self._result()

    def _begin(self, under_way: TaskGroup) -> None:
        if not self._interruption.asked.is_set():
            for run in self._next_runs():
                under_way.start_soon(self._take_turn, run, under_way)

    def _next_runs(self) -> list[SuiteRun]:
        planned = self._order.rounds.next()
        labels = tuple(each.label for each in planned)
        expected = tuple(self._arms[each.side].expected_seconds.get(each.suite.name) for each in planned)
        if not self._has_begun:
            isolation = self._arms[Side.HEAD].isolation
            self._emit(BatchStarted(labels, self._order.jobs, isolation, expected, self._order.forecast))
        elif planned:
            self._emit(RoundStarted(labels, expected))
        self._has_begun = True
        runs = [SuiteRun(each, self._id, self._arms[each.side], self._emit) for each in planned]
        self._runs += runs
        return runs

    async def _take_turn(self, run: SuiteRun, under_way: TaskGroup) -> None:
        async with self._slots, self._turn_in_the_dark():
            await self._perform(run)
        self._begin(under_way)

    async def _perform(self, run: SuiteRun) -> None:
        price = self._order.purse.begin(run.planned.suite.name)
        try:
            if price is not None:
                await run.perform()
        finally:
            if price is not None:
                self._order.purse.settle(price, run.result)
            self._end_early(run.result)
            self._order.rounds.take(run.planned, run.result)

    def _end_early(self, result: RunResult | None) -> None:
        """Begin nothing more where every further run would be refused as well, or enough have failed."""
        if result is None or self._order.purse.closed:
            return
        self._failures += result.side is Side.HEAD and run_outcome(result) > Outcome.PASSED
        most = self._order.max_failures
        enough = f"{format_count(self._failures, 'run')} did not pass" if most and self._failures >= most else None
        self._order.purse.closed = refused(result) or enough

    @asynccontextmanager
    async def _turn_in_the_dark(self) -> AsyncIterator[None]:
        """One at a time until a price is known: together they could cost any multiple of the budget."""
        async with AsyncExitStack() as held:
            if self._order.purse.is_in_the_dark:
                await held.enter_async_context(self._first)
                if not self._order.purse.is_in_the_dark:
                    await held.aclose()
            yield

    def _result(self) -> BatchResult:
        finished = [run.result for run in self._runs if run.result]
        return BatchResult(
            batch_id=self._id,
            started_at=self._started_at,
            finished_at=datetime.now(UTC),
            interrupted=self._interruption.asked.is_set(),
            planned=sum(run.planned.side is Side.HEAD for run in self._runs),
            runs=_of_side(finished, Side.HEAD),
            base_runs=_of_side(finished, Side.BASE),
            arms=self._order.rounds.ends(),
            base=self._order.base,
            ended=self._order.purse.closed if self._order.purse.unpaid else None,
            budget_usd=self._order.purse.budget_usd,
            notes=self._order.notes,
            failing_before=dict(self._order.failing_before),
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


def _of_side(runs: Sequence[RunResult], side: Side) -> tuple[RunResult, ...]:
    """Suite by suite, whatever the order in which they ran."""
    places = {suite: place for place, suite in enumerate(dict.fromkeys(run.suite for run in runs))}
    chosen = [run for run in runs if run.side is side]
    return tuple(sorted(chosen, key=lambda run: (places[run.suite], run.trial)))


async def _hurry(urgent: anyio.Event, runs: Sequence[SuiteRun]) -> None:
    await urgent.wait()
    for run in runs:
        run.hurry()
