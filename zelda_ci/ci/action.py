"""The entry of `zelda ci`: settings and the event in, exit code out."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
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
)
from zelda_ci.ci.base import BaseSource, Overruled, overrule
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import Checkout, Decision, decide, decide_requested
from zelda_ci.ci.evidence import Evidence
from zelda_ci.ci.inputs import Untested
from zelda_ci.ci.settings import ActionSettings, environment, read_action_settings
from zelda_ci.compare.drift import TRIALS_A_NIGHT
from zelda_ci.compare.shards import trial_seconds
from zelda_ci.config import project
from zelda_ci.config.files import find_root
from zelda_ci.config.selection import select
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.run import BatchResult, RunResult, empty_batch
from zelda_ci.domain.trials import TrialPlan, plan_of, trials_alone
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit
from zelda_ci.github.api import Api, Http
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.workflow_commands import Log, Severity
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline import money
from zelda_ci.pipeline.fingerprints import system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.shards import make_plan, order_of
from zelda_ci.redact import Secret
from zelda_ci.report.markdown import render_fork_notice
from zelda_ci.report.text import sentence
from zelda_ci.selection.choice import reasons
from zelda_ci.workspace.base_commit import BaseOrder
from zelda_ci.workspace.git import read_commit

TIMEOUT_SECONDS = 300.0

# The runner kills a cancelled step 10 seconds after its first signal.
CONCLUSION_SECONDS = 2.0
# So what is stored after that has this long for each request.
HURRY_SECONDS = 4.0


def ci(environ: Mapping[str, str], log: Log, emit: Emit) -> int:
    """Do what the event asks for; returns the exit code.

    Raises:
        ZeldaError: The step cannot be used as it is, nothing could be run, or results could not be written.
    """
    settings = read_action_settings(environ, Path.read_bytes)
    log.mask(settings.secrets())
    checkout = _checkout(settings, environ)
    decision = decide(settings, checkout)
    log.say(decision.sentence)
    found = _case(settings, decision, checkout.head or settings.context.sha, environ, log)
    match decision.activity:
        case "skip":
            return _skip(found)
        case "comment":
            return comment_mode.comment(replace(found, commit=decision.head_sha))
        case "converse":
            return conversation.converse(found)
        case "run":
            return _evaluate(found, emit)
        case "request":
            wanted = conversation.requested(found.api, settings)
            if wanted is None:
                decision = replace(decision, sentence="The comment asks for no run of this job.")
                return _skip(replace(found, decision=decision))
            settings, commit = wanted
            decision = decide_requested(settings, checkout, commit)
            log.say(decision.sentence)
            return _evaluate(replace(found, settings=settings, decision=decision, commit=commit), emit)


def _evaluate(case: CiContext, emit: Emit) -> int:
    settings, decision = case.settings, case.decision
    if not any(settings.project.iterdir()):
        # GitHub's workspace is there before anything is in it: suites would be looked for in vain.
        hint = "A step with actions/checkout must come before this one; its `path` goes into working-directory."
        raise ConfigError("There is nothing in the workspace.", hint=hint, code="WORKSPACE_EMPTY")
    loaded = project.load(settings.project)
    if decision.nested:
        decision.nested.check()
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        source, base = _base(case, Path(name))
        case = replace(case, decision=replace(decision, base=base), pinned=sharding.pinned_plan(case))
        overruled = overrule(loaded, source, base) if base else Overruled(loaded, {}, ())
        for note in overruled.notes:
            # A new suite is nothing to be warned of.
            severity: Severity = "warning" if any(overruled.findings.values()) else "notice"
            case.log.report(severity, note, title="Whose settings count")
        loaded, notes = project.active(overruled.project, is_ci=True), overruled.notes
        found = refused.newly_refused(base, source, loaded.root, case.log)
        case = replace(case, refused=found)
        # What a shard runs, the plan says.
        chosen = None if settings.shard else selection.choose_suites(case, loaded, source)
    if chosen:
        for line in (*reasons(chosen.choices, runs=True), *chosen.notes):
            case.log.say(sentence(line))
        if not chosen.names:
            return selection.report_nothing(replace(case, notes=notes), chosen)
        if chosen.notes:
            settings, notes = replace(settings, suites=chosen.names), (*notes, *chosen.notes)
    # Beside the head runs the commit into which it is merged, unless something else is to be compared with, or nothing.
    beside = base and decision.target and not settings.baseline and not source.is_foreign
    order = RunOrder(
        names=settings.suites,
        overrides=settings.overrides,
        jobs=settings.jobs,
        replay=settings.replay,
        overruled=overruled.findings,
        conclusion_seconds=CONCLUSION_SECONDS,
        against=BaseOrder(base, source.bring) if base and beside else None,
        needs_base=False,
    )

    invocation = Invocation(loaded, order, environment(case.environ, settings))
    if nightly.is_nightly(case):
        invocation = _at_night(invocation)
    evidence = _evidence(case, invocation, chosen.baseline if chosen else None)
    names = evidence.new if evidence.known else settings.suites
    invocation = invocation.ordering(replace(invocation.order, names=names, stored=evidence.stored))
    changes = overruled.changes
    case = replace(
        case,
        settings=settings,
        root=loaded.root,
        results_dir=loaded.results_dir,
        notes=notes,
        changes=replace(changes, steering=chosen.steering, others=chosen.others) if chosen else changes,
        planned=tuple(it.resolved.name for it in select(loaded.suites, settings.suites, ())),
    )
    if settings.is_sharded:
        return _share(case, invocation, evidence, emit)

    def run() -> BatchResult:
        is_all_known = evidence.known and not evidence.new
        return empty_batch(case.now()) if is_all_known else _run(case, invocation, emit)

    return evaluate.evaluate(case, run, evidence)


def _share(case: CiContext, invocation: Invocation, evidence: Evidence, emit: Emit) -> int:
    """What this job does of a run that several share: plan it, run a shard of it, or put the parts together."""
    settings, shard, order, pinned = case.settings, case.settings.shard, invocation.order, case.pinned
    suites = () if evidence.known and not evidence.new else invocation.masked
    tested = anyio.run(read_commit, settings.project, case.environ)
    commit = tested and tested.sha
    if pinned is None:
        trials = (*evidence.trials_of_base, *evidence.pool, *evidence.earlier)
        seconds = trial_seconds(trials, replayed=invocation.replayed)
        # One job adds the row of a night to the history.
        most = 1 if nightly.is_nightly(case) else settings.shards
        return sharding.publish_plan(case, make_plan(order, suites, commit, seconds, most, at_most=True), evidence)
    sharding.check_plan(pinned.plan, shard, suites, commit)
    if shard is None:
        return sharding.merge(case, pinned)
    own = order_of(order, pinned.plan, shard.number)

    def run(kept: Sequence[RunResult]) -> BatchResult:
        stored = evidence.replace(earlier=(*evidence.earlier, *kept)).stored
        return _run(case, invocation.ordering(replace(own, stored=stored)), emit)

    return sharding.run_shard(case, shard, pinned.plan, system_name(invocation.settings.environ), run)


def _at_night(invocation: Invocation) -> Invocation:
    """The same, as often as in any night: a number of trials has no budget of its own, that of their plan holds."""
    trials, order = Overrides({"trials": Given(TRIALS_A_NIGHT, "input", "nightly")}), invocation.order
    budget = money.budget(invocation.suites)
    return invocation.ordering(replace(order, overrides=trials.above(order.overrides), budget_usd=budget))


def _run(case: CiContext, invocation: Invocation, emit: Emit) -> BatchResult:
    with case.log.group("Runs"):
        return invocation.run(emit)


def _evidence(case: CiContext, invocation: Invocation, found: Evidence | None) -> Evidence:
    """What is stored and counts; of a push to the base branch, which suites need not run for it."""
    settings, suites = case.settings, invocation.suites
    if case.pinned:
        return case.pinned.evidence
    found = found or baseline.resolve_baseline(case, case.decision.target, case.run_id)
    if nightly.is_nightly(case) or settings.baseline:
        return found
    if invocation.order.against and any(isinstance(plan_of(suite.trials), TrialPlan) for suite in suites):
        expected = invocation.fingerprints()
        found = baseline.with_earlier(case, found, expected, base=case.decision.base)
        return found.replace(limits={suite.name: suite.pool for suite in suites})
    is_push = case.decision.is_of_base and settings.context.event_name == "push"
    if is_push and not settings.run_all and settings.compare and found.pool:
        wanted = {suite.name: trials_alone(suite.trials) for suite in suites}
        found = found.knowing(invocation.fingerprints(), wanted)
        for note in found.notes:
            case.log.say(note)
    return found


def _base(case: CiContext, folder: Path) -> tuple[BaseSource, str | None]:
    """Where the base is had, and its commit: of a project in a submodule, the one that the base names for that.

    Where the base has no such submodule, it has nothing of the project.

    Raises:
        ConfigError: The base commit cannot be had.
        WorkspaceError: There is no git, or it did not end.
    """
    base, nested = case.decision.base, case.decision.nested
    source = BaseSource(case.settings, nested, case.environ, folder)
    if not (base and nested and nested.named):
        return source, base
    around = BaseSource(case.settings, replace(nested, named=None), case.environ, folder)
    named = anyio.run(around.submodule_at, base, nested.path)
    return (source, named) if named else (around, base)


def _case(settings: ActionSettings, decision: Decision, commit: str, environ: Mapping[str, str], log: Log) -> CiContext:
    http = Http(patience_seconds=TIMEOUT_SECONDS)

    def mask(value: str) -> None:
        log.mask([Secret(value)])

    return CiContext(
        settings=settings,
        decision=decision,
        commit=commit,
        environ=environ,
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


def _checkout(settings: ActionSettings, environ: Mapping[str, str]) -> Checkout:
    inner = anyio.run(nested.find, settings, environ)
    workspace = settings.context.workspace
    project = anyio.run(read_commit, workspace if inner else settings.project, environ)
    head = anyio.run(read_commit, workspace, environ) or project
    return Checkout(head.sha, head.parents, project.sha if project else None, inner) if head else Checkout()


def _skip(case: CiContext) -> int:
    settings, decision, log = case.settings, case.decision, case.log
    is_failure = decision.explain_forks and settings.untested is Untested.FAIL
    log.report("error" if is_failure else "notice", decision.sentence, title="Zelda did not run")
    notice = render_fork_notice() if decision.explain_forks else f"Zelda did not run: {decision.sentence}\n"
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        source = BaseSource(settings, decision.nested, case.environ, Path(name))
        found = refused.newly_refused(decision.base, source, find_root(settings.project), log)
    code = refused.report_skipped(replace(case, refused=found), notice)
    return code or (Outcome.INCOMPLETE.exit_code if is_failure else 0)
