"""Another workflow has evaluated a pull request, without the right to comment: its results are read, and reported here.

Whoever opened the pull request may have written every byte of them. So nothing but validated JSON is taken, the pull
request is found by what GitHub says, and comparison and text are made anew.
"""

from dataclasses import replace

from zelda_ci.ci import publish
from zelda_ci.ci.acceptances import apply_acceptances
from zelda_ci.ci.baseline import resolve_baseline
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.evaluate import compare
from zelda_ci.ci.event import BaselineTarget
from zelda_ci.ci.stored_artifacts import read_stored, results_by_job
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.github.repository import PullRequest, of_workflow_run
from zelda_ci.report.comment.view import FOREIGN, ci_view
from zelda_ci.report.markdown import render_comment

# Of one run: the author of the pull request may have stored any number, and each would be a comment.
MAX_JOBS = 10


def comment(case: CiContext) -> int:
    """Tell the pull request what each job of its workflow stored under the wanted name; returns the exit code.

    Raises:
        ZeldaError: It could not be reported, or what is stored is not what Zelda stores.
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
        found = resolve_baseline(job).replace(earlier=earlier, limits=limits)
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
