"""Before anything is spent: everything that a run needs is tried once, without a session."""

import json
import shutil
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from zelda_ci import __version__, metrics
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.domain import numbers
from zelda_ci.domain.check import Check, CheckReport, Status
from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.events import Checking, Emit, Warned
from zelda_ci.judge.base import models_of
from zelda_ci.judge.failures import NO_CREDIT
from zelda_ci.model_proxy.modes import Mode
from zelda_ci.model_proxy.probe import Probe
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.batch import Interruption
from zelda_ci.pipeline.named_contents import about_contents
from zelda_ci.pipeline.survey import settings_checks
from zelda_ci.pipeline.trying import CommandTrial, not_there, others
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.sandbox import closed_folders, levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.sandbox.readable_paths import PathPolicy
from zelda_ci.storage.checks import CheckMemory
from zelda_ci.workspace import environment
from zelda_ci.workspace.workspaces import Workspaces

SKIP = "`--no-check` (or ZELDA_NO_CHECK=1) runs without this check."
MODEL_SECONDS, COMMAND_SECONDS = 86_400.0, 7 * 86_400.0
MIN_FREE_BYTES, FEW_FREE_BYTES = 64 << 20, 1 << 30
MAX_NAMED = 10
# Of a command's last lines, beside the sentence about it.
MAX_PRINTED = 5


@dataclass(frozen=True)
class CheckTools:
    """What checks work with; built by `app`."""

    workspaces: Workspaces
    redact: Redactor
    isolation: Isolation
    memory: CheckMemory
    environ: Mapping[str, str]
    session: ModelProxy | ZeldaError
    judge: ModelProxy | ZeldaError
    identity: str = field(repr=False)
    """What the answers of models depend on: the credentials. It becomes part of a digest."""
    emit: Emit


@dataclass
class Checker:
    """The checks of one invocation."""

    suites: Sequence[LoadedSuite]
    tools: CheckTools
    fresh: bool = False
    """Whether to try everything, whatever earlier checks found; and to go on where one fails."""
    only_commands: bool = False
    """Whether models are not asked, and tests are tried even where the build does not succeed."""
    despite_failing: bool = True
    """Whether suites run whose build or tests fail before any session."""
    checks: list[Check] = field(default_factory=list)

    async def report(self) -> CheckReport:
        """Try everything, the cheapest first; without `fresh`, only until something fails."""
        began = time.monotonic()
        try:
            source = await self._git()
            if source:
                self.checks += [*self._disks(), *self._isolation(), *self._programs()]
                self.checks += settings_checks(self.tools.workspaces.project, self.tools.redact)
            if not self.only_commands and (self.fresh or not self._has_failed()):
                await self._models()
            if source and (self.fresh or not self._has_failed()):
                await self._commands(source)
        finally:
            self.tools.emit(Checking())
        checks = tuple(check.replace(seconds=round(check.seconds, 3)) for check in self.checks)
        return CheckReport(checks=checks, seconds=round(time.monotonic() - began, 3))

    def _has_failed(self) -> bool:
        return any(check.status == "failed" for check in self.checks)

    async def _git(self) -> WorkspaceSource | None:
        redact, began = self.tools.redact, time.monotonic()
        try:
            source = await self.tools.workspaces.inspect()
        except ZeldaError as problem:
            self.checks.append(failure("git", redact("the project"), problem, redact))
            return None
        self.checks.append(_of_source(source, redact).replace(seconds=time.monotonic() - began))
        return source

    def _disks(self) -> Iterator[Check]:
        """Of the workspaces, and of the results where they lie on another."""
        places = (self.tools.workspaces.location, self.tools.memory.results_dir.parent)
        yield from (self._disk(place) for place in {place.stat().st_dev: place for place in reversed(places)}.values())

    def _disk(self, place: Path) -> Check:
        redact, free = self.tools.redact, shutil.disk_usage(place).free
        about = redact(f"{free / (1 << 30):,.1f} GiB free in {place}")
        status: Status = "failed" if free < MIN_FREE_BYTES else "warning" if free < FEW_FREE_BYTES else "passed"
        hint = None if status == "passed" else "Make room, or set ZELDA_WORKSPACES to a folder on another disk."
        return Check(subject="disk", about=about, status=status, hint=hint)

    def _isolation(self) -> Iterable[Check]:
        redact, isolation = self.tools.redact, self.tools.isolation
        for level, suites in grouped(self.suites, lambda suite: isolation.of(suite.resolved)).items():
            message = levels.remark(level, isolation.offered)
            yield Check(
                subject="isolation",
                about=redact(f"level {level}"),
                status="warning" if message else "passed",
                message=redact(message) if message else None,
                suites=names(suites),
            )

    def _programs(self) -> Iterator[Check]:
        tools, isolation = self.tools, self.tools.isolation
        where = (tools.memory.results_dir.parent, tools.environ, tools.redact)
        for level, suites in grouped(self.suites, lambda suite: isolation.of(suite.resolved)).items():
            yield from others(suites, *where, self._environ_at(level))
        # Where everything is tried, the commands themselves show it.
        if not self.fresh:
            yield from not_there(self.suites, *where, lambda suite: self._environ_at(isolation.of(suite)))

    def _environ_at(self, level: IsolationLevel) -> Mapping[str, str]:
        """The user's environment with what of PATH is within the reach of runs at a level."""
        environ = self.tools.environ
        if level != "uid":
            return environ
        grounds = PathPolicy.of(self.tools.memory.results_dir.parent, self.tools.workspaces.location, environ)
        reaches = partial(closed_folders.is_within_reach, grounds=grounds, covers=levels.covers())
        return environment.within_reach(environ, reaches)

    async def _models(self) -> None:
        wanted: dict[tuple[str, str], tuple[str, ModelProxy | ZeldaError, set[str]]] = {}
        judged: dict[tuple[str, str], set[str]] = {}
        for suite in (each.resolved for each in self.suites):
            models = [("model", self.tools.session, model) for model in _session_models(suite)]
            models += [("judge", self.tools.judge, model) for model in judge_models(suite)]
            for subject, proxy, model in models:
                address = proxy.address if isinstance(proxy, ModelProxy) else str(proxy)
                wanted.setdefault((address, model), (subject, proxy, set()))[2].add(suite.name)
                if subject == "judge":
                    judged.setdefault((address, model), set()).add(suite.name)
        found: dict[tuple[str, str], Check] = {}

        async def ask(key: tuple[str, str], subject: str, proxy: ModelProxy | ZeldaError) -> None:
            found[key] = await self._model(subject, key[1], proxy)

        async with anyio.create_task_group() as group:
            for key, (subject, proxy, _) in wanted.items():
                group.start_soon(ask, key, subject, proxy)
        for key, check in ((key, found[key]) for key in wanted):
            self.checks.append(check.replace(suites=tuple(sorted(wanted[key][2]))))
            # One request for both, and yet only the session may be answered.
            if ONLY_CLAUDE_CODE in (check.message or "") and check.subject == "model" and key in judged:
                suites = tuple(sorted(judged[key]))
                self.checks.append(check.replace(subject="judge", status="failed", hint=NO_JUDGE, suites=suites))

    async def _model(self, subject: str, model: str, proxy: ModelProxy | ZeldaError) -> Check:
        redact = self.tools.redact
        if isinstance(proxy, ZeldaError):
            return failure(subject, redact(model), proxy, redact)

        async def ask() -> Check:
            return await _probed(subject, model, proxy, redact, self.tools.emit)

        key = ["model", proxy.address, model, self.tools.identity]
        return await self._recalled(key, MODEL_SECONDS, ask)

    async def _recalled(self, key: Sequence[object], seconds: float, attempt: Callable[[], Awaitable[Check]]) -> Check:
        """An earlier result that still holds, or else a new one."""
        text = json.dumps([__version__, *key], sort_keys=True, default=str)
        if not self.fresh and (known := self.tools.memory.recall(text, seconds)):
            return known
        check = await attempt()
        # What was busy may answer in a moment.
        if check.status == "passed":
            self.tools.memory.remember(text, check)
        return check

    async def _commands(self, source: WorkspaceSource) -> None:
        memory = self.tools.memory
        for key, suites in grouped(self.suites, lambda suite: _surroundings(suite.resolved)).items():
            trial = self._trial(suites)
            place = [__version__, source.commit, source.contents.key, key, self._variables(suites[0].resolved)]
            # Without a commit nobody knows whether the files are the same.
            texts = {each.name: json.dumps([*place, each.name]) for each in trial.planned if source.commit}
            recalled = {name: memory.recall(text, COMMAND_SECONDS) for name, text in texts.items() if not self.fresh}
            found = await trial.checks({name: check for name, check in recalled.items() if check})
            self.checks += found.values()
            for name, check in found.items():
                if name in texts and not check.remembered:
                    memory.remember(texts[name], check)

    def _trial(self, suites: Sequence[LoadedSuite]) -> CommandTrial:
        tools = self.tools
        where = (tools.workspaces, tools.redact, tools.emit, tools.environ)
        return CommandTrial(suites, *where, goes_on=self.only_commands)

    def _variables(self, suite: ResolvedSuite) -> Mapping[str, str | None]:
        environ = self.tools.environ
        return {name: environ.get(name) for name in ("PATH", *suite.execution.passed_on)} | {
            "isolation": self.tools.isolation.of(suite)
        }


K = TypeVar("K", bound=Hashable)


def grouped(suites: Sequence[LoadedSuite], key: Callable[[LoadedSuite], K]) -> dict[K, list[LoadedSuite]]:
    """Suites by what they have in common, in their order."""
    found: dict[K, list[LoadedSuite]] = {}
    for suite in suites:
        found.setdefault(key(suite), []).append(suite)
    return found


def names(suites: Iterable[LoadedSuite]) -> tuple[str, ...]:
    """The names of suites."""
    return tuple(suite.resolved.name for suite in suites)


def failure(subject: str, about: SafeText, problem: ZeldaError, redact: Redactor) -> Check:
    """A check that ended with an error."""
    return Check(subject=subject, about=about, status="failed", message=redact(problem.message), hint=problem.hint)


def _session_models(suite: ResolvedSuite) -> Iterable[str]:
    return dict.fromkeys([suite.execution.model, *suite.execution.extra_models])


def judge_models(suite: ResolvedSuite) -> Iterable[str]:
    """Those that judge its runs."""
    return models_of(suite) if metrics.ask_judge(suite.metrics) else ()


def _surroundings(suite: ResolvedSuite) -> str:
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
        ]
    )


def _of_source(source: WorkspaceSource, redact: Redactor) -> Check:
    if source.commit is None:
        message = "There is no Git repository, so the folder is copied: ignored files and credentials stay behind."
        return Check(subject="git", about=redact("no repository"), status="passed", message=redact(message))
    on = f" ({source.branch})" if source.branch else ""
    about = redact(f"{'working tree on' if source.parent else 'commit'} {source.shown}{on}")
    message = redact(" ".join(about_the_tree(source)))
    return Check(subject="git", about=about, status="warning" if message else "passed", message=message or None)


def about_the_tree(source: WorkspaceSource) -> Iterator[str]:
    """What is not tested, and how it would be."""
    if source.changed and not source.parent:
        count = numbers.format_count(len(source.changed), "uncommitted file")
        listing = _listed(source.changed)
        yield f"{count} will not be tested, since a commit is: {listing}. Commit what matters."
    if source.left_out:
        listing = _listed(source.left_out)
        yield f"Left out of the working tree, since credentials may be in them: {listing}. Commit what is none."
    yield from about_contents(source.contents)


def _listed(files: Sequence[str]) -> str:
    more = len(files) - MAX_NAMED
    return ", ".join(files[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


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


async def _probed(subject: str, model: str, proxy: ModelProxy, redact: Redactor, emit: Emit) -> Check:
    about = f"{subject} {model}"
    emit(Checking(about))
    probe = await proxy.probe(model, lambda why: emit(Checking(redact(f"{about}: {_reached(why)}"))))
    return _of_probe(subject, redact(model), probe, redact)


def _reached(message: str) -> str:
    return message.replace("Zelda's model proxy could not reach", "could not reach")


def _of_probe(subject: str, model: SafeText, probe: Probe, redact: Redactor) -> Check:
    check = Check(subject=subject, about=model, status="passed", seconds=probe.seconds, cost_usd=probe.cost_usd)
    if probe.status == 200:
        return check
    if probe.status is None:
        hint = "Check ANTHROPIC_BASE_URL (or gatewayUrl), the network and HTTPS_PROXY."
        return check.replace(status="failed", message=redact(f"{_reached(probe.message)}."), hint=hint)
    said = f"HTTP {probe.status}: {probe.message}"
    if probe.status in BUSY or probe.status >= 500:
        message = f"no answer now ({said}); a session would try again for a while."
        return check.replace(status="warning", message=redact(message))
    if ONLY_CLAUDE_CODE in probe.message and subject == "model":
        message = f"the token is for Claude Code alone, so it cannot be tried without a session ({said})."
        return check.replace(status="warning", message=redact(message))
    status = 402 if probe.status == 400 and NO_CREDIT in probe.message else probe.status
    meaning, hint = MEANINGS.get(status, ("the request is refused", "Nothing can be asked of it like this."))
    if ONLY_CLAUDE_CODE in probe.message:
        hint = NO_JUDGE
    return check.replace(status="failed", message=redact(f"{meaning} ({said})."), hint=hint)


def refuse(report: CheckReport) -> None:
    """End here where a run could not go well.

    Raises:
        ConfigError: With everything that failed.
    """
    if not report.failures:
        return
    lines = ["\n".join([sentence_of(check), *_last_lines(check)]) for check in report.failures]
    hints = list(dict.fromkeys(check.hint for check in report.failures if check.hint))
    raise ConfigError(
        "\n".join(lines), hint="\n".join([*hints, f"Nothing was run and nothing spent. {SKIP}"]), code="CHECK_FAILED"
    )


def refuse_failing(report: CheckReport) -> None:
    """End here where build or tests fail before any session, unless something graver will be said.

    Raises:
        ConfigError: With everything that fails.
    """
    failing = [check for check in report.warnings if check.failing]
    if failing and not report.failures:
        lines = ["\n".join([sentence_of(check), *_last_lines(check)]) for check in failing]
        hint = "Mend them first; or run all the same with --yes. Nothing was run and nothing spent."
        raise ConfigError("\n".join(lines), hint=hint, code="FAILING_ALREADY")


def sentence_of(check: Check) -> str:
    """A check that did not go well: where, what and why."""
    # A command's message names it already.
    what = "" if check.origin else f"{check.subject} {check.about}: "
    where = f"{check.origin}: " if check.origin else ""
    return f"{where}{what}{check.message or 'failed'}"


def _last_lines(check: Check) -> Sequence[str]:
    return (check.output or "").splitlines()[-MAX_PRINTED:]


def proxy_or_problem(mode: Callable[[], Mode], redact: Redactor) -> ModelProxy | ZeldaError:
    """The way to the models, or why there is none: that is one finding among others."""
    try:
        return ModelProxy(mode(), redact)
    except ZeldaError as problem:
        return problem


async def checked(checker: Checker) -> CheckReport:
    """Check on its own, without a run to follow."""
    async with AsyncExitStack() as stack:
        for proxy in (checker.tools.session, checker.tools.judge):
            if isinstance(proxy, ModelProxy):
                await stack.enter_async_context(proxy)
        return await checker.report()


async def check_first(checker: Checker, interruption: Interruption, emit: Emit) -> dict[str, SafeText]:
    """Try what the runs need, unless interrupted; return what of build and tests fails before any session, by suite.

    Raises:
        ConfigError: No run could go well.
    """
    report = None
    async with anyio.create_task_group() as group:
        group.start_soon(interruption.cancel, group.cancel_scope)
        report = await checker.report()
        group.cancel_scope.cancel()
    if report and not checker.despite_failing:
        refuse_failing(report)
    return _heed(report, emit) if report else {}


def _heed(report: CheckReport, emit: Emit) -> dict[str, SafeText]:
    refuse(report)
    # Of the files that are not committed, and of the isolation, it is said in any case.
    for check in report.warnings:
        if check.subject not in {"git", "isolation"}:
            emit(Warned(sentence_of(check), output="\n".join(_last_lines(check))))
    return report.failing


async def check_judges(suites: Sequence[ResolvedSuite], proxy: ModelProxy, redact: Redactor, emit: Emit) -> None:
    """Ask each judge of these suites for one token.

    Raises:
        ConfigError: One of them would not answer.
    """
    began = time.monotonic()
    models = dict.fromkeys(model for suite in suites for model in judge_models(suite))
    checks = [await _probed("judge", model, proxy, redact, emit) for model in models]
    emit(Checking())
    _heed(CheckReport(checks=tuple(checks), seconds=time.monotonic() - began), emit)
