"""Leaves what a run found where programs and people look: artifacts, summary, outputs, annotations, JUnit XML, comment.

Results, transcripts and the HTML report are artifacts of their own: who looks for a baseline reads no transcript.
Results come first, so that they are there if the step is killed; where they have no place, nothing else has one.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from zelda_ci.ci.baseline import WRONG_TOKEN, heads_of, pull_request_of
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.ci.stored import MAX_FILE_BYTES, NIGHTS, POOL, PROVENANCE, RESULTS, results_by_job
from zelda_ci.compare.pool import is_usable
from zelda_ci.domain.comparison import Provenance, Verdict
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, Pool
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.github.api import Http
from zelda_ci.github.kept_text import CommentedJob, CommentOrder, Published, keep_comment
from zelda_ci.github.repository import of_commit
from zelda_ci.github.workflow_commands import Log
from zelda_ci.pipeline.shards import FILES, run_files
from zelda_ci.report.builders.run import run_problem
from zelda_ci.report.comment.view import NO_JUNIT, NO_REPORT, NOT_STORED, annotations, ci_view, closing_line, log_lines
from zelda_ci.report.html.writer import PageOptions, write_report
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.model import RunFiles
from zelda_ci.report.text import escape_markdown, json_of, sentence
from zelda_ci.storage.codec import encode_within
from zelda_ci.storage.result_store import RESULT, RUNS, ResultStore

# Later attempts and pushes of a pull request count the trials before; nobody compares with them after its end.
PULL_REQUEST_DAYS = 14
# The runner kills a cancelled step 10 seconds after its first signal: each request of it has this long.
HURRY_SECONDS = 4.0
# When a run that was cancelled has made its results.
NEVER = datetime.fromtimestamp(0, UTC)
# What a service answers that knows no files but archives.
ARCHIVES_ONLY = 400
COMPARISON, REPORT, MAX_HISTORY_BYTES = "comparison.json", "report.html", 16 << 20
# At the end of the name of an artifact with transcripts: who looks for results does not list it.
TRANSCRIPTS = ".transcripts"
MAX_OUTPUTS, MAX_SUITE_BYTES = 20, 1_000_000
BROKEN, NO_COMMENT = "Zelda could not do its work", "The pull request was not told"
ONE_COMMENT = (
    "Another job of this run with the same id has written the comment, and it is not overwritten. Give each job of a "
    "matrix, each call of a reusable workflow and each step a `comment-id` of its own."
)
CANCELLED = "The run was cancelled before there were results."
NO_PERMISSION = "The runner has a token of its own for artifacts: no permission of the job, and no input, changes this."
SECOND_WORKFLOW = "For forks, a second workflow with mode: comment does it; else give the job `pull-requests: write`."


def clear_files(case: CiContext, *, kept: Path | None = None) -> None:
    """Remove what an earlier step left: a file that is there is of this run, or the one that is `kept`."""
    names = (RESULTS, POOL, NIGHTS, PROVENANCE, COMPARISON, REPORT)
    for path in (*(case.output / name for name in names), case.junit):
        if kept and path.resolve() == kept.resolve():
            continue
        with storage_errors(path):
            untrusted.refuse_links(path.parent)
            path.unlink(missing_ok=True)


def store_results(result: CiResult) -> None:
    """Write and upload what later runs read; where GitHub does not take it, the files are in the workspace still."""
    case, members = result.case, _trials(result)
    if result.comparison:
        members[COMPARISON] = json_of(result.comparison).encode()
    for name, data in members.items():
        write_whole(case.output / name, [data], durable=False)
    members["junit.xml"] = render_junit(result.report).encode()
    _store(result, "artifact-id", case.artifact, members)
    # Only the title of a comment has to say of which job it is.
    if case.settings.comment != "off" and "artifact-id" in result.outputs:
        with suppress(GitHubError):
            stems = results_by_job(case.github, case.run_id, DEFAULT_ARTIFACT)
            result.has_siblings = any(stem != case.identity.stem for stem in stems)


def store_pages(result: CiResult) -> None:
    """Upload what people read: of runs their files, where the workflow wants texts of sessions; and the HTML report."""
    case, texts, page = result.case, result.case.settings.include_transcripts, result.case.output / REPORT
    if "artifact-id" not in result.outputs:
        return
    if files := dict(run_files(case.results_dir, result.batch.runs if texts else (), (RESULT, *FILES))):
        members = {PROVENANCE: case.output / PROVENANCE, **files}
        _store(result, "transcripts-artifact-id", case.artifact + TRANSCRIPTS, members)
    if result.head:
        write_report(page, result.report, ResultStore(case.results_dir), PageOptions(include_transcripts=texts))
        _store(result, "report-artifact-id", f"{case.artifact}.{REPORT}", page, NO_REPORT)


def store_trials(result: CiResult) -> None:
    """Upload the trials of a pull request's run that is cancelled: they count when it is run again.

    Otherwise who sees a bad trial could cancel the job, run it again, and be rid of it. The runner waits for ten
    seconds only, so this is the last that is done, and small. Of a fork's, its author would choose them.
    """
    case, batch = result.case, result.batch
    trials = sum(map(is_usable, (*batch.runs, *batch.base_runs)))
    pull, own = case.settings.event.pull_request, case.settings.context.repository_id
    if not trials or pull is None or pull_request_of(case) is None or pull.head.repository_id != own:
        return
    try:
        result.outputs["artifact-id"] = str(upload(case, case.artifact, _trials(result), HURRY_SECONDS))
        was, them = ("was", "it") if trials == 1 else ("were", "them")
        result.note(
            f"{format_count(trials, 'trial')} {was} over when the run was cancelled; running this pull request again "
            f"with the same files counts {them}."
        )
    except GitHubError as problem:
        lost = "The trials that were over when the run was cancelled are not stored, and do not count later:"
        result.note(f"{lost} {problem.message}")


def _provenance(result: CiResult) -> Provenance:
    """Where results come from; complete, and so a baseline, if all of it was run and judged and something is valid."""
    case, batch, decision = result.case, result.batch, result.case.decision
    context, pull, target = case.settings.context, case.settings.event.pull_request, decision.target
    valid = batch.planned == 0 or any(run.status.is_valid for run in batch.runs)
    judged = all(run_outcome(run) is not Outcome.INCOMPLETE for run in batch.runs)
    return Provenance(
        repository=context.repository,
        repository_id=context.repository_id,
        sha=case.commit,
        head_sha=decision.head_sha or case.commit,
        base_sha=result.baseline.wanted or (target.commit if target else None),
        base_branch=target.branch if target else None,
        event=context.event_name,
        run_id=context.run_id,
        run_attempt=context.run_attempt,
        pull_request=decision.pull_request or (pull.number if pull else None),
        workflow=context.workflow or None,
        job=context.job or None,
        artifact=case.settings.artifact_name,
        folder=case.settings.folder,
        batch_id=batch.batch_id,
        complete=valid and judged and not batch.interrupted and not batch.ended,
        created_at=case.now(),
        accepted=result.gate.accepted,
        refused=case.refused,
        context_size=case.context_size,
    )


def _trials(result: CiResult) -> dict[str, bytes]:
    """What later runs read, by path within the artifact: of a pull request its own trials, else all trusted ones."""
    case, found, runs = result.case, result.evidence, result.batch.runs
    members = {PROVENANCE: json_of(_provenance(result)).encode(), RESULTS: json_of(result.batch).encode()}
    pool = Pool(trials=(*found.heads, *found.bases))
    if case.decision.is_of_base:
        pool = Pool(suites={**found.fingerprints, **heads_of(runs)}, trials=found.pool)
        if found.nights.nights:
            members[NIGHTS] = encode_within(found.nights, MAX_HISTORY_BYTES)
    # Without a pool it does not carry the trials of those before it, which therefore have to be read as well.
    if found.knows_earlier or not pull_request_of(case):
        members[POOL] = encode_within(pool, MAX_FILE_BYTES)
    return members


def _store(
    result: CiResult, output: str, name: str, contents: Mapping[str, Path | bytes] | Path, failed: str = NOT_STORED
) -> None:
    """Upload an artifact, whose id becomes an output; where GitHub does not take it, a note says why."""
    case = result.case
    try:
        result.outputs[output] = str(upload(case, name, contents))
    except GitHubError as problem:
        # A `run` step on the runner itself never has the service: actions/upload-artifact can store the folder.
        is_expected = problem.code == "ARTIFACTS_UNAVAILABLE"
        place = f"The results are in {case.output}; store it under the name {case.artifact}."
        result.note_failure(failed, problem, f"{problem.user_message}\n{place}" if is_expected else "")


def upload(
    case: CiContext, name: str, contents: Mapping[str, Path | bytes] | Path, patience: float | None = None
) -> int:
    """Store contents, or what lies at places, by path within an artifact, or a page as it is; returns its id."""
    is_of_pull_request = case.decision.pull_request is not None or case.decision.base is not None
    days = case.settings.retention_days or (PULL_REQUEST_DAYS if is_of_pull_request else None)
    try:
        artifact_id, size = case.artifacts(patience).upload(name, contents, retention_days=days)
    except GitHubError as problem:
        if problem.code == "GITHUB_NOT_PERMITTED":
            problem.hint = NO_PERMISSION
        if problem.status != ARCHIVES_ONLY or not isinstance(contents, Path):
            raise
        return upload(case, name.removesuffix(contents.suffix), {contents.name: contents})
    case.log.say(f"Stored as the artifact {name} ({size:,} bytes).")
    return artifact_id


def publish_results(result: CiResult) -> None:
    """Everything that needs nobody far away."""
    case, log, texts = result.case, result.case.log, {}
    try:
        write_whole(case.junit, [render_junit(result.report).encode()], durable=False)
    except ZeldaError as problem:
        result.note_failure(NO_JUNIT, problem)
    record(result)
    report = result.report
    log.say("\n".join([ci_view(report).sentence, *log_lines(report)]))
    _show_output(result)
    for name in {run.config.file for run in result.batch.runs}:
        with suppress(OSError, UnicodeDecodeError):
            texts[name] = untrusted.read(case.root / name, MAX_SUITE_BYTES).decode("utf-8")
    remarks = [*annotations(report, prefix=case.relative(case.root), texts=texts)]
    log.report_worst(remarks)
    # A step that ends with a code has no message of its own.
    if report.is_red and all(remark.level != "error" for remark in remarks):
        log.report("error", closing_line(report), title="Zelda")


def _show_output(result: CiResult) -> None:
    """The end of what failed commands printed: who asks why a job is red begins with its log."""
    log, problems = result.case.log, ((run, run_problem(run, RunFiles())) for run in result.batch.runs)
    failed = [(run, problem) for run, problem in problems if problem and problem.output]
    for run, problem in failed[:MAX_OUTPUTS]:
        with log.group(f"{run.suite}, trial {run.trial}: {problem.sentence}"):
            log.say("\n".join(problem.output))
            where = result.case.results_dir / RUNS / run.run_id
            log.say(f"All of it: {where}, and {RUNS}/{run.run_id} in the artifact with the transcripts.")
    if len(failed) > MAX_OUTPUTS:
        log.say(f"{len(failed) - MAX_OUTPUTS} more runs have failed commands: the summary has their output.")


def record(result: CiResult, *, quiet: bool = False) -> None:
    """Write summary and outputs in the place of those before: whenever the step is killed, its last ones are there."""
    result.case.log.record(render_comment(ci_view(result.report)), step_outputs(result), anew=True, quiet=quiet)


def step_outputs(result: CiResult) -> dict[str, str]:
    """The action's outputs; what is not known, or not there, is left out."""
    case, score, compared = result.case, mean_score(result.batch), result.comparison
    output, junit = case.output, case.junit
    paths = {"results-path": output / RESULTS, "comparison-path": output / COMPARISON, "junit-path": junit}
    outputs = {
        "verdict": verdict(result),
        "regressions": str(compared.counts[Verdict.REGRESSED]) if compared else None,
        "improvements": str(compared.counts[Verdict.IMPROVED]) if compared else None,
        "score": None if score is None else f"{score:.1f}",
        "cost-usd": f"{result.batch.cost_usd:.4f}",
        "baseline-sha": result.baseline.commit,
        **result.outputs,
        **{name: case.relative(path) for name, path in paths.items() if path.is_file()},
    }
    return {name: value for name, value in outputs.items() if value}


def verdict(result: CiResult) -> str:
    """In one word: how the run compares, or without a comparison how it went. Nothing beside a red gate looks green."""
    outcome, compared = result.report.outcome, result.comparison
    if compared and (outcome < Outcome.FAILED or (outcome is Outcome.FAILED and compared.verdict is Verdict.REGRESSED)):
        return compared.verdict.value
    return "cancelled" if outcome is Outcome.INTERRUPTED else outcome.value


def mean_score(batch: BatchResult) -> float | None:
    """The mean over the suites of the mean of their scores; absent where anything was not judged, or nothing scored."""
    if any(run_outcome(run) is Outcome.INCOMPLETE for run in batch.runs):
        # The rest must not speak for what is missing.
        return None
    by_suite = defaultdict(list)
    for run in batch.runs:
        if scores := [each.score for each in run.evaluations.values() if each.score is not None]:
            by_suite[run.suite].append(fmean(scores))
    return fmean(map(fmean, by_suite.values())) if by_suite else None


def give_up(log: Log, why: str, verdict: str) -> None:
    """Say in summary and outputs, too, that there are no results."""
    log.record(problem_text(BROKEN, why), {"verdict": verdict})


def problem_text(title: str, why: str) -> str:
    """Markdown of a problem, a paragraph for each of its lines."""
    lines = "\n\n".join(escape_markdown(sentence(line)) for line in why.splitlines())
    return f"### {title}\n\n{lines}\n"


def comment(result: CiResult) -> None:
    """Tell the pull request, if there is one and it wants to hear; the gate does not care whether that succeeds."""
    case, decision = result.case, result.case.decision
    if decision.pull_request is None and decision.pull_request_of is None:
        return
    try:
        pull = decision.pull_request or of_commit(case.github, decision.pull_request_of or "")
        if pull is None:
            case.log.say("No open pull request has this commit as its head: nothing is posted.")
        else:
            publish_to(result, pull)
    except GitHubError as problem:
        # A token that may not write is what forks have; anything else is worth a warning.
        is_expected = problem.code == "GITHUB_NOT_PERMITTED" and problem.status != WRONG_TOKEN
        result.note_failure(NO_COMMENT, problem, f"{problem.message}\n{SECOND_WORKFLOW}" if is_expected else "")


def replace_comment(case: CiContext, body: str, *, is_due: bool = False, is_cancelled: bool = False) -> None:
    """Have an earlier comment, which may have ceased to be true, say this instead; a new one is made if it `is_due`.

    What is cancelled has seconds left, and takes the place of no results of the same commit.
    """
    pull, made_at = case.decision.pull_request, NEVER if is_cancelled else case.now()
    if pull is None or case.api is None:
        return
    if is_cancelled:
        case = replace(case, api=replace(case.api, http=Http(patience_seconds=HURRY_SECONDS)))
    try:
        _publish(case, pull, body, made_at, is_due=is_due, once=True)
    except GitHubError as problem:
        case.log.report("notice", problem.message, title=NO_COMMENT)


def publish_to(result: CiResult, pull: int) -> None:
    """Make the pull request's comment tell what was found, if it wants to hear of it or has heard of it before."""
    case, when, view = result.case, result.case.settings.comment, ci_view(result.report)
    if when == "off":
        return
    is_due = when == "always" or view.failed or (when == "changes" and view.changed)
    # Where results have been stored, under a name that nothing else has, this job alone tells of this attempt.
    once = case.evaluated is None and "artifact-id" not in result.outputs
    url, action = _publish(case, pull, render_comment(view), result.batch.finished_at, is_due=is_due, once=once)
    if url:
        result.outputs["comment-url"] = url
    if action == "taken":
        case.log.report("warning", ONE_COMMENT, title=NO_COMMENT)
        result.notes.append(f"{NO_COMMENT}: another job of this run has written the comment")
    else:
        case.log.say(f"Comment on pull request {pull}: {action}. {url or ''}".strip())


def _publish(case: CiContext, pull: int, body: str, made_at: datetime, *, is_due: bool, once: bool) -> Published:
    """Have the comment tell of the run that has evaluated, be it another workflow's."""
    ended = case.settings.event.workflow_run if case.evaluated else None
    attempt = ended.run_attempt if ended else case.settings.context.run_attempt
    # Any other results of the commit are newer than none.
    attempt = 0 if made_at is NEVER else attempt
    order = CommentOrder(case.run_id, attempt, case.decision.head_sha, int(made_at.timestamp()))
    job = CommentedJob(comment_key(case), _workflow(case), case.identity.stored_as)
    return keep_comment(case.github, pull, job, order, body, is_due=is_due, once=once)


def comment_key(case: CiContext) -> str:
    """What tells comments apart: the workflow that evaluated, its job, and what its author says."""
    parts = (_workflow(case), case.identity.job or "", case.settings.comment_id)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _workflow(case: CiContext) -> str:
    """Path of the workflow of whose runs the comment tells."""
    settings, context = case.settings, case.settings.context
    if case.decision.activity == "comment" and settings.event.workflow_run:
        return settings.event.workflow_run.workflow or context.workflow
    # What a comment asks for is reported where the pull request's own workflow reports its results.
    return f".github/workflows/{settings.workflow}" if context.event_name == "issue_comment" else context.workflow
