"""Results, transcripts and the HTML report are artifacts of their own: who looks for a baseline reads no transcript.

Results come first, so that they are there if the step is killed; where they have no place, nothing else has one.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from zelda_ci.ci.baseline import heads_of, pull_request_of
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.ci.stored import MAX_FILE_BYTES, NIGHTS, POOL, PROVENANCE, RESULTS, results_by_job
from zelda_ci.compare.pool import is_usable
from zelda_ci.domain.comparison import Provenance
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import Pool
from zelda_ci.errors import GitHubError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.pipeline.shards import FILES, run_files
from zelda_ci.report.comment.view import NO_REPORT, NOT_STORED
from zelda_ci.report.html.writer import PageOptions, write_report
from zelda_ci.report.junit import render_junit
from zelda_ci.report.text import json_of
from zelda_ci.storage import result_store
from zelda_ci.storage.codec import encode_within
from zelda_ci.storage.result_store import ResultStore

# Later attempts and pushes of a pull request count the trials before; nobody compares with them after its end.
PULL_REQUEST_DAYS = 14
MAX_HISTORY_BYTES = 16 << 20

# The runner kills a cancelled step 10 seconds after its first signal: each request of it has this long.
HURRY_SECONDS = 4.0

# What a service answers that knows no files but archives.
ARCHIVES_ONLY = 400
MAX_HISTORY_BYTES = 16 << 20

LOST = "The trials that were over when the run was cancelled are not stored, and do not count later:"
COMPARISON, REPORT = "comparison.json", "report.html"
# At the end of the name of an artifact with transcripts: who looks for results does not list it.
TRANSCRIPTS = ".transcripts"


def clear_files(case: CiContext) -> None:
    """Remove what an earlier step left: a file that is there is of this run."""
    names = (RESULTS, POOL, NIGHTS, PROVENANCE, COMPARISON, REPORT)
    for path in (*(case.output / name for name in names), case.junit):
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
    """Upload what people read: of every run its result, transcript, patch, logs and images; and the HTML report.

    Where the workflow does not want the texts of sessions to be stored, the report alone, without them.
    """
    case, texts, page = result.case, result.case.settings.include_transcripts, result.case.output / REPORT
    if "artifact-id" not in result.outputs:
        return
    if files := dict(run_files(case.results_dir, result.batch.runs if texts else (), (result_store.RESULT, *FILES))):
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
        result.note(f"{LOST} {problem.message}")


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
    """What later runs read, by path within the artifact.

    Of the base branch, all trusted trials and the states of all suites; of a pull request, its own earlier trials.
    """
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
        uploaded = case.artifacts(patience).upload(name, contents, retention_days=days)
    except GitHubError as problem:
        if problem.status != ARCHIVES_ONLY or not isinstance(contents, Path):
            raise
        return upload(case, name.removesuffix(contents.suffix), {contents.name: contents})
    case.log.say(f"Stored as the artifact {name} ({uploaded.size:,} bytes).")
    return uploaded.id
