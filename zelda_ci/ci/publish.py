"""Writes what a run found where people and programs look: summary, outputs, annotations, JUnit XML, comment, log."""

import hashlib
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from statistics import fmean

from zelda_ci.ci.baseline import WRONG_TOKEN
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.stored import RESULTS
from zelda_ci.ci.storing import COMPARISON
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import write_whole
from zelda_ci.github.kept_text import CommentedJob, CommentOrder, Published, keep_comment
from zelda_ci.github.repository import of_commit
from zelda_ci.github.workflow_commands import Log
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.comment.annotations import annotations, closing_line, log_lines
from zelda_ci.report.comment.view import NO_JUNIT, ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.model import RunFiles
from zelda_ci.report.text import escape_markdown, sentence
from zelda_ci.storage.result_store import RUNS

MAX_OUTPUTS = 20
MAX_SUITE_BYTES = 1_000_000
NO_COMMENT = "The pull request got no comment"
ONE_COMMENT = (
    "Another job of this run with the same id has written the comment, and it is not overwritten. Give each job of a "
    "matrix, each call of a reusable workflow and each step a `comment-id` of its own."
)
SECOND_WORKFLOW = "For forks, a second workflow with mode: comment does it; else give the job `pull-requests: write`."


def publish_results(result: CiResult) -> None:
    """Everything that needs nobody far away."""
    case, log, texts = result.case, result.case.log, {}
    try:
        write_whole(case.junit, [render_junit(result.report).encode()], durable=False)
    except ZeldaError as problem:
        result.note_failure(NO_JUNIT, problem)
    record(result)
    report = result.report
    log.say(ci_view(report).sentence)
    for line in log_lines(report):
        log.say(line)
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
    paths = {"results-path": case.output / RESULTS, "comparison-path": case.output / COMPARISON}
    paths["junit-path"] = case.junit
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
    """The mean over the suites of the mean of their scores.

    Absent where nothing was scored, and where not everything was judged: the rest must not speak for what is missing.
    """
    if any(run_outcome(run) is Outcome.INCOMPLETE for run in batch.runs):
        return None
    by_suite = defaultdict(list)
    for run in batch.runs:
        if scores := [each.score for each in run.evaluations.values() if each.score is not None]:
            by_suite[run.suite].append(fmean(scores))
    return fmean(map(fmean, by_suite.values())) if by_suite else None


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


def replace_comment(case: CiContext, body: str, *, is_due: bool = False) -> None:
    """Have an earlier comment, which may have ceased to be true, say this instead; a new one is made if it `is_due`."""
    if case.decision.pull_request is None or case.api is None:
        return
    try:
        _publish(case, case.decision.pull_request, body, case.now(), is_due=is_due, once=True)
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
    published = _publish(case, pull, render_comment(view), result.batch.finished_at, is_due=is_due, once=once)
    if published.url:
        result.outputs["comment-url"] = published.url
    if published.action == "taken":
        case.log.report("warning", ONE_COMMENT, title=NO_COMMENT)
        result.notes.append(f"{NO_COMMENT}: another job of this run has written it")
    else:
        case.log.say(f"Comment on pull request {pull}: {published.action}. {published.url or ''}".strip())


def _publish(case: CiContext, pull: int, body: str, made_at: datetime, *, is_due: bool, once: bool) -> Published:
    """Have the comment tell of the run that has evaluated, be it another workflow's."""
    ended = case.settings.event.workflow_run if case.evaluated else None
    attempt = ended.run_attempt if ended else case.settings.context.run_attempt
    order = CommentOrder(case.run_id, attempt, case.decision.head_sha, int(made_at.timestamp()))
    job = CommentedJob(comment_key(case), _workflow(case), case.identity.stored_as)
    return keep_comment(case.github, pull, job, order, body, is_due=is_due, once=once)


def comment_key(case: CiContext) -> str:
    """What tells comments apart: the workflow that evaluated, its job, and what its author says."""
    parts = (_workflow(case), case.job, case.settings.comment_id)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _workflow(case: CiContext) -> str:
    """Path of the workflow of whose runs the comment tells."""
    settings, context = case.settings, case.settings.context
    if case.decision.activity == "comment" and settings.event.workflow_run:
        return settings.event.workflow_run.workflow or context.workflow
    # What a comment asks for is reported where the pull request's own workflow reports its results.
    return f".github/workflows/{settings.workflow}" if context.event_name == "issue_comment" else context.workflow


def give_up(log: Log, why: str, verdict: str) -> None:
    """Say in summary and outputs, too, that there are no results."""
    lines = "\n\n".join(escape_markdown(sentence(line)) for line in why.splitlines())
    log.record(f"### Zelda could not do its work\n\n{lines}\n", {"verdict": verdict})
