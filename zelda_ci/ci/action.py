"""The entry of `zelda ci`: settings and the event in, exit code out."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from zelda_ci.app import Invocation
from zelda_ci.ci import (
    base,
    baseline,
    comment_mode,
    conversation,
    evaluate,
    nightly,
    publish,
    selection,
    sharding,
    storing,
)
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.checkout import read_checkout
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.context_size import context_text, with_context_size
from zelda_ci.ci.event import decide, decide_requested
from zelda_ci.ci.evidence import Evidence
from zelda_ci.ci.explaining import explain
from zelda_ci.ci.settings import environment, read_action_settings
from zelda_ci.compare.drift import TRIALS_A_NIGHT
from zelda_ci.compare.shards import trial_seconds
from zelda_ci.config import project
from zelda_ci.config.files import find_root
from zelda_ci.config.project import NO_SUITES, InvalidConfigError
from zelda_ci.config.selection import select
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.run import BatchResult, RunResult, empty_batch
from zelda_ci.domain.trials import TrialPlan, plan_of, trials_alone
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.events import Emit
from zelda_ci.github.api import Api, Http
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.workflow_commands import Log
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline import planning
from zelda_ci.pipeline.fingerprints import system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.shards import make_plan, order_of
from zelda_ci.redact import Secret
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.ci_report import PullRequestChanges, RuleChange
from zelda_ci.report.markdown import render, render_nothing_to_run, render_refused
from zelda_ci.report.text import escape_markdown, sentence
from zelda_ci.selection.choice import reasons
from zelda_ci.workspace.source import BaseOrder

NOT_LOADED, TOO_LARGE = "a settings file or plugin is not loaded", "too much is always in context"
# The runner kills a cancelled step 10 seconds after its first signal.
CONCLUSION_SECONDS = 2.0


def ci(environ: Mapping[str, str], log: Log, emit: Emit) -> int:
    """Do what the event asks for; returns the exit code.

    Raises:
        ZeldaError: The step cannot be used as it is, nothing could be run, or results could not be written.
    """
    settings = read_action_settings(environ, Path.read_bytes)
    log.mask(settings.secrets)
    checkout = anyio.run(read_checkout, settings, environ)
    decision = decide(settings, checkout)
    log.say(decision.sentence)
    context, token = settings.context, settings.github_token
    http = partial(Http, mask=lambda value: log.mask([Secret(value)]))
    patient = http()
    case = CiContext(
        settings=settings,
        checkout=checkout,
        decision=decision,
        commit=decision.head_sha if decision.activity == "comment" else checkout.head or context.sha,
        environ=environ,
        api=Api(patient, context.api_url, context.graphql_url, token, context.repository) if token else None,
        artifacts=lambda patience: ArtifactService(environ, http(patience_seconds=patience) if patience else patient),
        root=settings.project,
        results_dir=settings.project / ".zelda",
        log=log,
        now=lambda: datetime.now(UTC),
    )
    match decision.activity:
        case "skip":
            return _skip(case, decision.sentence, emit)
        case "comment":
            return comment_mode.comment(case)
        case "converse":
            return conversation.converse(case)
        case "request":
            asked = conversation.requested(case)
            if asked is None:
                return _skip(case, "The comment asks for no run of this job.", emit)
            decision = decide_requested(asked, checkout)
            log.say(decision.sentence)
            case = replace(case, settings=asked, decision=decision, commit=decision.head_sha)
        case "run":
            pass
    return _evaluate(case, emit)


def _skip(case: CiContext, why: str, emit: Emit) -> int:
    settings, decision = case.settings, case.decision
    is_failure = decision.explain_forks and settings.untested == "fail"
    case.log.report("error" if is_failure else "notice", why, title="Zelda did not run")
    notice = render("fork_notice.md.j2") if decision.explain_forks else f"Zelda did not run: {why}\n"
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        case = _before_any_session(case, partial(BaseSource, case, Path(name)), emit)
    if case.context_size:
        # A fork's token may not comment: a second workflow does, by what is stored.
        storing.store_results(CiResult(case, empty_batch(case.now())))
    return _without_session(case, notice) or (Outcome.INCOMPLETE.exit_code if is_failure else 0)


def _before_any_session(case: CiContext, base: Callable[[], BaseSource], emit: Emit) -> CiContext:
    """What a pull request's files that steer take of the context, and what of them is refused."""
    root = find_root(case.settings.project)
    case = replace(case, root=root, refused=_newly_refused(case, root, base))
    if case.decision.base is None:
        return case
    try:
        source = base()
        is_changed = selection.changed_steering(case, source.alone(root), source)
        return with_context_size(case, root, source, emit) if is_changed else case
    except ZeldaError as problem:
        case.log.say(f"What the pull request changes is not known: {problem.message}")
        return case


def _newly_refused(case: CiContext, root: Path, source: Callable[[], BaseSource]) -> tuple[NotLoaded, ...]:
    try:
        return source().newly_refused(root)
    except ZeldaError as problem:
        case.log.say(f"Which settings files and plugins are newly refused is not known: {problem.message}")
        return ()


def _without_session(case: CiContext, text: str) -> int:
    """Report why no session ran, and what is refused all the same, for which the check is red; returns the exit code.

    Nothing is stored that could become a baseline.
    """
    refused, title = case.refused, NOT_LOADED
    for each in refused:
        title = NOT_LOADED if isinstance(each, NotLoaded) else TOO_LARGE
        place = (each.file, 1) if isinstance(each, NotLoaded) else ()
        case.log.report("error", f"{gate_sentence(each)}.", f"Zelda: {title}", *place)
    outputs = {"verdict": "failed" if refused else "skipped"}
    if case.settings.mode == "plan":
        outputs |= {"shards": "0", "matrix": "[]"}
    text = f"{render_refused(title, map(gate_sentence, refused))}{context_text(case.context_size)}{text}"
    case.log.record(text, outputs)
    if case.decision.activity == "run":
        wanted = {"always": True, "changes": case.context_size is not None}.get(case.settings.comment, bool(refused))
        publish.replace_comment(case, text, is_due=wanted and bool(case.context_size or refused))
    return 1 if refused else 0


def _without_suites(case: CiContext, missing: InvalidConfigError, emit: Emit) -> int:
    """What can be told of a pull request to a project without suites; where the base has some, that is an error."""
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        source = BaseSource(case, Path(name))
        if source.commit is None or source.is_foreign or source.has_suites(find_root(case.settings.project)):
            raise missing
        case = _before_any_session(case, lambda: source, emit)
    case.log.report("notice", "There are no suites, so no session runs.", title="Zelda")
    return _without_session(case, render("no_suites.md.j2"))


def _evaluate(case: CiContext, emit: Emit) -> int:
    settings, decision, log = case.settings, case.decision, case.log
    if not any(settings.project.iterdir()):
        # GitHub's workspace is there before anything is in it: suites would be looked for in vain.
        hint = "A step with actions/checkout must come before this one; its `path` goes into working-directory."
        raise ConfigError("There is nothing in the workspace.", hint=hint, code="WORKSPACE_EMPTY")
    try:
        loaded = project.load(settings.project)
    except InvalidConfigError as exc:
        if exc.code == NO_SUITES and decision.base and not settings.is_sharded:
            return _without_suites(case, exc, emit)
        raise
    if decision.refusal:
        with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
            case = _before_any_session(case, partial(BaseSource, case, Path(name)), emit)
        _without_session(case, f"### Zelda could not do its work\n\n{escape_markdown(decision.refusal.message)}\n")
        raise decision.refusal
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        source = BaseSource(case, Path(name), loaded)
        case = replace(case, decision=replace(decision, base=source.commit), pinned=sharding.pinned_plan(case))
        settled = source.settle(loaded)
        notes = base.notes(settled, source.commit or "")
        overruled = base.findings(settled, source.redact)
        for note in notes:
            # A new suite is nothing to be warned of.
            log.report("warning" if any(overruled.values()) else "notice", note, title="Whose settings count")
        loaded = project.active(settled.project, is_ci=True)
        refused = _newly_refused(case, loaded.root, lambda: source)
        # What a shard runs, the plan says.
        chosen = selection.ChosenSuites() if settings.shard else selection.choose_suites(case, loaded, source)
        case = replace(case, refused=refused)
        if chosen.steering and settings.mode != "plan":
            case = with_context_size(case, loaded.root, source, emit)
    skipped, names = reasons(chosen.choices, runs=False), tuple(it.suite for it in chosen.choices if it.runs)
    for line in (*reasons(chosen.choices, runs=True), *skipped):
        log.say(sentence(line))
    if chosen.choices and not names:
        log.report("notice", "No session runs: nothing here can change a result.", title="Zelda")
        text = render_nothing_to_run((*skipped, *notes), settings.run_all_label)
        return _without_session(case, text)
    if skipped:
        settings = settings.replace(suites=names)
    # Each key once, wherever it is given: the project's file gives it to many suites.
    judging = [RuleChange(it.key, str(it.origin), it.loosens) for it in settled.changes if it.is_judging]
    case = replace(
        case,
        settings=settings,
        root=loaded.root,
        results_dir=loaded.results_dir,
        notes=(*case.notes, *notes, *skipped),
        changes=PullRequestChanges(chosen.steering, tuple(dict.fromkeys(judging)), settled.gone, chosen.others),
        planned=tuple(it.resolved.name for it in select(loaded.suites, settings.suites, ())),
    )
    # Beside the head runs the commit into which it is merged, unless something else is to be compared with, or nothing.
    beside = decision.target and not settings.baseline and not source.is_foreign
    order = RunOrder(
        names=settings.suites,
        overrides=settings.overrides,
        jobs=settings.jobs,
        replay=settings.replay,
        overruled=overruled,
        conclusion_seconds=CONCLUSION_SECONDS,
        against=BaseOrder(source.commit, source.fetch) if source.commit and beside else None,
        needs_base=False,
    )
    invocation = Invocation(loaded, order, environment(case.environ, settings))
    if nightly.is_nightly(case):
        # As often as in any night: a number of trials has no budget of its own, that of their plan holds.
        trials = Overrides({"trials": Given(TRIALS_A_NIGHT, "input", "nightly")}).above(order.overrides)
        order = replace(order, overrides=trials, budget_usd=planning.budget(invocation.suites))
        invocation = invocation.ordering(order)
    evidence = _evidence(case, invocation, chosen.baseline)
    names = settings.suites if evidence.new is None else evidence.new
    invocation = invocation.ordering(replace(order, names=names, stored=evidence.stored))
    if settings.is_sharded:
        return _share(case, invocation, evidence, emit)
    run = partial(_run, case, invocation, emit) if evidence.new != () else partial(empty_batch, case.now())
    return evaluate.evaluate(case, run, evidence, partial(explain, invocation, emit))


def _evidence(case: CiContext, invocation: Invocation, found: Evidence | None) -> Evidence:
    """What is stored and counts; of a push to the base branch, which suites need not run for it."""
    settings, suites = case.settings, invocation.suites
    if case.pinned:
        return case.pinned.evidence
    found = found or baseline.resolve_baseline(case)
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
        for note in found.remarks:
            case.log.say(note)
    return found


def _run(case: CiContext, invocation: Invocation, emit: Emit) -> BatchResult:
    with case.log.group("Runs"):
        return invocation.run(emit)


def _share(case: CiContext, invocation: Invocation, evidence: Evidence, emit: Emit) -> int:
    """What this job does of a run that several share: plan it, run a shard of it, or put the parts together."""
    settings, shard, order, pinned = case.settings, case.settings.shard, invocation.order, case.pinned
    suites = () if evidence.new == () else invocation.masked
    commit = case.checkout.nested_head or case.checkout.project
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
