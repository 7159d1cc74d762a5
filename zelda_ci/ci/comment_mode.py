"""Another workflow has evaluated a pull request, without the right to comment: its results are read, and told here.

Whoever opened the pull request may have written every byte of them. So nothing but validated JSON is taken, the pull
request is found by what GitHub says, and comparison and text are made anew.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from zelda_ci.ci import baseline, publish
from zelda_ci.ci.acceptances import apply_acceptances
from zelda_ci.ci.baseline import of_chosen, read_batch
from zelda_ci.ci.baseline_search import opened
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.event import BaselineTarget, number, text
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.run import BatchResult
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.comments import CommentOrder
from zelda_ci.github.revisions import merge_base, of_workflow_run
from zelda_ci.github.schemas import Artifact, understand
from zelda_ci.pipeline.comparing import compare_sides
from zelda_ci.report.builders.baseline import NOT_ASKED_FOR
from zelda_ci.report.builders.ci import FOREIGN, ci_view
from zelda_ci.report.markdown import render_summary
from zelda_ci.storage.references import SideReference

UNKNOWN_COMMIT = frozenset({"GITHUB_NOT_FOUND", "GITHUB_REFUSED"})


def comment(case: CiContext) -> int:
    """Tell the pull request what its workflow stored; returns the exit code.

    Raises:
        ZeldaError: It could not be told, or what is stored is not what Zelda stores.
    """
    api = _api(case)
    artifact = _artifact(case, api)
    if artifact is None:
        return _nothing(case, "That run stored no results (it was skipped, failed before them, or they have expired).")
    stored = opened(api, artifact)
    origin = stored.provenance
    _check(case, origin)
    pull_request = of_workflow_run(api, case.settings.event, origin.pull_request)
    if pull_request is None:
        return _nothing(case, "No open pull request has the tested commit as its head: it moved on, or was closed.")
    result = _findings(case, read_batch(stored.results), artifact)
    _compare(case, result, _target(api, origin, pull_request))
    apply_acceptances(case, result, pull_request)
    summary = render_summary(ci_view(publish.report_of(case, result)))
    publish.warn(case.log, publish.summarise(case.settings.context, summary))
    publish.publish_to(case, api, result, pull_request, _order(case))
    if result.comment_url:
        publish.warn(case.log, publish.hand_over(case.settings.context, {"comment-url": result.comment_url}))
    return 0


def _api(case: CiContext) -> Api:
    if case.api is None:
        raise GitHubError("No token was given, so nothing can be read or posted.", hint="Pass github-token.")
    return case.api


def _artifact(case: CiContext, api: Api) -> Artifact | None:
    """The newest of the run that ended."""
    path = f"actions/runs/{_run_id(case)}/artifacts"
    listed = api.pages(path, key="artifacts", limit=3, name=case.settings.artifact_name)
    artifacts = (understand(Artifact, item) for item in listed)
    # By id: a job that is run again may store another of the same name.
    return max(
        (artifact for artifact in artifacts if not artifact.expired), key=lambda artifact: artifact.id, default=None
    )


def _check(case: CiContext, origin: Provenance) -> None:
    """What the artifact says of itself agrees with what GitHub says of the run."""
    head = text(case.settings.event, "workflow_run", "head_sha")
    stored = (origin.repository_id, origin.run_id, origin.head_sha)
    if stored != (case.settings.context.repository_id, _run_id(case), head):
        raise ArtifactError("The stored results say that they are of another run.", code="ARTIFACT_INVALID")


def _findings(case: CiContext, batch: BatchResult, artifact: Artifact) -> CiResult:
    result = CiResult(batch, NOT_ASKED_FOR, artifact_id=artifact.id, run_id=_run_id(case))
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


def _compare(case: CiContext, result: CiResult, target: BaselineTarget) -> None:
    chosen_target = replace(target, branch=case.settings.baseline_branch or target.branch)
    stored = baseline.resolve_baseline(case, chosen_target if case.settings.compare else None, _run_id(case))
    stored = of_chosen(case, stored, result.batch).against(result.batch.runs, case.now())
    result.baseline, result.stored = stored.origin, stored.results
    case.log.say(stored.origin.sentence)
    if stored.results:
        sides = SideReference("the baseline", stored.results.runs), SideReference("the pull request", result.batch.runs)
        result.compared = compare_sides(*sides, case.calibrations, {})


def _order(case: CiContext) -> CommentOrder:
    event = case.settings.event
    attempt = number(event, "workflow_run", "run_attempt") or 1
    return CommentOrder(_run_id(case), attempt, text(event, "workflow_run", "head_sha"))


def _run_id(case: CiContext) -> int:
    return number(case.settings.event, "workflow_run", "id") or 0


def _nothing(case: CiContext, why: str) -> int:
    case.log.report("notice", why, title="Nothing to comment on")
    return 0
