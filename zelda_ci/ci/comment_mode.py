"""Another workflow has evaluated a pull request, without the right to comment: its results are read, and told here.

Whoever opened the pull request may have written every byte of them. So nothing but validated JSON is taken, the pull
request is found by what GitHub says, and comparison and text are made anew.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from zelda_ci.ci import baseline, publish
from zelda_ci.ci.acceptances import apply_acceptances
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.evaluate import compare
from zelda_ci.ci.event import BaselineTarget, number, text
from zelda_ci.ci.evidence import NOTHING
from zelda_ci.ci.stored_artifacts import StoredResults, artifacts_of_run, is_results_name, read_stored
from zelda_ci.domain.ci import Provenance
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.comments import CommentOrder
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
    api = _api(case)
    stored = _stored(case, api)
    if not stored:
        return _nothing(case, "That run stored no results (it was skipped, failed before them, or they have expired).")
    for artifact, contents in stored:
        _check(case, contents.provenance)
        pull_request = of_workflow_run(api, case.settings.event, contents.provenance.pull_request)
        if pull_request is None:
            return _nothing(case, "No open pull request has the tested commit as its head: it moved on, or was closed.")
        if contents.batch.interrupted:
            _nothing(case, "That run was cancelled: what it stored is for the next run of the pull request.")
            continue
        of_job = replace(case, evaluated=contents.provenance)
        result = _findings(of_job, contents, artifact)
        result.told_apart_by = of_job.job if len(stored) > 1 else ""
        _report(of_job, api, result, pull_request)
    return 0


def _report(case: CiContext, api: Api, result: CiResult, pull_request: int) -> None:
    origin = case.evaluated
    target = _target(api, origin, pull_request) if origin else BaselineTarget("")
    target = replace(target, branch=case.settings.baseline_branch or target.branch)
    found = baseline.resolve_baseline(case, target if case.settings.compare else None, _run_id(case))
    earlier = result.evidence.earlier
    limits = {run.suite: run.config.pool for run in (*earlier, *result.batch.runs)}
    result.evidence = found.replace(earlier=earlier, limits=limits)
    compare(case, result)
    apply_acceptances(case, result, pull_request)
    summary = render_comment(ci_view(result.report(case)))
    publish.tell(case.log, case.settings.context, summary)
    publish.publish_to(case, api, result, pull_request, _order(case, result))
    if result.comment_url:
        publish.tell(case.log, case.settings.context, outputs={"comment-url": result.comment_url})


def _api(case: CiContext) -> Api:
    if case.api is None:
        raise GitHubError("No token was given, so nothing can be read or posted.", hint="Pass github-token.")
    return case.api


def _stored(case: CiContext, api: Api) -> list[tuple[Artifact, StoredResults]]:
    """The newest results of each job of the run, as each says of itself.

    Raises:
        ArtifactError: What has the name of results is not what Zelda stores.
    """
    name = case.settings.artifact_name
    listed = artifacts_of_run(api, _run_id(case))
    named = [each for each in listed if not each.expired and is_results_name(each.name, name)]
    found: dict[str | None, tuple[Artifact, StoredResults]] = {}
    for artifact in named[:MAX_OPENED]:
        contents = read_stored(api, artifact)
        if contents.provenance.artifact == name:
            found.setdefault(contents.provenance.job, (artifact, contents))
    return [*found.values()][:MAX_JOBS]


def _check(case: CiContext, origin: Provenance) -> None:
    """What the artifact says of itself agrees with what GitHub says of the run."""
    head = text(case.settings.event, "workflow_run", "head_sha")
    stored = (origin.repository_id, origin.run_id, origin.head_sha)
    if stored != (case.settings.context.repository_id, _run_id(case), head):
        raise ArtifactError("The stored results say that they are of another run.", code="ARTIFACT_INVALID")


def _findings(case: CiContext, told: StoredResults, artifact: Artifact) -> CiResult:
    # Trials of earlier runs of the pull request count, as they did in the check.
    earlier = NOTHING.replace(earlier=told.pool.trials)
    result = CiResult(told.batch, NOTHING.origin, earlier, artifact_id=artifact.id, run_id=_run_id(case))
    result.refused = told.provenance.refused
    own = case.settings.context.repository_id
    if number(case.settings.event, "workflow_run", "head_repository", "id") != own:
        result.notes.append(FOREIGN)
    return result


def _target(api: Api, origin: Provenance, pull_request: int) -> BaselineTarget:
    """The commit that was tested against, if it is one of the base branch; else where the two lines of history meet."""
    pull: Any = api.get(f"pulls/{pull_request}")
    branch = text(pull, "base", "ref")
    for commit in _candidates(api, branch, origin):
        return BaselineTarget(branch, commit)
    return BaselineTarget(branch, meeting=(branch, origin.head_sha))


def _candidates(api: Api, branch: str, origin: Provenance) -> Iterator[str]:
    try:
        if origin.base_sha and merge_base(api, branch, origin.base_sha) == origin.base_sha:
            yield origin.base_sha
    except GitHubError as problem:
        # A commit that GitHub does not know is one that was made up; of one that it only failed to tell of, nobody
        # knows whether it is.
        if problem.code not in UNKNOWN_COMMIT:
            raise


def _order(case: CiContext, result: CiResult) -> CommentOrder:
    event = case.settings.event
    attempt = number(event, "workflow_run", "run_attempt") or 1
    made_at = int(result.batch.finished_at.timestamp())
    return CommentOrder(_run_id(case), attempt, text(event, "workflow_run", "head_sha"), made_at)


def _run_id(case: CiContext) -> int:
    return number(case.settings.event, "workflow_run", "id") or 0


def _nothing(case: CiContext, why: str) -> int:
    case.log.report("notice", why, title="Nothing to comment on")
    return 0
