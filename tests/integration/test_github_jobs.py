"""Whose results a job may compare with: renamed and separate workflows, several jobs, and forgeries of them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.baselines import NAME, NOW, World, five_commits, look, store
from tests.support.github_clients import api_of
from tests.support.github_server import Run
from zelda_ci.ci.baseline import earlier_results, lost_attempts
from zelda_ci.domain.ci import BaselineState

OLD = "old-name.yml"


@pytest.fixture
def world() -> Iterator[World]:
    with five_commits() as world:
        yield world


def elsewhere(world: World, commit: int = 4, **how: Any) -> Run:
    return world.repository.add_run(world.commits[commit], **{"workflow": OLD, **how})


def test_a_renamed_workflow_file_keeps_its_baseline_and_the_sentence_says_so(world: World) -> None:
    run = elsewhere(world)
    artifact = store(run, "renamed")
    found = look(world.github, world.own, world.commits[4])
    assert (found.results, found.origin.artifact_id) == ("renamed", artifact.id)
    assert found.origin.workflow == f".github/workflows/{OLD}"
    assert found.origin.sentence.endswith("2 days old, stored by the workflow old-name.yml")


FORGERIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a pull request": ({"event": "pull_request"}, {}),
    "a comment": ({"event": "issue_comment"}, {}),
    "a merge queue": ({"event": "merge_group"}, {}),
    "a fork's push": ({"fork": True}, {}),
    "a deleted fork": ({"event": "pull_request", "deleted_fork": True}, {}),
    "another branch": ({"branch": "feature"}, {}),
    "a claim to be our file": ({}, {"workflow": ".github/workflows/zelda.yml"}),
    "no claim": ({}, {"workflow": None}),
    "another job": ({}, {"job": "other"}),
    "another folder": ({}, {"folder": "blog"}),
    "another name": ({}, {"artifact": "zelda-results-x"}),
    "a run that was cut short": ({}, {"complete": False}),
    "no name at all": ({}, dict.fromkeys(("workflow", "job", "artifact", "folder"))),
}


def test_another_workflow_is_trusted_no_further_than_the_own(world: World) -> None:
    for name, (how, lies) in FORGERIES.items():
        head = world.fork() if how.get("fork") else None
        run = elsewhere(world, head_repository=head, **{key: value for key, value in how.items() if key != "fork"})
        store(run, "forged", lies=lies)
        found = look(world.github, world.own, world.commits[4])
        assert found.results is None, name
        assert found.origin.state in {BaselineState.INVALID, BaselineState.NONE_YET}
        honest = elsewhere(world, 2)
        store(honest, "honest")
        assert look(world.github, world.own, world.commits[4]).results == "honest", name
        world.repository.artifacts.clear()


def test_another_job_of_the_same_workflow_is_no_baseline(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    store(run, "other", lies={"job": "other"}, name=f"{NAME}.other.1")
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.NONE_YET
    store(run, "other, under our name", lies={"job": "other"})
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert "refused: it was stored by another job" in found.origin.sentence


def test_of_the_attempts_of_a_run_the_newest_that_can_be_used_counts(world: World) -> None:
    run = world.repository.add_run(world.commits[4], attempt=3)
    store(run, "first")
    store(run, "second", name=f"{NAME}.zelda.2")
    store(run, "third", lies={"complete": False}, name=f"{NAME}.zelda.3")
    store(run, "of no attempt", name=f"{NAME}.zelda.4")
    assert look(world.github, world.own, world.commits[4]).results == "second"


# --- earlier runs of a pull request ----------------------------------------------------------------------------------


def case_of(world: World, *, attempt: int = 2) -> Any:
    context = SimpleNamespace(run_id=world.own.id, run_attempt=attempt, repository_id=world.repository.id, job="zelda")
    event = SimpleNamespace(pull_request=SimpleNamespace(number=7), comment=None)
    settings = SimpleNamespace(context=context, event=event, artifact_name=NAME, folder=".")
    return SimpleNamespace(api=api_of(world.github), settings=settings, now=lambda: NOW, pinned=None)


def earlier(world: World) -> list[int]:
    return [each.provenance.run_id for each in earlier_results(case_of(world))]


def test_another_job_of_the_same_run_is_no_earlier_run(world: World) -> None:
    store(world.own, lies={"pull_request": 7, "job": "other"}, name=f"{NAME}.other.1")
    assert earlier(world) == []
    assert lost_attempts(case_of(world))
    store(world.own, lies={"pull_request": 7})
    assert earlier(world) == [world.own.id]
    assert lost_attempts(case_of(world)) == ""
