"""What runs share: the services of one side, commands in a workspace, and the request of a session."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from zelda_ci import metrics
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.events import Emit, Phase, PhaseStarted
from zelda_ci.execution.launch import Pins, SessionRequest
from zelda_ci.metrics.base import CommandRequest, Evaluator, Ran, Services
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.redact import Redactor
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.clean_checkout import CheckedOut
from zelda_ci.workspace.reports import Watch
from zelda_ci.workspace.workspaces import Workspaces


class WorkspaceCommandRunner:
    """Runs commands in workspaces and emits their phases; what they print is kept where there is a store.

    Raises `WorkspaceError` where no process could be started, and `StorageError` where its output could not be kept: a
    result that rests on it would have no evidence.
    """

    def __init__(self, workspaces: Workspaces, store: ResultStore | None, emit: Emit) -> None:
        self._workspaces, self._store, self._emit = workspaces, store, emit

    async def run(self, workspace: Workspace, order: CommandRequest) -> Ran:
        """Run a command that decides, and collect the reports it wrote."""
        self._emit(PhaseStarted(workspace.run_id, Phase(order.step)))
        watch = await anyio.to_thread.run_sync(Watch, workspace, order.reports, abandon_on_cancel=True)
        result = await self._command(workspace, order)
        return Ran(result, *await anyio.to_thread.run_sync(watch.written, abandon_on_cancel=True))

    async def set_up(self, workspace: Workspace, suite: ResolvedSuite, log: str = "setup") -> CommandResult:
        """Run a suite's setup command where nothing has run yet."""
        order = CommandRequest("setup", suite.setup_command or (), suite.command_timeout_seconds, log=log)
        return await self._command(workspace, order)

    async def set_up_again(self, checked: CheckedOut, suite: ResolvedSuite) -> CommandResult:
        """Run setup in a fresh checkout, and bring that to the session's files; the first that failed counts."""
        done = await self.set_up(checked.workspace, suite, "setup-again")
        if done.exit_code == 0 and checked.update:
            limit = suite.command_timeout_seconds
            updated = await self._workspaces.run_command(checked.workspace, checked.update, limit, phase="zelda")
            return done if updated.exit_code == 0 else updated
        return done

    async def _command(self, workspace: Workspace, order: CommandRequest) -> CommandResult:
        """Run a command; its output becomes a file, also where Zelda is interrupted."""

        def keep(done: CommandResult) -> None:
            if self._store:
                self._store.keep_log(workspace.run_id, order.log or order.step, done.output)

        command, limit = order.command, order.timeout_seconds
        return await self._workspaces.run_command(
            workspace, command, limit, phase=order.step, buffer=order.buffer, keep=keep
        )


@dataclass(frozen=True)
class Tools:
    """What the runs of one side work with."""

    prepared: Prepared
    workspaces: Workspaces
    proxy: ModelProxy
    judge_proxy: ModelProxy
    emit: Emit

    @property
    def redact(self) -> Redactor:
        return self.prepared.redact

    @property
    def commands(self) -> WorkspaceCommandRunner:
        return WorkspaceCommandRunner(self.workspaces, self.prepared.store, self.emit)

    def evaluators(self, suite: ResolvedSuite) -> Sequence[Evaluator]:
        """Those that need no judge."""
        return metrics.unjudged(suite.metrics, Services(self.commands, self.redact))


def session_request(suite: ResolvedSuite, place: Workspace, meter: Meter, pins: Pins) -> SessionRequest:
    """The request of a suite's session in a workspace."""
    # Where the sandbox has no network, its own name of the proxy's socket.
    socket = place.confinement.socket if suite.isolation.network.session == "none" else None
    return SessionRequest(str(uuid.uuid4()), suite.prompt, place, suite.execution, meter, pins, socket)
