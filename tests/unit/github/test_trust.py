"""What must be true of an artifact before it counts as a baseline."""

from datetime import UTC, datetime
from typing import Any

import pytest

from zelda_ci.ci.stored import JobIdentity, distrust, is_results_name
from zelda_ci.domain.comparison import Provenance
from zelda_ci.github.repository import WorkflowRun

HERE, FORK = 100, 200
SHA = "a" * 40

RUN = WorkflowRun(
    id=7,
    workflow_id=5,
    path=".github/workflows/zelda.yml",
    event="push",
    head_branch="main",
    head_sha=SHA,
    head_repository_id=HERE,
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


def test_a_run_for_anything_else_is_not_of_the_branch() -> None:
    assert RUN.is_of("main", HERE)
    # A fork's branch called main, that of a deleted fork, another branch, none.
    for repository in (FORK, None):
        assert not RUN.model_copy(update={"head_repository_id": repository}).is_of("main", HERE)
    for branch in ("Main", None):
        assert not RUN.model_copy(update={"head_branch": branch}).is_of("main", HERE)


def test_a_provenance_is_believed_that_agrees_with_github_even_if_the_repository_was_renamed_since() -> None:
    expected = {"repository_id": HERE, "run_id": 7, "sha": SHA, "complete": True}
    for told in (TOLD, TOLD.replace(repository="o/old")):
        assert distrust(told, expected) is None
    lies: list[dict[str, Any]] = [{"repository_id": FORK}, {"run_id": 8}, {"sha": "b" * 40}, {"complete": False}]
    reasons = ("another repository", "another run", "another commit", "interrupted")
    for lie, reason in zip(lies, reasons, strict=True):
        assert reason in str(distrust(TOLD.replace(**lie), expected))


JOB = JobIdentity("zelda-results", "zelda", "shop")
NAMED = JobIdentity("zelda-results-linux", "zelda", "shop")
SAYS = {"workflow": ".github/workflows/zelda.yml", "job": "zelda", "folder": "shop"}
OWN, OTHER = RUN, RUN.model_copy(update={"workflow_id": 6})


def said(by: JobIdentity, **more: Any) -> Provenance:
    return TOLD.model_copy(update={**SAYS, "artifact": by.artifact, **more})


@pytest.mark.parametrize(
    ("job", "stored", "own"),
    [
        pytest.param(JOB, said(JOB), OWN, id="the job itself"),
        pytest.param(JOB, said(JOB, folder="moved"), OWN, id="a project that was moved"),
        pytest.param(JOB, said(JOB), OTHER, id="a workflow that was renamed, or one for pushes"),
        pytest.param(NAMED, said(NAMED, job="push"), OWN, id="two jobs of one workflow with one comment-id"),
        pytest.param(NAMED, said(NAMED, job="push", folder="."), OTHER, id="two workflows with one comment-id"),
        pytest.param(
            JobIdentity("zelda-results", None, "."), said(JOB, job=None), OWN, id="a runner that names no job"
        ),
    ],
)
def test_results_are_the_jobs_own(job: JobIdentity, stored: Provenance, own: WorkflowRun) -> None:
    assert distrust(stored, job.claims(RUN, own)) is None


@pytest.mark.parametrize(
    ("job", "stored", "own", "reason"),
    [
        (JOB, said(JOB, job="other"), OWN, "by another job"),
        (NAMED, said(JOB), OWN, "another artifact-name"),
        (JOB, TOLD, OTHER, "by another workflow"),
        (JOB, said(JOB, workflow=None), OTHER, "by another workflow"),
        (JOB, said(NAMED), OTHER, "another artifact-name"),
        (JOB, said(JOB, artifact=None), OTHER, "another artifact-name"),
        (JOB, said(JOB, job="other"), OTHER, "by another job"),
        (JOB, said(JOB, job=None), OTHER, "by another job"),
        (JOB, said(JOB, folder="blog"), OTHER, "in another folder"),
        (JobIdentity("zelda-results", None, "."), said(JOB), OWN, "by another job"),
    ],
)
def test_results_are_somebody_elses(job: JobIdentity, stored: Provenance, own: WorkflowRun, reason: str) -> None:
    assert reason in str(distrust(stored, job.claims(RUN, own)))


def test_no_two_jobs_attempts_and_kinds_share_a_name() -> None:
    """Not even where a comment-id is the id of another job, or ends like the name of something else."""
    artifacts = ["zelda-results", *(f"zelda-results-{label}" for label in ("zelda", "x.1", "x", "x.1.transcripts"))]
    jobs = [JobIdentity(artifact, job, ".") for artifact in artifacts for job in ("zelda", "plan", "x")]
    stems = {job.stem for job in jobs}
    kinds = ("", ".transcripts", ".report.html")
    names = [f"{stem}.{attempt}{kind}" for stem in stems for attempt in (1, 2) for kind in kinds]
    assert len(set(names)) == len(names) == len(stems) * 2 * len(kinds)
    assert {job.stem for job in jobs if job.artifact == "zelda-results"}.isdisjoint(artifacts)


@pytest.mark.parametrize(
    ("name", "artifact", "expected"),
    [
        ("zelda-results.zelda.1", "zelda-results", True),
        ("zelda-results.2", "zelda-results", True),
        ("zelda-results-x.12", "zelda-results-x", True),
        ("zelda-results-x.1", "zelda-results", False),
        ("zelda-results-x.y.1", "zelda-results-x", False),
        ("zelda-results.zelda.1.transcripts", "zelda-results", False),
        ("zelda-results.zelda-shards.plan.1", "zelda-results", False),
        ("zelda-results", "zelda-results", False),
    ],
)
def test_the_name_of_results_is_told_from_others(name: str, artifact: str, expected: object) -> None:
    assert is_results_name(name, artifact) is expected
