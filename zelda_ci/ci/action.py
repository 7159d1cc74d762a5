"""The entry of `zelda ci`: settings and the event in, exit code out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from zelda_ci.app import Invocation
from zelda_ci.ci import base, baseline, conversation, evaluate, publish
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.event import decide, decide_requested, read_checkout, undecided
from zelda_ci.ci.settings import environment, read_action_settings
from zelda_ci.ci.stored import Evidence
from zelda_ci.compare.drift import TRIALS_A_NIGHT
from zelda_ci.compare.shards import trial_seconds
from zelda_ci.config import project
from zelda_ci.config.files import find_root
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.run import BatchResult, RunResult, empty_batch
from zelda_ci.domain.trials import TrialPlan, plan_of, trials_alone
from zelda_ci.errors import ConfigError, WorkspaceError, ZeldaError
from zelda_ci.events import Emit
from zelda_ci.files import temporary
from zelda_ci.github.api import Api, Http
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.workflow_commands import Log
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline import planning
from zelda_ci.pipeline.attribution import Regressed, regressions
from zelda_ci.pipeline.fingerprints import system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.shards import make_plan, order_of
from zelda_ci.redact import Secret
from zelda_ci.report import markdown
from zelda_ci.report.builders.comparison import gate_sentence
from zelda_ci.report.builders.steering import context_line, too_large
from zelda_ci.report.ci_report import PullRequestChanges, RuleChange
from zelda_ci.report.comment.view import context_details
from zelda_ci.report.model import plain
from zelda_ci.report.text import sentence
from zelda_ci.selection.choice import reasons
from zelda_ci.workspace.source import BaseOrder

NOT_LOADED, TOO_LARGE = "a settings file or plugin is not loaded", "too much is always in context"
# The runner kills a cancelled step 10 seconds after its first signal.
CONCLUSION_SECONDS = 2.0
# The label of a pull request for which the budget counts once more, to search which part of it made a suite worse.
WHY_LABEL = "zelda:why"


def ci(environ: Mapping[str, str], log: Log, emit: Emit) -> int:
    """Do what the event asks for; returns the exit code, or raises `ZeldaError` where nothing could be run."""
    settings = read_action_settings(environ, Path.read_bytes)
    log.mask(settings.credentials.values())
    checkout = anyio.run(read_checkout, settings, environ)
    context, token = settings.context, settings.github_token
    http = partial(Http, mask=lambda value: log.mask([Secret(value)]))
    patient = http()
    case = CiContext(
        settings=settings,
        checkout=checkout,
        decision=undecided(settings),
        commit=checkout.head or context.sha,
        environ=environ,
        api=Api(patient, context.api_url, context.graphql_url, token, context.repository) if token else None,
        artifacts=lambda patience: ArtifactService(environ, http(patience_seconds=patience) if patience else patient),
        root=settings.project,
        results_dir=settings.project / ".zelda",
        log=log,
        now=lambda: datetime.now(UTC),
    )
    with suppress(ConfigError):
        case = replace(case, results_dir=project.results_folder(settings.project))
    with _told(case):
        publish.clear_files(case, kept=settings.baseline)
        if settings.problem:
            raise settings.problem
        decision = decide(settings, checkout)
    log.say(decision.sentence)
    case = replace(case, decision=decision, commit=decision.head_sha if decision.activity == "comment" else case.commit)
    match decision.activity:
        case "skip":
            return _skip(case, decision.sentence, emit)
        case "comment":
            return evaluate.report_stored(case)
        case "converse":
            return conversation.converse(case)
        case "request":
            asked = conversation.requested(case)
            if asked is None:
                return _skip(case, "The comment asks for no run of this job.", emit)
            case = replace(case, settings=asked)
            with _told(case):
                decision = decide_requested(asked, checkout)
            log.say(decision.sentence)
            case = replace(case, decision=decision, commit=decision.head_sha)
        case "run":
            pass
    with _told(case):
        return _evaluate(case, emit)


@contextmanager
def _told(case: CiContext) -> Iterator[None]:
    """Have an earlier comment, which may tell of another commit, say what hinders this one."""
    try:
        yield
    except (ZeldaError, KeyboardInterrupt) as problem:
        why = problem.user_message if isinstance(problem, ZeldaError) else publish.CANCELLED
        # Of a shard, the job that merges tells.
        if case.settings.shard is None:
            text, is_asked = publish.problem_text(publish.BROKEN, why), case.settings.event.comment is not None
            # Who has asked for this run in a comment waits for its result there.
            publish.replace_comment(case, text, is_due=is_asked, is_cancelled=why is publish.CANCELLED)
        raise


def _skip(case: CiContext, why: str, emit: Emit) -> int:
    is_failure = case.decision.explain_forks and case.settings.untested == "fail"
    case.log.report("error" if is_failure else "notice", why, title="Zelda did not run")
    notice = markdown.render("fork_notice.md.j2") if case.decision.explain_forks else f"Zelda did not run: {why}\n"
    case = _before_any_session(case, emit)
    if case.context_size:
        # A fork's token may not comment: a second workflow does, by what is stored.
        publish.store_results(CiResult(case, empty_batch(case.now())))
    return _without_session(case, notice) or (Outcome.INCOMPLETE.exit_code if is_failure else 0)


def _before_any_session(case: CiContext, emit: Emit, source: BaseSource | None = None) -> CiContext:
    """Add what a pull request's files that steer take of the context, and what of them is refused."""
    case = replace(case, root=find_root(case.settings.project))
    if case.decision.base is None:
        return case
    with temporary.folder() as place:
        try:
            source = source or BaseSource(case, place)
            case = _with_refused(case, source)
            return _with_context_size(case, source, emit) if base.changed_steering(case, source) else case
        except ZeldaError as problem:
            return _unknown(case, "What the pull request changes", problem)


def _unknown(case: CiContext, what: str, problem: ZeldaError) -> CiContext:
    note = f"{what} is not known: {problem.message}"
    case.log.say(note)
    return replace(case, notes=(*case.notes, note))


def _with_refused(case: CiContext, source: BaseSource) -> CiContext:
    try:
        return replace(case, refused=source.newly_refused(case.root))
    except ZeldaError as problem:
        return _unknown(case, "Which settings files and plugins are newly refused", problem)


def _with_context_size(case: CiContext, source: BaseSource, emit: Emit) -> CiContext:
    """Measure what steering takes of the context on both sides, by the settings of the base.

    More than these allow is a finding of the gate; what cannot be measured is said, and stops nothing.
    """
    if source.commit is None or source.is_foreign:
        return case
    try:
        order = RunOrder(overrides=case.settings.overrides, against=BaseOrder(source.commit, source.fetch))
        invocation = Invocation(source.alone(case.root), order, environment(case.environ, case.settings))
        try:
            size = invocation.context(emit)
        except WorkspaceError as problem:
            # The base may not have the folder. What is there now can be told all the same, and held against the limit.
            case = _unknown(case, "What steering took of the context before", problem)
            size = invocation.ordering(replace(order, against=None)).context(emit)
    except ZeldaError as problem:
        return _unknown(case, "What steering takes of the context", problem)
    case.log.say(plain(context_line(size)))
    found = too_large(size.head, invocation.suites[0].gate.max_always_on_tokens)
    return replace(case, context_size=size, refused=(*case.refused, *([found] if found else [])))


def _without_session(case: CiContext, text: str) -> int:
    """Report why no session ran, and what is refused all the same, for which the check is red; returns the exit code.

    Nothing is stored that could become a baseline.
    """
    refused, size, title = case.refused, case.context_size, NOT_LOADED
    for each in refused:
        title = NOT_LOADED if isinstance(each, NotLoaded) else TOO_LARGE
        place = (each.file, 1) if isinstance(each, NotLoaded) else ()
        case.log.report("error", f"{gate_sentence(each)}.", f"Zelda: {title}", *place)
    outputs = {"verdict": "failed" if refused else "skipped"}
    if case.settings.mode == "plan":
        outputs |= {"shards": "0", "matrix": "[]"}
    if size:
        text = f"{markdown.render('context.md.j2', line=context_line(size), details=context_details(size))}\n{text}"
    text = f"{markdown.render_refused(title, map(gate_sentence, refused))}{text}"
    case.log.record(text, outputs)
    runs = case.decision.activity == "run"
    if runs or case.decision.explain_forks:
        wanted = {"always": True, "changes": size is not None}.get(case.settings.comment, bool(refused))
        publish.replace_comment(case, text, is_due=runs and wanted and bool(size or refused))
    return 1 if refused else 0


def _evaluate(case: CiContext, emit: Emit) -> int:
    settings, decision, log = case.settings, case.decision, case.log
    if not any(settings.project.iterdir()):
        # GitHub's workspace is there before anything is in it: suites would be looked for in vain.
        hint = "A step with actions/checkout must come before this one; its `path` goes into working-directory."
        raise ConfigError("There is nothing in the workspace.", hint=hint, code="WORKSPACE_EMPTY")
    try:
        loaded = project.load(settings.project)
    except project.InvalidConfigError as missing:
        # A pull request to a project without suites can be told of all the same; where the base has some, it is wrong.
        if missing.code != project.NO_SUITES or decision.base is None or settings.is_sharded:
            raise
        with temporary.folder() as place:
            source = BaseSource(case, place)
            if source.is_foreign or source.has_suites(find_root(settings.project)):
                raise
            log.report("notice", "There are no suites, so no session runs.", title="Zelda")
            return _without_session(_before_any_session(case, emit, source), markdown.render("no_suites.md.j2"))
    if decision.refusal:
        text = publish.problem_text(publish.BROKEN, decision.refusal.message)
        _without_session(_before_any_session(case, emit), text)
        raise decision.refusal
    with temporary.folder() as place:
        source = BaseSource(case, place, loaded)
        case = replace(case, decision=replace(decision, base=source.commit), pinned=evaluate.pinned_plan(case))
        settled = source.settle(loaded)
        notes = base.notes(settled, source.commit or "")
        overruled = base.findings(settled, source.redact)
        for note in notes:
            # A new suite is nothing to be warned of.
            log.report("warning" if any(overruled.values()) else "notice", note, title="Whose settings count")
        loaded = project.active(settled.project, is_ci=True)
        case = _with_refused(replace(case, root=loaded.root, results_dir=loaded.results_dir), source)
        # What a shard runs, the plan says.
        chosen = base.ChosenSuites() if settings.shard else base.choose_suites(case, loaded, source)
        if chosen.steering and settings.mode != "plan":
            case = _with_context_size(case, source, emit)
    skipped, names = reasons(chosen.choices, runs=False), tuple(it.suite for it in chosen.choices if it.runs)
    for line in (*reasons(chosen.choices, runs=True), *skipped):
        log.say(sentence(line))
    if chosen.choices and not names:
        log.report("notice", "No session runs: nothing here can change a result.", title="Zelda")
        return _without_session(case, markdown.render_nothing_to_run((*skipped, *notes), settings.run_all_label))
    if skipped:
        settings = settings.replace(suites=names)
    # Each key once, wherever it is given: the project's file gives it to many suites.
    judging = [RuleChange(it.key, str(it.origin), it.loosens) for it in settled.changes if it.is_judging]
    case = replace(
        case,
        settings=settings,
        notes=(*case.notes, *notes, *skipped),
        changes=PullRequestChanges(chosen.steering, tuple(dict.fromkeys(judging)), settled.gone, chosen.others),
        planned=tuple(it.resolved.name for it in project.select(loaded, settings.suites)),
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
    if evaluate.is_nightly(case):
        # As often as in any night: a number of trials has no budget of its own, that of their plan holds.
        trials = Overrides({"trials": Given(TRIALS_A_NIGHT, "input", "nightly")}).above(order.overrides)
        order = replace(order, overrides=trials, budget_usd=planning.budget(invocation.suites, None))
        invocation = invocation.ordering(order)
    evidence = _evidence(case, invocation, chosen.baseline)
    names = settings.suites if evidence.new is None else evidence.new
    invocation = invocation.ordering(replace(order, names=names, stored=evidence.stored))
    if settings.is_sharded:
        return _share(case, invocation, evidence, emit)
    run = partial(_run, case, invocation, emit) if evidence.new != () else partial(empty_batch, case.now())
    return evaluate.evaluate(case, run, evidence, partial(_explain, invocation, emit))


def _evidence(case: CiContext, invocation: Invocation, found: Evidence | None) -> Evidence:
    """What is stored and counts; of a push to the base branch, which suites need not run for it."""
    settings, suites = case.settings, invocation.suites
    if case.pinned:
        return case.pinned.evidence
    found = found or baseline.resolve_baseline(case)
    if evaluate.is_nightly(case) or settings.baseline:
        return found
    if invocation.order.against and any(isinstance(plan_of(suite.trials), TrialPlan) for suite in suites):
        found = baseline.with_earlier(case, found, invocation.fingerprints(), base=case.decision.base)
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


def _explain(invocation: Invocation, emit: Emit, result: CiResult) -> None:
    """Search which part of a pull request made each suite worse first, for what is left of the money or by a label.

    What is not searched is noted. Without a budget there is no limit.
    """
    batch, comparison, settings = result.batch, result.comparison, result.case.settings
    pull = settings.event.pull_request
    if comparison is None or pull is None or batch.base is None or batch.base.commit is None:
        return
    never = "several jobs shared the run" if settings.is_sharded else "a replay has no other sessions"
    can_run = not (settings.is_sharded or invocation.replayed)
    runs = {run.run_id: run for run in (*result.head, *result.bases)}
    worse: dict[str, Regressed] = {}
    for each in regressions(batch.batch_id, comparison.suites, runs.__getitem__):
        worse.setdefault(each.suite, each)
    is_asked, left = WHY_LABEL in {label["name"] for label in pull.labels}, batch.budget_usd
    if left is not None and not is_asked:
        left = max(0.0, left - batch.cost_usd)
    for suite, each in worse.items():
        order = replace(invocation.order, names=(suite,), stored={}, budget_usd=left, check=False, elsewhere=())
        with result.case.log.group(f"Which part of the change made {suite} worse"):
            found = invocation.ordering(order).why(each, emit, pays=can_run and (is_asked or bool(left)))
        if found.verdict == "undecided" and not found.rounds:
            on_a_laptop = f"on a laptop: `zelda run --against {pull.base.ref}`, then `zelda why`"
            why_not = f"the label {WHY_LABEL} pays" if can_run else f"{never} ({on_a_laptop})"
            result.note(f"Which part of the change made {suite} worse was not searched: {why_not}.")
        else:
            result.attributions = (*result.attributions, found)
        left = None if left is None else max(0.0, left - found.cost_usd)


def _share(case: CiContext, invocation: Invocation, evidence: Evidence, emit: Emit) -> int:
    """What this job does of a run that several share: plan it, run a shard of it, or put the parts together."""
    settings, shard, order, pinned = case.settings, case.settings.shard, invocation.order, case.pinned
    suites = () if evidence.new == () else invocation.masked
    commit = case.checkout.nested_head or case.checkout.project
    if pinned is None:
        trials = (*evidence.trials_of_base, *evidence.pool, *evidence.earlier)
        seconds = trial_seconds(trials, replayed=invocation.replayed)
        # One job adds the row of a night to the history.
        most = 1 if evaluate.is_nightly(case) else settings.shards
        return evaluate.publish_plan(case, make_plan(order, suites, commit, seconds, most, at_most=True), evidence)
    evaluate.check_plan(pinned.plan, shard, suites, commit)
    if shard is None:
        return evaluate.merge(case, pinned, partial(_explain, invocation, emit))
    own = order_of(order, pinned.plan, shard.number)

    def run(kept: Sequence[RunResult]) -> BatchResult:
        stored = evidence.replace(earlier=(*evidence.earlier, *kept)).stored
        return _run(case, invocation.ordering(replace(own, stored=stored)), emit)

    return evaluate.run_shard(case, shard, pinned.plan, system_name(invocation.settings.environ), run)
