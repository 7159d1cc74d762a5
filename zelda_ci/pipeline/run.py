"""The story of a run, readable aloud: workspace, setup, session, changes, evaluation, result."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from time import monotonic

import anyio
import anyio.to_thread

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.loading import settle
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.run import ChangeSummary, Failure, RunResult, TestedSource
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.snapshot import snapshot
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.errors import ExecutionError, ZeldaError
from zelda_ci.events import Emit, Phase, PhaseStarted, RunFinished, RunStarted, Warned
from zelda_ci.execution.manifest import scan
from zelda_ci.pipeline import isolation, tripwire
from zelda_ci.pipeline.evaluation import evaluate, judge
from zelda_ci.pipeline.protecting import protect
from zelda_ci.pipeline.session import lead
from zelda_ci.pipeline.tools import PlannedRun, Tools
from zelda_ci.storage.ledger import RunLedger
from zelda_ci.workspace.tripwire import Watched


class Run:
    """One suite, one trial. `result` is there as soon as it is stored, also when the run was cancelled."""

    def __init__(self, planned: PlannedRun, batch_id: str, tools: Tools, emit: Emit) -> None:
        self.suite, self.tools, self.emit = planned.suite, tools, emit
        self.planned, self.batch_id = planned, batch_id
        self.phase_seconds: dict[str, float] = {}
        self.changes: Changes | None = None
        self.offered: ToolsManifest | None = None
        self.watched: Watched | None = None
        self.result: RunResult | None = None
        self._concluding: anyio.CancelScope | None = None
        self._hurried = False

    async def perform(self) -> None:
        """Carry the run out and store its result, whatever happens."""
        self.ledger = await anyio.to_thread.run_sync(self._begin)
        self.emit(RunStarted(self.run_id, self.planned.label))
        try:
            async with AsyncExitStack() as stack:
                with self._phase(Phase.WORKSPACE):
                    opened = self.tools.workspaces.open(self.run_id, self.suite, self.tools.proxy.socket)
                    workspace = await stack.enter_async_context(opened)
                for note in workspace.notes:
                    self.emit(Warned(note, self.run_id))
                confined = isolation.report(self.suite, workspace.confinement, self.tools.isolation_reasons)
                self.ledger.learn(source=TestedSource(**asdict(workspace.source)), isolation=confined)
                await self._look(workspace)
                self.watched = await tripwire.arm(self.tools, self.ledger, self.emit)
                await self._work(workspace)
        except ZeldaError as exc:
            self._fail(exc)
        finally:
            if self.result is None:
                await self._store()

    def hurry(self) -> None:
        """Leave off looking at what an interrupted session left; what was captured is stored."""
        self._hurried = True
        if self._concluding:
            self._concluding.cancel()

    async def _look(self, workspace: Workspace) -> None:
        """What the project offers, before anything has run there; what cannot be read of it costs one metric."""
        try:
            self.offered = await anyio.to_thread.run_sync(scan, workspace, self.tools.redact)
        except OSError as exc:
            self.emit(Warned(f"what the project offers the session is not known: {exc}", self.run_id))
            return
        await anyio.to_thread.run_sync(self.ledger.folder.keep_manifest, self.offered)

    def _begin(self) -> RunLedger:
        now = datetime.now(UTC)
        folder = self.tools.store.begin(self.suite.name, now)
        self.run_id = folder.run_id
        provisional = RunResult(
            run_id=folder.run_id,
            batch_id=self.batch_id,
            suite=self.suite.name,
            trial=self.planned.trial,
            status=SessionStatus.INTERRUPTED,
            failure=self._interruption(),
            started_at=now,
            finished_at=now,
            versions=self.tools.versions,
            config=snapshot(self.suite, self.tools.redact),
            replayed=self.tools.replayed,
        )
        return RunLedger(folder, provisional, self.tools.redact)

    def _interruption(self) -> Failure:
        return Failure(code="INTERRUPTED", message=self.tools.redact("Zelda was ended before the run was over."))

    async def _work(self, workspace: Workspace) -> None:
        try:
            try:
                await self._set_up(workspace)
                with self._phase(Phase.SESSION):
                    await lead(self.planned, workspace, self.tools, self.ledger, self.emit)
                    self._heed_bounds(workspace)
            except ZeldaError as exc:
                self._fail(exc)
            await self._conclude(workspace)
        except anyio.get_cancelled_exc_class():
            if self.result is None:
                self.ledger.end(SessionStatus.INTERRUPTED, self._interruption())
                with anyio.move_on_after(self.tools.conclusion_seconds, shield=True) as self._concluding:
                    if self._hurried:
                        self._concluding.cancel()
                    await self._conclude(workspace)
            raise

    def _heed_bounds(self, workspace: Workspace) -> None:
        """A session that was ended for what it took of the machine looks like a crash of the CLI otherwise."""
        if limit := self.tools.workspaces.limit(workspace):
            self.emit(Warned(f"the session reached a bound: {limit}", self.run_id))
            if self.ledger.known.status is SessionStatus.FAILED:
                self.ledger.end(SessionStatus.FAILED, Failure(code="BOUND_REACHED", message=limit))

    async def _set_up(self, workspace: Workspace) -> None:
        command, limit = self.suite.setup_command, self.suite.command_timeout_seconds
        if command is None:
            return
        with self._phase(Phase.SETUP):
            done = await self.tools.bench.command(workspace, "setup", command, limit)
        self.ledger.learn(setup=done.in_brief(self.tools.redact))
        if done.exit_code != 0:
            how = f"ran into its limit of {limit:g} s" if done.timed_out else f"ended with exit code {done.exit_code}"
            last_line = done.output.rstrip().rpartition("\n")[2]
            raise ExecutionError(f"setupCommand {how}: {last_line or 'no output'}", code="SETUP_FAILED")

    async def _conclude(self, workspace: Workspace) -> None:
        with self._phase(Phase.EVALUATION):
            # Once: what build and tests write, in a run that is interrupted meanwhile, is not the session's work.
            self.changes = self.changes or await self._changes(workspace)
            transcript = await anyio.to_thread.run_sync(self.ledger.transcript)
            context = EvalContext(self.suite, workspace, transcript, self.ledger.known.api, self.changes)
            if self.ledger.records:
                had = settle(self.offered, transcript, self.tools.redact) if self.offered else None
                context = await protect(replace(context, manifest=had), self.tools, self.ledger, self.emit)
                context = await evaluate(context, self.tools, self.ledger)
                # The judges read what the session left, not what was tested.
                context = replace(context, workspace=workspace)
                await judge(self.planned.label, context, self.tools, self.ledger, self.emit)
            await tripwire.read(self.watched, self.tools, self.ledger, self.emit)
        await self._store()

    async def _changes(self, workspace: Workspace) -> Changes | None:
        """What the session changed. Where that cannot be had the run is broken: nobody knows what it would show."""
        try:
            changes = await self.tools.workspaces.changes(workspace, self.ledger.folder.patch_file)
        except ZeldaError as exc:
            self._miss(f"What the session changed is not known: {exc.message}", exc.hint)
            return None
        facts = asdict(changes)
        del facts["patch"]
        self.ledger.learn(changes=ChangeSummary(**facts))
        return changes

    def _miss(self, sentence: str, hint: str | None) -> None:
        """Enter that evidence is missing, unless the run is broken or cut short already."""
        self.emit(Warned(sentence[:1].lower() + sentence[1:], self.run_id))
        if self.ledger.known.status not in {SessionStatus.FAILED, SessionStatus.INTERRUPTED}:
            self.ledger.fail(ExecutionError(sentence, hint=hint, code="CHANGES_UNKNOWN"))

    def _fail(self, exc: ZeldaError) -> None:
        if self.result:
            self.emit(Warned(exc.message, self.run_id))
        else:
            self.ledger.fail(exc)

    async def _store(self) -> None:
        """In a thread, because a durable write may take long and other sessions stream meanwhile."""
        self.ledger.learn(phase_seconds=self.phase_seconds)
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(lambda: self.ledger.store(self.ledger.transcript()))
        self.result = result
        self.emit(RunFinished(result))

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        self.emit(PhaseStarted(self.run_id, phase))
        began = monotonic()
        try:
            yield
        finally:
            self.phase_seconds[phase.value] = round(monotonic() - began, 3)
