"""The composition root: the only module that knows every concrete class. Branches here are about wiring."""

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import anyio

from zelda_ci import __version__, evaluators
from zelda_ci.config import project, settings
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.config.settings import Settings
from zelda_ci.domain.run import BatchResult, Versions
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit, Warned
from zelda_ci.execution import claude_code
from zelda_ci.model_proxy.modes import API_URL, Live, Mode, Record, Replay, Upstream
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.batch import run_batch
from zelda_ci.pipeline.bench import WorkspaceBench
from zelda_ci.pipeline.recovery import recover
from zelda_ci.pipeline.tools import PlannedRun, Tools
from zelda_ci.redact import Redactor
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces

INTERRUPTED = 130


@dataclass(frozen=True)
class RunOrder:
    """What `zelda run` was asked for; without names and tags, every suite."""

    names: Sequence[str] = ()
    tags: Sequence[str] = ()
    trials: int | None = None
    jobs: int = 1
    record: Path | None = None
    replay: Path | None = None


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
    suites = [suite.resolved for suite in select(loaded.suites, order.names, order.tags)]
    _refuse_isolation(suites)
    tools = _tools(loaded, order, environ, emit)
    # Importing the SDK takes longer than everything that comes before the session: let it begin now.
    threading.Thread(target=_preload, daemon=True).start()
    try:
        return anyio.run(_run, tools, _plan(suites, order.trials), order.jobs, emit)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _preload() -> None:
    """First what the other thread imports too: uvicorn's parts import each other, and two threads in it can collide."""
    import zelda_ci.model_proxy.server  # noqa: F401, PLC0415  # slow

    claude_code.preload()


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


def _refuse_isolation(suites: Sequence[ResolvedSuite]) -> None:
    """Protection that was asked for and is not there must stop the run, not weaken it in silence."""
    for suite in suites:
        wanted = {suite.isolation.level, suite.isolation.require} - {None, "auto", "none"}
        if wanted:
            raise ConfigError(
                f"{suite.file} asks for isolation {max(map(str, wanted))}, which this version of Zelda does not offer.",
                hint="Take isolation.level and isolation.require away to run without a sandbox; "
                "docs/workspace.md says what is protected then.",
                code="ISOLATION_UNAVAILABLE",
            )


def _mode(order: RunOrder, known: Settings, environ: Mapping[str, str]) -> Mode:
    if order.record and order.replay:
        raise ConfigError("--record and --replay exclude each other.", hint="Give one of them.", code="USAGE")
    if order.replay:
        return Replay(order.replay)
    if known.anthropic_api_key is None:
        raise ConfigError(
            "ANTHROPIC_API_KEY is not set, and a session needs it.",
            hint="Set it in the environment: export ANTHROPIC_API_KEY=... "
            "(`zelda demo` and `zelda run --replay` work without a key.)",
            code="API_KEY_MISSING",
        )
    upstream = Upstream.with_api_key(known.anthropic_api_key, known.anthropic_base_url or API_URL, environ)
    return Record(upstream, order.record) if order.record else Live(upstream)


def _tools(loaded: LoadedProject, order: RunOrder, environ: Mapping[str, str], emit: Emit) -> Tools:
    known = settings.read(environ)
    redact = Redactor(known.secrets())
    workspaces, store = Workspaces(loaded.root, loaded.results_dir, environ, redact), ResultStore(loaded.results_dir)
    bench = WorkspaceBench(workspaces, store, emit)
    return Tools(
        workspaces=workspaces,
        bench=bench,
        proxy=ModelProxy(_mode(order, known, environ), redact),
        agent=claude_code.ClaudeCode(redact),
        store=store,
        evaluators=lambda suite: evaluators.asked_for(suite.metrics, bench, redact),
        redact=redact,
        versions=Versions(
            zelda=__version__,
            agent_sdk=version("claude-agent-sdk"),
            python=".".join(map(str, sys.version_info[:3])),
        ),
        replayed=order.replay is not None,
    )


async def _run(tools: Tools, plan: Sequence[PlannedRun], jobs: int, emit: Emit) -> BatchResult:
    interrupted = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_heed_signals, interrupted, emit)
        await tools.workspaces.inspect()
        await recover(tools, emit)
        async with tools.proxy:
            batch = await run_batch(plan, tools, emit, jobs=jobs, interrupted=interrupted)
        group.cancel_scope.cancel()
    return batch


async def _heed_signals(interrupted: anyio.Event, emit: Emit) -> None:
    """The first signal ends the sessions in good order, the second ends Zelda at once: the next start sweeps."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for _ in signals:
            if interrupted.is_set():
                _show_cursor()
                os._exit(INTERRUPTED)
            interrupted.set()
            emit(Warned("interrupted: ending the sessions and keeping what they did; once more to quit at once"))


def _show_cursor() -> None:
    """A live display may have hidden it, and will not come to show it again."""
    for stream in (1, 2):
        if os.isatty(stream):
            os.write(stream, b"\x1b[?25h\n")
