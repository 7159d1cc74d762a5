"""The composition root: the only module that knows every concrete class. Branches here are about wiring."""

import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit

import anyio

from zelda_ci import metrics
from zelda_ci.config import project
from zelda_ci.config.environment import HOW, EnvironmentSettings
from zelda_ci.domain.attribution import Attribution, CriterionWorth, WorthReport
from zelda_ci.domain.check import CheckReport, ContextReport
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, Fingerprint
from zelda_ci.domain.trials import Forecast
from zelda_ci.errors import ConfigError, NotStoredError, ZeldaError
from zelda_ci.events import Emit, Warned
from zelda_ci.execution import claude_code
from zelda_ci.model_proxy import proxy
from zelda_ci.model_proxy.rate_limits import RateLimits, UpstreamPause
from zelda_ci.model_proxy.upstream import API_URL, OAUTH_BETA, Bedrock, Upstream, Vertex, portkey
from zelda_ci.overrides import apply
from zelda_ci.pipeline import attribution, context, evaluation, planning
from zelda_ci.pipeline.batch import Batch
from zelda_ci.pipeline.checking import Checker, check_judges
from zelda_ci.pipeline.comparing import compare_arms
from zelda_ci.pipeline.fingerprints import expected_fingerprints, stored_of_both
from zelda_ci.pipeline.invocation import ACCEPTANCE, SETUP, Prepared, RunOrder
from zelda_ci.pipeline.linting import idle
from zelda_ci.redact import Redactor
from zelda_ci.storage import references

T = TypeVar("T")


def load(folder: Path, asked_for: Sequence[str] = ()) -> project.LoadedProject:
    """The project of a folder, as it runs on a laptop; where suites are asked for, others may be broken."""
    return project.active(project.load(folder, asked_for))


class Invocation(Prepared):
    """What one command is to do on one project, and doing it. Methods raise `ZeldaError` where that is not possible."""

    def fingerprints(self) -> dict[str, Fingerprint]:
        """By suite, what its runs will have, as far as that is known before a session."""
        return anyio.run(expected_fingerprints, self, self.suites, self.workspaces)

    def with_stored(self) -> Self:
        """With the trials of both sides that are stored here, where there is a base; both must not be the same."""
        order = self.order
        return self.ordering(replace(order, stored=anyio.run(stored_of_both, self))) if order.against else self

    def forecast(self) -> Forecast:
        """What a run may cost, before anything is started."""
        order, suites, sides = self.order, self.suites, 2 if self.order.against else 0
        if self.replayed:
            return planning.forecast(order, suites, {}, sides=sides).replace(budget_usd=None, replayed=True)
        known = planning.known_prices(self.store, order.stored)
        return planning.forecast(order, suites, known, sides=sides)

    def why(self, worse: attribution.Regressed, emit: Emit, *, pays: bool = True) -> Attribution:
        """Which part of the change made a suite worse; no session runs where there is only one, or nobody pays."""
        change = anyio.run(attribution.felt_change, self, worse.suite, (*worse.bases, *worse.heads))
        search = attribution.Investigation(worse, change, self.suites[0], self.redact, emit=emit)
        if decided := search.go_on(self.store.attributions(worse.batch_id)):
            return decided
        if pays and search.attribution.verdict in ("undecided", "between"):
            batch = self.run(emit, search)
            if search.attribution.rounds:
                self.store.keep_attribution(batch.batch_id, search.attribution)
            if batch.interrupted:
                raise KeyboardInterrupt
        return search.attribution

    def worth(self, names: Sequence[str], emit: Emit) -> WorthReport:
        """What parts of the files that steer are worth: each taken out, and made to say nothing, beside them all."""
        rows, untold, spent = list[CriterionWorth](), list[str](), 0.0

        def run(order: RunOrder) -> Comparison:
            nonlocal spent
            left = None if order.budget_usd is None else max(0.0, order.budget_usd - spent)
            # What was tried once need not be tried again.
            varied = self.ordering(replace(order, budget_usd=left, check=order.check and not spent)).with_stored()
            batch = varied.run(emit)
            spent += batch.cost_usd
            if batch.interrupted:
                raise KeyboardInterrupt
            return compare_arms(batch, varied.order.stored).comparison

        for part, (without, inert) in anyio.run(attribution.find_parts, self, names).items():
            order = attribution.order_beside(self.order, without)
            if whole := attribution.order_whole(self.order, self.ordering(order).with_stored()):
                run(whole)
            gone = run(order)
            # Where nothing is missed, nothing need say why.
            missed = [it.suite for it in gone.suites if it.verdict is Verdict.REGRESSED]
            asked = replace(self.order, names=missed, tags=())
            control = run(attribution.order_beside(asked, inert)) if inert and missed else None
            told = {row.suite: row for row in attribution.worth(part, gone, control, self.redact)}
            untold += [f"{part} ({suite.name})" for suite in self.suites if suite.name not in told]
            rows += told.values()
        return WorthReport(rows=tuple(rows), untold=tuple(map(self.redact, untold)), cost_usd=spent)

    def run(self, emit: Emit, search: attribution.Investigation | None = None) -> BatchResult:
        """Run what was ordered, or what a search asks for; what cannot be used is an error before it costs."""
        self._warn(emit)
        live, limits, workspaces = not self.replayed, _pauses(emit), self.workspaces
        sessions, judges = (self._proxy(upstream, limits) for upstream in (self._of_sessions, self._of_judges))
        tools = evaluation.Tools(prepared=self, workspaces=workspaces, proxy=sessions, judge_proxy=judges, emit=emit)
        checker = Checker(self, sessions, judges, emit) if self._is_checked and live else None

        def preload() -> None:
            """First what the main thread needs first."""
            proxy.preload(live=live)
            claude_code.import_sdk()
            if any(suite.criteria and suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) for suite in self.suites):
                evaluation.anthropic_judge()

        return _in_event_loop(lambda: Batch(tools, checker, search).run(threading.Thread(target=preload, daemon=True)))

    def judge_idle(self, emit: Emit) -> dict[str, tuple[CriterionJudgement, ...]]:
        """By suite, how its judge decides its criteria on a session that does nothing."""
        contexts = [context for context in map(idle, self.suites) if metrics.ask_judge(context.suite)]
        judges = self._proxy(self._of_judges)
        judging = partial(evaluation.judge_idle, contexts, self.workspaces, judges, emit, check=check_judges)
        return _in_event_loop(judging)

    def rejudge(self, names: Sequence[str], emit: Emit) -> BatchResult:
        """Judge stored runs again, one by one, the judge tried first if that is ordered."""
        # The gateway is today's, whatever a run was judged through.
        gateway = apply(self.loaded.suites[0].resolved, self.given).gateway_url
        run_ids = dict.fromkeys(run_id for name in names for run_id in references.find(self.store, name)[1])
        if not run_ids:
            hint = "Give runs that it counted: `zelda list` shows all."
            raise NotStoredError(f"{', '.join(names)} made no run of its own.", hint=hint, code="NO_RUNS")
        overrides = self.order.overrides
        # Checks are decided without a key.
        is_asked = any(metrics.ask_judge(apply(self.store.result(run_id).config, overrides)) for run_id in run_ids)
        upstream = self._of_judge(gateway) if is_asked else None
        judges = proxy.ModelProxy(upstream, Redactor(self.settings.secrets), rate_limits=_pauses(emit))
        check = check_judges if self._is_checked else None
        return _in_event_loop(partial(evaluation.rejudge, self.store, run_ids, judges, emit, overrides, check))

    def check(self, emit: Emit, *, only_commands: bool = False) -> CheckReport:
        """Try everything that runs of what was ordered need, without a session; no models where commands are meant."""
        self._warn(emit)

        def proxy_or_problem(upstream: Callable[[], Upstream]) -> proxy.ModelProxy | ZeldaError:
            try:
                return self._proxy(upstream)
            except ZeldaError as problem:
                return problem

        session, judge = map(proxy_or_problem, (self._of_sessions, self._of_judges))
        return _in_event_loop(partial(Checker(self, session, judge, emit).alone, only_commands=only_commands))

    def context(self, emit: Emit) -> ContextReport:
        """List what fresh sessions are given, of the tested files and of the base; no model is asked."""
        self._check_isolation(emit)
        api = self._of_sessions() if self.settings.credential() else None
        return _in_event_loop(partial(context.context_report, self, proxy.ModelProxy(api, self.redact), emit))

    def _proxy(self, upstream: Callable[[], Upstream], rate_limits: RateLimits | None = None) -> proxy.ModelProxy:
        """The way to the models, or to the folder of a recording."""
        folder = self.order.replay or self.order.record
        return proxy.ModelProxy(None if self.replayed else upstream(), self.redact, folder, rate_limits)

    def _of_sessions(self) -> Upstream:
        return direct(self.settings, "a session")

    def _of_judges(self) -> Upstream:
        suite = next((suite for suite in self.suites if metrics.ask_judge(suite)), None)
        return self._of_judge(suite.gateway_url) if suite else self._of_sessions()

    def _of_judge(self, gateway: str | None) -> Upstream:
        return of_judge(gateway, self.settings, self.given.get("gatewayUrl") or self.loaded.layer.origin("gatewayUrl"))

    @property
    def _is_checked(self) -> bool:
        return self.order.check and self.environ.get("ZELDA_NO_CHECK") != "1"

    def _check_isolation(self, emit: Emit) -> None:
        """Refuse weak isolation that nobody accepted; only Zelda's own project goes on with it."""
        if weak := self.weak_isolation():
            if not self.order.is_own_content:
                raise ConfigError(weak, hint=f"{ACCEPTANCE} Nothing was run.", code="ISOLATION_NOT_ACCEPTED")
            emit(Warned(weak))
            emit(Warned("it goes on all the same, because the project is Zelda's own"))

    def _warn(self, emit: Emit) -> None:
        """Say what is worth a warning before anything begins."""
        self._check_isolation(emit)
        for notice in self.loaded.notices:
            emit(Warned(notice))
        for command, origin in dict.fromkeys((it.resolved.setup_command, it.provenance[SETUP]) for it in self.chosen):
            # One that nobody wrote comes from a file without a line: a lock file.
            if origin.file and origin.line is None:
                emit(Warned(f"setup: {command} (found {origin}; `setupCommand: none` switches it off)"))
        if left_out := self.found_secrets.left_out:
            emit(Warned(f"{left_out} values of .env files or variables are too large to be masked in results"))


def direct(settings: EnvironmentSettings, who: str) -> Upstream:
    """The way to the models with the credential of the environment; raises `ConfigError` where it is not usable."""
    credential, environ = settings.credential(), settings.environ
    if credential is None:
        raise ConfigError(f"ANTHROPIC_API_KEY is not set, and {who} needs it.", hint=HOW, code="API_KEY_MISSING")
    secret, address, headers = credential.secret, (credential.base_url or "").rstrip("/"), {}
    if secret:
        is_key = credential.variable == "ANTHROPIC_API_KEY"
        headers = {"x-api-key": secret} if is_key else {"authorization": secret.as_bearer()}
    match credential.platform:
        case "bedrock":
            return Bedrock(credential.region, headers, address, environ)
        case "vertex":
            return Vertex(credential.project, credential.region, headers, address, environ)
        case "anthropic":
            beta = OAUTH_BETA if credential.variable == "CLAUDE_CODE_OAUTH_TOKEN" else ""
            return Upstream(headers, address or API_URL, environ, beta=beta)


def of_judge(gateway: str | None, settings: EnvironmentSettings, origin: object) -> Upstream:
    """The gateway where one is configured, with its own key, if its host may get it; never sessions' credential.

    Its address comes from `origin`, for messages.
    """
    if gateway is None:
        return direct(settings, "the judge")
    host, hosts = urlsplit(gateway).hostname or "", settings.gateway_hosts
    if hosts is not None and host not in hosts:
        hint = "Nothing was run, and the key was sent nowhere. If you trust the host, allow it where the key is set"
        raise ConfigError(
            f"{origin}: gatewayUrl is at {host}, a host that your environment does not allow to get PORTKEY_API_KEY.",
            hint=f"{hint}: ZELDA_GATEWAY_HOSTS={host}.",
            code="GATEWAY_REFUSED",
        )
    if settings.portkey_api_key is None:
        hint = "Set it in the environment, or unset gatewayUrl and PORTKEY_GATEWAY_URL to ask the API directly."
        message = "PORTKEY_API_KEY is not set, and the judge behind the gateway needs it."
        raise ConfigError(message, hint=hint, code="JUDGE_KEY_MISSING")
    return portkey(settings.portkey_api_key, gateway, settings.portkey_routing, settings.environ)


def _pauses(emit: Emit) -> RateLimits:
    return defaultdict(lambda: UpstreamPause(lambda sentence: emit(Warned(sentence))))


def _in_event_loop(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return anyio.run(work)
    except BaseExceptionGroup as group:
        # Of several failures the first, unless somebody wanted it to end.
        failure: BaseException = group.subgroup(KeyboardInterrupt) or group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise failure from group
