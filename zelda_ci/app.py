"""The composition root: the only module that knows every concrete class. Branches here are about wiring."""

import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from zelda_ci import __version__, metrics
from zelda_ci.config import project
from zelda_ci.config.environment import EnvironmentSettings, accepted_isolation
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.config.own_files import OwnFiles
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.domain.arms import Forecast
from zelda_ci.domain.check import CheckReport
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, Versions
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ExecutionError, ZeldaError
from zelda_ci.events import Emit, Warned
from zelda_ci.execution import claude_code, launch
from zelda_ci.files.secret_files import FoundSecrets, find_secrets
from zelda_ci.imports import one_at_a_time
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
from zelda_ci.pipeline.checking import Checker, CheckTools, proxy_or_problem
from zelda_ci.pipeline.confinement import WeakIsolation
from zelda_ci.pipeline.fingerprints import expected_fingerprints, stored_of_both, system_name
from zelda_ci.pipeline.invocation import RunOrder, check_sides_differ, first_failure, foretell
from zelda_ci.pipeline.rejudging import rejudge_each
from zelda_ci.pipeline.settling import settled, tell_setup
from zelda_ci.pipeline.tools import JudgeFactory, Tools, WorkspaceCommandRunner
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import daemons, levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.storage import references
from zelda_ci.storage.checks import CheckMemory
from zelda_ci.storage.history import RunHistory, expected_seconds
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.base_commit import BaseOrder
from zelda_ci.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from zelda_ci.judge.anthropic_judge import AnthropicJudge


def load(folder: Path, asked_for: Sequence[str] = ()) -> LoadedProject:
    """The project that a folder belongs to, as it runs on a laptop. Where suites are asked for, others may be broken.

    Raises:
        ConfigError: With every problem of every file; or every suite is skipped.
    """
    return project.active(project.load(folder, asked_for))


class Invocation:
    """What one command is to do on one project; what that needs is made once, when it is first asked for.

    Its properties and methods raise `ConfigError` where the order cannot be used.
    """

    def __init__(self, loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings) -> None:
        self.loaded, self.order, self.settings = loaded, order, settings
        self._secrets: dict[frozenset[str], FoundSecrets] = {}

    def ordering(self, order: RunOrder) -> "Invocation":
        """The same with another order."""
        other = Invocation(self.loaded, order, self.settings)
        other._secrets = self._secrets
        return other

    @cached_property
    def chosen(self) -> list[LoadedSuite]:
        """The suites that were ordered, with their overrides and the setup that the project suggests."""
        chosen = select(self.loaded.suites, self.order.names, self.order.tags, self.loaded.notices)
        applied = [replace(suite, resolved=apply(suite.resolved, self._given)) for suite in chosen]
        return settled(self.loaded.root, applied, self.settings.environ)

    @cached_property
    def suites(self) -> list[ResolvedSuite]:
        """The same as they run."""
        return [suite.resolved for suite in self.chosen]

    @property
    def masked(self) -> list[ResolvedSuite]:
        """The same as results hold them."""
        return [suite.redacted(self.redact) for suite in self.suites]

    @property
    def _given(self) -> Overrides:
        return self.order.overrides.above(_of_environment(self.settings))

    @property
    def _is_unsafe(self) -> bool:
        return self.order.unsafe or self.settings.unsafe

    @cached_property
    def isolation(self) -> Isolation:
        """What runs are confined with; protection that was asked for and is not there is an error, before it costs."""
        try:
            cli = launch.find_cli()
        except ExecutionError:  # every session will say so
            cli = None
        isolation = Isolation(
            levels.probe(self.settings.environ, cli),
            unsafe=self._is_unsafe,
            programs=[cli] if cli else [],
            sockets=daemons.container_sockets(self.settings.environ),
        )
        for suite in self.suites:
            isolation.of(suite)
        return isolation

    def weak_isolation(self) -> WeakIsolation | None:
        """The weakest level of what was ordered, if nobody who decides over this machine has accepted it."""
        return None if self._is_unsafe else self._weak_isolation()

    def _weak_isolation(self) -> WeakIsolation | None:
        # What the files of the project say is not the user's word.
        words = [
            word.value for word in (self._given.get("acceptIsolation"), self._given.get("isolation.level")) if word
        ]
        accepted = accepted_isolation(self.settings.environ)
        chosen = map(self.isolation.of, self.suites)
        return confinement.weak_isolation(chosen, self.isolation, [*words, accepted])

    @property
    def _found_secrets(self) -> FoundSecrets:
        names = frozenset(name for suite in self.suites for name in suite.execution.passed_on)
        if names not in self._secrets:
            self._secrets[names] = find_secrets(self.loaded.root, self.settings.environ, names)
        return self._secrets[names]

    @cached_property
    def redact(self) -> Redactor:
        """Masks the credentials, and what lies about in the project."""
        return Redactor([*self.settings.secrets(), *self._found_secrets.secrets])

    @cached_property
    def workspaces(self) -> Workspaces:
        """Where the tested files are run."""
        if not self.order.replay:
            access.keep_back(self.suites, self.settings)
        return self._workspaces_of(self.order.commit, working_tree=self.order.working_tree)

    @cached_property
    def base_workspaces(self) -> Workspaces:
        """Where the files of the base are run, beside the tested ones."""
        return self._workspaces_of(self.order.against)

    def _workspaces_of(self, commit: BaseOrder | None, *, working_tree: bool = False) -> Workspaces:
        return Workspaces(
            self.loaded.root,
            self.loaded.results_dir,
            self.settings.environ,
            self.redact,
            self.isolation,
            OwnFiles.of(self.loaded, [self.order.record, self.order.replay]),
            working_tree=working_tree,
            base=commit,
        )

    def fingerprints(self) -> dict[str, Fingerprint]:
        """By name, what runs of the suites will have, as far as that is known before a session."""
        environ, replayed = self.settings.environ, self.order.replay is not None
        return anyio.run(expected_fingerprints, self.suites, self.workspaces, self.redact, environ, replayed)

    def with_stored(self) -> "Invocation":
        """With the trials of both sides that are stored here, where there is a base.

        Raises:
            ZeldaError: As for `run`; or both sides have the same files.
        """
        if self.order.against is None:
            return self
        sides = self.workspaces, self.base_workspaces
        anyio.run(check_sides_differ, self.order, *sides)
        if self.order.replay:
            return self
        history, environ = RunHistory(self.loaded.results_dir), self.settings.environ
        stored = anyio.run(stored_of_both, self.suites, sides, self.redact, environ, history)
        return self.ordering(replace(self.order, stored=stored))

    def forecast(self) -> Forecast:
        """What a run may cost, before anything is started."""
        return foretell(self.order, self.suites, self.loaded.results_dir)

    def run(self, emit: Emit) -> BatchResult:
        """Run what was ordered; one `anyio.run` around the whole.

        Raises:
            ZeldaError: Before anything is spent, if the order, the environment or the project cannot be used.
        """
        self._warn(emit)
        suites, order = self.suites, self.order
        tools = self._tools(emit)
        checker = None
        if order.check and not order.replay and self.settings.environ.get("ZELDA_NO_CHECK") != "1":
            ready = self._check_tools(tools.proxy, tools.judging.proxy, emit)
            checker = Checker(self.chosen, ready, despite_failing=order.despite_failing)
        base = self._base_tools(tools, emit)
        judged = any(suite.criteria and suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) for suite in suites)
        live = order.replay is None
        preload = threading.Thread(target=_preload, kwargs={"live": live, "judged": judged}, daemon=True)
        execution = invocation.Execution(
            order=order,
            suites=suites,
            arms={Side.HEAD: tools, **({Side.BASE: base} if base else {})},
            known_prices=money.known_prices(self.loaded.results_dir, order.stored) if live else {},
            elsewhere=self.ordering(replace(order, names=order.elsewhere)).suites if order.elsewhere else (),
        )
        return _in_event_loop(partial(execution.run, emit, preload, checker))

    def check(self, emit: Emit, *, only_commands: bool = False) -> CheckReport:
        """Try everything that runs of what was ordered need, without a session; no models where commands are meant.

        Raises:
            ZeldaError: The order cannot be used, or the project not be run here at all.
        """
        self._warn(emit)
        order = self.order
        session = proxy_or_problem(lambda: access.session_mode(order.record, order.replay, self.settings), self.redact)
        judge = proxy_or_problem(self._judge_mode, self.redact)
        ready = self._check_tools(session, judge, emit)
        return _in_event_loop(
            partial(checking.checked, Checker(self.chosen, ready, fresh=True, only_commands=only_commands))
        )

    def _warn(self, emit: Emit) -> None:
        """Say what is worth a warning before anything begins."""
        if (not self._is_unsafe or self.order.is_own_content) and (weak := self._weak_isolation()):
            confinement.heed(weak, emit, is_own_content=self.order.is_own_content)
        for notice in self.loaded.notices:
            emit(Warned(notice))
        tell_setup(self.chosen, emit)
        if left_out := self._found_secrets.left_out:
            emit(Warned(f"{left_out} values of .env files or variables are too large to be masked in results"))

    def _judge_mode(self) -> Mode:
        origin = str(self._given.get("gatewayUrl") or self.loaded.layer.origin("gatewayUrl"))
        return access.judge_mode(self.order.record, self.order.replay, self.suites, self.settings, origin)

    def _check_tools(self, session: ModelProxy | ZeldaError, judge: ModelProxy | ZeldaError, emit: Emit) -> CheckTools:
        return CheckTools(
            workspaces=self.workspaces,
            redact=self.redact,
            isolation=self.isolation,
            memory=CheckMemory(self.loaded.results_dir),
            environ=self.settings.environ,
            session=session,
            judge=judge,
            identity="".join(secret.fingerprint() for secret in self.settings.secrets()),
            emit=emit,
        )

    def _tools(self, emit: Emit) -> Tools:
        order, redact, isolation = self.order, self.redact, self.isolation
        store = ResultStore(self.loaded.results_dir)
        bench = WorkspaceCommandRunner(self.workspaces, store, emit)
        rate_limits = RateLimits(lambda sentence: emit(Warned(sentence)))
        session = access.session_mode(order.record, order.replay, self.settings)
        return Tools(
            workspaces=self.workspaces,
            bench=bench,
            proxy=ModelProxy(session, redact, rate_limits=rate_limits),
            agent=claude_code.ClaudeCode(redact),
            store=store,
            evaluators=lambda suite: metrics.unjudged(suite.metrics, Services(bench, redact)),
            judging=_judging(self._judge_mode(), redact, rate_limits),
            redact=redact,
            versions=Versions(
                zelda=__version__,
                agent_sdk=version("claude-agent-sdk"),
                python=".".join(map(str, sys.version_info[:3])),
            ),
            replayed=order.replay is not None,
            conclusion_seconds=order.conclusion_seconds,
            isolation_reasons=isolation.offered.reasons,
            system=system_name(self.settings.environ),
            isolation=f"isolation: {', '.join(sorted({isolation.of(suite) for suite in self.suites}))}",
            expected_seconds=expected_seconds(RunHistory(self.loaded.results_dir), replayed=order.replay is not None),
        )

    def _base_tools(self, tools: Tools, emit: Emit) -> Tools | None:
        """The same for the base, whose workspaces have other files."""
        if self.order.against is None:
            return None
        bench = WorkspaceCommandRunner(self.base_workspaces, tools.store, emit)
        services = Services(bench, self.redact)
        return replace(
            tools,
            workspaces=self.base_workspaces,
            bench=bench,
            evaluators=lambda suite: metrics.unjudged(suite.metrics, services),
        )


T = TypeVar("T")


def _in_event_loop(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return anyio.run(work)
    except BaseExceptionGroup as group:
        raise first_failure(group) from group


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
    judging = judge_factory(loaded.suites[0].resolved, loaded.layer.origin("gatewayUrl"), overrides, settings, emit)
    stored = RunHistory(loaded.results_dir)
    run_ids = dict.fromkeys(run_id for name in names for run_id in references.find_runs(stored, name))
    runs = [stored.run(run_id) for run_id in run_ids]
    check = check and settings.environ.get("ZELDA_NO_CHECK") != "1"
    return _in_event_loop(partial(rejudge_each, runs, judging, overrides, emit, check=check))


def judge_factory(
    suite: ResolvedSuite, origin: object, overrides: Overrides, settings: EnvironmentSettings, emit: Emit
) -> JudgeFactory:
    """Make what judges without a session; the gateway is today's, whatever a run was judged through."""
    above = overrides.above(_of_environment(settings))
    gateway = apply(suite, above).gateway_url
    mode = LiveMode(access.of_judge(gateway, settings, str(above.get("gatewayUrl") or origin)))
    return _judging(mode, Redactor(settings.secrets()), RateLimits(lambda sentence: emit(Warned(sentence))))


def _preload(*, live: bool, judged: bool) -> None:
    """First what the main thread needs first."""
    proxy.preload(live=live)
    claude_code.preload()
    if judged:
        _anthropic_judge()


def _anthropic_judge() -> "type[AnthropicJudge]":
    with one_at_a_time("zelda_ci.judge.anthropic_judge"):
        from zelda_ci.judge.anthropic_judge import AnthropicJudge  # noqa: PLC0415 - more than a second
    return AnthropicJudge


def _judging(mode: Mode, redact: Redactor, rate_limits: RateLimits) -> JudgeFactory:
    def make_judge(suite: ResolvedSuite, meter: Meter, notify: Callable[[str], None]) -> Judge:
        kind = _anthropic_judge()
        judges = [
            kind(
                base_url=meter.base_url,
                token=meter.token,
                model=model,
                context_tokens=suite.judge.context_tokens,
                max_tokens=suite.judge.max_tokens,
                timeout_seconds=suite.judge.timeout_seconds,
                redact=redact,
                price=_price,
                notify=notify,
                limits=LookupLimits(
                    suite.judge.max_lookups, suite.judge.max_lookup_characters, suite.judge.max_lookup_cost_usd
                ),
                time_limit=meter.patience.time_limit,
                forms=metrics.forms(suite.metrics),
            )
            for model in models_of(suite)
        ]
        return judges[0] if len(judges) == 1 else JudgePanel(tuple(judges))

    def bench(suite: ResolvedSuite, judge: Judge, nonce: str) -> Sequence[Evaluator]:
        return metrics.judged(suite.metrics, JudgeServices(judge, nonce, redact))

    return JudgeFactory(ModelProxy(mode, redact, rate_limits=rate_limits), make_judge, bench, redact)


def _price(model: str, usage: Mapping[str, Any]) -> float:
    return pricing.cost_usd(model, pricing.from_usage(usage))
