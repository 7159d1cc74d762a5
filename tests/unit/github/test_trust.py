"""What must be true of an artifact before it counts as a baseline."""

from datetime import UTC, datetime
from typing import Any

import pytest

from zelda_ci.ci.baseline_search import distrust_of_provenance, distrust_of_run, is_of_branch
from zelda_ci.domain.ci import Provenance
from zelda_ci.github.schemas import ArtifactRun, GitHubRepository, WorkflowRun

HERE, FORK = 100, 200
SHA = "a" * 40

LISTED = ArtifactRun(id=7, repository_id=HERE, head_repository_id=HERE, head_branch="main", head_sha=SHA)
RUN = WorkflowRun(
    id=7, workflow_id=5, event="push", head_branch="main", head_sha=SHA, head_repository=GitHubRepository(id=HERE)
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


def test_a_run_of_the_branch_itself_is_a_candidate() -> None:
    assert is_of_branch(LISTED, "main", HERE)


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
    assert not is_of_branch(LISTED.model_copy(update=change), "main", HERE)


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_a_run_of_the_own_workflow_on_a_branch_is_trusted(event: str) -> None:
    assert distrust_of_run(RUN.model_copy(update={"event": event}), LISTED, 5) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"event": "pull_request"}, "by a pull_request run"),
        ({"event": "pull_request_target"}, "by a pull_request_target run"),
        ({"event": "merge_group"}, "by a merge_group run"),
        ({"workflow_id": 6}, "by another workflow"),
        ({"head_repository": None}, "for another repository"),
        ({"head_repository": GitHubRepository(id=FORK)}, "for another repository"),
        ({"head_sha": "b" * 40}, "contradicting data"),
        ({"head_branch": "dev"}, "contradicting data"),
        ({"id": 8}, "contradicting data"),
    ],
)
def test_any_other_run_is_not_trusted(change: dict[str, Any], reason: str) -> None:
    assert reason in str(distrust_of_run(RUN.model_copy(update=change), LISTED, 5))


def test_a_provenance_that_agrees_with_github_is_believed() -> None:
    assert distrust_of_provenance(TOLD, RUN) is None


def test_a_repository_may_have_been_renamed_since() -> None:
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
