"""Results from their making to the report: run here, by jobs that share a run, or by another workflow.

Each step leaves what the next may fail to add to.
"""

import hashlib
import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import IO, TypeVar

from zelda_ci import __version__
from zelda_ci.ci import baseline, publish
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.conversation import apply_acceptances
from zelda_ci.ci.event import BaselineTarget
from zelda_ci.ci.stored import RESULTS, Evidence, PinnedPlan, read_members, read_stored, results_by_job, with_pool
from zelda_ci.compare.drift import night_of, watch, with_night
from zelda_ci.compare.pool import is_usable, summarize_pool
from zelda_ci.compare.shards import difference, digest_of
from zelda_ci.domain.comparison import BaselineState
from zelda_ci.domain.nights import Drift, NightlyHistory
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult, ShardOf, ShardPart, ShardPlan, batch_of, empty_batch
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ArtifactError, GitHubError, StorageError, ZeldaError
from zelda_ci.files.atomic import write_whole
from zelda_ci.github.kept_text import close_issue, find_issues, keep_issue
from zelda_ci.github.repository import Artifact, PullRequest, artifacts_of_run, of_workflow_run
from zelda_ci.pipeline import shards
from zelda_ci.pipeline.batch import ending_signals, handlers_kept
from zelda_ci.pipeline.comparing import compare_arms, compare_sides
from zelda_ci.pipeline.shards import MAX_ARCHIVE_BYTES, MAX_MEMBER_BYTES, describe, read_part
from zelda_ci.report.builders import history as words
from zelda_ci.report.comment.view import FOREIGN, ci_view, closing_line
from zelda_ci.report.markdown import render_comment, render_drifts
from zelda_ci.report.text import escape_markdown, json_of
from zelda_ci.storage import codec
from zelda_ci.storage.references import SideReference

# Of one run of another workflow: its author may have stored any number, and each would be a comment.
MAX_JOBS = 10
# Whoever could not read the history tonight may tomorrow: what it knows is not gone.
NOT_READ = frozenset({BaselineState.UNREACHABLE, BaselineState.NOT_PERMITTED, BaselineState.INVALID})
PLAN = "zelda-plan.json"

T = TypeVar("T")


def evaluate(
    case: CiContext,
    run: Callable[[], BatchResult],
    evidence: Evidence,
    explain: Callable[[CiResult], None] = lambda _: None,
) -> int:
    """Run, compare, store and report; returns the exit code, or raises `ZeldaError`. `explain` searches causes."""
    publish.clear_files(case)
    batch = emptying(case, run)
    for note in batch.notes:
        case.log.report("warning", note, title="Not in the tested tree")
    # Cancelled, and without a comparison, is what stays if the step is killed from here on.
    result = CiResult(case, batch, evidence, cancelled=True, notes=[*case.notes, *evidence.remarks, *batch.notes])
    with undisturbed():
        try:
            write_whole(case.output / RESULTS, [json_of(batch).encode()], durable=False)
        finally:
            publish.record(result, quiet=True)
    result.cancelled = batch.interrupted
    looking = (_add_earlier, keep_watch, compare, lambda it: emptying(case, partial(explain, it)))
    _until_cancelled(result, *looking, apply_acceptances, publish.store_results, publish.store_pages)
    with undisturbed():
        publish.publish_results(result)
        if result.cancelled and "artifact-id" not in result.outputs:
            publish.store_trials(result)
    _until_cancelled(result, publish.comment)
    with undisturbed():
        publish.record(result, quiet=True)
        case.log.say(closing_line(result.report))
        if result.cancelled:
            publish.replace_comment(case, render_comment(ci_view(result.report)), is_cancelled=True)
    return result.report.outcome.exit_code


def _until_cancelled(result: CiResult, *steps: Callable[[CiResult], None]) -> None:
    """Do what adds to results that are there already; what fails is noted beside them.

    After a signal nothing more is asked of anybody far away: the runner waits for seconds only.
    """
    try:
        for step in steps if not result.cancelled else ():
            try:
                step(result)
            except ZeldaError as problem:
                result.notes.append(problem.message)
    except KeyboardInterrupt:
        result.cancelled = True


def emptying(case: CiContext, run: Callable[[], T]) -> T:
    """What a run of suites gives; however it ends, what its sessions may have written for the runner is removed."""
    try:
        with handlers_kept():
            return run()
    finally:
        with undisturbed():
            case.log.forget_files()


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is written on this machine takes an instant, and is written to its end."""
    with handlers_kept():
        for number in ending_signals():
            signal.signal(number, signal.SIG_IGN)
        yield


def _add_earlier(result: CiResult) -> None:
    before, made = result.evidence, result.batch.runs
    if before.limits is None and not result.case.settings.baseline:  # who names a file asks GitHub for nothing
        result.evidence = baseline.with_earlier(result.case, before, baseline.heads_of(made), made)
        result.notes += result.evidence.remarks[len(before.remarks) :]
    if earlier := result.evidence.heads:
        runs, are = len({run.batch_id for run in earlier}), "is" if len(earlier) == 1 else "are"
        result.note(
            f"{format_count(len(earlier), 'trial')} of {format_count(runs, 'earlier run')} of this pull request, with "
            f"the same files and settings, {are} counted, too: running again adds trials and replaces none."
        )


def compare(result: CiResult) -> None:
    """Compare with the base that ran beside the head, in whichever job that was; else with what is stored."""
    case, batch, found = result.case, result.batch, result.evidence
    origin, bases = found.origin, result.bases
    if batch.base and batch.base.problem:
        result.notes.append(f"nothing ran side by side with the base: {batch.base.problem}")
    # Where the number of trials is fixed, only suites are listed for which the money did not suffice.
    if result.head and batch.base and any(batch.base.commit or not suite.unpaid for suite in batch.arms):
        result.compared = compare_arms(batch, found.stored)
        if batch.base.commit:
            branch = case.decision.target.branch if case.decision.target else origin.branch
            origin = baseline.side_by_side(branch or "", batch.base.commit, len(result.head), len(bases))
        if pool := summarize_pool(run for each in found.stored.values() for run in each.stored):
            origin = with_pool(origin, pool, case.now())
        found = found.replace(origin=origin, results=batch_of(bases) if bases else None)
        result.notes.append(origin.sentence)
    elif batch.runs:
        found = found.against(batch.runs, case.now(), is_choice=bool(case.settings.suites) or found.new is not None)
        if found.results:
            sides = SideReference("the baseline", found.results.runs), SideReference("this run", result.head)
            result.compared = compare_sides(*sides, {})
    result.evidence, result.baseline = found, found.origin
    case.log.say(found.origin.sentence)


def is_nightly(case: CiContext) -> bool:
    """Whether this run fills pool and history; one that is given what to compare with does not."""
    settings = case.settings
    is_scheduled = case.decision.is_of_base and settings.context.event_name == "schedule"
    return is_scheduled and settings.nightly != "off" and settings.compare and settings.baseline is None


def keep_watch(result: CiResult) -> None:
    """Add the row of this night, and tell what it shows; a token that may write no issue costs a line."""
    case, stored = result.case, result.evidence
    if not is_nightly(case):
        return
    before = stored.nights
    if stored.damage:
        result.note(words.not_readable(stored.damage, older=len(before.nights)), "warning")
    night = night_of(result.batch.runs)
    if night is None or result.batch.interrupted:
        return
    now = watch(with_night(before, night.replace(run=case.settings.context.run_id)))
    result.evidence = stored.replace(nights=now)
    for note in words.drift_notes(before.drifts, now.drifts):
        result.note(note, "warning", "Drift")
    known = (*now.drifts, *before.drifts)
    # Where nothing is known of, an issue may be left that could not be closed, or of a history that was lost.
    is_known = known or before.nights or stored.origin.state not in NOT_READ
    if case.settings.nightly != "watch" or not is_known:
        return
    try:
        result.evidence = stored.replace(nights=_with_issue(case, before, now))
    except GitHubError as problem:
        if not all(drift.accepted for drift in known):
            result.note(words.no_issue(problem), "notice")


def _with_issue(case: CiContext, before: NightlyHistory, now: NightlyHistory) -> NightlyHistory:
    """Keep the issue of one job; returns the history with what is known of it."""
    api, context, key = case.github, case.settings.context, f"drift-{publish.comment_key(case)}"
    here = context.url_of(context.run_id)

    def body(drifts: Sequence[Drift], ending: str = "") -> str:
        return render_drifts(words.drift_issue(drifts, now.nights, url_of=context.url_of, url=here, ending=ending))

    ours = find_issues(api, key, now.author)
    # While the issue that told of it is closed, or gone, somebody knows and wants to hear no more of it.
    numbers = {None, *(issue.number for issue in ours)}
    now = now.replace(drifts=tuple(drift.replace(accepted=drift.issue not in numbers) for drift in now.drifts))
    waiting = [drift for drift in now.drifts if not drift.accepted]
    if not waiting:
        ending = words.OVER if before.nights else words.LOST
        for issue in ours:
            close_issue(api, issue, key, body([drift for drift in before.drifts if not drift.accepted], ending))
            case.log.say(f"Issue {issue.number} was closed. {ending}")
        return now
    issue, done = keep_issue(api, ours[0] if ours else None, key, words.issue_title(waiting), body(waiting))
    case.log.say(f"Issue {issue.number} was {done}: {issue.url}")
    for spare in ours[1:]:
        kept = words.drift_issue((), (), url=issue.url, ending=words.KEPT_ELSEWHERE, place="the older issue")
        close_issue(api, spare, key, render_drifts(kept))
    marked = tuple(drift if drift.accepted else drift.replace(issue=issue.number) for drift in now.drifts)
    return now.replace(drifts=marked, author=issue.author)


def report_stored(case: CiContext) -> int:
    """Tell the pull request what each job of its workflow stored under the wanted name; returns the exit code.

    Whoever opened the pull request may have written every byte of it. So nothing but validated JSON is taken, the pull
    request is found by what GitHub says, and comparison and text are made anew. Anything else is a `ZeldaError`.
    """
    api, settings, run = case.github, case.settings, case.settings.event.workflow_run
    assert run  # noqa: S101 - the event was decided by it
    own = settings.context.repository_id
    newest = results_by_job(api, run.id, settings.artifact_name)
    if not newest:
        return _nothing(case, "That run stored no results (it was skipped, failed before them, or they have expired).")
    for stem, artifact in [*newest.items()][:MAX_JOBS]:
        try:
            stored = read_stored(api, artifact, {"repository_id": own, "run_id": run.id, "head_sha": run.head_sha})
        except (ArtifactError, StorageError) as problem:
            problem.message = f"The stored results {artifact.name} are refused: {problem.message}"
            raise
        provenance, batch, earlier = stored.provenance, stored.batch, stored.pool.trials
        job = replace(case, evaluated=provenance, refused=provenance.refused, context_size=provenance.context_size)
        if job.identity.stem != stem:
            # A job may have been given an artifact-name that begins like another's.
            continue
        pull_request = of_workflow_run(api, own, run, provenance.pull_request)
        if pull_request is None:
            return _nothing(case, "No open pull request has the tested commit as its head: it moved on, or was closed.")
        if batch.interrupted:
            _nothing(case, "That run was cancelled: what it stored is for the next run of the pull request.")
            continue
        # The commit that was tested against, as far as it is one of the base branch.
        base = settings.baseline_branch or PullRequest.of(api.get(f"pulls/{pull_request}")).base.ref
        target = BaselineTarget(base, head=provenance.base_sha or provenance.head_sha) if settings.compare else None
        job = replace(job, decision=replace(case.decision, target=target))
        # Trials of earlier runs of the pull request count, as they did in the check.
        limits = {each.suite: each.config.pool for each in (*earlier, *batch.runs)}
        found = baseline.resolve_baseline(job).replace(earlier=earlier, limits=limits)
        result = CiResult(job, batch, found, has_siblings=len(newest) > 1, outputs={"artifact-id": str(artifact.id)})
        if run.head_repository_id != own:
            result.notes.append(FOREIGN)
        compare(result)
        apply_acceptances(result, pull_request)
        case.log.record(render_comment(ci_view(result.report)))
        publish.publish_to(result, pull_request)
        if url := result.outputs.get("comment-url"):
            case.log.record(outputs={"comment-url": url})
    return 0


def _nothing(case: CiContext, why: str) -> int:
    case.log.report("notice", why, title="Nothing to comment on")
    return 0


# --- a run that several jobs share: nothing in a part is believed that the plan, whose hash is handed on, does not say


def publish_plan(case: CiContext, plan: ShardPlan, evidence: Evidence) -> int:
    """Store the plan with what it rests on, and hand its hash over to the jobs that follow."""
    data = codec.encode(PinnedPlan(plan=plan, attempt=case.settings.context.run_attempt, evidence=evidence))
    publish.upload(case, _shared_name(case, "plan"), {PLAN: data})
    count = plan.shards if plan.suites else 0
    outputs = {
        "shards": str(count),
        "matrix": json.dumps([f"{number}/{count}" for number in range(1, count + 1)]),
        "plan": hashlib.sha256(data).hexdigest(),
    }
    _report_job(case, "Zelda: the plan", describe(plan) if plan.suites else ["No suite has to run."], outputs)
    return 0


def pinned_plan(case: CiContext) -> PinnedPlan | None:
    """The plan whose hash the workflow hands on; absent for a job that is none of several, or makes the plan."""
    wanted = case.settings.plan
    if not case.settings.is_sharded or case.settings.mode == "plan":
        return None
    for artifact in _shared_artifacts(case, "plan") if wanted else ():
        data = read_members(case.github, artifact, {PLAN}, MAX_MEMBER_BYTES).get(PLAN, b"")
        if hashlib.sha256(data).hexdigest() == wanted:
            return codec.decode(PinnedPlan, data, PLAN)
    hint = (
        "Hand on the output plan of the job with mode: plan, and give all jobs the same artifact-name and "
        "comment-id. If that job failed, or its artifact was deleted, run all jobs again."
    )
    message = "This job shares a run, but was handed no plan."
    if wanted:
        message = f"No artifact {case.identity.stem}.plan of this run holds the plan with the hash {wanted[:12]}."
    raise StorageError(message, hint=hint, code="PLAN_MISSING")


def check_plan(plan: ShardPlan, shard: ShardOf | None, suites: Sequence[ResolvedSuite], commit: str | None) -> None:
    """Refuse to run, or without a shard to merge, what this job sees otherwise than it was planned, before it costs."""
    settings = {suite.name: digest_of(suite) for suite in suites}
    here = plan.replace(
        zelda=__version__,
        commit=commit,
        shards=shard.shards if shard else plan.shards,
        suites=tuple(each.replace(settings=settings.get(each.name, "")) for each in plan.suites),
    )
    if why := difference(plan, here):
        raise StorageError(f"This job sees other than what was planned. {why}", code="OTHER_PLAN")


def run_shard(
    case: CiContext, shard: ShardOf, plan: ShardPlan, platform: str, run: Callable[[Sequence[RunResult]], BatchResult]
) -> int:
    """Run the suites of a shard, with trials of earlier attempts, and store its part; the code says if it could."""
    case.log.say(describe(plan)[shard.number - 1])
    publish.clear_files(case)
    names = plan.names_of(shard.number)
    earlier = _earlier_trials(case, shard, plan) if names else ()
    if earlier:
        case.log.say(f"Of an earlier attempt of this shard {format_count(len(earlier), 'trial')} can be counted, too.")
    batch = emptying(case, partial(run, earlier)) if names else empty_batch(case.now())
    part = ShardPart(shard=shard.number, plan=plan, platform=platform, earlier=earlier)
    name, members = _shared_name(case, shard.file_stem), partial(shards.part_members, part, batch, case.results_dir)
    artifact_id, outcome = None, batch_outcome(batch)
    with undisturbed():
        write_whole(case.output / RESULTS, [json_of(batch).encode()], durable=False)
    try:
        if not batch.interrupted:
            artifact_id = publish.upload(case, name, members(with_files=case.settings.include_transcripts))
    except KeyboardInterrupt:
        outcome = Outcome.INTERRUPTED
    with undisturbed():
        # A cancelled job has seconds left: its trials are what counts.
        artifact_id = artifact_id or publish.upload(case, name, members(with_files=False), publish.HURRY_SECONDS)
        # What can be judged, whatever it shows, is judged when all parts are there.
        code = outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0
        suites = f"{len(names)} of {format_count(len(plan.suites), 'suite')}"
        done = f"{suites}, {format_count(len(batch.runs) + len(batch.base_runs), 'session')}, ${batch.cost_usd:.2f}"
        lines = [f"Shard {shard}: {done}. The job with mode: merge compares and judges."]
        if batch.interrupted:
            lines.append("It was cancelled before its end: run it again.")
        elif code:
            lines.append("Not everything could be run and judged. Running this job again runs its suites anew.")
        if code:
            case.log.report("error", " ".join(lines), title="Zelda")
        outputs = {"artifact-id": str(artifact_id), "cost-usd": f"{batch.cost_usd:.4f}"}
        _report_job(case, f"Zelda: shard {shard}", lines, outputs)
    return code


def _earlier_trials(case: CiContext, shard: ShardOf, plan: ShardPlan) -> tuple[RunResult, ...]:
    """What this shard has made of a pull request in earlier attempts: nobody gets rid of a trial by running again."""
    if baseline.pull_request_of(case) is None or case.settings.context.run_attempt == 1:
        return ()
    names = plan.names_of(shard.number)
    for artifact in _shared_artifacts(case, re.escape(shard.file_stem)):
        with _downloaded(case, artifact) as file:
            part = read_part(file, artifact.name)
        if part.said.plan == plan:
            return tuple(run for run in (*part.said.earlier, *part.runs) if run.suite in names and is_usable(run))
    return ()


def merge(case: CiContext, pinned: PinnedPlan, explain: Callable[[CiResult], None]) -> int:
    """Put the parts of all shards together, none missing, doubled or foreign, and report them as one run."""
    with ExitStack() as opened:
        stored = [read_part(opened.enter_context(_downloaded(case, it)), it.name) for it in _parts(case, pinned)]
        parts = shards.check_parts(stored, pinned.plan)
        for part in parts:
            case.log.say(f"{part.name}: {format_count(len(part.batch.runs), 'trial')}, on {part.said.platform}.")
        run = partial(shards.import_parts, parts, case.results_dir) if parts else partial(empty_batch, case.now())
        earlier = (run for part in parts for run in part.said.earlier)
        evidence = pinned.evidence.replace(earlier=(*pinned.evidence.earlier, *earlier))
        return evaluate(case, run, evidence, explain)


def _parts(case: CiContext, pinned: PinnedPlan) -> Iterator[Artifact]:
    """The parts that jobs of this run have stored since it was planned; of each shard, that of its newest attempt."""
    newest = dict[str, str]()
    for artifact in _shared_artifacts(case, r"shard-[0-9]+-of-[0-9]+"):
        shard, _, attempt = artifact.name.rpartition(".")
        # Whoever runs all jobs again makes a new plan; what is left of those before says nothing.
        if int(attempt) >= pinned.attempt and newest.setdefault(shard, attempt) == attempt:
            yield artifact


def _shared_name(case: CiContext, kind: str) -> str:
    return f"{case.identity.stem}.{kind}.{case.settings.context.run_attempt}"


def _shared_artifacts(case: CiContext, kind: str) -> list[Artifact]:
    """Those of this run, of all its attempts, the newest first, whose kind has a form."""
    form = re.compile(rf"{re.escape(case.identity.stem)}\.{kind}\.[0-9]+")
    return [it for it in artifacts_of_run(case.github, case.run_id) if not it.expired and form.fullmatch(it.name)]


def _downloaded(case: CiContext, artifact: Artifact) -> AbstractContextManager[IO[bytes]]:
    return case.github.download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)


def _report_job(case: CiContext, title: str, lines: Sequence[str], outputs: Mapping[str, str]) -> None:
    case.log.say("\n".join(lines))
    summary = f"### {title}\n\n" + "".join(f"- {escape_markdown(line)}\n" for line in lines)
    case.log.record(summary, outputs)
