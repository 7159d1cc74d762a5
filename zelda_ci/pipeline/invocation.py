"""One invocation from its first look at the project to its last run."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio

from zelda_ci.domain.run import BatchResult
from zelda_ci.events import Emit, Warned
from zelda_ci.files import locks
from zelda_ci.overrides import Overrides, apply
from zelda_ci.pipeline import checking, evaluation
from zelda_ci.pipeline.batch import Interruption, recover, run_batch
from zelda_ci.pipeline.checking import Checker, about_the_tree
from zelda_ci.pipeline.tools import JudgeFactory, PlannedRun, Tools
from zelda_ci.storage.history import FinishedRun


async def invoke(
    tools: Tools,
    plan: Sequence[PlannedRun],
    jobs: int,
    emit: Emit,
    preload: threading.Thread,
    checker: Checker | None,
) -> BatchResult:
    """Look at what is tested, clean up, try what the runs need, and run them; signals end it early.

    Raises:
        ZeldaError: No run could go well.
    """
    # Importing the SDK takes longer than everything that comes before the session: let it begin now. Not earlier:
    # what the event loop imports by itself is no import of ours, and would not wait.
    preload.start()
    interruption = Interruption()
    locks.on_wait.set(lambda sentence: emit(Warned(sentence)))
    async with anyio.create_task_group() as group:
        group.start_soon(interruption.heed_signals, emit)
        group.start_soon(interruption.hasten)
        await _prepare(tools, interruption, emit)
        async with tools.proxy, tools.judging.proxy:
            if checker:
                await checking.check_first(checker, interruption, emit)
            batch = await run_batch(plan, tools, emit, jobs=jobs, interruption=interruption)
        group.cancel_scope.cancel()
    return batch


async def _prepare(tools: Tools, interruption: Interruption, emit: Emit) -> None:
    """Look at what is tested and clean up after the dead, unless interrupted."""
    async with anyio.create_task_group() as group:
        group.start_soon(interruption.cancel, group.cancel_scope)
        source = await tools.workspaces.inspect()
        for sentence in about_the_tree(source):
            emit(Warned(sentence))
        await recover(tools, emit)
        group.cancel_scope.cancel()


async def rejudge_each(
    runs: Sequence[FinishedRun], judging: JudgeFactory, overrides: Overrides, emit: Emit, *, check: bool
) -> BatchResult:
    """Judge stored runs again, one after the other, once each judge has answered.

    Raises:
        ZeldaError: A judge does not answer, or a run cannot be read or written.
    """
    started_at = datetime.now(UTC)
    async with judging.proxy:
        if check:
            suites = [apply(run.result().config, overrides) for run in runs]
            await checking.check_judges(suites, judging.proxy, judging.redact, emit)
        results = [await evaluation.rejudge(run, judging, emit, overrides) for run in runs]
    return BatchResult(
        batch_id=results[0].batch_id, started_at=started_at, finished_at=datetime.now(UTC), runs=tuple(results)
    )
