"""A run is told where people and programs look: summary, outputs, annotations, JUnit XML, comment, log."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from zelda_ci.ci.baseline_words import WRONG_TOKEN
from zelda_ci.ci.comment import Published, publish_comment
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.inputs import CommentWhen
from zelda_ci.ci.outputs import Files, step_outputs, write
from zelda_ci.ci.settings import command_files
from zelda_ci.domain.run import BatchResult
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.files import untrusted
from zelda_ci.github.api import Api
from zelda_ci.github.comments import CommentOrder, read_thread
from zelda_ci.github.revisions import of_commit
from zelda_ci.github.workflow_commands import Annotation, Log, worst, write_output, write_summary
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.comment.annotations import annotations, closing_line, log_lines
from zelda_ci.report.comment.view import NO_JUNIT, ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.model import CiView, RunFiles
from zelda_ci.report.text import escape_markdown, sentence
from zelda_ci.report.told import CiReport
from zelda_ci.storage.result_store import RUNS

MAX_OUTPUTS = 20
MAX_SUITE_BYTES = 1_000_000
NO_COMMENT = "The pull request got no comment"
ONE_COMMENT = (
    "Another job of this run with the same id has written the comment, and it is not overwritten. Give each job of a "
    "matrix, each call of a reusable workflow and each step a `comment-id` of its own."
)


def publish_results(case: CiContext, files: Files, result: CiResult) -> None:
    """Everything that needs nobody far away."""
    report = result.report(case)
    try:
        write(files.junit, render_junit(report).encode())
    except ZeldaError as problem:
        result.notes.append(f"{NO_JUNIT}: {problem.message}")
        case.log.report("warning", problem.user_message, title="No JUnit XML")
    report = result.report(case)
    record(case, files, result, case.log)
    case.log.say(ci_view(report).sentence)
    for line in log_lines(report):
        case.log.say(line)
    _show_output(case, result)
    severities = _annotate(case, report)
    # A step that ends with a code has no message of its own.
    if result.exit_code and "error" not in severities:
        case.log.report("error", closing_line(report), title="Zelda")


def _show_output(case: CiContext, result: CiResult) -> None:
    """The end of what failed commands printed: whoever looks why a job is red begins with its log."""
    problems = ((run, run_problem(run, RunFiles())) for run in result.batch.runs)
    failed = [(run, problem) for run, problem in problems if problem and problem.output]
    for run, problem in failed[:MAX_OUTPUTS]:
        with case.log.group(f"{run.suite}, trial {run.trial}: {problem.sentence}"):
            case.log.say("\n".join(problem.output))
            where = case.results_dir / RUNS / run.run_id
            case.log.say(f"All of it: {where}, and {RUNS}/{run.run_id} in the artifact with the transcripts.")
    if len(failed) > MAX_OUTPUTS:
        case.log.say(f"{len(failed) - MAX_OUTPUTS} more runs have failed commands: the summary has their output.")


def record(case: CiContext, files: Files, result: CiResult, log: Log | None = None) -> None:
    """Write summary and outputs in the place of those before: whenever the step is killed, its last ones are there."""
    context = case.settings.context
    paths = {"results-path": files.results, "comparison-path": files.comparison, "junit-path": files.junit}
    outputs = step_outputs(result) | {
        name: _relative(path, context.workspace) for name, path in paths.items() if path.is_file()
    }
    if result.comment_url:
        outputs["comment-url"] = result.comment_url
    tell(log, context.command_files, render_comment(ci_view(result.report(case))), outputs, anew=True)


def tell(
    log: Log | None,
    files: Mapping[str, Path],
    markdown: str = "",
    outputs: Mapping[str, str] | None = None,
    *,
    anew: bool = False,
) -> None:
    """Write to the step's summary, and outputs for later steps, of which the last of a name counts.

    What cannot be written costs nothing else, and a warning in the log.
    """

    def summarise() -> None:
        if markdown:
            write_summary(files.get("STEP_SUMMARY"), markdown, anew=anew)

    def hand_over() -> None:
        for name, value in (outputs or {}).items():
            write_output(files.get("OUTPUT"), name, value)

    for what, act in (("summary", summarise), ("outputs", hand_over)):
        try:
            act()
        except OSError as problem:
            if log:
                log.report("warning", f"The {what} could not be written: {problem.strerror or problem}.", title="Zelda")


def comment(case: CiContext, result: CiResult) -> None:
    """Tell the pull request, if there is one and it wants to hear."""
    decision = case.decision
    if not decision.comments:
        return
    if case.api is None:
        refused(case, result, GitHubError("No token was given.", hint="Pass github-token, or set comment: off."))
        return
    order = _order(case, result.batch.finished_at)
    try:
        number = decision.pull_request or of_commit(case.api, decision.pull_request_of or "")
        if number is None:
            case.log.say("No open pull request has this commit as its head: nothing is posted.")
            return
        publish_to(case, case.api, result, number, order)
    except GitHubError as problem:
        refused(case, result, problem)


def replace_comment(case: CiContext, body: str) -> None:
    """Have an earlier comment, which may have ceased to be true, say this instead; no new one is made for it."""
    number, order = case.decision.pull_request, _order(case, case.now())
    if number is None or case.api is None:
        return
    try:
        if _has_comment(case, case.api, number):
            _publish(case, case.api, number, order, body)
    except GitHubError as problem:
        case.log.report("notice", problem.message, title=NO_COMMENT)


def publish_to(case: CiContext, api: Api, result: CiResult, number: int, order: CommentOrder) -> None:
    """Make the pull request's comment tell what was found, if it wants to hear of it or has heard of it before."""
    view, when = ci_view(result.report(case)), case.settings.comment
    if when == "off" or not (_is_due(when, view) or _has_comment(case, api, number)):
        return
    published = _publish(case, api, number, order, render_comment(view))
    result.comment_url = published.url
    if published.action == "taken":
        case.log.report("warning", ONE_COMMENT, title=NO_COMMENT)
        result.notes.append(f"{NO_COMMENT}: another job of this run has written it")
        return
    case.log.say(f"Comment on pull request {number}: {published.action}. {published.url or ''}".strip())


def refused(case: CiContext, result: CiResult, problem: GitHubError) -> None:
    """A token that may not write is what forks have; anything else is worth a warning. The gate does not care."""
    expected = problem.code == "GITHUB_NOT_PERMITTED" and problem.status != WRONG_TOKEN
    result.notes.append(f"{NO_COMMENT}: {problem.message}")
    hint = "For forks, a second workflow with mode: comment does it; else give the job `pull-requests: write`."
    message = f"{problem.message}\n{hint}" if expected else problem.user_message
    case.log.report("notice" if expected else "warning", message, title=NO_COMMENT)


def finish(case: CiContext, files: Files, result: CiResult) -> None:
    """What is known only now, and why the step ends as it does."""
    record(case, files, result)
    case.log.say(closing_line(result.report(case)))


def _has_comment(case: CiContext, api: Api, number: int) -> bool:
    """Whether a comment of an earlier run is there, which may have ceased to be true."""
    return bool(read_thread(api, number).marked(comment_key(case)))


def _publish(case: CiContext, api: Api, number: int, order: CommentOrder, body: str) -> Published:
    # Whoever evaluates, and comments in the same job, comments once in each attempt.
    once = case.evaluated is None
    return publish_comment(api, number, key=comment_key(case), order=order, body=body, once=once)


def _order(case: CiContext, made_at: datetime) -> CommentOrder:
    attempt = case.settings.context.run_attempt
    return CommentOrder(case.run_id, attempt, case.decision.head_sha, int(made_at.timestamp()))


def comment_key(case: CiContext) -> str:
    """What tells comments apart: the workflow that evaluated, its job, and what its author says."""
    settings, workflow = case.settings, case.settings.context.workflow
    if case.decision.activity == "comment" and settings.event.workflow_run:
        workflow = settings.event.workflow_run.workflow or workflow
    elif settings.context.event_name == "issue_comment":
        # What a comment asks for is told where the pull request's own workflow tells its results.
        workflow = f".github/workflows/{settings.workflow}"
    parts = (workflow, case.job, settings.comment_id)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _is_due(when: CommentWhen, view: CiView) -> bool:
    return when == "always" or view.failed or (when == "changes" and view.changed)


def _relative(path: Path, workspace: Path) -> str:
    """As later steps find it: in this step's container the workspace has another path than in theirs."""
    real, top = path.resolve(), workspace.resolve()
    return real.relative_to(top).as_posix() if real.is_relative_to(top) else str(path)


def _annotate(case: CiContext, report: CiReport) -> set[str]:
    """Remark on the suites' files; returns the severities that there are."""
    prefix = _relative(case.root, case.settings.context.workspace)
    texts = dict(_suite_files(case.root, report.batch))
    found = annotations(report, prefix="" if prefix == "." else prefix, texts=texts)
    remarks = [Annotation(it.level, it.message, it.title, it.file or "", it.line) for it in found]
    for remark in worst(remarks):
        case.log.report(*remark)
    return {remark.level for remark in remarks}


def _suite_files(project: Path, batch: BatchResult) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(run.config.file for run in batch.runs):
        with suppress(OSError, UnicodeDecodeError):
            yield name, untrusted.read(project / name, MAX_SUITE_BYTES).decode("utf-8")


def give_up(environ: Mapping[str, str], log: Log, why: str, verdict: str) -> None:
    """Say in summary and outputs, too, that there are no results; the settings may be what is wrong."""
    lines = "\n\n".join(escape_markdown(sentence(line)) for line in why.splitlines())
    tell(log, command_files(environ), f"### Zelda could not do its work\n\n{lines}\n", {"verdict": verdict})
