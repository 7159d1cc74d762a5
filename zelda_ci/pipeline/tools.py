"""What runs share: commands in a workspace, the judge, and the plan of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import anyio.to_thread

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.run import JudgeUsage, Versions
from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.domain.test_run import CommandResult
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import CommandPhase, SettingFinding, Workspace
from zelda_ci.errors import JudgeError, ProxyError, StorageError
from zelda_ci.events import Emit, Phase, PhaseStarted, Warned
from zelda_ci.execution.agent import CodingAgent
from zelda_ci.judge.base import AbsentJudge, Judge
from zelda_ci.judge.prompts import mark_of, new_nonce
from zelda_ci.metrics.base import CommandRequest, Evaluator, Ran, Step, run_evaluator
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.process.spool import Spool
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.reports import Watch
from zelda_ci.workspace.workspaces import Workspaces

PHASES = {Step.BUILD: Phase.BUILD, Step.TEST: Phase.TEST}
# How each command is confined.
WALLS: Mapping[str, CommandPhase] = {"setup": "setup", "setup-again": "setup", Step.BUILD: "build", Step.TEST: "test"}


class LogKeeper(Protocol):
    """Keeps what commands print."""

    def keep_log(self, run_id: str, step: str, output: SafeText) -> None:
        """Keep the output of a step of a run."""


class WorkspaceCommandRunner:
    """Runs commands in workspaces, and tells of it."""

    def __init__(self, workspaces: Workspaces, store: LogKeeper, emit: Emit) -> None:
        self._workspaces, self._store, self._emit = workspaces, store, emit

    async def run(self, workspace: Workspace, order: CommandRequest) -> Ran:
        """Run a command that decides, and collect the reports it wrote."""
        self._emit(PhaseStarted(workspace.run_id, PHASES[order.step]))
        watch = await anyio.to_thread.run_sync(Watch, workspace, order.reports, abandon_on_cancel=True)
        result = await self.command(workspace, order.step, order.command, order.timeout_seconds, order.spool)
        written = await anyio.to_thread.run_sync(watch.written, abandon_on_cancel=True)
        return Ran(result, written.files, written.notes)

    async def set_up(self, workspace: Workspace, step: str, suite: ResolvedSuite) -> CommandResult:
        """Run a suite's setup command where nothing has run yet; `step` names its log.

        Raises:
            WorkspaceError: As in `command`.
            StorageError: As in `command`.
        """
        return await self.command(workspace, step, suite.setup_command or (), suite.command_timeout_seconds)

    async def command(
        self, workspace: Workspace, step: str, command: Command, timeout_seconds: float, spool: Spool | None = None
    ) -> CommandResult:
        """Run a command; its output becomes a file, also where Zelda is interrupted.

        Raises:
            WorkspaceError: No process could be started at all.
            StorageError: What it printed could not be kept: a result that rests on it would have no evidence.
        """

        def keep(done: CommandResult) -> None:
            try:
                self._store.keep_log(workspace.run_id, step, done.output)
            except StorageError as problem:
                self._emit(Warned(f"what the {step} command printed is not kept: {problem.message}", workspace.run_id))

        done = await self._workspaces.run_command(
            workspace, command, timeout_seconds, phase=WALLS[step], spool=spool, when_cut_short=keep
        )
        await anyio.to_thread.run_sync(self._store.keep_log, workspace.run_id, step, done.output)
        return done


# Makes a run's judge, reached through a meter, who may have something to tell the user.
MakeJudge = Callable[[ResolvedSuite, Meter, Callable[[str], None]], Judge]

# The evaluators of a suite that ask a judge, with the nonce of the run's fences.
Bench = Callable[[ResolvedSuite, Judge, str], Sequence[Evaluator]]


@dataclass(frozen=True)
class JudgeFactory:
    """What it takes to judge; built by `app`."""

    proxy: ModelProxy
    make_judge: MakeJudge
    bench: Bench
    redact: Redactor

    def judge_run(self, label: str, context: EvalContext) -> "JudgeRun":
        """One run before the judge; `label` is the run's."""
        return JudgeRun(self, label, context)


@dataclass
class JudgeRun:
    """One run's judging. What was found and used so far is there at any time, also when it was cut short."""

    judging: JudgeFactory
    label: str
    context: EvalContext
    results: list[EvalResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _meter: Meter | None = None

    async def run(self) -> None:
        """Judge every metric, in parallel; a metric that fails is unscored and says why."""
        suite, redact = self.context.suite, self.judging.redact
        # Made after the session has ended, so that nothing it wrote can hold it.
        nonce = new_nonce()
        with self._judge(nonce) as judge:
            evaluators = self.judging.bench(suite, judge, nonce)

            async def evaluate(evaluator: Evaluator) -> None:
                self.results.append(await run_evaluator(evaluator, self.context, redact))

            async with anyio.create_task_group() as group:
                for evaluator in evaluators:
                    group.start_soon(evaluate, evaluator)

    def usage(self) -> JudgeUsage | None:
        """What was used so far; nothing where no judge was asked."""
        api = self._meter.usage() if self._meter else None
        if api is None or not api.requests:
            return None
        return JudgeUsage(**dict(api), notices=tuple(map(self.judging.redact, self.notices)))

    @contextmanager
    def _judge(self, nonce: str) -> Iterator[Judge]:
        suite = self.context.suite
        places = {**self._places(), "nonce": nonce, "mark": mark_of(nonce)}
        with ExitStack() as stack:
            session = self.judging.proxy.session(run_label=f"{self.label}@judge", budget_usd=None, placeholders=places)
            try:
                self._meter = stack.enter_context(session)
                judge = self.judging.make_judge(suite, self._meter, self.notices.append)
            except ProxyError as problem:
                # A replay without a recorded judge matters only to those who ask it.
                why = JudgeError(problem.message, hint=problem.hint, code=problem.code)
                judge = AbsentJudge(suite.judge_model, suite.judge.context_tokens, why)
            yield judge

    def _places(self) -> Mapping[str, str]:
        workspace = self.context.workspace
        if workspace is None:
            return {}
        return {"workspace": str(workspace.path), "home": str(workspace.home), "tmp": str(workspace.tmp)}


def label_of(suite: str, trial: int, side: Side = Side.HEAD) -> str:
    """The label of one trial of several: names of suites have no @, so it is that of no other run."""
    return f"{suite}@{'base-' if side is Side.BASE else ''}{trial}"


@dataclass(frozen=True)
class PlannedRun:
    """One suite, one trial; no two runs of an invocation share a label, by which cassettes are found."""

    suite: ResolvedSuite
    trial: int
    label: str
    overruled: tuple[SettingFinding, ...] = ()
    """What a pull request wanted to set for it, and may not."""
    side: Side = Side.HEAD
    look: int | None = None
    """Of an adaptive plan."""


@dataclass(frozen=True)
class Tools:
    """What runs work with; built by `app`."""

    workspaces: Workspaces
    bench: WorkspaceCommandRunner
    proxy: ModelProxy
    agent: CodingAgent
    store: ResultStore
    evaluators: Callable[[ResolvedSuite], Sequence[Evaluator]]
    """Those that need no judge."""
    judging: JudgeFactory
    redact: Redactor
    versions: Versions
    replayed: bool
    conclusion_seconds: float
    """Most that changes and evaluation may take once a run was interrupted."""
    isolation_reasons: tuple[str, ...] = ()
    """Why this machine offers no better isolation, and what would help."""
    system: str = ""
    """On what everything runs."""
    isolation: str = ""
    """How the runs are confined, in one line."""
    expected_seconds: Mapping[str, float] = field(default_factory=dict)
    """What a run of each suite is expected to take, by name; without stored runs nothing is."""
