"""The composition root: the only module that knows every concrete class. Branches here are about wiring."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio

from zelda_ci import __version__, metrics
from zelda_ci.config import project, secret_files
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.config.own_files import OwnFiles
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.config.settings import EnvironmentSettings, accepted_isolation
from zelda_ci.domain.check import CheckReport
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, Versions, snapshot
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ExecutionError
from zelda_ci.events import Emit, Warned
from zelda_ci.execution import claude_code, launch
from zelda_ci.judge import anthropic_judge
from zelda_ci.judge.anthropic_judge import JudgeAccess
from zelda_ci.judge.base import Judge, JudgePanel, models_of
from zelda_ci.judge.conversation import LookupLimits
from zelda_ci.metrics.base import Evaluator, JudgeServices, Services
from zelda_ci.model_proxy import pricing, proxy
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.modes import LiveMode, Mode
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.model_proxy.rate_limits import RateLimits
from zelda_ci.overrides import Overrides, apply, read
from zelda_ci.pipeline import access, checking, confinement, invocation, money
from zelda_ci.pipeline.checking import Checker, proxy_or_problem
from zelda_ci.pipeline.confinement import WeakIsolation
from zelda_ci.pipeline.fingerprints import expected_fingerprints, stored_of_both, system_name
from zelda_ci.pipeline.ground import Ground
from zelda_ci.pipeline.invocation import check_sides_differ, first_failure
from zelda_ci.pipeline.rejudging import rejudge_each
from zelda_ci.pipeline.settling import settled, tell_setup
from zelda_ci.pipeline.tools import JudgeFactory, Tools, WorkspaceCommandRunner
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import daemons, levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.storage import references
from zelda_ci.storage.history import FinishedRun, RunHistory, expected_seconds
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces

RunOrder = invocation.RunOrder


def load(folder: Path, asked_for: Sequence[str] = ()) -> LoadedProject:
    """The project that a folder belongs to, as it runs on a laptop. Where suites are asked for, others may be broken.

    Raises:
        ConfigError: With every problem of every file; or every suite is skipped.
    """
    return project.active(project.load(folder, asked_for))


def run(loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, emit: Emit) -> BatchResult:
    """Run what was ordered; one `anyio.run` around the whole.

    Raises:
        ZeldaError: Before anything is spent, if the order, the environment or the project cannot be used.
    """
    chosen, suites, ground = _begun(loaded, order, settings, emit)
    tools = _tools(loaded, order, suites, settings, emit, ground)
    checker = None
    if order.check and not order.replay and not _skips_checks(settings):
        ready = ground.for_checks(tools.proxy, tools.judging.proxy, settings, emit)
        checker = Checker(chosen, ready, despite_failing=order.despite_failing)
    base = _base_tools(loaded, order, settings, emit, ground, tools)
    judged = any(suite.criteria and suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) for suite in suites)
    preload = threading.Thread(target=_preload, kwargs={"live": order.replay is None, "judged": judged}, daemon=True)
    try:
        made = invocation.Invocation(
            order=order,
            suites=suites,
            arms={Side.HEAD: tools, **({Side.BASE: base} if base else {})},
            known_prices={} if order.replay else money.known_prices(loaded.results_dir, order.stored),
            elsewhere=ordered(loaded, replace(order, names=order.elsewhere), settings) if order.elsewhere else (),
        )
        return anyio.run(made.run, emit, preload, checker)
    except BaseExceptionGroup as group:
        raise first_failure(group) from group


def fingerprints(
    loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, emit: Emit
) -> dict[str, Fingerprint]:
    """By name, what runs of the ordered suites will have, as far as known before a session; errors as for `check`."""
    suites = ordered(loaded, order, settings)
    ground, replayed = _ground(loaded, order, suites, settings, emit), order.replay is not None
    return anyio.run(expected_fingerprints, suites, ground.workspaces, ground.redact, settings.environ, replayed)


def with_stored(loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, emit: Emit) -> RunOrder:
    """With the trials of both sides that are stored here, where there is a base.

    Raises:
        ZeldaError: As for `run`; or both sides have the same files.
    """
    history = RunHistory(loaded.results_dir)
    if order.against is None:
        return order
    suites = ordered(loaded, order, settings)
    ground = _ground(loaded, order, suites, settings, emit)
    base = _base_workspaces(loaded, order, settings, ground)
    anyio.run(check_sides_differ, order, ground.workspaces, base)
    if order.replay:
        return order
    stored = anyio.run(stored_of_both, suites, (ground.workspaces, base), ground.redact, settings.environ, history)
    return replace(order, stored=stored)


def check(
    loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, emit: Emit, *, asks_models: bool = True
) -> CheckReport:
    """Try everything that runs of what was ordered need, without a session; models only where that is wanted.

    Raises:
        ZeldaError: The order cannot be used, or the project not be run here at all.
    """
    chosen, suites, ground = _begun(loaded, order, settings, emit)
    session = proxy_or_problem(lambda: access.session_mode(order.record, order.replay, settings), ground.redact)
    judge = proxy_or_problem(lambda: _judge_mode(loaded, order, suites, settings), ground.redact)
    checker = Checker(chosen, ground.for_checks(session, judge, settings, emit), fresh=True, asks_models=asks_models)
    try:
        return anyio.run(checking.checked, checker)
    except BaseExceptionGroup as group:
        raise first_failure(group) from group


def _begun(
    loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, emit: Emit
) -> tuple[list[LoadedSuite], list[ResolvedSuite], Ground]:
    """What was ordered, as loaded and as it runs, and where; everything worth a warning has been said."""
    chosen = selected(loaded, order, settings)
    suites = [suite.resolved for suite in chosen]
    _heed_weakness(suites, order, settings, emit)
    for notice in loaded.notices:
        emit(Warned(notice))
    tell_setup(chosen, emit)
    return chosen, suites, _ground(loaded, order, suites, settings, emit)


def _skips_checks(settings: EnvironmentSettings) -> bool:
    return settings.environ.get("ZELDA_NO_CHECK") == "1"


def selected(loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings) -> list[LoadedSuite]:
    """The suites that were ordered, with their overrides; raises `ConfigError` where the order cannot be used."""
    overrides = order.overrides.above(_of_environment(settings))
    chosen = select(loaded.suites, order.names, order.tags, loaded.notices)
    applied = [replace(suite, resolved=apply(suite.resolved, overrides)) for suite in chosen]
    return settled(loaded.root, applied, settings.environ)


def ordered(loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings) -> list[ResolvedSuite]:
    """The same as they run."""
    return [suite.resolved for suite in selected(loaded, order, settings)]


def masked(loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, emit: Emit) -> list[ResolvedSuite]:
    """The same as results hold them; errors as for `check`."""
    suites = ordered(loaded, order, settings)
    redact = _ground(loaded, order, suites, settings, emit).redact
    return [snapshot(suite, redact) for suite in suites]


def unaccepted_isolation(
    loaded: LoadedProject | None, order: RunOrder, settings: EnvironmentSettings
) -> WeakIsolation | None:
    """The weakest level of what was ordered, if nobody who decides over this machine has accepted it.

    Without a project, the best level that the machine has.

    Raises:
        ConfigError: The order cannot be used, or a level cannot be had.
    """
    if _is_unsafe(order, settings):
        return None
    return _weak_isolation(ordered(loaded, order, settings) if loaded else (), order, settings)


def _is_unsafe(order: RunOrder, settings: EnvironmentSettings) -> bool:
    return order.unsafe or settings.unsafe


def _weak_isolation(
    suites: Sequence[ResolvedSuite], order: RunOrder, settings: EnvironmentSettings
) -> WeakIsolation | None:
    given = order.overrides.above(_of_environment(settings))
    # What the files of the project say is not the user's word.
    words = [word.value for word in (given.accept_isolation, given.isolation) if word]
    isolation = _isolation(suites, order, settings)
    chosen = [isolation.of(suite) for suite in suites] or [isolation.offered.level]
    return confinement.weak_isolation(chosen, isolation, [*words, accepted_isolation(settings.environ)])


def _heed_weakness(suites: Sequence[ResolvedSuite], order: RunOrder, settings: EnvironmentSettings, emit: Emit) -> None:
    if _is_unsafe(order, settings) and not order.is_own_content:
        return
    if weak := _weak_isolation(suites, order, settings):
        confinement.heed(weak, emit, is_own_content=order.is_own_content)


def _of_environment(settings: EnvironmentSettings) -> Overrides:
    return read("variable", settings.environ.get)


def rejudge(
    loaded: LoadedProject,
    names: Sequence[str],
    overrides: Overrides,
    settings: EnvironmentSettings,
    emit: Emit,
    *,
    check: bool = True,
) -> BatchResult:
    """Judge stored runs again, one after the other; first see whether the judge answers, if that is wanted.

    Raises:
        ZeldaError: A run is not there or cannot be read or written, or there is no key.
    """
    # The gateway is today's, whatever the run was judged through.
    above = overrides.above(_of_environment(settings))
    gateway = apply(loaded.suites[0].resolved, above).gateway_url
    mode = LiveMode(access.of_judge(gateway, settings, str(above.gateway_url or loaded.layer.origin("gatewayUrl"))))
    judging = _judging(mode, Redactor(settings.secrets()), RateLimits(lambda sentence: emit(Warned(sentence))))
    stored = RunHistory(loaded.results_dir)
    run_ids = dict.fromkeys(run_id for name in names for run_id in references.find_runs(stored, name))
    runs = [FinishedRun(stored.folder(run_id)) for run_id in run_ids]
    try:
        return anyio.run(
            partial(rejudge_each, runs, judging, overrides, emit, check=check and not _skips_checks(settings))
        )
    except BaseExceptionGroup as group:
        raise first_failure(group) from group


def _judge_mode(
    loaded: LoadedProject, order: RunOrder, suites: Sequence[ResolvedSuite], settings: EnvironmentSettings
) -> Mode:
    above = order.overrides.above(_of_environment(settings))
    origin = str(above.gateway_url or loaded.layer.origin("gatewayUrl"))
    return access.judge_mode(order.record, order.replay, suites, settings, origin)


def _preload(*, live: bool, judged: bool) -> None:
    """First what the main thread needs first."""
    proxy.preload(live=live)
    claude_code.preload()
    if judged:
        anthropic_judge.preload()


def _isolation(suites: Sequence[ResolvedSuite], order: RunOrder, settings: EnvironmentSettings) -> Isolation:
    """What runs are confined with; protection that was asked for and is not there stops the run, before it costs."""
    try:
        cli = launch.find_cli()
    except ExecutionError:  # every session will say so
        cli = None
    unsafe = _is_unsafe(order, settings)
    isolation = Isolation(
        levels.probe(settings.environ, cli),
        unsafe=unsafe,
        programs=[cli] if cli else [],
        sockets=daemons.container_sockets(settings.environ),
    )
    for suite in suites:
        isolation.of(suite)
    return isolation


def _judging(mode: Mode, redact: Redactor, rate_limits: RateLimits) -> JudgeFactory:
    # A replay knows no sizes, and its recording must not depend on any.
    counts_tokens = isinstance(mode, LiveMode)

    def make_judge(suite: ResolvedSuite, meter: Meter, notify: Callable[[str], None]) -> Judge:
        access = JudgeAccess(
            base_url=meter.base_url,
            token=meter.token,
            model=suite.judge_model,
            context_tokens=suite.judge.context_tokens,
            max_tokens=suite.judge.max_tokens,
            timeout_seconds=suite.judge.timeout_seconds,
            time_limit=meter.patience.time_limit,
            counts_tokens=counts_tokens,
            limits=LookupLimits(
                suite.judge.max_lookups, suite.judge.max_lookup_characters, suite.judge.max_lookup_cost_usd
            ),
        )
        forms = metrics.forms(suite.metrics)
        judges = [
            anthropic_judge.AnthropicJudge(replace(access, model=model), redact, _price, notify, forms=forms)
            for model in models_of(suite)
        ]
        return judges[0] if len(judges) == 1 else JudgePanel(tuple(judges))

    def bench(suite: ResolvedSuite, judge: Judge, nonce: str) -> Sequence[Evaluator]:
        return metrics.judged(suite.metrics, JudgeServices(judge, nonce, redact))

    return JudgeFactory(ModelProxy(mode, redact, rate_limits=rate_limits), make_judge, bench, redact)


def _price(model: str, usage: Mapping[str, Any]) -> float:
    return pricing.cost_usd(model, pricing.from_usage(usage))


def _ground(
    loaded: LoadedProject,
    order: RunOrder,
    suites: Sequence[ResolvedSuite],
    settings: EnvironmentSettings,
    emit: Emit,
) -> Ground:
    if not order.replay:
        access.keep_back(suites, settings)
    environ = settings.environ
    lying = secret_files.find_secrets(
        loaded.root, environ, {name for suite in suites for name in suite.execution.passed_on}
    )
    if lying.left_out:
        emit(Warned(f"{lying.left_out} values of .env files or variables are too large to be masked in results"))
    redact = Redactor([*settings.secrets(), *lying.secrets])
    isolation = _isolation(suites, order, settings)
    own = OwnFiles.of(loaded, [order.record, order.replay])
    workspaces = Workspaces(
        loaded.root,
        loaded.results_dir,
        environ,
        redact,
        isolation,
        own,
        working_tree=order.working_tree,
        base=order.commit,
    )
    return Ground(workspaces, redact, isolation, loaded.results_dir)


def _tools(
    loaded: LoadedProject,
    order: RunOrder,
    suites: Sequence[ResolvedSuite],
    settings: EnvironmentSettings,
    emit: Emit,
    ground: Ground,
) -> Tools:
    workspaces, redact, isolation = ground.workspaces, ground.redact, ground.isolation
    reasons = isolation.offered.reasons
    store = ResultStore(loaded.results_dir)
    bench = WorkspaceCommandRunner(workspaces, store, emit)
    rate_limits = RateLimits(lambda sentence: emit(Warned(sentence)))
    return Tools(
        workspaces=workspaces,
        bench=bench,
        proxy=ModelProxy(access.session_mode(order.record, order.replay, settings), redact, rate_limits=rate_limits),
        agent=claude_code.ClaudeCode(redact),
        store=store,
        evaluators=lambda suite: metrics.unjudged(suite.metrics, Services(bench, redact)),
        judging=_judging(_judge_mode(loaded, order, suites, settings), redact, rate_limits),
        redact=redact,
        versions=Versions(
            zelda=__version__,
            agent_sdk=version("claude-agent-sdk"),
            python=".".join(map(str, sys.version_info[:3])),
        ),
        replayed=order.replay is not None,
        conclusion_seconds=order.conclusion_seconds,
        isolation_reasons=reasons,
        system=system_name(settings.environ),
        isolation=f"isolation: {', '.join(sorted({isolation.of(suite) for suite in suites}))}",
        expected_seconds=expected_seconds(RunHistory(loaded.results_dir), replayed=order.replay is not None),
    )


def _base_tools(
    loaded: LoadedProject,
    order: RunOrder,
    settings: EnvironmentSettings,
    emit: Emit,
    ground: Ground,
    tools: Tools,
) -> Tools | None:
    """The same for the base, whose workspaces have other files."""
    if order.against is None:
        return None
    workspaces = _base_workspaces(loaded, order, settings, ground)
    bench = WorkspaceCommandRunner(workspaces, ResultStore(loaded.results_dir), emit)
    services = Services(bench, ground.redact)
    return replace(
        tools,
        workspaces=workspaces,
        bench=bench,
        evaluators=lambda suite: metrics.unjudged(suite.metrics, services),
    )


def _base_workspaces(
    loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings, ground: Ground
) -> Workspaces:
    own = OwnFiles.of(loaded, [order.record, order.replay])
    return Workspaces(
        loaded.root, loaded.results_dir, settings.environ, ground.redact, ground.isolation, own, base=order.against
    )
