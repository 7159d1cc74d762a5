"""Where the suite's commands are run: what they print is kept beside the result, whatever becomes of the run."""

from collections.abc import Mapping

import anyio.to_thread

from zelda_ci.domain import workspace as places
from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.suite import Command
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import StorageError
from zelda_ci.evaluators.bench import Order, Ran, Step
from zelda_ci.events import Emit, Phase, PhaseStarted, Warned
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.reports import Watch
from zelda_ci.workspace.workspaces import Workspaces

PHASES = {Step.BUILD: Phase.BUILD, Step.TEST: Phase.TEST}
WALLS: Mapping[str, places.Phase] = {"setup": "setup", "setup-again": "setup", Step.BUILD: "build", Step.TEST: "test"}
"""How each command is confined."""


class WorkspaceBench:
    """Runs commands in workspaces, and tells of it."""

    def __init__(self, workspaces: Workspaces, store: ResultStore, emit: Emit) -> None:
        self._workspaces, self._store, self._emit = workspaces, store, emit

    async def run(self, workspace: Workspace, order: Order) -> Ran:
        """Run a command that decides, and collect the reports it wrote."""
        self._emit(PhaseStarted(workspace.run_id, PHASES[order.step]))
        watch = await anyio.to_thread.run_sync(Watch, workspace, order.reports, abandon_on_cancel=True)
        result = await self.command(workspace, order.step, order.command, order.timeout_seconds)
        written = await anyio.to_thread.run_sync(watch.written, abandon_on_cancel=True)
        return Ran(result, written.files, written.notes)

    async def command(self, workspace: Workspace, step: str, command: Command, timeout_seconds: float) -> CommandResult:
        """Run a command; its output becomes a file, also where Zelda is interrupted.

        Raises:
            WorkspaceError: No process could be started at all.
            StorageError: What it printed could not be kept: a result that rests on it would have no evidence.
        """

        def keep(done: CommandResult) -> None:
            try:
                self._store.keep_log(workspace.run_id, step, done.output)
            except StorageError as problem:
                self._emit(Warned(f"what the {step} command printed is not kept: {problem.message}", workspace.run_id))

        done = await self._workspaces.run_command(
            workspace, command, timeout_seconds, phase=WALLS[step], when_cut_short=keep
        )
        await anyio.to_thread.run_sync(self._store.keep_log, workspace.run_id, step, done.output)
        return done
