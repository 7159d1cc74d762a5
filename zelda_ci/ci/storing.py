"""Results, transcripts and the HTML report are artifacts of their own: who looks for a baseline reads no transcript.

Results come first. So they are there if the step is killed, and no artifact is lost with another.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.baseline import heads_of, pull_request_of
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.outputs import COMPARISON, JUNIT, REPORT, Files, json_of, write
from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.ci.stored_artifacts import (
    MAX_HISTORY_BYTES,
    MAX_MEMBER_BYTES,
    NIGHTS,
    POOL,
    PROVENANCE,
    RESULTS,
    artifacts_of_run,
    identity_of,
    is_results_name,
)
from zelda_ci.compare.pool import is_usable
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, Pool
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.pipeline.html_report import write_html
from zelda_ci.pipeline.parts import FILES, run_files
from zelda_ci.report.comment.view import NO_REPORT, NOT_STORED
from zelda_ci.report.junit import render_junit
from zelda_ci.storage import run_folder
from zelda_ci.storage.codec import encode_nights, encode_pool
from zelda_ci.storage.history import RunHistory

# Later attempts and pushes of a pull request count the trials before; nobody compares with them after its end.
PULL_REQUEST_DAYS = 14

# What a service answers that knows no files but archives.
ARCHIVES_ONLY = 400

TAKEN = "ARTIFACT_EXISTS"
UNAVAILABLE = "ARTIFACTS_UNAVAILABLE"

# At the end of the name of an artifact with transcripts: who looks for results does not list it.
TRANSCRIPTS = ".transcripts"


def provenance(case: CiContext, batch: BatchResult, base_commit: str | None) -> Provenance:
    """Where results come from; complete, and so a baseline, if all of it was run and judged and something is valid."""
    context, decision, pull = case.settings.context, case.decision, case.settings.event.pull_request
    valid = batch.planned == 0 or any(run.status.is_valid for run in batch.runs)
    judged = all(run_outcome(run) is not Outcome.INCOMPLETE for run in batch.runs)
    return Provenance(
        repository=context.repository,
        repository_id=context.repository_id,
        sha=case.commit,
        head_sha=decision.head_sha or case.commit,
        base_sha=base_commit,
        base_branch=decision.target.branch if decision.target else None,
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
        refused=case.refused,
    )


def store_results(case: CiContext, files: Files, result: CiResult) -> None:
    """Upload what later runs read; where GitHub does not take it, the files are in the workspace still."""
    members: dict[str, Path | bytes] = {**_trials(case, result)}
    for path in (files.provenance, files.pool, files.nights):
        if isinstance(data := members.get(path.name), bytes):
            write(path, data)
    if files.comparison.is_file():
        members[COMPARISON] = files.comparison
    # Where it cannot be written, whoever writes it beside the results says so.
    with suppress(ZeldaError):
        members[JUNIT] = render_junit(result.report(case)).encode()
    try:
        result.artifact_id = upload(case, case.artifact, members)
    except GitHubError as problem:
        hint = f"The results are in {files.results.parent}; store it under the name {case.artifact}."
        _tell(case, result, problem, hint)
        result.is_unstorable = problem.code in {TAKEN, UNAVAILABLE}
        return
    # Only the title of a comment has to say of which job it is.
    if case.settings.comment != "off" and _has_siblings(case):
        result.told_apart_by = case.job


def store_trials(case: CiContext, result: CiResult) -> None:
    """Upload the trials of a pull request's run that is cancelled: they count when it is run again.

    Otherwise whoever sees a bad trial could cancel the job, run it again, and be rid of it. The runner waits for ten
    seconds only, so this is the last that is done, and small. Of a fork's, its author would choose them.
    """
    trials = sum(map(is_usable, (*result.batch.runs, *result.batch.base_runs)))
    pull, own = case.settings.event.pull_request, case.settings.context.repository_id
    if not trials or pull is None or pull_request_of(case) is None or not pull.head.is_of(own):
        return
    try:
        result.artifact_id = upload(case, case.artifact, _trials(case, result), case.hurried_artifacts)
        note = words.cancelled_kept(trials)
    except GitHubError as problem:
        note = f"{words.CANCELLED_LOST} {problem.message}"
    result.notes.append(note)
    case.log.say(note)


def _origin(case: CiContext, result: CiResult) -> Provenance:
    target = case.decision.target
    origin = provenance(case, result.batch, result.baseline.wanted or (target.commit if target else None))
    return origin.replace(accepted=result.gate.accepted)


def _trials(case: CiContext, result: CiResult) -> dict[str, bytes]:
    """What later runs read, by path within the artifact.

    Of the base branch, all trusted trials and the states of all suites; of a pull request, its own earlier trials.
    """
    found, runs = result.evidence, result.batch.runs
    members = {PROVENANCE: json_of(_origin(case, result)), RESULTS: json_of(result.batch)}
    pool = Pool(trials=(*found.heads, *found.bases))
    if case.decision.is_of_base:
        made = {(run.batch_id, run.run_id) for run in runs}
        carried = tuple(run for run in found.pool if (run.batch_id, run.run_id) not in made)
        pool = Pool(suites={**found.fingerprints, **heads_of(runs)}, trials=carried)
        if result.nights.nights:
            members[NIGHTS] = encode_nights(result.nights, MAX_HISTORY_BYTES)
    # Without a pool it does not carry the trials of those before it, which therefore have to be read as well.
    if found.knows_earlier or not pull_request_of(case):
        members[POOL] = encode_pool(pool, MAX_MEMBER_BYTES)
    return members


def _has_siblings(case: CiContext) -> bool:
    """Whether another job of the run has stored results, so that titles have to say of which job they are."""
    names = set()
    with suppress(GitHubError):
        names = {each.name for each in artifacts_of_run(case.api, case.run_id)} if case.api else set()
    own = {identity_of(case.settings).stored_as(it) for it in range(1, case.settings.context.run_attempt + 1)}
    return any(is_results_name(name, DEFAULT_ARTIFACT) for name in names - own)


def store_transcripts(case: CiContext, result: CiResult) -> None:
    """Upload what people read: of every run its result, transcript, patch, logs and images.

    Not where the workflow does not want it, or the results could not have a place either.
    """
    contents = dict(run_files(case.results_dir, result.batch.runs, (run_folder.RESULT, *FILES)))
    if not case.settings.include_transcripts or result.is_unstorable or not contents:
        return
    members: dict[str, Path | bytes] = {PROVENANCE: json_of(_origin(case, result)), **contents}
    try:
        result.transcripts_id = upload(case, case.artifact + TRANSCRIPTS, members)
    except GitHubError as problem:
        _tell(case, result, problem, "")


def store_report(case: CiContext, files: Files, result: CiResult) -> None:
    """Upload the HTML report, as it is where the service takes that, so that a browser opens it; else as an archive.

    Without the texts of sessions where the workflow does not want transcripts to be stored.
    """
    if result.artifact_id is None or not result.head:
        return
    texts = case.settings.include_transcripts
    write_html(files.report, result.report(case), RunHistory(case.results_dir), include_texts=texts)
    try:
        result.report_id = _upload_page(case, f"{case.artifact}.{REPORT}", files.report)
    except GitHubError as problem:
        result.notes.append(f"{NO_REPORT}: {problem.message}")
        case.log.report("warning", problem.user_message, title=NO_REPORT)


def _upload_page(case: CiContext, name: str, page: Path) -> int:
    try:
        uploaded = case.artifacts().upload(name, page, retention_days=retention_days(case))
    except GitHubError as problem:
        if problem.status != ARCHIVES_ONLY:
            raise
        return upload(case, name.removesuffix(".html"), {REPORT: page})
    case.log.say(f"Stored as the artifact {name} ({uploaded.size:,} bytes).")
    return uploaded.id


def _tell(case: CiContext, result: CiResult, problem: GitHubError, place: str) -> None:
    note = f"{NOT_STORED}: {problem.message}"
    if note in result.notes:
        return
    result.notes.append(note)
    # A `run` step on the runner itself never has the service: actions/upload-artifact can store the folder.
    expected = problem.code == UNAVAILABLE
    message = f"{problem.user_message}\n{place}" if expected else problem.user_message
    case.log.report("notice" if expected else "warning", message, title=NOT_STORED)


def retention_days(case: CiContext) -> int | None:
    """How many days artifacts are kept; absent: as long as the repository keeps any."""
    is_of_pull_request = case.decision.pull_request is not None or case.decision.base is not None
    return case.settings.retention_days or (PULL_REQUEST_DAYS if is_of_pull_request else None)


def upload(
    case: CiContext,
    name: str,
    contents: Mapping[str, Path | bytes],
    service: Callable[[], ArtifactService] | None = None,
) -> int:
    """Store contents, or what lies at places, by path within an artifact; returns its id."""
    uploaded = (service or case.artifacts)().upload(name, contents, retention_days=retention_days(case))
    case.log.say(f"Stored as the artifact {name} ({uploaded.size:,} bytes).")
    return uploaded.id
