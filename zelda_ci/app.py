"""The composition root: the only module that knows every concrete class. Branches here are about wiring."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio

from zelda_ci import __version__, metrics
from zelda_ci.config import project, secret_files, settings
from zelda_ci.config.own_files import OwnFiles
from zelda_ci.config.project import LoadedProject, select
from zelda_ci.config.settings import EnvironmentSettings
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, Versions
from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.errors import ConfigError, ExecutionError
from zelda_ci.events import Emit, Warned
from zelda_ci.execution import claude_code, launch
from zelda_ci.files import locks
from zelda_ci.judge import anthropic_judge
from zelda_ci.judge.anthropic_judge import JudgeAccess
from zelda_ci.judge.base import Judge
from zelda_ci.metrics.base import Evaluator, JudgeServices, Services
from zelda_ci.model_proxy import pricing, proxy
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.modes import API_URL, LiveMode, Mode, RecordMode, ReplayMode, Upstream
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline import evaluation
from zelda_ci.pipeline.batch import Interruption, recover, run_batch
from zelda_ci.pipeline.confinement import confined, in_one_line
from zelda_ci.pipeline.tools import JudgeFactory, PlannedRun, Tools, WorkspaceCommandRunner
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.storage import references
from zelda_ci.storage.history import FinishedRun, RunHistory
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces

JUDGE_KEY_MISSING = "PORTKEY_API_KEY is not set, and the judge behind the gateway needs it."


@dataclass(frozen=True)
class RejudgeOrder:
    """What `zelda rejudge` was asked for."""

    names: Sequence[str]
    judge_model: str | None = None


@dataclass(frozen=True)
class RunOrder:
    """What `zelda run` was asked for; without names and tags, every suite."""

    names: Sequence[str] = ()
    tags: Sequence[str] = ()
    trials: int | None = None
    jobs: int = 1
    record: Path | None = None
    replay: Path | None = None
    isolation: str | None = None
    """A level, or auto, whatever the suites say."""
    require_isolation: IsolationLevel | None = None
    unsafe: bool = False
    """Whether a run may have no isolation at all."""
    conclusion_seconds: float = 60
    """Most that changes and evaluation may take once a run was interrupted."""


def load(folder: Path) -> LoadedProject:
    """The project that a folder belongs to.

    Raises:
        ConfigError: With every problem of every file.
    """
    return project.load(folder)


def run(loaded: LoadedProject, order: RunOrder, environ: Mapping[str, str], emit: Emit) -> BatchResult:
    """Run what was ordered; one `anyio.run` around the whole.

    Raises:
        ZeldaError: Before anything is spent, if the order, the environment or the project cannot be used.
    """
    wanted = select(loaded.suites, order.names, order.tags)
    suites = [confined(suite.resolved, order.isolation, order.require_isolation) for suite in wanted]
    tools = _tools(loaded, order, suites, environ, emit)
    judged = any(suite.acceptance_criteria and suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) for suite in suites)
    preload = threading.Thread(target=_preload, kwargs={"live": order.replay is None, "judged": judged}, daemon=True)
    try:
        return anyio.run(_run, tools, _plan(suites, order.trials), order.jobs, emit, preload)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def rejudge(loaded: LoadedProject, order: RejudgeOrder, environ: Mapping[str, str], emit: Emit) -> BatchResult:
    """Judge stored runs again, one after the other.

    Raises:
        ZeldaError: A run is not there or cannot be read or written, or there is no key.
    """
    known = settings.read_environment(environ)
    redact = Redactor(known.secrets())
    stored = RunHistory(loaded.results_dir)
    names = dict.fromkeys(references.find_run(stored, name) for name in order.names)
    runs = [FinishedRun(stored.folder(name)) for name in names]
    gateway = next((suite.resolved.gateway_url for suite in loaded.suites), None)
    judging = _judging(LiveMode(_judge_upstream(gateway, known, environ)), redact)
    try:
        return anyio.run(_rejudge, runs, judging, order.judge_model, emit)
    except BaseExceptionGroup as group:
        raise _first(group) from group


async def _rejudge(runs: Sequence[FinishedRun], judging: JudgeFactory, model: str | None, emit: Emit) -> BatchResult:
    started_at = datetime.now(UTC)
    async with judging.proxy:
        results = [await evaluation.rejudge(run, judging, emit, judge_model=model) for run in runs]
    return BatchResult(
        batch_id=results[0].batch_id, started_at=started_at, finished_at=datetime.now(UTC), runs=tuple(results)
    )


def _preload(*, live: bool, judged: bool) -> None:
    """First what the main thread needs first."""
    proxy.preload(live=live)
    claude_code.preload()
    if judged:
        anthropic_judge.preload()


def _first(group: BaseExceptionGroup) -> BaseException:
    """The failure that a task group wraps; of several the first, unless somebody wanted it to end."""
    leaves = [_first(found) if isinstance(found, BaseExceptionGroup) else found for found in group.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, KeyboardInterrupt)), leaves[0])


def _plan(suites: Sequence[ResolvedSuite], trials: int | None) -> list[PlannedRun]:
    return [
        PlannedRun(suite, trial, f"{suite.name}-{trial}" if count > 1 else suite.name)
        for suite in suites
        for count in [trials or suite.trials]
        for trial in range(1, count + 1)
    ]


def _isolation(suites: Sequence[ResolvedSuite], order: RunOrder, environ: Mapping[str, str]) -> Isolation:
    """What runs are confined with; protection that was asked for and is not there stops the run, before it costs."""
    try:
        cli = launch.find_cli()
    except ExecutionError:  # every session will say so
        cli = None
    unsafe = order.unsafe or environ.get("ZELDA_UNSAFE") == "1"
    isolation = Isolation(levels.probe(environ, cli), unsafe=unsafe, programs=[cli] if cli else [])
    for suite in suites:
        isolation.of(suite)
    return isolation


def _mode(order: RunOrder, known: EnvironmentSettings, environ: Mapping[str, str]) -> Mode:
    if order.record and order.replay:
        raise ConfigError("--record and --replay exclude each other.", hint="Give one of them.", code="USAGE")
    if order.replay:
        return ReplayMode(order.replay)
    upstream = _direct(known, environ, "a session")
    return RecordMode(upstream, order.record) if order.record else LiveMode(upstream)


def _direct(known: EnvironmentSettings, environ: Mapping[str, str], who: str) -> Upstream:
    if known.anthropic_api_key is None:
        raise ConfigError(
            f"ANTHROPIC_API_KEY is not set, and {who} needs it.",
            hint="Set it in the environment: export ANTHROPIC_API_KEY=... "
            "(`zelda demo` and `zelda run --replay` work without a key.)",
            code="API_KEY_MISSING",
        )
    return Upstream.with_api_key(known.anthropic_api_key, known.anthropic_base_url or API_URL, environ)


def _judge_upstream(gateway_url: str | None, known: EnvironmentSettings, environ: Mapping[str, str]) -> Upstream:
    """The gateway where one is configured, with its own key; the key of sessions never goes there."""
    gateway = known.portkey_gateway_url or gateway_url
    if gateway is None:
        return _direct(known, environ, "the judge")
    if known.portkey_api_key is None:
        hint = "Set it in the environment, or unset gatewayUrl and PORTKEY_GATEWAY_URL to ask the API directly."
        raise ConfigError(JUDGE_KEY_MISSING, hint=hint, code="JUDGE_KEY_MISSING")
    return Upstream.with_portkey(known.portkey_api_key, gateway, known.portkey_routing, environ)


def _judge_mode(
    order: RunOrder, suites: Sequence[ResolvedSuite], known: EnvironmentSettings, environ: Mapping[str, str]
) -> Mode:
    if order.replay:
        return ReplayMode(order.replay)
    wanted = [suite for suite in suites if metrics.ask_judge(suite.metrics)]
    gateway = wanted[0].gateway_url if wanted else None
    upstream = _judge_upstream(gateway, known, environ) if wanted else _direct(known, environ, "a session")
    return RecordMode(upstream, order.record) if order.record else LiveMode(upstream)


def _judging(mode: Mode, redact: Redactor) -> JudgeFactory:
    def make_judge(suite: ResolvedSuite, meter: Meter, notify: Callable[[str], None]) -> Judge:
        access = JudgeAccess(
            base_url=meter.base_url,
            token=meter.token,
            model=suite.judge_model,
            context_tokens=suite.judge.context_tokens,
            max_tokens=suite.judge.max_tokens,
            timeout_seconds=suite.judge.timeout_seconds,
        )
        return anthropic_judge.AnthropicJudge(access, redact, _price, notify)

    def bench(suite: ResolvedSuite, judge: Judge, nonce: str) -> Sequence[Evaluator]:
        return metrics.judged(suite.metrics, JudgeServices(judge, nonce, redact))

    return JudgeFactory(ModelProxy(mode, redact), make_judge, bench, redact)


def _price(model: str, usage: Mapping[str, Any]) -> float:
    return pricing.cost_usd(model, pricing.from_usage(usage))


def _tools(
    loaded: LoadedProject,
    order: RunOrder,
    suites: Sequence[ResolvedSuite],
    environ: Mapping[str, str],
    emit: Emit,
) -> Tools:
    known = settings.read_environment(environ)
    lying = secret_files.find_secrets(loaded.root, environ, {name for suite in suites for name in suite.execution.env})
    if lying.left_out:
        emit(Warned(f"{lying.left_out} values of .env files or variables are too large to be masked in results"))
    redact = Redactor([*known.secrets(), *lying.secrets])
    isolation = _isolation(suites, order, environ)
    reasons = isolation.offered.reasons
    own = OwnFiles.of(loaded, [order.record, order.replay])
    workspaces = Workspaces(loaded.root, loaded.results_dir, environ, redact, isolation, own)
    store = ResultStore(loaded.results_dir)
    bench = WorkspaceCommandRunner(workspaces, store, emit)
    return Tools(
        workspaces=workspaces,
        bench=bench,
        proxy=ModelProxy(_mode(order, known, environ), redact),
        agent=claude_code.ClaudeCode(redact),
        store=store,
        evaluators=lambda suite: metrics.unjudged(suite.metrics, Services(bench, redact)),
        judging=_judging(_judge_mode(order, suites, known, environ), redact),
        redact=redact,
        versions=Versions(
            zelda=__version__,
            agent_sdk=version("claude-agent-sdk"),
            python=".".join(map(str, sys.version_info[:3])),
        ),
        replayed=order.replay is not None,
        conclusion_seconds=order.conclusion_seconds,
        isolation_reasons=reasons,
        isolation=in_one_line({isolation.of(suite) for suite in suites}, reasons),
    )


async def _run(
    tools: Tools, plan: Sequence[PlannedRun], jobs: int, emit: Emit, preload: threading.Thread
) -> BatchResult:
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
            batch = await run_batch(plan, tools, emit, jobs=jobs, interruption=interruption)
        group.cancel_scope.cancel()
    return batch


async def _prepare(tools: Tools, interruption: Interruption, emit: Emit) -> None:
    """Look at what is tested and clean up after the dead, unless interrupted."""
    async with anyio.create_task_group() as group:
        group.start_soon(interruption.cancel, group.cancel_scope)
        await tools.workspaces.inspect()
        await recover(tools, emit)
        group.cancel_scope.cancel()
