"""One run: workspace, setup, session, changes, evaluation, result."""

import math
import platform
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from time import monotonic

import anyio
import anyio.to_thread
import orjson

from zelda_ci import __version__
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.numbers import duration
from zelda_ci.domain.run import EvalContext, Failure, RunResult, Versions
from zelda_ci.domain.session import SessionRecord, SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import Changes, IsolationReport, SettingFinding, Workspace
from zelda_ci.errors import ExecutionError, ZeldaError
from zelda_ci.events import Phase, PhaseStarted, RunFinished, RunStarted, SessionProgressed, Warned
from zelda_ci.execution import claude_code
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.launch import Pins, SessionRequest
from zelda_ci.execution.manifest.loading import note_listings, resolve_loaded
from zelda_ci.execution.manifest.pins import find_pins
from zelda_ci.execution.manifest.scan import memory_lines, scan
from zelda_ci.execution.outcome import SessionOutcome, of_api_error
from zelda_ci.metrics.functional_correctness import check_usable, ending
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.rate_limits import MAX_WAIT_SECONDS, RateLimitWait
from zelda_ci.pipeline.evaluation import Tools, evaluate, update_isolation
from zelda_ci.pipeline.fingerprints import TreeDigests, fingerprint_of, tree_digests
from zelda_ci.pipeline.planning import PlannedRun
from zelda_ci.storage import codec
from zelda_ci.storage.result_store import IMAGES, MANIFEST, STEERING, ImageFolder, RunState

VERSIONS = Versions(zelda=__version__, agent_sdk=version("claude-agent-sdk"), python=platform.python_version())
# Tools with which a session may make the API turn to addresses.
WEB = {"WebFetch", "WebSearch"}
# Of sessions that were ended at a limit, which they may have reached because the API did not answer.
LIMITS = {SessionStatus.TIMED_OUT, SessionStatus.BUDGET_EXCEEDED}
# Without a byte of an answer, until an API is taken to have failed a session whose time is over.
SILENT_SECONDS = 30.0
# Of sessions that ended because the API did not answer.
API_CODES = frozenset({"API_FAILED", "API_UNREACHABLE"})
INTERRUPTED = "The run was stopped before it was over (Ctrl+C, or a signal)."
# Only there can what a session starts look into the processes that hold its token, Zelda's own included.
FORGEABLE = "At level none a hostile session can forge what is recorded of it."


def session_request(suite: ResolvedSuite, place: Workspace, meter: Meter, pins: Pins) -> SessionRequest:
    """The request of a suite's session in a workspace."""
    # Where the sandbox has no network, its own name of the proxy's socket.
    socket = place.confinement.socket if suite.isolation.network.session == "none" else None
    return SessionRequest(str(uuid.uuid4()), suite.prompt, place, suite.execution, meter, pins, socket)


class SuiteRun:
    """One suite, one trial. `result` is there as soon as it is stored, also when the run was cancelled."""

    def __init__(self, planned: PlannedRun, batch_id: str, tools: Tools) -> None:
        self.planned, self.batch_id, self.tools = planned, batch_id, tools
        self.suite, self.emit, self.redact = planned.suite, tools.emit, tools.redact
        self.changes: Changes | None = None
        self.offered: ToolsManifest | None = None
        self.tree: TreeDigests | None = None
        self.result: RunResult | None = None
        self.conclusion = anyio.CancelScope(shield=True)
        """Of looking at what an interrupted session left; where it is cancelled, only what was captured is stored."""
        self.interrupted = Failure(code="INTERRUPTED", message=self.redact(INTERRUPTED))

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
                self.state.update(source=workspace.source)
                await self._look(workspace)
                await self._work(workspace)
        except ZeldaError as exc:
            if self.result:
                self.emit(Warned(exc.message, self.run_id))
            else:
                self.state.fail(exc)
        finally:
            if self.result is None:
                await self._store()

    def _begin(self) -> RunState:
        now, prepared = datetime.now(UTC), self.tools.prepared
        folder = prepared.store.begin(self.suite.name, now)
        self.run_id = folder.run_id
        variant = self.planned.variant or (prepared.order.variant if self.planned.side is Side.HEAD else None)
        provisional = RunResult(
            run_id=folder.run_id,
            batch_id=self.batch_id,
            suite=self.suite.name,
            trial=self.planned.trial,
            side=self.planned.side,
            look=self.planned.look,
            variant=self.redact(variant.name) if variant else None,
            status=SessionStatus.INTERRUPTED,
            failure=self.interrupted,
            started_at=now,
            finished_at=now,
            versions=VERSIONS,
            config=self.suite.redacted(self.redact),
            replayed=prepared.replayed,
        )
        folder.announce(provisional)
        return RunState(folder, provisional, self.redact, self.interrupted)

    async def _look(self, workspace: Workspace) -> None:
        """Note how the session is isolated and what it finds, before anything has run there."""
        level, asked, prepared = workspace.confinement.level, self.suite.isolation, self.tools.prepared
        lacking = prepared.isolation.offered.reasons if level != "full" and asked.level == "auto" else ()
        reasons = (*lacking, FORGEABLE) if level == "none" else lacking
        overruled = prepared.order.overruled.get(self.suite.name, ())
        report = IsolationReport(level=level, reasons=reasons, network=asked.network, findings=overruled)
        self.state.update(isolation=report)
        try:
            self.offered = await anyio.to_thread.run_sync(scan, workspace.root, workspace.path, self.redact, refusals)
        except OSError as exc:  # that costs one metric
            self.emit(Warned(f"what the project offers the session is not known: {exc}", self.run_id))
        else:
            # No session of the run has what Claude Code refuses of the project's settings files.
            whole, found = self.redact("the whole file"), self.offered.refused
            refused = (SettingFinding(file=it.file, setting=it.key or whole, effect=it.effect) for it in found)
            update_isolation(self.state, refused)
            await anyio.to_thread.run_sync(self.state.folder.keep, MANIFEST, codec.encode(self.offered, indent=2))
        self.tree = await tree_digests(self.tools.workspaces, workspace, self.offered, self.redact)
        await anyio.to_thread.run_sync(self.state.folder.keep, STEERING, orjson.dumps(self.tree.lines))

    async def _work(self, workspace: Workspace) -> None:
        try:
            try:
                if self.suite.setup_command is not None:
                    await self._set_up(workspace)
                with self._phase(Phase.SESSION):
                    await self._run_session(workspace)
            except ZeldaError as exc:
                self.state.fail(exc)
            await self._conclude(workspace)
        except anyio.get_cancelled_exc_class():
            if self.result is None:
                self.state.update(status=SessionStatus.INTERRUPTED, failure=self.interrupted)
                self.conclusion.deadline = anyio.current_time() + self.tools.prepared.order.conclusion_seconds
                with self.conclusion:
                    await self._conclude(workspace)
            raise

    async def _run_session(self, workspace: Workspace) -> None:
        """Run the session; records how it went, what it said and what it used."""
        suite, tools, state, redact = self.suite, self.tools, self.state, self.redact
        folders = {"workspace": workspace.path, "root": workspace.root, "home": workspace.home, "tmp": workspace.tmp}
        pins = await anyio.to_thread.run_sync(lambda: find_pins(workspace, redact, mods=suite.isolation.mods))
        update_isolation(state, pins.findings)
        async with tools.proxy.session(
            run_label=self.planned.label,
            budget_usd=suite.execution.max_cost_usd,
            placeholders={name: str(folder) for name, folder in folders.items()},
            allowed=Allowed(
                model=suite.execution.model,
                more_models=suite.execution.extra_models,
                web=any(rule.partition("(")[0] in WEB for rule in suite.execution.allowed_tools),
                keys=suite.execution.request_keys,
            ),
            # A session lasts at most twice as long as it may.
            wait=RateLimitWait(min(MAX_WAIT_SECONDS, suite.execution.timeout_seconds)),
        ) as meter:
            noted = 0

            def on_record(record: SessionRecord) -> None:
                nonlocal noted
                state.record(record)
                # More and more seldom, since each time all of them are added up.
                if len(state.responses) > 1.1 * noted:
                    noted = len(state.responses)
                    # The answer may not have come to its end, and Claude Code may have asked for others.
                    api = meter.usage()
                    least = {name: used.replace(cost_known=False) for name, used in api.models.items()}
                    state.keep_cost(api=api.replace(models=least))
                self.emit(SessionProgressed(self.run_id, record, len(state.responses), meter.cost_usd))

            meter.ends_at_call = suite.kind == "routing"
            meter.context.expected = await anyio.to_thread.run_sync(memory_lines, workspace, redact)
            keep_image = ImageFolder(state.folder.path, redact).keep if suite.judge.images else None
            request = replace(session_request(suite, workspace, meter, pins), keep_image=keep_image)
            try:
                self._end_session(await claude_code.run_session(request, on_record, redact), meter)
            finally:
                state.keep_cost(api=meter.usage())
        for sentence in (*map(self.redact, sorted(meter.remarks)), *meter.cassette.remarks):
            self.emit(Warned(sentence, self.run_id))
        if self.offered:
            # What Claude Code withheld from the model, no session could use.
            self.offered = note_listings(self.offered, tuple(meter.context.listings), meter.context.tools, redact)
            await anyio.to_thread.run_sync(self.state.folder.keep, MANIFEST, codec.encode(self.offered, indent=2))
        # A session that was ended for what it took of the machine looks like a crash of the CLI otherwise.
        if limit := tools.workspaces.limit(workspace):
            self.emit(Warned(f"the session reached a bound: {limit}", self.run_id))
            if state.known.status is SessionStatus.FAILED:
                state.update(status=SessionStatus.FAILED, failure=Failure(code="BOUND_REACHED", message=limit))

    def _end_session(self, outcome: SessionOutcome, meter: Meter) -> None:
        self.state.wall_seconds, status = outcome.wall_seconds, outcome.status
        if self.suite.kind == "routing" and status is SessionStatus.MAX_TURNS:
            # To have called nothing by then is an answer, too.
            status = SessionStatus.COMPLETED
        code, why = outcome.code or "SESSION_FAILED", outcome.reason or f"The session ended as {status}."
        patience = min(SILENT_SECONDS, self.suite.execution.timeout_seconds / 2)
        error = meter.failure_at_end(patience if status is SessionStatus.TIMED_OUT else math.inf)
        if error and status in LIMITS:
            # Nobody knows how the session would have gone on: that is no failure of the suite.
            status, known = SessionStatus.FAILED, of_api_error(int(error)) if error.isdigit() else None
            code, said = known or ("API_UNREACHABLE", f"{meter.outage or 'The API gave no usable answer'}.")
            why = f"{why} {said}"
        elif meter.outage and outcome.code in API_CODES:
            code, why = "API_UNREACHABLE", f"{meter.outage}."
        if code == "RATE_LIMITED" and meter.wait.refused_for:
            why = f"{why.rstrip('.')}. The API asks to wait for {duration(meter.wait.refused_for)}."
        # Claude Code's own words name the proxy's address, which nobody has configured.
        why = why.replace(
            meter.base_url.partition("//")[2], self.tools.proxy.address.partition("//")[2] or "a recording"
        )
        if meter.context.lacks_memory:
            status, code = SessionStatus.FAILED, "MEMORY_MISSING"
            why = "Claude Code told the model nothing of the project's CLAUDE.md files, although it should load them."
        if differences := meter.transcript_check.differences():
            status, code = SessionStatus.FAILED, "TRANSCRIPT_FORGED"
            why = f"The transcript says what did not pass between Claude Code and the API: {'; '.join(differences)}."
            why = f"{why} Something has written into Claude Code's output."
        if meter.cassette.failure and self.tools.prepared.replayed:
            status, code, why = SessionStatus.FAILED, "CASSETTE_MISMATCH", meter.cassette.failure
        failure = None if status is SessionStatus.COMPLETED else Failure(code=code, message=self.redact(why))
        self.state.update(status=status, failure=failure)

    async def _set_up(self, workspace: Workspace) -> None:
        with self._phase(Phase.SETUP):
            done = await self.tools.commands.set_up(workspace, self.suite)
        self.state.update(setup=done.in_brief(self.redact))
        check_usable("setupCommand", done, workspace.confinement.environment)
        if done.exit_code != 0:
            last_line = done.output.rstrip().rpartition("\n")[2]
            why = f"setupCommand {ending(self.suite, done)}: {last_line or 'no output'}"
            raise ExecutionError(why, code="SETUP_FAILED")
        await self.tools.workspaces.remember(workspace)

    async def _conclude(self, workspace: Workspace) -> None:
        with self._phase(Phase.EVALUATION):
            # Once: what build and tests write, in a run that is interrupted meanwhile, is not the session's work.
            self.changes = self.changes or await self._changes(workspace)
            if self.state.records:
                transcript = await anyio.to_thread.run_sync(self.state.transcript)
                manifest = resolve_loaded(self.offered, transcript, self.redact) if self.offered else None
                known = (self.suite, workspace, transcript, self.state.known.api, self.changes)
                context = EvalContext(*known, images=self.state.folder.path / IMAGES, manifest=manifest)
                await evaluate(self.planned.label, context, self.tools, self.state)
        await self._store()

    async def _changes(self, workspace: Workspace) -> Changes | None:
        """What the session changed. Where that cannot be had the run is broken: nobody knows what it would show."""
        try:
            changes = await self.tools.workspaces.changes(workspace, self.state.folder.patch_file)
        except ZeldaError as exc:
            self.emit(Warned(f"what the session changed is not known: {exc.message}", self.run_id))
            if self.state.known.status.is_valid:
                sentence = f"What the session changed is not known: {exc.message}"
                self.state.fail(ExecutionError(sentence, hint=exc.hint, code="CHANGES_UNKNOWN"))
            return None
        self.state.update(changes=changes)
        if changes.ignored:
            update_isolation(self.state, ignored=changes.ignored)
        return changes

    async def _store(self) -> None:
        """In a thread, because a durable write may take long and other sessions stream meanwhile."""
        if self.tree:
            self.state.update(fingerprint=fingerprint_of(self.state.known, self.tree, self.tools.prepared.environ))
        with anyio.CancelScope(shield=True):
            self.result = result = await anyio.to_thread.run_sync(self.state.store)
        self.emit(RunFinished(result))

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        self.emit(PhaseStarted(self.run_id, phase))
        began = monotonic()
        try:
            yield
        finally:
            seconds = {**self.state.known.phase_seconds, phase.value: round(monotonic() - began, 3)}
            self.state.update(phase_seconds=seconds)
