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

from zelda_ci import __version__, evaluators, locks
from zelda_ci.config import project, secret_files, settings
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.config.settings import Settings
from zelda_ci.domain.run import BatchResult, Versions
from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.errors import ConfigError, ExecutionError
from zelda_ci.evaluators.base import Evaluator
from zelda_ci.events import Emit, Warned
from zelda_ci.execution import claude_code, launch
from zelda_ci.judge import anthropic_judge
from zelda_ci.judge.anthropic_judge import JudgeAccess
from zelda_ci.judge.base import Judge
from zelda_ci.model_proxy import pricing, proxy, tokens
from zelda_ci.model_proxy.modes import API_URL, Live, Mode, Record, Replay, Upstream
from zelda_ci.model_proxy.proxy import Meter, ModelProxy
from zelda_ci.pipeline import rejudging
from zelda_ci.pipeline.batch import run_batch
from zelda_ci.pipeline.bench import WorkspaceBench
from zelda_ci.pipeline.interruption import Interruption
from zelda_ci.pipeline.isolation import confined, in_one_line
from zelda_ci.pipeline.judging import Judging
from zelda_ci.pipeline.recovery import recover
from zelda_ci.pipeline.tools import PlannedRun, Tools
from zelda_ci.redact import Redactor
from zelda_ci.storage import references
from zelda_ci.storage.finished_run import FinishedRun
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace import levels
from zelda_ci.workspace.isolation import Isolation
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
    # Importing the SDK takes longer than everything that comes before the session: let it begin now.
    judged = any(suite.acceptance_criteria and suite.metrics.requirement_fulfillment for suite in suites)
    threading.Thread(target=_preload, kwargs={"judged": judged}, daemon=True).start()
    try:
        return anyio.run(_run, tools, _plan(suites, order.trials), order.jobs, emit)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def rejudge(loaded: LoadedProject, order: RejudgeOrder, environ: Mapping[str, str], emit: Emit) -> BatchResult:
    """Judge stored runs again, one after the other.

    Raises:
        ZeldaError: A run is not there or cannot be read or written, or there is no key.
    """
    known = settings.read(environ)
    redact = Redactor(known.secrets())
    stored = RunHistory(loaded.results_dir)
    names = dict.fromkeys(references.find(stored, name) for name in order.names)
    runs = [FinishedRun(stored.folder(name)) for name in names]
    gateway = next((suite.resolved.gateway_url for suite in loaded.suites), None)
    judging = _judging(Live(_judge_upstream(gateway, known, environ)), redact)
    try:
        return anyio.run(_rejudge, runs, judging, order.judge_model, emit)
    except BaseExceptionGroup as group:
        raise _first(group) from group


async def _rejudge(runs: Sequence[FinishedRun], judging: Judging, model: str | None, emit: Emit) -> BatchResult:
    started_at = datetime.now(UTC)
    async with judging.proxy:
        results = [await rejudging.rejudge(run, judging, emit, judge_model=model) for run in runs]
    return BatchResult(
        batch_id=results[0].batch_id, started_at=started_at, finished_at=datetime.now(UTC), runs=tuple(results)
    )


def _preload(*, judged: bool) -> None:
    """First what the main thread needs first: two threads that import parts of one package can get half of it."""
    proxy.preload()
    claude_code.preload()
    if judged:
        anthropic_judge.preload()


def _first(group: BaseExceptionGroup) -> BaseException:
    """The failure that a task group wraps; of several, the first is as good as any."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


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


def _mode(order: RunOrder, known: Settings, environ: Mapping[str, str]) -> Mode:
    if order.record and order.replay:
        raise ConfigError("--record and --replay exclude each other.", hint="Give one of them.", code="USAGE")
    if order.replay:
        return Replay(order.replay)
    upstream = _direct(known, environ, "a session")
    return Record(upstream, order.record) if order.record else Live(upstream)


def _direct(known: Settings, environ: Mapping[str, str], who: str) -> Upstream:
    if known.anthropic_api_key is None:
        raise ConfigError(
            f"ANTHROPIC_API_KEY is not set, and {who} needs it.",
            hint="Set it in the environment: export ANTHROPIC_API_KEY=... "
            "(`zelda demo` and `zelda run --replay` work without a key.)",
            code="API_KEY_MISSING",
        )
    return Upstream.with_api_key(known.anthropic_api_key, known.anthropic_base_url or API_URL, environ)


def _judge_upstream(gateway_url: str | None, known: Settings, environ: Mapping[str, str]) -> Upstream:
    """The gateway where one is configured, with its own key; the key of sessions never goes there."""
    gateway = known.portkey_gateway_url or gateway_url
    if gateway is None:
        return _direct(known, environ, "the judge")
    if known.portkey_api_key is None:
        hint = "Set it in the environment, or unset gatewayUrl and PORTKEY_GATEWAY_URL to ask the API directly."
        raise ConfigError(JUDGE_KEY_MISSING, hint=hint, code="JUDGE_KEY_MISSING")
    return Upstream.with_portkey(known.portkey_api_key, gateway, known.portkey_routing, environ)


def _judge_mode(order: RunOrder, suites: Sequence[ResolvedSuite], known: Settings, environ: Mapping[str, str]) -> Mode:
    if order.replay:
        return Replay(order.replay)
    wanted = [suite for suite in suites if suite.metrics.requirement_fulfillment or suite.metrics.tool_usage]
    gateway = wanted[0].gateway_url if wanted else None
    upstream = _judge_upstream(gateway, known, environ) if wanted else _direct(known, environ, "a session")
    return Record(upstream, order.record) if order.record else Live(upstream)


def _judging(mode: Mode, redact: Redactor) -> Judging:
    def seat(suite: ResolvedSuite, meter: Meter, notify: Callable[[str], None]) -> Judge:
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
        return evaluators.judged(suite.metrics, judge, nonce, redact)

    return Judging(ModelProxy(mode, redact), seat, bench, redact)


def _price(model: str, usage: Mapping[str, Any]) -> float:
    return pricing.cost_usd(model, tokens.from_usage(usage))


def _tools(
    loaded: LoadedProject,
    order: RunOrder,
    suites: Sequence[ResolvedSuite],
    environ: Mapping[str, str],
    emit: Emit,
) -> Tools:
    known = settings.read(environ)
    lying = secret_files.find(loaded.root, environ, {name for suite in suites for name in suite.execution.env})
    if lying.left_out:
        emit(Warned(f"{lying.left_out} values of .env files or variables are too large to be masked in results"))
    redact = Redactor([*known.secrets(), *lying.secrets])
    isolation = _isolation(suites, order, environ)
    reasons = isolation.offered.reasons
    workspaces = Workspaces(loaded.root, loaded.results_dir, environ, redact, isolation)
    store = ResultStore(loaded.results_dir)
    bench = WorkspaceBench(workspaces, store, emit)
    return Tools(
        workspaces=workspaces,
        bench=bench,
        proxy=ModelProxy(_mode(order, known, environ), redact),
        agent=claude_code.ClaudeCode(redact),
        store=store,
        evaluators=lambda suite: evaluators.asked_for(suite.metrics, bench, redact),
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


async def _run(tools: Tools, plan: Sequence[PlannedRun], jobs: int, emit: Emit) -> BatchResult:
    interruption = Interruption()
    locks.tell.set(lambda sentence: emit(Warned(sentence)))
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
