"""What must be true of an artifact before it counts as a baseline."""

from datetime import UTC, datetime
from typing import Any

import pytest

from zelda_ci.ci.stored_artifacts import JobIdentity, distrust_of_provenance, distrust_of_run, is_of_branch
from zelda_ci.domain.ci import Provenance
from zelda_ci.github.schemas import ArtifactRun, GitHubRepository, WorkflowRun

HERE, FORK = 100, 200
SHA = "a" * 40

LISTED = ArtifactRun(id=7, repository_id=HERE, head_repository_id=HERE, head_branch="main", head_sha=SHA)
RUN = WorkflowRun(
    id=7,
    workflow_id=5,
    path=".github/workflows/zelda.yml",
    event="push",
    head_branch="main",
    head_sha=SHA,
    head_repository=GitHubRepository(id=HERE),
)
TOLD = Provenance(
    repository="o/r",
    repository_id=HERE,
    sha=SHA,
    head_sha=SHA,
    event="push",
    run_id=7,
    batch_id="b",
    created_at=datetime(2026, 11, 1, tzinfo=UTC),
)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"head_repository_id": FORK}, id="a fork's branch called main"),
        pytest.param({"head_repository_id": None}, id="a deleted fork's branch called main"),
        pytest.param({"repository_id": FORK, "head_repository_id": FORK}, id="another repository altogether"),
        pytest.param({"repository_id": None}, id="no repository"),
        pytest.param({"head_branch": "Main"}, id="another branch"),
        pytest.param({"head_branch": None}, id="no branch"),
    ],
)
def test_what_is_not_of_the_branch_is_no_candidate(change: dict[str, Any]) -> None:
    assert is_of_branch(LISTED, "main", HERE)
    assert not is_of_branch(LISTED.model_copy(update=change), "main", HERE)


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_a_run_on_a_branch_is_trusted(event: str) -> None:
    assert distrust_of_run(RUN.model_copy(update={"event": event}), LISTED) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"event": "pull_request"}, "by a pull_request run"),
        ({"event": "pull_request_target"}, "by a pull_request_target run"),
        ({"event": "merge_group"}, "by a merge_group run"),
        ({"head_repository": None}, "for another repository"),
        ({"head_repository": GitHubRepository(id=FORK)}, "for another repository"),
        ({"head_sha": "b" * 40}, "contradicting data"),
        ({"head_branch": "dev"}, "contradicting data"),
        ({"id": 8}, "contradicting data"),
    ],
)
def test_any_other_run_is_not_trusted(change: dict[str, Any], reason: str) -> None:
    assert reason in str(distrust_of_run(RUN.model_copy(update=change), LISTED))


def test_a_provenance_that_agrees_with_github_is_believed_even_if_the_repository_was_renamed_since() -> None:
    assert distrust_of_provenance(TOLD, RUN) is None
    assert distrust_of_provenance(TOLD.model_copy(update={"repository": "o/old"}), RUN) is None


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ({"repository_id": FORK}, "another repository"),
        ({"run_id": 8}, "another run"),
        ({"sha": "b" * 40}, "another commit"),
        ({"complete": False}, "interrupted"),
    ],
)
def test_a_provenance_that_lies_is_not_believed(lie: dict[str, Any], reason: str) -> None:
    assert reason in str(distrust_of_provenance(TOLD.model_copy(update=lie), RUN))


JOB = JobIdentity("zelda-results", "zelda", "shop")
NAMED = JobIdentity("zelda-results-linux", "zelda", "shop")
SAYS = {"workflow": ".github/workflows/zelda.yml", "job": "zelda", "folder": "shop"}
OWN, OTHER = 5, 6


def said(by: JobIdentity, **more: Any) -> Provenance:
    return TOLD.model_copy(update={**SAYS, "artifact": by.artifact, **more})


@pytest.mark.parametrize(
    ("job", "stored", "workflow_id"),
    [
        pytest.param(JOB, said(JOB), OWN, id="the job itself"),
        pytest.param(JOB, TOLD, OWN, id="a version that did not name jobs"),
        pytest.param(JOB, said(JOB, folder="moved"), OWN, id="a project that was moved"),
        pytest.param(JOB, said(JOB), OTHER, id="a workflow that was renamed, or one for pushes"),
        pytest.param(NAMED, said(NAMED, job="push"), OWN, id="two jobs of one workflow with one comment-id"),
        pytest.param(NAMED, said(NAMED, job="push", folder="."), OTHER, id="two workflows with one comment-id"),
        pytest.param(JobIdentity("zelda-results"), said(JOB), OWN, id="a runner that names no job"),
    ],
)
def test_results_are_the_jobs_own(job: JobIdentity, stored: Provenance, workflow_id: int) -> None:
    assert job.distrust(stored, RUN, workflow_id) is None


@pytest.mark.parametrize(
    ("job", "stored", "workflow_id", "reason"),
    [
        (JOB, said(JOB, job="other"), OWN, "another job of this workflow"),
        (JOB, said(NAMED), OWN, "another artifact-name"),
        (NAMED, said(JOB), OWN, "another artifact-name"),
        (JOB, TOLD, OTHER, "by another workflow"),
        (JOB, said(JOB, workflow=".github/workflows/else.yml"), OTHER, "by another workflow"),
        (JOB, said(JOB, workflow=None), OTHER, "by another workflow"),
        (JOB, said(NAMED), OTHER, "for another artifact-name"),
        (JOB, said(JOB, artifact=None), OTHER, "for another artifact-name"),
        (JOB, said(JOB, job="other"), OTHER, "another job of another workflow"),
        (JOB, said(JOB, job=None), OTHER, "another job of another workflow"),
        (JOB, said(JOB, folder="blog"), OTHER, "another job of another workflow"),
        (JobIdentity("zelda-results"), said(JOB, job=None, folder=None), OTHER, "another job of another workflow"),
    ],
)
def test_results_are_somebody_elses(job: JobIdentity, stored: Provenance, workflow_id: int, reason: str) -> None:
    assert reason in str(job.distrust(stored, RUN, workflow_id))


def test_only_the_default_name_has_a_second_one() -> None:
    assert JOB.names == ("zelda-results-zelda", "zelda-results")
    assert NAMED.names == ("zelda-results-linux",)
    assert JobIdentity("zelda-results").names == ("zelda-results",)
