"""Results, transcripts and the HTML report are artifacts of their own: who looks for a baseline reads no transcript.

Results come first. So they are there if the step is killed, and no artifact is lost with another.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from zelda_ci.ci import baseline
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.earlier_runs import own_run
from zelda_ci.ci.outputs import JUNIT, REPORT, Files, json_of, provenance, result_members, transcript_members, write
from zelda_ci.ci.publish import report_of
from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.ci.stored_artifacts import (
    MAX_MEMBER_BYTES,
    NIGHTS,
    POOL,
    identity_of,
    provenance_in,
    transcripts_name,
)
from zelda_ci.ci.stored_results import MAX_HISTORY_BYTES
from zelda_ci.domain.ci import Provenance
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.github.api import Api
from zelda_ci.github.artifacts import ArtifactService, Uploaded
from zelda_ci.github.schemas import Artifact, understand
from zelda_ci.pipeline.html_report import write_html
from zelda_ci.report.builders.ci import NO_REPORT, NOT_STORED
from zelda_ci.report.junit import render_junit
from zelda_ci.storage.codec import encode_nights, encode_pool
from zelda_ci.storage.history import RunHistory

# Later attempts and pushes of a pull request count the trials before; nobody compares with them after its end.
PULL_REQUEST_DAYS = 14

# What a service answers that knows no files but archives.
ARCHIVES_ONLY = 400

TAKEN = "ARTIFACT_EXISTS"
UNAVAILABLE = "ARTIFACTS_UNAVAILABLE"

# Of an artifact that is read only to learn whose it is.
MAX_ASKED_BYTES = 32 << 20


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
    if own_run(case) and not result.knows_earlier:
        # It does not carry the trials of those before it, which therefore have to be read as well.
        del trials[POOL]
    if case.decision.is_of_base and result.nights.nights:
        trials[NIGHTS] = encode_nights(result.nights, MAX_HISTORY_BYTES)
        write(files.nights, trials[NIGHTS])
    # Where it cannot be written, whoever writes it beside the results says so.
    with suppress(ZeldaError):
        trials[JUNIT] = render_junit(report_of(case, result)).encode()
    try:
        uploaded = upload(case, result, result_members(files, result.batch, origin, trials))
    except GitHubError as problem:
        name = case.settings.artifact_name
        _tell(case, result, problem, f"The results are in {files.results.parent}; store it under the name {name}.")
        result.is_unstorable = problem.code in {TAKEN, UNAVAILABLE}
        return
    result.artifact_id = uploaded.id


def store_transcripts(case: CiContext, result: CiResult) -> None:
    """Upload what people read, unless the workflow does not want it, or the results could not have a place either."""
    if not case.settings.include_transcripts or result.is_unstorable:
        return
    contents = transcript_members(case, result.batch, _origin(case, result))
    if not contents:
        return
    try:
        uploaded = upload(case, result, contents, named=transcripts_name)
    except GitHubError as problem:
        _tell(case, result, problem, "")
        return
    result.transcripts_id = uploaded.id


def store_report(case: CiContext, files: Files, result: CiResult) -> None:
    """Upload the HTML report, as it is where the service takes that, so that a browser opens it; else as an archive.

    Without the texts of sessions where the workflow does not want transcripts to be stored.
    """
    if not result.stored_as or not result.head:
        return
    texts = case.settings.include_transcripts
    write_html(files.report, report_of(case, result), [RunHistory(case.results_dir)], include_texts=texts)
    try:
        uploaded = _upload_report(case, files.report, result.stored_as)
    except GitHubError as problem:
        note = f"{NO_REPORT}: {problem.message}"
        result.notes.append(note)
        case.log.report("warning", problem.user_message, title=NO_REPORT)
        return
    result.report_id = uploaded.id


def _upload_report(case: CiContext, report: Path, stored_as: str) -> Uploaded:
    """Its name is made of that of the results, which no other job of the run has."""
    name, days = f"{stored_as}.{REPORT}", retention_days(case)
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
    result: CiResult,
    contents: Mapping[str, Path | bytes],
    *,
    named: Callable[[str], str] = str,
    service: Callable[[], ArtifactService] | None = None,
) -> Uploaded:
    """Under the job's name, or where another job of this run has taken it, under one with the job's id.

    Raises:
        GitHubError: GitHub does not take it.
    """
    identity = identity_of(case.settings)
    name = named(identity.artifact)
    try:
        uploaded = upload_as(case, name, contents, service or case.artifacts)
    except GitHubError as problem:
        if problem.code != TAKEN or identity.second_name is None or _is_siblings(case, name):
            raise
        result.told_apart_by = case.job
        name = named(identity.second_name)
        uploaded = upload_as(case, name, contents, service or case.artifacts)
    if named is str:
        result.stored_as = name
    return uploaded


def upload_as(
    case: CiContext, name: str, contents: Mapping[str, Path | bytes], service: Callable[[], ArtifactService]
) -> Uploaded:
    """Under this very name, in the place of what an earlier attempt of the same job has stored.

    Raises:
        GitHubError: GitHub does not take it.
    """
    may_replace = partial(_may_replace, case, name)
    uploaded = service().upload(name, contents, retention_days=retention_days(case), may_replace=may_replace)
    return _stored(case, name, uploaded)


def _stored(case: CiContext, name: str, uploaded: Uploaded) -> Uploaded:
    case.log.say(f"Stored as the artifact {name} ({uploaded.size:,} bytes).")
    return uploaded


def _may_replace(case: CiContext, name: str, artifact_id: int) -> bool:
    """Whether an artifact of an earlier attempt is this job's own; of the default name, only if that is known."""
    stored_by = _stored_by(case, artifact_id)
    if stored_by is None:
        return name not in {DEFAULT_ARTIFACT, transcripts_name(DEFAULT_ARTIFACT)}
    context = case.settings.context
    return stored_by.job in {None, context.job} and stored_by.run_attempt < context.run_attempt


def _is_siblings(case: CiContext, name: str) -> bool:
    """Whether a job with the same id has taken a name: of a matrix, or of a reusable workflow that is called twice."""
    path = f"actions/runs/{case.run_id}/artifacts"
    try:
        listed = case.api.pages(path, key="artifacts", limit=1, name=name) if case.api else ()
        numbers = [understand(Artifact, entry).id for entry in listed]
    except GitHubError:
        return False
    stored_by = _stored_by(case, max(numbers)) if numbers else None
    return stored_by is not None and stored_by.job == case.settings.context.job


def _stored_by(case: CiContext, artifact_id: int) -> Provenance | None:
    """What an artifact of this run says of itself; nothing where that cannot be learnt."""
    try:
        return _asked(case.api, artifact_id) if case.api else None
    except GitHubError:
        return None


def _asked(api: Api, artifact_id: int) -> Provenance | None:
    artifact = understand(Artifact, api.get(f"actions/artifacts/{artifact_id}"))
    return provenance_in(api, artifact) if artifact.size_in_bytes <= MAX_ASKED_BYTES else None
