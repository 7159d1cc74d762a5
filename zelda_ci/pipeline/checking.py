"""Before anything is spent: everything that a run needs is tried once, without a session."""

import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio

from zelda_ci import __version__, metrics
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.domain.check import Check, CheckReport, Status
from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.events import Checking, Emit, Warned
from zelda_ci.judge.base import models_of
from zelda_ci.judge.failures import NO_CREDIT
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.pipeline.named_contents import about_the_tree
from zelda_ci.pipeline.survey import settings_checks
from zelda_ci.pipeline.trying import CommandTrial, made, not_there, others
from zelda_ci.redact import SafeText
from zelda_ci.sandbox import closed_folders, levels
from zelda_ci.sandbox.readable_paths import PathPolicy
from zelda_ci.storage.checks import CheckMemory
from zelda_ci.workspace import environment

SKIP = "`--no-check` (or ZELDA_NO_CHECK=1) runs without this check."
MODEL_SECONDS, COMMAND_SECONDS = 86_400.0, 7 * 86_400.0
MIN_FREE_BYTES, FEW_FREE_BYTES = 64 << 20, 1 << 30
# Of a command's last lines, beside the sentence about it.
MAX_PRINTED = 5


class Checker:
    """The checks of one invocation.

    Args:
        prepared: The invocation.
        session: The way to the models, or why there is none: that is one finding among others.
        judge: That of the judges.
        emit: Who listens.
        fresh: Whether to try everything, whatever earlier checks found; and to go on where one fails.
        only_commands: Whether models are not asked, and tests are tried even where the build does not succeed.
    """

    def __init__(
        self,
        prepared: Prepared,
        session: ModelProxy | ZeldaError,
        judge: ModelProxy | ZeldaError,
        emit: Emit,
        *,
        fresh: bool = False,
        only_commands: bool = False,
    ) -> None:
        self._prepared, self._session, self._judge, self._emit = prepared, session, judge, emit
        self._fresh, self._only_commands = fresh, only_commands
        self._suites, self._redact, self._environ = prepared.chosen, prepared.redact, prepared.environ
        self._memory = CheckMemory(prepared.loaded.results_dir)
        self._checks: list[Check] = []
        self.failing: Mapping[str, SafeText] = {}
        """What of build and tests fails before any session, by suite."""

    async def alone(self) -> CheckReport:
        """Check without a run to follow."""
        async with AsyncExitStack() as stack:
            for proxy in (self._session, self._judge):
                if isinstance(proxy, ModelProxy):
                    await stack.enter_async_context(proxy)
            return await self._report()

    async def check_first(self) -> None:
        """Try what the runs need; raises `ConfigError` where no run could go well, or not as it was ordered."""
        report = await self._report()
        failing = [check for check in report.warnings if check.failing]
        refuse(report)
        if failing and not self._prepared.order.despite_failing:
            hint = "Mend them first; or run all the same with --yes. Nothing was run and nothing spent."
            raise ConfigError("\n".join(map(_with_output, failing)), hint=hint, code="FAILING_ALREADY")
        # Of the files that are not committed, and of the isolation, it is said in any case.
        for check in report.warnings:
            if check.subject not in {"git", "isolation"}:
                self._emit(Warned(sentence_of(check), output=_last_lines(check)))
        self.failing = report.failing

    async def _report(self) -> CheckReport:
        """Try everything, the cheapest first; without `fresh`, only until something fails."""
        began = time.monotonic()
        try:
            source = await self._git()
            if source:
                self._disks()
                self._levels()
                self._checks += settings_checks(self._prepared.workspaces.project, self._redact)
            if not self._only_commands and self._goes_on:
                await self._models()
            if source and self._goes_on:
                await self._commands(source)
        finally:
            self._emit(Checking())
        checks = tuple(check.replace(seconds=round(check.seconds, 3)) for check in self._checks)
        return CheckReport(checks=checks, seconds=round(time.monotonic() - began, 3))

    @property
    def _goes_on(self) -> bool:
        return self._fresh or not any(check.status == "failed" for check in self._checks)

    async def _git(self) -> WorkspaceSource | None:
        began = time.monotonic()
        try:
            source = await self._prepared.workspaces.inspect()
        except ZeldaError as problem:
            check = made(self._redact, "git", "failed", "the project", problem.message)
            self._checks.append(check.replace(hint=problem.hint))
            return None
        if source.commit is None:
            message = "There is no Git repository, so the folder is copied: ignored files and credentials stay behind."
            check = made(self._redact, "git", "passed", "no repository", message)
        else:
            on = f" ({source.branch})" if source.branch else ""
            about = f"{'working tree on' if source.parent else 'commit'} {source.shown}{on}"
            message = " ".join(about_the_tree(source))
            check = made(self._redact, "git", "warning" if message else "passed", about, message)
        self._checks.append(check.replace(seconds=time.monotonic() - began))
        return source

    def _disks(self) -> None:
        """Of the workspaces, and of the results where they lie on another."""
        places = (self._prepared.workspaces.location, self._prepared.loaded.root)
        for place in {place.stat().st_dev: place for place in reversed(places)}.values():
            free = shutil.disk_usage(place).free
            status: Status = "failed" if free < MIN_FREE_BYTES else "warning" if free < FEW_FREE_BYTES else "passed"
            hint = None if status == "passed" else "Make room, or set ZELDA_WORKSPACES to a folder on another disk."
            check = made(self._redact, "disk", status, f"{free / (1 << 30):,.1f} GiB free in {place}")
            self._checks.append(check.replace(hint=hint))

    def _levels(self) -> None:
        """How runs are confined, and where they find other programs than the user's shell, or not those they need."""
        isolation = self._prepared.isolation
        by_level = grouped(self._suites, lambda suite: isolation.of(suite.resolved))
        for level, suites in by_level.items():
            message, names = levels.remark(level, isolation.offered), tuple(suite.resolved.name for suite in suites)
            status: Status = "warning" if message else "passed"
            check = made(self._redact, "isolation", status, f"level {level}", message)
            self._checks.append(check.replace(suites=names))
        for level, suites in by_level.items():
            self._checks += others(self._prepared, suites, self._environ_at(level))
        # Where everything is tried, the commands themselves show what is not there.
        if not self._fresh:
            self._checks += not_there(self._prepared, lambda suite: self._environ_at(isolation.of(suite)))

    def _environ_at(self, level: IsolationLevel) -> Mapping[str, str]:
        """The user's environment with what of PATH is within the reach of runs at a level."""
        if level != "uid":
            return self._environ
        grounds = PathPolicy.of(self._prepared.loaded.root, self._prepared.workspaces.location, self._environ)
        reaches = partial(closed_folders.is_within_reach, grounds=grounds, covers=levels.covers())
        return environment.within_reach(self._environ, reaches)

    async def _models(self) -> None:
        """One request for all who ask the same model at the same address."""
        asked: dict[tuple[str, str], list[tuple[str, ModelProxy | ZeldaError, str]]] = {}
        for suite in self._prepared.suites:
            models = [("model", self._session, it) for it in (suite.execution.model, *suite.execution.extra_models)]
            models += [("judge", self._judge, model) for model in judge_models(suite)]
            for subject, proxy, model in models:
                address = proxy.address if isinstance(proxy, ModelProxy) else str(proxy)
                asked.setdefault((address, model), []).append((subject, proxy, suite.name))
        found: dict[tuple[str, str], Check] = {}

        async def ask(key: tuple[str, str], subject: str, proxy: ModelProxy | ZeldaError) -> None:
            found[key] = await self._model(subject, key[1], proxy)

        async with anyio.create_task_group() as group:
            for key, ((subject, proxy, _), *_) in asked.items():
                group.start_soon(ask, key, subject, proxy)
        for key, by in asked.items():
            check = found[key].replace(suites=tuple(sorted({name for *_, name in by})))
            self._checks.append(check)
            judged = tuple(sorted({name for subject, _, name in by if subject == "judge"}))
            # One request for both, and yet only the session may be answered.
            if ONLY_CLAUDE_CODE in (check.message or "") and check.subject == "model" and judged:
                self._checks.append(check.replace(subject="judge", status="failed", hint=NO_JUDGE, suites=judged))

    async def _model(self, subject: str, model: str, proxy: ModelProxy | ZeldaError) -> Check:
        if isinstance(proxy, ZeldaError):
            return made(self._redact, subject, "failed", model, proxy.message).replace(hint=proxy.hint)
        # The answers of models depend on the credentials.
        identity = "".join(secret.fingerprint() for secret in self._prepared.settings.secrets())
        key = json.dumps([__version__, "model", proxy.address, model, identity])
        if not self._fresh and (known := self._memory.recall(key, MODEL_SECONDS)):
            return known
        check = await probed(subject, model, proxy, self._emit)
        # What was busy may answer in a moment.
        if check.status == "passed":
            self._memory.remember(key, check)
        return check

    async def _commands(self, source: WorkspaceSource) -> None:
        for key, suites in grouped(self._suites, lambda suite: self._surroundings(suite.resolved)).items():
            trial = CommandTrial(self._prepared, suites, self._emit, goes_on=self._only_commands)
            place = [__version__, source.commit, source.contents.key, key]
            # Without a commit nobody knows whether the files are the same.
            texts = {name: json.dumps([*place, name]) for name in trial.planned if source.commit}
            recalled: dict[str, Check] = {}
            for name, text in texts.items():
                if not self._fresh and (known := self._memory.recall(text, COMMAND_SECONDS)):
                    recalled[name] = known
            found = await trial.checks(recalled)
            self._checks += found.values()
            for name, check in found.items():
                if name in texts and not check.remembered:
                    self._memory.remember(texts[name], check)

    def _surroundings(self, suite: ResolvedSuite) -> str:
        """What the result of a command depends on beside the command; setup is one of them."""
        return json.dumps(
            [
                suite.setup_command,
                suite.shell,
                suite.execution.path,
                suite.execution.env,
                suite.isolation.model_dump(mode="json"),
                suite.history_depth,
                suite.commands_see_suites,
                suite.command_timeout_seconds,
                self._prepared.isolation.of(suite),
                {name: self._environ.get(name) for name in ("PATH", *suite.execution.passed_on)},
            ]
        )


def grouped(suites: Sequence[LoadedSuite], key: Callable[[LoadedSuite], Any]) -> dict[Any, list[LoadedSuite]]:
    """Suites by what they have in common, in their order."""
    found: dict[Any, list[LoadedSuite]] = {}
    for suite in suites:
        found.setdefault(key(suite), []).append(suite)
    return found


def judge_models(suite: ResolvedSuite) -> Iterable[str]:
    """Those that judge its runs."""
    return models_of(suite) if metrics.ask_judge(suite.metrics) else ()


# Of the API's answers: what a wait may mend.
BUSY = {408, 409, 429}
ONLY_CLAUDE_CODE = "only authorized for use with Claude Code"
NO_JUDGE = "A judge cannot use a subscription: set ANTHROPIC_API_KEY, or gatewayUrl with PORTKEY_API_KEY."
MEANINGS = {
    401: (
        "the credential is not accepted",
        "Check the key or token in the environment, and the address it belongs to.",
    ),
    402: ("nothing is left to pay with", "Look at the account's credit."),
    403: ("the credential may not use this model", "Ask for access to the model, or choose another."),
    404: (
        "there is no such model",
        "Check execution.model and judgeModel; clouds and gateways have names of their own.",
    ),
}


async def probed(subject: str, model: str, proxy: ModelProxy, emit: Emit) -> Check:
    """What the smallest request to a model comes to."""

    def reached(message: str) -> str:
        return message.replace("Zelda's model proxy could not reach", "could not reach")

    about, redact = f"{subject} {model}", proxy.redact
    emit(Checking(about))
    probe = await proxy.probe(model, lambda why: emit(Checking(redact(f"{about}: {reached(why)}"))))
    said = f"HTTP {probe.status}: {probe.message}"
    status: Status = "failed"
    hint = None
    is_only_for_claude_code = ONLY_CLAUDE_CODE in probe.message
    if probe.status == 200:
        status, message = "passed", ""
    elif probe.status is None:
        message = f"{reached(probe.message)}."
        hint = "Check ANTHROPIC_BASE_URL (or gatewayUrl), the network and HTTPS_PROXY."
    elif probe.status in BUSY or probe.status >= 500:
        status, message = "warning", f"no answer now ({said}); a session would try again for a while."
    elif is_only_for_claude_code and subject == "model":
        why = "the token is for Claude Code alone, so it cannot be tried without a session"
        status, message = "warning", f"{why} ({said})."
    else:
        code = 402 if probe.status == 400 and NO_CREDIT in probe.message else probe.status
        meaning, hint = MEANINGS.get(code, ("the request is refused", "Nothing can be asked of it like this."))
        message, hint = f"{meaning} ({said}).", NO_JUDGE if is_only_for_claude_code else hint
    check = made(redact, subject, status, model, message)
    return check.replace(hint=hint, seconds=probe.seconds, cost_usd=probe.cost_usd)


def refuse(report: CheckReport) -> None:
    """Raise `ConfigError` with everything that failed, where a run could not go well."""
    if report.failures:
        hints = list(dict.fromkeys(check.hint for check in report.failures if check.hint))
        hint = "\n".join([*hints, f"Nothing was run and nothing spent. {SKIP}"])
        raise ConfigError("\n".join(map(_with_output, report.failures)), hint=hint, code="CHECK_FAILED")


def sentence_of(check: Check) -> str:
    """A check that did not go well: where, what and why."""
    # A command's message names it already.
    return f"{check.origin or f'{check.subject} {check.about}'}: {check.message or 'failed'}"


def _last_lines(check: Check) -> str:
    return "\n".join((check.output or "").splitlines()[-MAX_PRINTED:])


def _with_output(check: Check) -> str:
    return "\n".join(filter(None, [sentence_of(check), _last_lines(check)]))


async def check_judges(suites: Sequence[ResolvedSuite], proxy: ModelProxy, emit: Emit) -> None:
    """Ask each judge of these suites for one token; raises `ConfigError` where one does not answer."""
    began = time.monotonic()
    models = dict.fromkeys(model for suite in suites for model in judge_models(suite))
    checks = [await probed("judge", model, proxy, emit) for model in models]
    emit(Checking())
    report = CheckReport(checks=tuple(checks), seconds=time.monotonic() - began)
    refuse(report)
    for check in report.warnings:
        emit(Warned(sentence_of(check)))
