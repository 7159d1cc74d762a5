"""One run: workspace, setup, session, changes, evaluation, result."""

import functools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

import anyio
import anyio.to_thread

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import SessionRecord, SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.errors import ExecutionError, ZeldaError
from zelda_ci.events import Emit, Phase, PhaseStarted, RunFinished, RunStarted, SessionProgressed, Warned
from zelda_ci.execution import launch
from zelda_ci.execution.agent import ModelEndpoint, SessionOutcome, SessionRequest
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest import plugins, settings
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.execution.manifest.scan import memory_lines, scan
from zelda_ci.execution.manifest.told import as_told
from zelda_ci.metrics.functional_correctness import check_usable
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.patience import MAX_WAIT_SECONDS, Patience
from zelda_ci.model_proxy.pricing import Models
from zelda_ci.model_proxy.run import Allowed
from zelda_ci.model_proxy.witness import TranscriptWitness
from zelda_ci.pipeline import confinement
from zelda_ci.pipeline.digests import TreeDigests
from zelda_ci.pipeline.evaluation import evaluate, judge, protect, what_was_felt
from zelda_ci.pipeline.fingerprints import fingerprint_of, tree_digests
from zelda_ci.pipeline.tools import PlannedRun, Tools
from zelda_ci.redact import SafeText
from zelda_ci.storage.images import IMAGES, ImageFolder
from zelda_ci.storage.result_store import RunState

# Tools with which a session may make the API turn to addresses.
WEB = {"WebFetch", "WebSearch"}

# Of sessions that ended because the API did not answer.
API_CODES = frozenset({"API_FAILED", "API_UNREACHABLE"})

# Of a replay from its recording that are told one by one.
MAX_DIFFERENCES = 5


async def run_session(
    planned: PlannedRun, workspace: Workspace, tools: Tools, state: RunState, emit: Emit
) -> TranscriptWitness:
    """Run the session; records how it went, what it said and what it used. Returns who saw what its model was told.

    Raises:
        ZeldaError: It could not even be started.
    """
    suite, run_id = planned.suite, state.folder.run_id
    folders = {"workspace": workspace.path, "root": workspace.root, "home": workspace.home, "tmp": workspace.tmp}
    places = {name: str(folder) for name, folder in folders.items()}
    overruled = await anyio.to_thread.run_sync(settings.find_overrides, workspace, tools.redact)
    find_pins = functools.partial(plugins.find_pins, workspace, tools.redact, mods=suite.isolation.mods)
    pins = await anyio.to_thread.run_sync(find_pins)
    confinement.enter_findings(state, (*overruled.findings, *pins.findings))
    with tools.proxy.session(
        run_label=planned.label,
        budget_usd=suite.execution.max_cost_usd,
        placeholders=places,
        allowed=_allowed(suite),
        # A session lasts at most twice as long as it may.
        patience=Patience(min(MAX_WAIT_SECONDS, suite.execution.timeout_seconds), launch.REQUEST_SECONDS),
    ) as meter:

        def on_record(record: SessionRecord) -> None:
            state.record(record)
            emit(SessionProgressed(run_id, record, state.turns, meter.cost_usd))

        meter.witness.expected = await anyio.to_thread.run_sync(memory_lines, workspace, tools.redact)
        request = SessionRequest(
            session_id=str(uuid.uuid4()),
            prompt=suite.prompt,
            workspace=workspace,
            execution=suite.execution,
            endpoint=_endpoint(suite, workspace, meter),
            stop=meter.exhausted,
            pinned=overruled.variables,
            plugins=pins,
            witness=meter.witness,
            time_limit=meter.patience.time_limit,
            wait_seconds=meter.patience.max_seconds,
            keep_image=ImageFolder(state.folder.path, tools.redact).keep if suite.judge.images else None,
        )
        try:
            _record_end(await tools.agent.run(request, on_record), meter, tools, state)
        finally:
            api = meter.usage()
            state.update(api=api, models=tuple(sorted(api.models)))
    _warn(meter, tools, run_id, emit)
    return meter.witness


def _warn(meter: Meter, tools: Tools, run_id: str, emit: Emit) -> None:
    """Tell what the proxy refused, and where a replay was not exactly the recording."""
    for model in meter.refused_models:
        emit(Warned(f"the session may not ask the model {tools.redact(model)}: see execution.extraModels", run_id))
    for key in meter.refused_keys:
        sentence = f"a request had the key {tools.redact(key)}, which this version of Zelda does not know"
        emit(Warned(f"{sentence}: see execution.requestKeys", run_id))
    for sentence in _about_the_cassette(meter, replayed=tools.replayed):
        emit(Warned(sentence, run_id))


def _allowed(suite: ResolvedSuite) -> Allowed:
    return Allowed(
        models=Models.of(suite.execution.model, suite.execution.extra_models),
        web=any(rule.partition("(")[0] in WEB for rule in suite.execution.allowed_tools),
        keys=suite.execution.request_keys,
    )


def _endpoint(suite: ResolvedSuite, workspace: Workspace, meter: Meter) -> ModelEndpoint:
    """Where the sandbox has no network, its own name of the proxy's socket."""
    closed = suite.isolation.network.session == "none"
    return ModelEndpoint(meter.base_url, meter.token, workspace.confinement.socket if closed else None)


def _record_end(outcome: SessionOutcome, meter: Meter, tools: Tools, state: RunState) -> None:
    state.wall_seconds = outcome.wall_seconds
    status, failure = outcome.status, None
    if status is not SessionStatus.COMPLETED:
        reason = outcome.reason or tools.redact(f"The session ended as {status}.")
        failure = Failure(code=outcome.code or "SESSION_FAILED", message=reason)
    if meter.outage and outcome.code in API_CODES:
        # Claude Code's own words name the proxy's address, which nobody has configured.
        failure = Failure(code="API_UNREACHABLE", message=tools.redact(f"{meter.outage}."))
    if meter.witness.lacks_memory:
        why = "Claude Code told the model nothing of the project's CLAUDE.md files, although it should load them."
        status, failure = SessionStatus.FAILED, Failure(code="MEMORY_MISSING", message=tools.redact(why))
    if differences := meter.witness.differences():
        status, failure = SessionStatus.FAILED, Failure(code="TRANSCRIPT_FORGED", message=_told(differences, tools))
    if meter.failure and tools.replayed:
        status, failure = SessionStatus.FAILED, Failure(code="CASSETTE_MISMATCH", message=meter.failure)
    state.end(status, failure)


def _told(differences: Sequence[str], tools: Tools) -> SafeText:
    """What stands in the transcript that never happened."""
    return tools.redact(
        f"The transcript says what did not pass between Claude Code and the API: {'; '.join(differences)}. "
        "Something has written into Claude Code's output."
    )


def _about_the_cassette(meter: Meter, *, replayed: bool) -> list[str]:
    """What to know about a recording that failed, or a replay that was not exactly the recording."""
    if meter.failure:
        return [] if replayed else [meter.failure]
    differences = [*meter.divergences, *(f"not asked for: {exchange}" for exchange in meter.unused)]
    return [f"the replay was not exactly what was recorded: {text}" for text in differences[:MAX_DIFFERENCES]]


class SuiteRun:
    """One suite, one trial. `result` is there as soon as it is stored, also when the run was cancelled."""

    def __init__(self, planned: PlannedRun, batch_id: str, tools: Tools, emit: Emit) -> None:
        self.suite, self.tools, self.emit = planned.suite, tools, emit
        self.planned, self.batch_id = planned, batch_id
        self.phase_seconds: dict[str, float] = {}
        self.changes: Changes | None = None
        self.offered: ToolsManifest | None = None
        self.tree: TreeDigests | None = None
        self.had: ToolsManifest | None = None
        self.result: RunResult | None = None
        self._concluding: anyio.CancelScope | None = None
        self._hurried = False

    async def perform(self) -> None:
        """Carry the run out and store its result, whatever happens."""
        self.state = await anyio.to_thread.run_sync(self._begin)
        self.emit(RunStarted(self.run_id, self.planned.label))
        try:
            async with AsyncExitStack() as stack:
                with self._phase(Phase.WORKSPACE):
                    opened = self.tools.workspaces.open(self.run_id, self.suite, self.tools.proxy.socket)
                    workspace = await stack.enter_async_context(opened)
                for note in workspace.notes:
                    self.emit(Warned(note, self.run_id))
                confined = confinement.isolation_report(
                    self.planned, workspace.confinement, self.tools.isolation_reasons
                )
                self.state.update(source=workspace.source, isolation=confined)
                await self._look(workspace)
                self.tree = await tree_digests(self.tools.workspaces, workspace, self.offered, self.tools.redact)
                await anyio.to_thread.run_sync(self.state.folder.keep_steering, self.tree.lines)
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
            self.offered = await anyio.to_thread.run_sync(scan, workspace, self.tools.redact, refusals)
        except OSError as exc:
            self.emit(Warned(f"what the project offers the session is not known: {exc}", self.run_id))
            return
        confinement.enter_refusals(self.state, self.offered, self.tools.redact)
        await anyio.to_thread.run_sync(self.state.folder.keep_manifest, self.offered)

    def _begin(self) -> RunState:
        now = datetime.now(UTC)
        folder = self.tools.store.begin(self.suite.name, now)
        self.run_id = folder.run_id
        provisional = RunResult(
            run_id=folder.run_id,
            batch_id=self.batch_id,
            suite=self.suite.name,
            trial=self.planned.trial,
            side=self.planned.side,
            look=self.planned.look,
            status=SessionStatus.INTERRUPTED,
            failure=self._interruption(),
            started_at=now,
            finished_at=now,
            versions=self.tools.versions,
            config=self.suite.redacted(self.tools.redact),
            replayed=self.tools.replayed,
        )
        return RunState(folder, provisional, self.tools.redact)

    def _interruption(self) -> Failure:
        return Failure(
            code="INTERRUPTED",
            message=self.tools.redact("The run was stopped before it was over (Ctrl+C, or a signal)."),
        )

    async def _work(self, workspace: Workspace) -> None:
        try:
            try:
                await self._set_up(workspace)
                with self._phase(Phase.SESSION):
                    witness = await run_session(self.planned, workspace, self.tools, self.state, self.emit)
                    await anyio.to_thread.run_sync(self._heed_told, witness)
                    self._heed_bounds(workspace)
            except ZeldaError as exc:
                self._fail(exc)
            await self._conclude(workspace)
        except anyio.get_cancelled_exc_class():
            if self.result is None:
                self.state.end(SessionStatus.INTERRUPTED, self._interruption())
                with anyio.move_on_after(self.tools.conclusion_seconds, shield=True) as self._concluding:
                    if self._hurried:
                        self._concluding.cancel()
                    await self._conclude(workspace)
            raise

    def _heed_told(self, witness: TranscriptWitness) -> None:
        """What Claude Code withheld from the model, no session could use."""
        if self.offered:
            self.offered = as_told(self.offered, tuple(witness.listings), witness.tools, self.tools.redact)
            self.state.folder.keep_manifest(self.offered)

    def _heed_bounds(self, workspace: Workspace) -> None:
        """A session that was ended for what it took of the machine looks like a crash of the CLI otherwise."""
        if limit := self.tools.workspaces.limit(workspace):
            self.emit(Warned(f"the session reached a bound: {limit}", self.run_id))
            if self.state.known.status is SessionStatus.FAILED:
                self.state.end(SessionStatus.FAILED, Failure(code="BOUND_REACHED", message=limit))

    async def _set_up(self, workspace: Workspace) -> None:
        command, limit = self.suite.setup_command, self.suite.command_timeout_seconds
        if command is None:
            return
        with self._phase(Phase.SETUP):
            done = await self.tools.bench.set_up(workspace, "setup", self.suite)
        self.state.update(setup=done.in_brief(self.tools.redact))
        check_usable("setupCommand", done, workspace.confinement.environment)
        if done.exit_code != 0:
            how = f"ran into its limit of {limit:g} s" if done.timed_out else f"ended with exit code {done.exit_code}"
            last_line = done.output.rstrip().rpartition("\n")[2]
            raise ExecutionError(f"setupCommand {how}: {last_line or 'no output'}", code="SETUP_FAILED")
        await self.tools.workspaces.remember(workspace)

    async def _conclude(self, workspace: Workspace) -> None:
        with self._phase(Phase.EVALUATION):
            # Once: what build and tests write, in a run that is interrupted meanwhile, is not the session's work.
            self.changes = self.changes or await self._changes(workspace)
            transcript = await anyio.to_thread.run_sync(self.state.transcript)
            images = self.state.folder.path / IMAGES
            context = EvalContext(self.suite, workspace, transcript, self.state.known.api, self.changes, images=images)
            if self.state.records:
                self.had = resolve_loaded(self.offered, transcript, self.tools.redact) if self.offered else None
                context = await protect(replace(context, manifest=self.had), self.tools, self.state, self.emit)
                context = await evaluate(context, self.tools, self.state)
                # The judges read what the session left, not what was tested.
                context = replace(context, workspace=workspace)
                await judge(self.planned.label, context, self.tools, self.state, self.emit)
        await self._store()

    async def _changes(self, workspace: Workspace) -> Changes | None:
        """What the session changed. Where that cannot be had the run is broken: nobody knows what it would show."""
        try:
            changes = await self.tools.workspaces.changes(workspace, self.state.folder.patch_file)
        except ZeldaError as exc:
            self._miss(f"What the session changed is not known: {exc.message}", exc.hint)
            return None
        self.state.update(changes=changes)
        confinement.enter_ignored(self.state, changes.ignored)
        return changes

    def _miss(self, sentence: str, hint: str | None) -> None:
        """Enter that evidence is missing, unless the run is broken or cut short already."""
        self.emit(Warned(sentence[:1].lower() + sentence[1:], self.run_id))
        if self.state.known.status.is_valid:
            self.state.fail(ExecutionError(sentence, hint=hint, code="CHANGES_UNKNOWN"))

    def _fail(self, exc: ZeldaError) -> None:
        if self.result:
            self.emit(Warned(exc.message, self.run_id))
        else:
            self.state.fail(exc)

    async def _store(self) -> None:
        """In a thread, because a durable write may take long and other sessions stream meanwhile."""
        self.state.update(phase_seconds=self.phase_seconds)
        if self.tree:
            self.state.update(fingerprint=fingerprint_of(self.state.known, self.tree, self.tools.system))
        self._enter_steering()
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(lambda: self.state.store(self.state.transcript()))
        self.result = result
        self.emit(RunFinished(result))

    def _enter_steering(self) -> None:
        """What the session felt, so that nobody needs its transcript to know which suites a change may concern."""
        felt = what_was_felt(self.state.known, self.had, self.state.transcript(), self.tools.redact)
        if felt:
            self.state.update(steering=felt.units, touched=felt.touched)

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        self.emit(PhaseStarted(self.run_id, phase))
        began = monotonic()
        try:
            yield
        finally:
            self.phase_seconds[phase.value] = round(monotonic() - began, 3)
