"""The runs of one invocation, one after the other or side by side."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio

from zelda_ci.domain.run import BatchResult
from zelda_ci.events import BatchStarted, Emit
from zelda_ci.pipeline.interruption import Interruption
from zelda_ci.pipeline.run import Run
from zelda_ci.pipeline.tools import PlannedRun, Tools


async def run_batch(
    plan: Sequence[PlannedRun], tools: Tools, emit: Emit, *, jobs: int, interruption: Interruption
) -> BatchResult:
    """Run the plan, `jobs` at a time; once an end is asked for, end what runs, keep it, and start nothing more."""
    started_at = datetime.now(UTC)
    batch_id = f"{started_at:%Y-%m-%dT%H-%M-%S}-{uuid.uuid4().hex[:4]}"
    runs = [Run(planned, batch_id, tools, emit) for planned in plan]
    slots = anyio.CapacityLimiter(jobs)

    async def take_turn(run: Run) -> None:
        async with slots:
            await run.perform()

    emit(BatchStarted(tuple(planned.label for planned in plan), jobs, tools.isolation))
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
        runs=finished,
    )


async def _hurry(urgent: anyio.Event, runs: Sequence[Run]) -> None:
    await urgent.wait()
    for run in runs:
        run.hurry()
