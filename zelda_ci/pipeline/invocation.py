"""One invocation from its first look at the project to its last run."""

import threading
from collections.abc import Sequence

import anyio

from zelda_ci.domain.run import BatchResult
from zelda_ci.events import Emit, Warned
from zelda_ci.files import locks
from zelda_ci.pipeline import checking
from zelda_ci.pipeline.batch import Interruption, recover, run_batch
from zelda_ci.pipeline.checking import Checker, about_the_tree
from zelda_ci.pipeline.tools import PlannedRun, Tools


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
