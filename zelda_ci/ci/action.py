"""The entry of `zelda ci`: settings and the event in, exit code out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from zelda_ci.app import Invocation
from zelda_ci.ci import (
    baseline,
    comment_mode,
    conversation,
    evaluate,
    nested,
    nightly,
    refused,
    selection,
    sharding,
    stored_parts,
)
from zelda_ci.ci.base import Overruled, overrule, read_base
from zelda_ci.ci.base_arm import bring
from zelda_ci.ci.base_source import at_submodule, source_of
from zelda_ci.ci.baseline import BatchBaseline
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.evaluate import PushPlan
from zelda_ci.ci.event import Checkout, Decision, decide, decide_requested
from zelda_ci.ci.inputs import Mode
from zelda_ci.ci.settings import ActionSettings, environment, read_action_settings
from zelda_ci.compare.drift import TRIALS_A_NIGHT
from zelda_ci.compare.shards import trial_seconds
from zelda_ci.config import project
from zelda_ci.config.files import find_root
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.selection import select
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.run import BatchResult, RunResult, empty_batch
from zelda_ci.domain.trials import TrialPlan, plan_of, trials_alone
from zelda_ci.errors import ConfigError, GitHubError
from zelda_ci.events import Emit
from zelda_ci.github.api import Api, Http
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.revisions import tree_of
from zelda_ci.github.workflow_commands import Log, Severity
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline import money
from zelda_ci.pipeline.fingerprints import system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.shards import PlanFacts, make_plan, order_of, with_trials
from zelda_ci.redact import Redactor, Secret
from zelda_ci.report.markdown import render_fork_notice
from zelda_ci.report.text import sentence
from zelda_ci.selection.choice import reasons
from zelda_ci.workspace.base_commit import BaseOrder
from zelda_ci.workspace.git import read_commit

TIMEOUT_SECONDS = 300.0
# Patience with what is asked first.
QUESTION_SECONDS = 30.0

# The runner kills a cancelled step 10 seconds after its first signal.
CONCLUSION_SECONDS = 2.0
# So what is stored after that has this long for each request.
HURRY_SECONDS = 4.0


def ci(environ: Mapping[str, str], log: Log, emit: Emit) -> int:
    """Do what the event asks for; returns the exit code.

    Args:
        environ: The environment of the step.
        log: Where the runner listens.
        emit: Who watches the runs.

    Raises:
        ZeldaError: The step cannot be used as it is, nothing could be run, or results could not be written.
    """
    settings = read_action_settings(environ, Path.read_bytes)
    log.mask(settings.secrets())
    checkout = _checkout(settings, environ, log)
    decision = decide(settings, checkout)
    log.say(decision.sentence)
    match decision.activity:
        case "skip":
            return _skip(settings, decision, environ, log)
        case "comment":
            return comment_mode.comment(_case(settings, decision, decision.head_sha, environ, log))
        case "converse":
            return conversation.converse(_case(settings, decision, settings.context.sha, environ, log))
        case "request":
            return _evaluate_requested(settings, checkout, decision, environ, log, emit)
        case "run":
            case = _case(settings, decision, checkout.head or settings.context.sha, environ, log)
            return _evaluate(case, environ, emit)


def _evaluate_requested(
    settings: ActionSettings,
    checkout: Checkout,
    decision: Decision,
    environ: Mapping[str, str],
    log: Log,
    emit: Emit,
) -> int:
    """Run what a comment asks for, if it still may."""
    wanted = conversation.requested(_quick_api(settings, log), settings)
    if wanted is None:
        return _skip(settings, replace(decision, sentence="The comment asks for no run of this job."), environ, log)
    chosen, commit = wanted
    decided = decide_requested(chosen, checkout, commit)
    log.say(decided.sentence)
    return _evaluate(_case(chosen, decided, commit, environ, log), environ, emit)


def _evaluate(case: CiContext, environ: Mapping[str, str], emit: Emit) -> int:
    settings = case.settings
    _need_files(settings.project)
    loaded = project.load(settings.project)
    case = replace(at_submodule(case, environ), pinned=stored_parts.pinned_plan(case))
    overruled = _with_rights(loaded, case, environ)
    loaded, notes = project.active(overruled.project, is_ci=True), overruled.notes
    source = source_of(case, environ)
    found = refused.newly_refused(case.decision.base, source, loaded.root, settings, case.log)
    case = replace(case, refused=found)
    chosen = selection.choose_suites(case, loaded, source)
    if chosen:
        for line in (*reasons(chosen.choices, runs=True), *chosen.notes):
            case.log.say(sentence(line))
        if not chosen.names:
            return selection.report_nothing(replace(case, notes=notes), chosen)
        if chosen.notes:
            settings, notes = replace(settings, suites=chosen.names), (*notes, *chosen.notes)
    order = RunOrder(
        names=settings.suites,
        overrides=settings.overrides,
        jobs=settings.jobs,
        replay=settings.replay,
        overruled=overruled.findings,
        conclusion_seconds=CONCLUSION_SECONDS,
        against=_against(case, environ),
        needs_base=False,
    )

    given = environment(environ, settings)
    invocation = Invocation(loaded, order, given)
    planned = _plan(case, invocation, chosen.baseline if chosen else None)
    invocation = invocation.ordering(replace(invocation.order, stored=planned.stored or {}))
    case = replace(case, settings=settings, root=loaded.root, results_dir=loaded.results_dir, notes=notes)
    case = replace(
        case,
        changes=replace(overruled.changes, steering=chosen.steering, others=chosen.others)
        if chosen
        else overruled.changes,
        planned=tuple(it.resolved.name for it in select(loaded.suites, settings.suites, ())),
    )
    if settings.is_sharded:
        return _share(case, invocation, planned, emit)
    return evaluate.evaluate(case, _runner(case, invocation, planned, emit), planned)


def _share(case: CiContext, invocation: Invocation, planned: PushPlan, emit: Emit) -> int:
    """What this job does of a run that several share: plan it, run a shard of it, or put the parts together."""
    settings, shard = case.settings, case.settings.shard
    if planned.baseline is None and not settings.baseline:
        planned = replace(planned, baseline=baseline.resolve_baseline(case, case.decision.target, case.run_id))
    environ = invocation.settings.environ
    if planned.known:
        invocation = invocation.ordering(replace(invocation.order, names=planned.new))
    has_none, order = bool(planned.known) and not planned.new, invocation.order
    facts = PlanFacts(
        suites=() if has_none else invocation.masked,
        commit=case.commit,
        tree=_tree_of(settings, environ),
        base=case.decision.base,
        sides=0 if planned.stored is None else 2,
        stored=order.stored,
        trial_seconds=trial_seconds(planned.trials, replayed=order.replay is not None),
    )
    is_night = nightly.is_nightly(case)
    if settings.mode is Mode.PLAN:
        # One job adds the row of a night to the history.
        return sharding.publish_plan(case, make_plan(facts, 1 if is_night else settings.shards, at_most=True), planned)
    if settings.mode is Mode.MERGE or shard is None:
        return sharding.merge(case, partial(make_plan, facts), planned)
    if is_night and shard.shards > 1:
        hint = "Let a job with mode: plan say how many there are, or set nightly: off."
        raise ConfigError("A nightly run is not shared by several jobs.", hint=hint, code="NIGHT_SHARED")
    plan = sharding.agreed(make_plan(facts, shard.shards), case)
    own = order_of(order, plan, shard.number)

    def run(kept: Sequence[RunResult]) -> BatchResult:
        part = invocation.ordering(replace(own, stored=with_trials(own.stored, kept)))
        return _runner(case, part, replace(planned, known={}), emit)()

    return sharding.hand_in(case, shard, plan, system_name(environ), run if own.names else None)


def _tree_of(settings: ActionSettings, environ: Mapping[str, str]) -> str | None:
    found = anyio.run(read_commit, settings.project, environ)
    return found.tree if found else None


def _runner(case: CiContext, invocation: Invocation, planned: PushPlan, emit: Emit) -> Callable[[], BatchResult]:
    """What runs the suites: a night all, as often as any night; a push what is new; everything else what was asked."""

    def run() -> BatchResult:
        if nightly.is_nightly(case) and planned.baseline:
            # A number of trials has no budget of its own: that of the plan in its place holds.
            budget = money.budget(invocation.suites)
            budget = money.budget(invocation.suites)
            trials = Overrides({"trials": Given(TRIALS_A_NIGHT, "input", "nightly")})
            overrides = trials.above(invocation.order.overrides)
            return invocation.ordering(replace(invocation.order, overrides=overrides, budget_usd=budget)).run(emit)
        if not planned.known:
            return invocation.run(emit)
        if not planned.new:
            return empty_batch(case.now())
        return invocation.ordering(replace(invocation.order, names=planned.new)).run(emit)

    return run


def _plan(case: CiContext, invocation: Invocation, found: BatchBaseline | None) -> PushPlan:
    """What is stored and counts; of a push to the base branch, which suites need not run for it."""
    settings = case.settings
    if case.pinned:
        return sharding.restored(case.pinned)
    if nightly.is_nightly(case):
        return PushPlan(baseline.resolve_baseline(case, case.decision.target, case.run_id))
    suites = invocation.suites
    is_adaptive = any(isinstance(plan_of(suite.trials), TrialPlan) for suite in suites)
    if invocation.order.against and is_adaptive:
        found = found or baseline.resolve_baseline(case, case.decision.target, case.run_id)
        return evaluate.count_stored(
            case, found, invocation.fingerprints(), {suite.name: suite.pool for suite in suites}
        )
    is_push = case.decision.is_of_base and settings.context.event_name == "push"
    if found or not is_push or settings.run_all or settings.baseline or not settings.compare:
        return PushPlan(found)
    stored = baseline.resolve_baseline(case, case.decision.target, case.run_id)
    if not stored.pool.trials:
        return PushPlan(stored)
    fingerprints = invocation.fingerprints()
    wanted = {suite.name: trials_alone(suite.trials) for suite in suites}
    planned = PushPlan(stored, fingerprints, stored.known(fingerprints, wanted))
    for note in planned.notes:
        case.log.say(note)
    return planned


def _against(case: CiContext, environ: Mapping[str, str]) -> BaseOrder | None:
    """The commit into which a pull request is merged, unless something else is to be compared with, or nothing."""
    settings, commit = case.settings, case.decision.base
    source = source_of(case, environ)
    if commit is None or settings.baseline or case.decision.target is None or source.is_foreign:
        return None
    return BaseOrder(commit, bring(source))


def _with_rights(loaded: LoadedProject, case: CiContext, environ: Mapping[str, str]) -> Overruled:
    """The project with no more rights than the base of a pull request gives, and what is to be told of it."""
    commit = case.decision.base
    if commit is None:
        return Overruled(loaded, {}, ())
    source = source_of(case, environ)
    redact = Redactor(case.settings.secrets())
    overruled = overrule(loaded, source.top, read_base(commit, source, loaded, redact), redact)
    for note in overruled.notes:
        # A new suite is nothing to be warned of.
        severity: Severity = "warning" if any(overruled.findings.values()) else "notice"
        case.log.report(severity, note, title="Whose settings count")
    return overruled


def _need_files(project: Path) -> None:
    """Before suites are looked for in vain: GitHub's workspace is there before anything is in it."""
    if not any(project.iterdir()):
        hint = "A step with actions/checkout must come before this one; its `path` goes into working-directory."
        raise ConfigError("There is nothing in the workspace.", hint=hint, code="WORKSPACE_EMPTY")


def _case(settings: ActionSettings, decision: Decision, commit: str, environ: Mapping[str, str], log: Log) -> CiContext:
    http = Http(patience_seconds=TIMEOUT_SECONDS)

    def mask(value: str) -> None:
        log.mask([Secret(value)])

    return CiContext(
        settings=settings,
        decision=decision,
        commit=commit,
        api=_api(settings, http, mask),
        artifacts=lambda: ArtifactService(environ, http, mask=mask),
        hurried_artifacts=lambda: ArtifactService(environ, Http(patience_seconds=HURRY_SECONDS), mask=mask),
        root=settings.project,
        results_dir=settings.project / ".zelda",
        log=log,
        now=lambda: datetime.now(UTC),
    )


def _api(settings: ActionSettings, http: Http, mask: Callable[[str], None]) -> Api | None:
    context = settings.context
    if settings.github_token is None:
        return None
    return Api(
        http,
        base_url=context.api_url,
        graphql_url=context.graphql_url,
        token=settings.github_token,
        repository=context.repository,
        mask=mask,
    )


def _checkout(settings: ActionSettings, environ: Mapping[str, str], log: Log) -> Checkout:
    inner = anyio.run(nested.find, settings, environ)
    place = settings.context.workspace if inner else settings.project
    project = anyio.run(read_commit, place, environ)
    head = anyio.run(read_commit, settings.context.workspace, environ) or project
    if head is None:
        return Checkout()

    def tree_of(commit: str) -> str | None:
        known = anyio.run(read_commit, place, environ, commit)
        return known.tree if known else _told_tree(settings, commit, log)

    return Checkout(head.sha, head.parents, project.sha if project else None, tree_of, inner)


def _quick_api(settings: ActionSettings, log: Log) -> Api | None:
    """For what is asked before anything else."""
    return _api(settings, Http(patience_seconds=QUESTION_SECONDS), lambda value: log.mask([Secret(value)]))


def _told_tree(settings: ActionSettings, commit: str, log: Log) -> str | None:
    """The tree of a commit that a clone of depth 1 lacks, from GitHub."""
    api = _quick_api(settings, log)
    try:
        return tree_of(api, commit) if api else None
    except GitHubError as problem:
        log.say(f"The files of the commit {commit[:7]} are not known: {problem.message}")
        return None


def _skip(settings: ActionSettings, decision: Decision, environ: Mapping[str, str], log: Log) -> int:
    log.report("notice", decision.sentence, title="Zelda did not run")
    notice = render_fork_notice() if decision.explain_forks else f"Zelda did not run: {decision.sentence}\n"
    found: tuple[NotLoaded, ...] = ()
    if decision.base:
        source = source_of(_case(settings, decision, decision.base, environ, log), environ)
        found = refused.newly_refused(decision.base, source, find_root(settings.project), settings, log)
    return refused.report_skipped(settings, log, refused.with_refused(notice, found), found)
