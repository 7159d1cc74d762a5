"""The story of a run, readable aloud: workspace, setup, session, changes, evaluation, result."""

import uuid
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
from zelda_ci.domain.session import SessionRecord, SessionStatus, SessionTranscript
from zelda_ci.domain.snapshot import snapshot
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.errors import ExecutionError, StorageError, ZeldaError
from zelda_ci.evaluators.base import run_evaluator
from zelda_ci.events import Emit, Phase, PhaseStarted, RunFinished, RunStarted, SessionProgressed, Warned
from zelda_ci.execution.agent import ModelEndpoint, SessionOutcome, SessionRequest
from zelda_ci.execution.manifest import scan
from zelda_ci.model_proxy.proxy import Meter
from zelda_ci.pipeline.tools import PlannedRun, Tools
from zelda_ci.storage.ledger import RunLedger

CONCLUSION_SECONDS = 60
"""Most that changes and evaluation may take once a run was interrupted."""


class Run:
    """One suite, one trial. `result` is there as soon as it is stored, also when the run was cancelled."""

    def __init__(self, planned: PlannedRun, batch_id: str, tools: Tools, emit: Emit) -> None:
        self.suite, self.tools, self.emit = planned.suite, tools, emit
        self.planned, self.batch_id = planned, batch_id
        self.phase_seconds: dict[str, float] = {}
        self.meter: Meter | None = None
        self.offered: ToolsManifest | None = None
        self.result: RunResult | None = None

    async def perform(self) -> None:
        """Carry the run out and store its result, whatever happens."""
        self.ledger = self._begin()
        self.emit(RunStarted(self.run_id, self.planned.label))
        try:
            async with AsyncExitStack() as stack:
                with self._phase(Phase.WORKSPACE):
                    workspace = await stack.enter_async_context(self.tools.workspaces.open(self.run_id, self.suite))
                for note in workspace.notes:
                    self.emit(Warned(note, self.run_id))
                self.ledger.learn(source=TestedSource(**asdict(workspace.source)))
                await self._look(workspace)
                await self._work(workspace)
        except ZeldaError as exc:
            self._fail(exc)
        finally:
            if self.result is None:
                self._store()

    async def _look(self, workspace: Workspace) -> None:
        """What the project offers, before anything has run there; not knowing it costs one metric, never the run."""
        try:
            self.offered = await anyio.to_thread.run_sync(scan, workspace, self.tools.redact)
            self.ledger.folder.keep_manifest(self.offered)
        except (OSError, StorageError) as exc:
            self.emit(Warned(f"what the project offers the session is not known: {exc}", self.run_id))

    def _manifest(self, transcript: SessionTranscript) -> ToolsManifest | None:
        """What of it the session really had."""
        return settle(self.offered, transcript, self.tools.redact) if self.offered else None

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
                await self._lead(workspace)
            except ZeldaError as exc:
                self._fail(exc)
            await self._conclude(workspace)
        except anyio.get_cancelled_exc_class():
            if self.result is None:
                self.ledger.end(SessionStatus.INTERRUPTED, self._interruption())
                with anyio.move_on_after(CONCLUSION_SECONDS, shield=True):
                    await self._conclude(workspace)
            raise

    async def _set_up(self, workspace: Workspace) -> None:
        command, limit = self.suite.setup_command, self.suite.command_timeout_seconds
        if command is None:
            return
        with self._phase(Phase.SETUP):
            done = await self.tools.workspaces.run_command(workspace, command, limit)
        self.ledger.learn(setup=done)
        if done.exit_code != 0:
            how = f"ran into its limit of {limit:g} s" if done.timed_out else f"ended with exit code {done.exit_code}"
            last_line = done.output.rstrip().rpartition("\n")[2]
            raise ExecutionError(f"setupCommand {how}: {last_line or 'no output'}", code="SETUP_FAILED")

    async def _lead(self, workspace: Workspace) -> None:
        places = {"workspace": str(workspace.path), "home": str(workspace.home), "tmp": str(workspace.tmp)}
        budget = self.suite.execution.max_cost_usd
        with self.tools.proxy.session(run_label=self.planned.label, budget_usd=budget, placeholders=places) as meter:
            self.meter = meter
            request = SessionRequest(
                session_id=str(uuid.uuid4()),
                prompt=self.suite.prompt,
                workspace=workspace,
                execution=self.suite.execution,
                endpoint=ModelEndpoint(meter.base_url, meter.token),
                stop=meter.exhausted,
            )
            with self._phase(Phase.SESSION):
                self._settle(await self.tools.agent.run(request, self._hear), meter)

    def _hear(self, record: SessionRecord) -> None:
        self.ledger.hear(record)
        spent = self.meter.usage().cost_usd if self.meter else 0.0
        self.emit(SessionProgressed(self.run_id, record, self.ledger.turns, spent))

    def _settle(self, outcome: SessionOutcome, meter: Meter) -> None:
        self.ledger.wall_seconds = outcome.wall_seconds
        failure = None
        if outcome.status is not SessionStatus.COMPLETED:
            reason = outcome.reason or self.tools.redact(f"The session ended as {outcome.status}.")
            failure = Failure(code=outcome.code or "SESSION_FAILED", message=reason)
        if meter.failure:
            failure = Failure(code="CASSETTE_MISMATCH", message=self.tools.redact(meter.failure))
        self.ledger.end(SessionStatus.FAILED if meter.failure else outcome.status, failure)

    async def _conclude(self, workspace: Workspace) -> None:
        with self._phase(Phase.EVALUATION):
            self._count_usage()
            changes = await self._changes(workspace)
            context = EvalContext(self.suite, workspace, self.ledger.transcript(), self.ledger.known.api, changes)
            context = replace(context, manifest=self._manifest(context.transcript))
            evaluators = self.tools.evaluators(self.suite) if self.ledger.records else ()
            results = [await run_evaluator(evaluator, context, self.tools.redact) for evaluator in evaluators]
        self.ledger.learn(evaluations={result.metric: result for result in results})
        self._store()

    async def _changes(self, workspace: Workspace) -> Changes | None:
        """What the session changed; a failure here costs the patch, never the result."""
        try:
            changes = await self.tools.workspaces.changes(workspace, self.ledger.folder.patch_file)
        except ZeldaError as exc:
            self.emit(Warned(f"what the session changed is not known: {exc.message}", self.run_id))
            return None
        facts = asdict(changes)
        del facts["patch"]
        self.ledger.learn(changes=ChangeSummary(**facts))
        return changes

    def _count_usage(self) -> None:
        if self.meter:
            api = self.meter.usage()
            self.ledger.learn(api=api, models=tuple(sorted(api.models)))

    def _fail(self, exc: ZeldaError) -> None:
        if self.result:
            self.emit(Warned(exc.message, self.run_id))
        else:
            self.ledger.fail(exc)

    def _store(self) -> None:
        self.ledger.learn(phase_seconds=self.phase_seconds)
        self.result = self.ledger.store(self.ledger.transcript())
        self.emit(RunFinished(self.result))

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        self.emit(PhaseStarted(self.run_id, phase))
        began = monotonic()
        try:
            yield
        finally:
            self.phase_seconds[phase.value] = round(monotonic() - began, 3)
