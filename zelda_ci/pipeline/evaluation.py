"""Evaluating a run: first what needs no judge, then the judges; also once more for a stored run."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from zelda_ci import metrics
from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus, SessionTranscript
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.test_run import CommandResult, CorrectnessDetails
from zelda_ci.domain.workspace import Changes, IsolationReport
from zelda_ci.errors import ZeldaError
from zelda_ci.events import Emit, Phase, PhaseStarted, Warned
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.metrics.base import run_evaluator
from zelda_ci.overrides import Overrides, apply
from zelda_ci.pipeline import confinement
from zelda_ci.pipeline.digests import judged_again
from zelda_ci.pipeline.felt import Felt, felt_by
from zelda_ci.pipeline.tools import JudgeFactory, Tools
from zelda_ci.redact import Redactor, SafeText, joined
from zelda_ci.storage.images import IMAGES
from zelda_ci.storage.result_store import RunState
from zelda_ci.storage.run_folder import FinishedRun
from zelda_ci.workspace.clean_checkout import CheckedOut


async def evaluate(context: EvalContext, tools: Tools, state: RunState) -> EvalContext:
    """Compute the metrics that need no judge, in order; returns the context that the judges get."""
    for evaluator in tools.evaluators(context.suite):
        result = await run_evaluator(evaluator, context, tools.redact)
        context = replace(context, earlier={**context.earlier, evaluator.metric: result})
        _keep([result], state)
    outputs = checks(context.earlier.get(Metric.FUNCTIONAL_CORRECTNESS), tools.redact)
    return replace(context, checks=(*context.checks, *outputs))


async def judge(label: str, context: EvalContext, tools: Tools, state: RunState, emit: Emit) -> None:
    """Compute the others, which cost money: not after an interruption, nor where nobody knows what to judge."""
    if state.known.status is SessionStatus.INTERRUPTED or context.changes is None:
        return
    judge_run = tools.judging.judge_run(label, context)
    try:
        await judge_run.run()
    finally:
        _keep(judge_run.results, state)
        state.update(judge=judge_run.usage())
    for notice in judge_run.notices:
        emit(Warned(notice, state.folder.run_id))


def what_was_felt(
    run: RunResult, manifest: ToolsManifest | None, transcript: SessionTranscript, redact: Redactor
) -> Felt | None:
    """What a session felt of the files that steer it; nothing where that is not known, or the session broke off."""
    if manifest is None or not run.status.is_valid:
        return None
    judged = run.details(ToolUsageDetails)
    return felt_by(manifest, transcript, judged, run.changes.files if run.changes else (), redact)


def _keep(results: Iterable[EvalResult], state: RunState) -> None:
    evaluations = state.known.evaluations | {result.metric: result for result in results}
    state.update(evaluations={metric: evaluations[metric] for metric in Metric if metric in evaluations})


def checks(result: EvalResult | None, redact: Redactor) -> tuple[SafeText, ...]:
    """What build and tests said, for the judges to read."""
    if result is None:
        return ()
    details = result.details
    if not isinstance(details, CorrectnessDetails):
        return () if result.score is None else (result.reasoning,)
    commands = {"buildCommand": details.build, "testCommand": details.test}
    return (result.reasoning, *(_command_output(name, done, redact) for name, done in commands.items() if done))


def _command_output(name: str, done: CommandResult, redact: Redactor) -> SafeText:
    how = "ran into its time limit" if done.timed_out else f"ended with exit code {done.exit_code}"
    return redact(f"{name} `{done.command}` {how}. The end of what it printed:\n{done.output}")


MAX_NAMED = 50


async def protect(context: EvalContext, tools: Tools, state: RunState, emit: Emit) -> EvalContext:
    """The context for build and tests: a fresh checkout with a HOME of its own; and what judges are to know of it.

    What goes wrong here is counted against the session: it could have provoked it.
    """
    workspace, run_id = context.workspace, state.folder.run_id
    context = replace(context, checks=remarks(state.known.isolation, tools.redact))
    if workspace is None or not _wants_checkout(context.suite) or not context.transcript.status.is_valid:
        return context
    try:
        checked = await tools.workspaces.check_out_again(workspace)
    except ZeldaError as problem:
        why = tools.redact(f"The fresh checkout for build and tests could not be made: {problem.message}")
        emit(Warned(why, run_id))
        return replace(context, unready=why)
    confinement.enter_protected(state, checked.restored)
    if checked.left_out:
        emit(
            Warned(
                f"build and tests do not see {', '.join(checked.left_out[:MAX_NAMED])}: too large or unreadable",
                run_id,
            )
        )
    context = replace(context, workspace=checked.workspace, checks=remarks(state.known.isolation, tools.redact))
    if not _commands(context.suite):
        return context
    context = await _set_up(context, checked, tools, run_id, emit)
    await tools.workspaces.bring_ignored(workspace, checked.workspace)
    return context


def _commands(suite: ResolvedSuite) -> bool:
    """Whether anything is built or tested."""
    commands = suite.build_command is not None or suite.test_command is not None
    return commands and suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS)


def _wants_checkout(suite: ResolvedSuite) -> bool:
    return _commands(suite) or bool(suite.protected_paths) or suite.commands_see_suites


async def _set_up(context: EvalContext, checked: CheckedOut, tools: Tools, run_id: str, emit: Emit) -> EvalContext:
    """What setup made before the session is not in the fresh checkout."""
    suite, workspace = context.suite, checked.workspace
    if suite.setup_command is None:
        return context
    emit(PhaseStarted(run_id, Phase.SETUP))
    done = await tools.bench.set_up(workspace, "setup-again", suite)
    if done.exit_code == 0 and checked.update:
        done = await tools.workspaces.run_command(
            workspace, checked.update, suite.command_timeout_seconds, phase="zelda"
        )
    if done.exit_code == 0:
        return context
    how = "ran into its time limit" if done.timed_out else f"ended with exit code {done.exit_code}"
    return replace(context, unready=tools.redact(f"In the fresh checkout setupCommand {how}."))


# What running code leaves behind in every session says nothing.
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


def remarks(report: IsolationReport | None, redact: Redactor) -> tuple[SafeText, ...]:
    """For the judges, who see the session's own files: what build and tests did not see, and what no patch shows."""
    if report is None:
        return ()
    changes = [change for change in report.ignored.changes if not CACHES & set(change.path.split("/"))]
    hidden = [redact(f"{change.path} ({change.kind})") for change in changes]
    lists = {
        "The session changed protected files, which build and tests saw as they were committed": report.protected,
        "Files that git ignores, so that no patch shows them, were changed by the session, and build and tests did "
        "not see that": (*hidden, *[redact("others")] * (report.ignored.more > 0)),
        "Files that git ignores, so that no patch shows them, and that build and tests saw as the session left "
        "them": report.ignored.kept,
    }
    return tuple(_remark(sentence, names, redact) for sentence, names in lists.items() if names)


def _remark(sentence: str, names: Sequence[SafeText], redact: Redactor) -> SafeText:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return redact(f"{sentence}: {joined(', ', names[:MAX_NAMED])}{more}.")


async def rejudge(stored: FinishedRun, judging: JudgeFactory, emit: Emit, overrides: Overrides) -> RunResult:
    """Judge a run again by its configuration and the overrides; the new verdicts take the place of the old ones.

    A verdict that could not be had again does not replace one that is there.

    Returns:
        What this judging came to: as stored, but with failures where they replaced nothing.

    Raises:
        StorageError: The run cannot be read, or its result not be written.
        ConfigError: An override cannot be used.
    """
    before = stored.result()
    run = before.replace(config=apply(before.config, overrides))
    transcript, offered = stored.transcript(), stored.manifest()
    context = EvalContext(
        run.config,
        None,
        transcript,
        run.api,
        _changes(run, stored),
        checks=(
            *remarks(run.isolation, judging.redact),
            *checks(run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS), judging.redact),
        ),
        images=stored.path / IMAGES,
        manifest=resolve_loaded(offered, transcript, judging.redact) if offered else None,
    )
    judge_run = judging.judge_run(run.run_id, context)
    await judge_run.run()
    for notice in judge_run.notices:
        emit(Warned(notice, run.run_id))
    fresh = {result.metric: result for result in judge_run.results}
    usage = judge_run.usage()
    judged = run.replace(judge=usage.after(run.judge) if usage else run.judge, evaluations=run.evaluations | fresh)
    if run.fingerprint:
        anew = judged_again(run.fingerprint, run.config, metrics.versions(run.config.metrics))
        judged = judged.replace(fingerprint=anew)
    kept = {metric: result for metric, result in fresh.items() if not _is_worse(result, run.evaluations.get(metric))}
    if kept:
        rewritten = judged.replace(evaluations=_ordered(run.evaluations | kept))
        felt = what_was_felt(rewritten, context.manifest, transcript, judging.redact)
        if felt:
            rewritten = rewritten.replace(steering=felt.units, touched=felt.touched)
        stored.rewrite(rewritten)
    elif usage and usage.cost_usd:  # it was paid for all the same
        stored.rewrite(before.replace(judge=judged.judge))
    return judged.replace(evaluations=_ordered(judged.evaluations))


def _is_worse(new: EvalResult, old: EvalResult | None) -> bool:
    return new.failed and old is not None and not old.failed


def _ordered(evaluations: dict[Metric, EvalResult]) -> dict[Metric, EvalResult]:
    return {metric: evaluations[metric] for metric in Metric if metric in evaluations}


def _changes(run: RunResult, stored: FinishedRun) -> Changes | None:
    return Changes(**dict(run.changes) | {"patch": stored.patch_file}) if run.changes else None
