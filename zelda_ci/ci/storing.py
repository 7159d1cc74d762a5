"""Results, transcripts and the HTML report are artifacts of their own: who looks for a baseline reads no transcript.

Results come first. So they are there if the step is killed, and no artifact is lost with another.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from zelda_ci.ci import baseline
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.earlier_runs import pull_request_of
from zelda_ci.ci.inputs import CommentWhen
from zelda_ci.ci.outputs import JUNIT, REPORT, Files, json_of, provenance, result_members, transcript_members, write
from zelda_ci.ci.publish import report_of
from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.ci.stored_artifacts import (
    MAX_HISTORY_BYTES,
    MAX_MEMBER_BYTES,
    NIGHTS,
    POOL,
    artifacts_of_run,
    identity_of,
    is_results_name,
)
from zelda_ci.domain.ci import Provenance
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.github.artifacts import ArtifactService, Uploaded
from zelda_ci.pipeline.html_report import write_html
from zelda_ci.report.comment.view import NO_REPORT, NOT_STORED
from zelda_ci.report.junit import render_junit
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


def retention_days(case: CiContext) -> int | None:
    """How many days results are kept; absent: as long as the repository keeps any."""
    is_of_pull_request = case.decision.pull_request is not None or case.decision.base is not None
    return case.settings.retention_days or (PULL_REQUEST_DAYS if is_of_pull_request else None)


def store_results(case: CiContext, files: Files, result: CiResult) -> None:
    """Upload what later runs read; where GitHub does not take it, the files are in the workspace still."""
    origin = _origin(case, result)
    write(files.provenance, json_of(origin))
    trials = {POOL: encode_pool(baseline.pool_to_store(case, result), MAX_MEMBER_BYTES)}
    write(files.pool, trials[POOL])
    if pull_request_of(case) and not result.knows_earlier:
        # It does not carry the trials of those before it, which therefore have to be read as well.
        del trials[POOL]
    if case.decision.is_of_base and result.nights.nights:
        trials[NIGHTS] = encode_nights(result.nights, MAX_HISTORY_BYTES)
        write(files.nights, trials[NIGHTS])
    # Where it cannot be written, whoever writes it beside the results says so.
    with suppress(ZeldaError):
        trials[JUNIT] = render_junit(report_of(case, result)).encode()
    try:
        uploaded = upload(case, result_members(files, result.batch, origin, trials))
    except GitHubError as problem:
        name = identity_of(case.settings).stored_as(case.settings.context.run_attempt)
        _tell(case, result, problem, f"The results are in {files.results.parent}; store it under the name {name}.")
        result.is_unstorable = problem.code in {TAKEN, UNAVAILABLE}
        return
    result.artifact_id = uploaded.id
    # Only the title of a comment has to say of which job it is.
    is_told = case.settings.comment is not CommentWhen.OFF
    result.told_apart_by = case.job if is_told and _has_siblings(case) else ""


def _has_siblings(case: CiContext) -> bool:
    """Whether another job of the run has stored results, so that titles have to say of which job they are."""
    identity, names = identity_of(case.settings), set()
    with suppress(GitHubError):
        names = {each.name for each in artifacts_of_run(case.api, case.run_id)} if case.api else set()
    own = {identity.stored_as(attempt) for attempt in range(1, case.settings.context.run_attempt + 1)}
    return any(is_results_name(name, DEFAULT_ARTIFACT) for name in names - own)


def store_transcripts(case: CiContext, result: CiResult) -> None:
    """Upload what people read, unless the workflow does not want it, or the results could not have a place either."""
    if not case.settings.include_transcripts or result.is_unstorable:
        return
    contents = transcript_members(case, result.batch, _origin(case, result))
    if not contents:
        return
    try:
        uploaded = upload(case, contents, kind=TRANSCRIPTS)
    except GitHubError as problem:
        _tell(case, result, problem, "")
        return
    result.transcripts_id = uploaded.id


def store_report(case: CiContext, files: Files, result: CiResult) -> None:
    """Upload the HTML report, as it is where the service takes that, so that a browser opens it; else as an archive.

    Without the texts of sessions where the workflow does not want transcripts to be stored.
    """
    if result.artifact_id is None or not result.head:
        return
    texts = case.settings.include_transcripts
    write_html(files.report, report_of(case, result), RunHistory(case.results_dir), include_texts=texts)
    try:
        uploaded = _upload_report(case, files.report)
    except GitHubError as problem:
        note = f"{NO_REPORT}: {problem.message}"
        result.notes.append(note)
        case.log.report("warning", problem.user_message, title=NO_REPORT)
        return
    result.report_id = uploaded.id


def _upload_report(case: CiContext, report: Path) -> Uploaded:
    name = f"{identity_of(case.settings).stored_as(case.settings.context.run_attempt)}.{REPORT}"
    days = retention_days(case)
    try:
        return _stored(case, name, case.artifacts().upload_page(name, report, retention_days=days))
    except GitHubError as problem:
        if problem.status != ARCHIVES_ONLY:
            raise
    archived = name.removesuffix(".html")
    return _stored(case, archived, case.artifacts().upload(archived, {REPORT: report}, retention_days=days))


def _origin(case: CiContext, result: CiResult) -> Provenance:
    target = case.decision.target
    origin = provenance(case, result.batch, result.baseline.wanted or (target.commit if target else None))
    return origin.replace(accepted=result.gate.accepted)


def _tell(case: CiContext, result: CiResult, problem: GitHubError, place: str) -> None:
    note = f"{NOT_STORED}: {problem.message}"
    if note in result.notes:
        return
    result.notes.append(note)
    # A `run` step on the runner itself never has the service: actions/upload-artifact can store the folder.
    expected = problem.code == UNAVAILABLE
    message = f"{problem.user_message}\n{place}" if expected else problem.user_message
    case.log.report("notice" if expected else "warning", message, title=NOT_STORED)


def upload(
    case: CiContext,
    contents: Mapping[str, Path | bytes],
    *,
    kind: str = "",
    service: Callable[[], ArtifactService] | None = None,
) -> Uploaded:
    """Under the name of the job and this attempt, which nothing else has.

    Args:
        case: The run.
        contents: Contents or places by path within the artifact.
        kind: What it is if it is not the results, as the end of the name.
        service: Stores it.

    Raises:
        GitHubError: GitHub does not take it.
    """
    name = identity_of(case.settings).stored_as(case.settings.context.run_attempt) + kind
    return upload_as(case, name, contents, service or case.artifacts)


def upload_as(
    case: CiContext, name: str, contents: Mapping[str, Path | bytes], service: Callable[[], ArtifactService]
) -> Uploaded:
    """Under this very name.

    Raises:
        GitHubError: GitHub does not take it.
    """
    return _stored(case, name, service().upload(name, contents, retention_days=retention_days(case)))


def _stored(case: CiContext, name: str, uploaded: Uploaded) -> Uploaded:
    case.log.say(f"Stored as the artifact {name} ({uploaded.size:,} bytes).")
    return uploaded
