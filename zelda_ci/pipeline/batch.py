"""The runs of one invocation, one after the other or side by side; recovery of killed ones; interruption."""

import os
import signal
import uuid
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime

import anyio
import anyio.to_thread

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.run import BatchResult
from zelda_ci.errors import EXIT_INTERRUPTED, StorageError
from zelda_ci.events import BatchStarted, Emit, Warned
from zelda_ci.metrics.base import run_evaluator
from zelda_ci.pipeline.run import SuiteRun
from zelda_ci.pipeline.tools import PlannedRun, Tools
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
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
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


async def run_batch(
    plan: Sequence[PlannedRun], tools: Tools, emit: Emit, *, jobs: int, interruption: Interruption
) -> BatchResult:
    """Run the plan, `jobs` at a time; once an end is asked for, end what runs, keep it, and start nothing more."""
    started_at = datetime.now(UTC)
    batch_id = f"{started_at:%Y-%m-%dT%H-%M-%S}-{uuid.uuid4().hex[:4]}"
    runs = [SuiteRun(planned, batch_id, tools, emit) for planned in plan]
    slots = anyio.CapacityLimiter(jobs)

    async def take_turn(run: SuiteRun) -> None:
        async with slots:
            await run.perform()

    expected = tuple(tools.expected_seconds.get(planned.suite.name) for planned in plan)
    emit(BatchStarted(tuple(planned.label for planned in plan), jobs, tools.isolation, expected))
    async with anyio.create_task_group() as group:
        group.start_soon(_hurry, interruption.urgent, runs)
        async with anyio.create_task_group() as turns:
            turns.start_soon(interruption.cancel, turns.cancel_scope)
            async with anyio.create_task_group() as under_way:
                for run in runs if not interruption.asked.is_set() else ():
                    under_way.start_soon(take_turn, run)
            turns.cancel_scope.cancel()
        group.cancel_scope.cancel()
    finished = tuple(run.result for run in runs if run.result)
    return BatchResult(
        batch_id=batch_id,
        started_at=started_at,
        finished_at=datetime.now(UTC),
        interrupted=interruption.asked.is_set(),
        planned=len(plan),
        runs=finished,
    )


async def _hurry(urgent: anyio.Event, runs: Sequence[SuiteRun]) -> None:
    await urgent.wait()
    for run in runs:
        run.hurry()
