"""Another workflow has evaluated a pull request, without the right to comment: its results are read, and told here.

Whoever opened the pull request may have written every byte of them. So nothing but validated JSON is taken, the pull
request is found by what GitHub says, and comparison and text are made anew.
"""

from dataclasses import replace

from zelda_ci.ci import baseline, publish
from zelda_ci.ci.acceptances import apply_acceptances
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.evaluate import compare
from zelda_ci.ci.event import BaselineTarget, number, text
from zelda_ci.ci.stored_artifacts import StoredResults, artifacts_of_run, is_results_name, read_stored
from zelda_ci.domain.ci import Provenance
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.revisions import merge_base, of_workflow_run
from zelda_ci.github.schemas import Artifact
from zelda_ci.report.comment.view import FOREIGN, ci_view
from zelda_ci.report.markdown import render_comment

# Of one run: whoever opened the pull request may have stored any number, and each would be a comment.
MAX_JOBS = 10
# Of their attempts together.
MAX_OPENED = 30

UNKNOWN_COMMIT = frozenset({"GITHUB_NOT_FOUND", "GITHUB_REFUSED"})


def comment(case: CiContext) -> int:
    """Tell the pull request what each job of its workflow stored under the wanted name; returns the exit code.

    Raises:
        ZeldaError: It could not be told, or what is stored is not what Zelda stores.
    """
    if case.api is None:
        raise GitHubError("No token was given, so nothing can be read or posted.", hint="Pass github-token.")
    event, run_id = case.settings.event, number(case.settings.event, "workflow_run", "id") or 0
    head = text(event, "workflow_run", "head_sha")
    stored = _stored(case, case.api, run_id)
    if not stored:
        return _nothing(case, "That run stored no results (it was skipped, failed before them, or they have expired).")
    for artifact, contents in stored:
        told = contents.provenance
        # What the artifact says of itself agrees with what GitHub says of the run.
        if (told.repository_id, told.run_id, told.head_sha) != (case.settings.context.repository_id, run_id, head):
            raise ArtifactError("The stored results say that they are of another run.", code="ARTIFACT_INVALID")
        pull_request = of_workflow_run(case.api, event, told.pull_request)
        if pull_request is None:
            return _nothing(case, "No open pull request has the tested commit as its head: it moved on, or was closed.")
        if contents.batch.interrupted:
            _nothing(case, "That run was cancelled: what it stored is for the next run of the pull request.")
            continue
        # Trials of earlier runs of the pull request count, as they did in the check.
        earlier, batch = contents.pool.trials, contents.batch
        limits = {run.suite: run.config.pool for run in (*earlier, *batch.runs)}
        of_job = replace(case, evaluated=told, refused=told.refused)
        target = _target(of_job, case.api, told, pull_request) if case.settings.compare else None
        found = baseline.resolve_baseline(of_job, target, run_id).replace(earlier=earlier, limits=limits)
        result = CiResult(of_job, batch, found, has_siblings=len(stored) > 1)
        result.outputs["artifact-id"] = str(artifact.id)
        if number(event, "workflow_run", "head_repository", "id") != case.settings.context.repository_id:
            result.notes.append(FOREIGN)
        compare(result)
        apply_acceptances(of_job, result, pull_request)
        case.log.record(render_comment(ci_view(result.report)))
        publish.publish_to(result, pull_request)
        if url := result.outputs.get("comment-url"):
            case.log.record(outputs={"comment-url": url})
    return 0


def _stored(case: CiContext, api: Api, run_id: int) -> list[tuple[Artifact, StoredResults]]:
    """The newest results of each job of the run, as each says of itself.

    Raises:
        ArtifactError: What has the name of results is not what Zelda stores.
    """
    name = case.settings.artifact_name
    named = [it for it in artifacts_of_run(api, run_id) if not it.expired and is_results_name(it.name, name)]
    found: dict[str | None, tuple[Artifact, StoredResults]] = {}
    for artifact in named[:MAX_OPENED]:
        contents = read_stored(api, artifact)
        if contents.provenance.artifact == name:
            found.setdefault(contents.provenance.job, (artifact, contents))
    return [*found.values()][:MAX_JOBS]


def _target(case: CiContext, api: Api, origin: Provenance, pull_request: int) -> BaselineTarget:
    """The commit that was tested against, if it is one of the base branch; else where the two lines of history meet."""
    branch = text(api.get(f"pulls/{pull_request}"), "base", "ref")
    wanted = case.settings.baseline_branch or branch
    try:
        if origin.base_sha and merge_base(api, branch, origin.base_sha) == origin.base_sha:
            return BaselineTarget(wanted, origin.base_sha)
    except GitHubError as problem:
        # A commit that GitHub does not know is one that was made up; of one that it only failed to tell of, nobody
        # knows whether it is.
        if problem.code not in UNKNOWN_COMMIT:
            raise
    return BaselineTarget(wanted, meeting=(branch, origin.head_sha))


def _nothing(case: CiContext, why: str) -> int:
    case.log.report("notice", why, title="Nothing to comment on")
    return 0
