"""What becomes of runs that were killed: their remains are removed, and what they captured becomes a result."""

from contextlib import closing

import anyio.to_thread

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.errors import StorageError
from zelda_ci.evaluators.base import run_evaluator
from zelda_ci.events import Emit, Warned
from zelda_ci.pipeline.tools import Tools
from zelda_ci.storage.run_folder import Remains


async def recover(tools: Tools, emit: Emit) -> None:
    """Clean up after every dead Zelda process of this project; live ones are not touched."""
    await tools.workspaces.sweep()
    with closing(tools.store.unfinished()) as found:
        while remains := await anyio.to_thread.run_sync(next, found, None):
            await _recovered(remains, tools, emit)


async def _recovered(remains: Remains, tools: Tools, emit: Emit) -> None:
    run_id = remains.provisional.run_id
    try:
        await _finish(remains, tools)
    except StorageError as exc:
        emit(Warned(f"{run_id} was killed, and its result could not be stored: {exc.message}"))
    else:
        emit(Warned(f"{run_id} was killed; what it captured is stored as an interrupted run"))


async def _finish(remains: Remains, tools: Tools) -> None:
    transcript = await anyio.to_thread.run_sync(remains.transcript)
    run = remains.provisional
    # A run that was over, and only found no room for its files, has been evaluated already.
    if not run.evaluations:
        evaluators = tools.evaluators(run.config) if transcript.entries else ()
        context = EvalContext(run.config, None, transcript, run.api, None)
        results = [await run_evaluator(evaluator, context, tools.redact) for evaluator in evaluators]
        evaluations = {result.metric: result for result in results}
        run = run.model_copy(update={"finished_at": remains.last_heard, "evaluations": evaluations})
    await anyio.to_thread.run_sync(remains.folder.finish, run, transcript)
