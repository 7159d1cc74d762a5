"""Evaluating a run, and what that works with: first without a judge, then by the judges; also a stored run again."""

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from zelda_ci import metrics
from zelda_ci.domain.details import CommandResult, CorrectnessDetails, CriterionJudgement, FulfillmentDetails
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, EvalContext, Failure, JudgeUsage, RunResult, batch_of
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import Changes, SettingFinding, Workspace
from zelda_ci.errors import JudgeError, ProxyError, ZeldaError
from zelda_ci.events import Emit, Phase, PhaseStarted, Warned
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.imports import one_at_a_time
from zelda_ci.judge.base import Judge, JudgePanel, models_of
from zelda_ci.judge.rendering import mark_of, new_nonce
from zelda_ci.metrics.base import CommandRequest, Evaluator, JudgeServices, Ran, Services, run_evaluator
from zelda_ci.metrics.checks import FAIL, NOT_JUDGED, PASS, commands_of_checks, judgement
from zelda_ci.metrics.functional_correctness import check_usable, ending
from zelda_ci.model_proxy import pricing
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.overrides import Overrides, apply
from zelda_ci.pipeline.fingerprints import judged_again
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.selection.felt import with_felt
from zelda_ci.storage.result_store import IMAGES, ResultStore, RunState, log_name
from zelda_ci.workspace.clean_checkout import CheckedOut
from zelda_ci.workspace.reports import Watch
from zelda_ci.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from zelda_ci.judge.anthropic_judge import AnthropicJudge

MAX_NAMED = 50
# Asks each judge of suites for one token.
CheckJudges = Callable[[Sequence[ResolvedSuite], ModelProxy, Emit], Awaitable[None]]
# What running code leaves behind in every session says nothing.
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


class WorkspaceCommandRunner:
    """Runs commands in workspaces and emits their phases; what they print is kept where there is a store.

    Where it cannot be, `StorageError` is raised: a result that rests on it would have no evidence.
    """

    def __init__(self, workspaces: Workspaces, store: ResultStore | None, emit: Emit) -> None:
        self._workspaces, self._store, self._emit = workspaces, store, emit

    async def run(self, workspace: Workspace, order: CommandRequest) -> Ran:
        """Run a command that decides, and collect the reports it wrote."""
        self._emit(PhaseStarted(workspace.run_id, Phase(order.step)))
        watch = await anyio.to_thread.run_sync(Watch, workspace, order.reports, abandon_on_cancel=True)
        result = await self._command(workspace, order)
        return Ran(result, *await anyio.to_thread.run_sync(watch.written, abandon_on_cancel=True))

    async def set_up(self, workspace: Workspace, suite: ResolvedSuite, log: str = "setup") -> CommandResult:
        """Run a suite's setup command where nothing has run yet."""
        order = CommandRequest("setup", suite.setup_command or (), suite.command_timeout_seconds, log=log)
        return await self._command(workspace, order)

    async def set_up_again(self, checked: CheckedOut, suite: ResolvedSuite) -> CommandResult:
        """Run setup in a fresh checkout, and bring that to the session's files; the first that failed counts."""
        done = await self.set_up(checked.workspace, suite, "setup-again")
        if done.exit_code == 0 and checked.update:
            limit = suite.command_timeout_seconds
            updated = await self._workspaces.run_command(checked.workspace, checked.update, limit, phase="zelda")
            return done if updated.exit_code == 0 else updated
        return done

    async def _command(self, workspace: Workspace, order: CommandRequest) -> CommandResult:
        """Run a command; its output becomes a file, also where Zelda is interrupted."""

        def keep(done: CommandResult) -> None:
            if self._store:
                self._store.run(workspace.run_id).keep(log_name(order.log or order.step), done.output.encode())

        command, limit = order.command, order.timeout_seconds
        return await self._workspaces.run_command(
            workspace, command, limit, phase=order.step, buffer=order.buffer, keep=keep
        )


@dataclass(frozen=True)
class Tools:
    """What the runs of one side work with."""

    prepared: Prepared
    workspaces: Workspaces
    proxy: ModelProxy
    judge_proxy: ModelProxy
    emit: Emit

    @property
    def redact(self) -> Redactor:
        return self.prepared.redact

    @property
    def commands(self) -> WorkspaceCommandRunner:
        return WorkspaceCommandRunner(self.workspaces, self.prepared.store, self.emit)

    def evaluators(self, suite: ResolvedSuite) -> Sequence[Evaluator]:
        """Those that need no judge."""
        return metrics.unjudged(suite.metrics, Services(self.commands, self.redact))


def anthropic_judge() -> "type[AnthropicJudge]":
    """The class, imported when it is first needed."""
    with one_at_a_time("zelda_ci.judge.anthropic_judge"):
        from zelda_ci.judge.anthropic_judge import AnthropicJudge  # noqa: PLC0415 - more than a second
    return AnthropicJudge


@dataclass
class JudgeRun:
    """One run's judging. Results and usage so far are there at any time, also when it was cut short."""

    proxy: ModelProxy
    label: str
    context: EvalContext
    on_cost: Callable[[], None] = lambda: None
    results: list[EvalResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _meter: Meter | None = None

    async def run(self) -> None:
        """Judge every metric, in parallel; a metric that fails is unscored and says why."""
        suite, workspace, redact = self.context.suite, self.context.workspace, self.proxy.redact
        # Made after the session has ended, so that nothing it wrote can hold it.
        nonce = new_nonce()
        places = {"nonce": nonce, "mark": mark_of(nonce)}
        if workspace:
            places |= {"workspace": str(workspace.path), "home": str(workspace.home), "tmp": str(workspace.tmp)}
        session = self.proxy.session(run_label=f"{self.label}@judge", budget_usd=None, placeholders=places)
        refusal = JudgeError("The suite asks no judge.")

        def make(model: str) -> Judge:
            if (meter := self._meter) is None:
                raise refusal
            return anthropic_judge()(
                base_url=meter.base_url,
                token=meter.token,
                model=model,
                settings=suite.judge,
                redact=redact,
                price=pricing.cost_usd,
                notify=self.notices.append,
                time_limit=meter.wait.time_limit,
                forms=metrics.forms(suite.metrics),
            )

        async def evaluate(evaluator: Evaluator) -> None:
            self.results.append(await run_evaluator(evaluator, self.context, redact))

        async with AsyncExitStack() as stack:
            try:
                if metrics.ask_judge(suite):
                    self._meter = await stack.enter_async_context(session)
                    self._meter.on_end = self.on_cost
            except ProxyError as problem:
                # A replay without a recorded judge matters only to those who ask it.
                refusal = JudgeError(problem.message, hint=problem.hint, code=problem.code)
            judge = JudgePanel(models_of(suite), suite.judge.context_tokens, make)
            async with anyio.create_task_group() as group:
                for evaluator in metrics.judged(suite.metrics, JudgeServices(judge, nonce, redact)):
                    group.start_soon(evaluate, evaluator)

    @property
    def usage(self) -> JudgeUsage | None:
        """What was used so far; nothing where no judge was asked."""
        api = self._meter.usage() if self._meter else None
        notices = tuple(map(self.proxy.redact, self.notices))
        return JudgeUsage(**dict(api), notices=notices) if api and api.requests else None


async def evaluate(label: str, context: EvalContext, tools: Tools, state: RunState) -> None:
    """Compute the metrics of a run, and store each as soon as it is there: first those that need no judge."""
    checked = await _checked_out(context, tools, state)
    for evaluator in tools.evaluators(context.suite):
        state.known = with_results(state.known, [await run_evaluator(evaluator, checked, tools.redact)])
    commands = await _checks_by_command(checked, tools)
    # Judges cost money: they are not asked after an interruption, nor where nobody knows what the session changed.
    if state.known.status is SessionStatus.INTERRUPTED or context.changes is None:
        return
    # The judges read what the session left, not what was tested.
    context = replace(context, checks=checks(state.known, tools.redact), commands=commands)
    judging = JudgeRun(tools.judge_proxy, label, context, lambda: state.keep_cost(judge=judging.usage))
    try:
        await judging.run()
    finally:
        state.known = with_results(state.known, judging.results, judge=judging.usage)
    for notice in judging.notices:
        tools.emit(Warned(notice, state.folder.run_id))
    # So that nobody needs its transcript to know which suites a change may concern.
    state.known = with_felt(state.known, context.manifest, context.transcript, tools.redact)


async def _checked_out(context: EvalContext, tools: Tools, state: RunState) -> EvalContext:
    """The context of build and tests: a fresh checkout with a HOME of its own, where suite and session need one."""
    suite, workspace, run_id = context.suite, context.workspace, state.folder.run_id
    has_any = suite.build_command is not None or suite.test_command is not None
    has_commands = (has_any and suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS)) or commands_of_checks(suite)
    is_wanted = has_commands or suite.protected_paths or suite.commands_see_suites
    if workspace is None or not is_wanted or not context.transcript.status.is_valid:
        return context
    try:
        checked = await tools.workspaces.check_out_again(workspace)
    except ZeldaError as problem:
        # That counts against the session, as all that goes wrong here: it could have provoked it.
        why = tools.redact(f"The fresh checkout for build and tests could not be made: {problem.message}")
        tools.emit(Warned(why, run_id))
        return replace(context, unready=why)
    update_isolation(state, protected=checked.restored)
    if checked.left_out:
        names = ", ".join(checked.left_out[:MAX_NAMED])
        tools.emit(Warned(f"build and tests do not see {names}: too large or unreadable", run_id))
    context = replace(context, workspace=checked.workspace)
    if not has_commands:
        return context
    # What setup made before the session is not in the fresh checkout.
    if suite.setup_command is not None:
        tools.emit(PhaseStarted(run_id, Phase.SETUP))
        done = await tools.commands.set_up_again(checked, suite)
        if done.exit_code != 0:
            why = tools.redact(f"In the fresh checkout setupCommand {ending(suite, done)}.")
            context = replace(context, unready=why)
    await tools.workspaces.bring_ignored(workspace, checked)
    return context


async def _checks_by_command(context: EvalContext, tools: Tools) -> dict[int, CriterionJudgement]:
    """Run the checks of a suite that are commands, where build and tests ran."""
    suite, workspace, found = context.suite, context.workspace, dict[int, CriterionJudgement]()
    if workspace is None or not context.transcript.status.is_valid:
        return found
    for number, check in commands_of_checks(suite):
        verdict, why = FAIL, context.unready or ""
        if not context.unready:
            order = CommandRequest("test", check.command or (), suite.command_timeout_seconds, log=f"check-{number}")
            try:
                done = (await tools.commands.run(workspace, order)).result.in_brief(tools.redact)
                check_usable(f"checks: {check.text}", done, workspace.confinement.environment)
                verdict = PASS if done.exit_code == 0 else FAIL
                why = f"The command {ending(suite, done)}. {done.output}".strip()
            except ZeldaError as problem:
                # Nobody could run it: that says nothing of the session.
                verdict, why = NOT_JUDGED, problem.message
        found[number] = judgement(check, tools.redact, verdict, why)
    return found


def update_isolation(state: RunState, findings: Iterable[SettingFinding] = (), **facts: object) -> None:
    """Add to the report of a run's isolation what is known now, and what the project's settings tried."""
    if report := state.known.isolation:
        state.update(isolation=report.replace(findings=(*report.findings, *findings), **facts))


def with_results(run: RunResult, results: Iterable[EvalResult], **facts: object) -> RunResult:
    """A run with further evaluations, and other facts."""
    found = run.evaluations | {result.metric: result for result in results}
    return run.replace(evaluations={metric: found[metric] for metric in Metric if metric in found}, **facts)


def checks(run: RunResult, redact: Redactor) -> tuple[SafeText, ...]:
    """For the judges, who see the session's own files: what build and tests did not see of them, and what they said."""
    lines: list[SafeText] = []
    if report := run.isolation:
        changes = [change for change in report.ignored.changes if not CACHES & set(change.path.split("/"))]
        hidden = [redact(f"{change.path} ({change.kind})") for change in changes]
        lists = {
            "The session changed protected files, which build and tests saw as they were committed": report.protected,
            "Files that git ignores, so that no patch shows them, were changed by the session, and build and tests "
            "did not see that": (*hidden, *[redact("others")] * (report.ignored.more > 0)),
            "Files that git ignores, so that no patch shows them, and that build and tests saw as the session left "
            "them": report.ignored.kept,
        }
        lines += [redact(f"{about}: {some_of(names, MAX_NAMED)}.") for about, names in lists.items() if names]
    result, details = run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS), run.details(CorrectnessDetails)
    if result and (result.score is not None or details):
        lines.append(result.reasoning)
    done_by = {"buildCommand": details.build, "testCommand": details.test} if details else {}
    for name, done in done_by.items():
        if done:
            how = "ran into its time limit" if done.timed_out else f"ended with exit code {done.exit_code}"
            lines.append(redact(f"{name} `{done.command}` {how}. The end of what it printed:\n{done.output}"))
    return tuple(lines)


async def rejudge(
    store: ResultStore,
    run_ids: Collection[str],
    proxy: ModelProxy,
    emit: Emit,
    overrides: Overrides,
    check: CheckJudges | None,
) -> BatchResult:
    """Judge stored runs again, if wanted once each judge has answered; failures that replaced nothing are returned."""
    started_at = datetime.now(UTC)
    async with proxy:
        if check:
            await check([apply(store.result(run_id).config, overrides) for run_id in run_ids], proxy, emit)
        results = [await _rejudge(store, run_id, proxy, emit, overrides) for run_id in run_ids]
    # The report is about the head, and names every run that could not be judged.
    heads = tuple(it for it in results if it.side is Side.HEAD or run_outcome(it) >= Outcome.INCOMPLETE)
    beside = tuple(it for it in results if heads and it not in heads)
    known = {"started_at": started_at, "finished_at": max(started_at, datetime.now(UTC))}
    return batch_of(results).replace(runs=heads or tuple(results), base_runs=beside, interrupted=False, **known)


async def judge_idle(
    contexts: Sequence[EvalContext], workspaces: Workspaces, proxy: ModelProxy, emit: Emit, *, check: CheckJudges
) -> dict[str, tuple[CriterionJudgement, ...]]:
    """By suite, how judges decide its criteria on the tested files as they are; a failure is warned of."""
    found = dict[str, tuple[CriterionJudgement, ...]]()
    async with proxy:
        await check([context.suite for context in contexts], proxy, emit)
        for context in contexts:
            suite = context.suite
            async with workspaces.open(f"lint-{secrets.token_hex(6)}", suite) as workspace:
                judging = JudgeRun(proxy, suite.name, replace(context, workspace=workspace))
                await judging.run()
            said = *judging.notices, *(result.reasoning for result in judging.results if result.failed)
            for each in said:
                emit(Warned(f"{suite.name}: {each}"))
            for result in judging.results:
                if isinstance(result.details, FulfillmentDetails):
                    found[suite.name] = result.details.criteria
    return found


async def _rejudge(store: ResultStore, run_id: str, proxy: ModelProxy, emit: Emit, overrides: Overrides) -> RunResult:
    """Judge a run by its configuration and the overrides; a verdict that could not be had again replaces none."""
    stored, redact = store.run(run_id), proxy.redact
    with store.locked():
        run = before = stored.result()
        # Where nothing can be stored, nothing is paid for.
        stored.rewrite(run)
    config = apply(run.config, overrides)
    transcript, offered = stored.transcript(), stored.manifest()
    had = resolve_loaded(offered, transcript, redact) if offered else None
    changes = Changes(**dict(run.changes) | {"patch": stored.patch_file}) if run.changes else None
    context = EvalContext(config, None, transcript, run.api, changes, images=stored.path / IMAGES, manifest=had)
    earlier = run.details(FulfillmentDetails)
    # Nobody can run them again: the workspace is gone.
    commands = dict(enumerate((it for it in earlier.criteria if it.by == "check"), start=1)) if earlier else {}
    judging = JudgeRun(proxy, run_id, replace(context, checks=checks(run, redact), commands=commands))
    try:
        await judging.run()
    finally:
        # Also what was cut short was paid for, and another Zelda may have judged the run meanwhile.
        usage, facts = judging.usage, dict[str, object]()
        try:
            with store.locked():
                before = stored.result()
                judge = usage.after(before.judge) if usage else before.judge
                fingerprint = before.fingerprint and judged_again(before.fingerprint, config)
                facts = {"config": config, "judge": judge, "fingerprint": fingerprint}
                kept = [it for it in judging.results if not it.failed or before.evaluations.get(it.metric, it).failed]
                if kept:
                    stored.rewrite(with_felt(with_results(before, kept, **facts), had, transcript, redact))
                elif usage and usage.cost_usd:
                    stored.rewrite(before.replace(judge=judge))
        except ZeldaError as problem:
            # What was paid for is shown all the same.
            failure = Failure(code=problem.code, message=redact(f"Not stored: {problem.message}"))
            facts |= {"status": SessionStatus.FAILED, "failure": failure}
    for notice in judging.notices:
        emit(Warned(notice, run_id))
    return with_results(before, judging.results, **facts)
