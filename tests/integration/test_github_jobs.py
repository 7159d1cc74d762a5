"""Whose results a job may compare with: renamed and separate workflows, several jobs, and forgeries of them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.baselines import NAME, NOW, World, five_commits, look, named, store
from tests.support.github_clients import api_of, artifacts_of
from tests.support.github_server import Artifact, Run
from zelda_ci.ci.earlier_runs import earlier_results, lost_attempts, own_run
from zelda_ci.ci.stored_artifacts import JobIdentity
from zelda_ci.domain.ci import BaselineState
from zelda_ci.errors import ArtifactError
from zelda_ci.github.artifacts import ZIP

OLD = "old-name.yml"
SECOND = f"{NAME}-zelda"


@pytest.fixture
def world() -> Iterator[World]:
    with five_commits() as world:
        yield world


def elsewhere(world: World, commit: int = 4, **how: Any) -> Run:
    return world.repository.add_run(world.commits[commit], **{"workflow": OLD, **how})


def test_a_renamed_workflow_file_keeps_its_baseline_and_the_sentence_says_so(world: World) -> None:
    run = elsewhere(world)
    artifact = store(run, "renamed", lies=named(run))
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
    "a version that named no job": ({}, dict.fromkeys(("workflow", "job", "artifact", "folder"))),
}


def test_another_workflow_is_trusted_no_further_than_the_own(world: World) -> None:
    for name, (how, lies) in FORGERIES.items():
        head = world.fork() if how.get("fork") else None
        run = elsewhere(world, head_repository=head, **{key: value for key, value in how.items() if key != "fork"})
        store(run, "forged", lies=named(run, **lies))
        found = look(world.github, world.own, world.commits[4])
        assert found.results is None, name
        assert found.origin.state in {BaselineState.INVALID, BaselineState.NONE_YET}
        honest = elsewhere(world, 2)
        store(honest, "honest", lies=named(honest))
        assert look(world.github, world.own, world.commits[4]).results == "honest", name
        world.repository.artifacts.clear()


def test_another_job_of_the_same_workflow_is_no_baseline(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    store(run, "other", lies=named(run, "other"))
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert "refused: it was stored by another job of this workflow" in found.origin.sentence


def test_two_jobs_of_one_workflow_find_their_own_whoever_was_first(world: World) -> None:
    for commit, first in zip(world.commits, ("zelda", "other", "zelda", "other", "zelda"), strict=True):
        run, second = world.repository.add_run(commit), {"zelda": "other", "other": "zelda"}[first]
        store(run, f"{first} {commit}", lies=named(run, first))
        store(run, f"{second} {commit}", lies=named(run, second), name=f"{NAME}-{second}")
    for job in ("zelda", "other"):
        for commit in world.commits:
            found = look(world.github, world.own, commit, job=JobIdentity(NAME, job, "."))
            assert found.results == f"{job} {commit}"


def test_the_last_run_for_a_commit_counts_under_whichever_name_it_stored(world: World) -> None:
    older, newer = world.repository.add_run(world.commits[4]), world.repository.add_run(world.commits[4])
    store(older, "older", lies=named(older), name=SECOND)
    store(newer, "newer", lies=named(newer))
    assert look(world.github, world.own, world.commits[4]).results == "newer"


# --- earlier runs of a pull request ----------------------------------------------------------------------------------


def case_of(world: World, *, attempt: int = 2) -> Any:
    context = SimpleNamespace(run_id=world.own.id, run_attempt=attempt, repository_id=world.repository.id, job="zelda")
    settings = SimpleNamespace(context=context, event={"pull_request": {"number": 7}}, artifact_name=NAME, folder=".")
    return SimpleNamespace(api=api_of(world.github), settings=settings, now=lambda: NOW, pinned=None)


def earlier(world: World) -> list[int]:
    own = own_run(case_of(world))
    assert own
    return earlier_results(api_of(world.github), own, lambda each: each.provenance.run_id)


def test_another_job_of_the_same_run_is_no_earlier_run(world: World) -> None:
    store(world.own, lies=named(world.own, "other", pull_request=7))
    assert earlier(world) == []
    assert lost_attempts(case_of(world))
    store(world.own, lies=named(world.own, pull_request=7), name=SECOND)
    assert earlier(world) == [world.own.id]
    assert lost_attempts(case_of(world)) == ""


# --- names of artifacts ----------------------------------------------------------------------------------------------


def upload(run: Run, world: World, job: str, content: bytes, **how: Any) -> Artifact:
    uploaded = artifacts_of(world.github, run, job=job).upload(NAME, {"x": content}, retention_days=None, **how)
    return next(each for each in world.repository.artifacts if each.id == uploaded.id)


def test_a_job_that_is_run_again_replaces_only_what_is_its_own(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    artifacts_of(world.github, run, job="one")._create(NAME, ZIP, None, lambda _: True)
    with pytest.raises(ArtifactError) as caught:
        upload(run, world, "two", b"what another job is just storing")
    assert caught.value.code == "ARTIFACT_EXISTS"
    first = upload(run, world, "one", b"one")
    # On some servers names are free again in each attempt, on others they are not.
    run.attempt = first.attempt = 2
    with pytest.raises(ArtifactError) as caught:
        upload(run, world, "two", b"two", may_replace=lambda _: False)
    assert caught.value.code == "ARTIFACT_EXISTS"
    asked: list[int] = []

    def is_ours(number: int) -> bool:
        asked.append(number)
        return True

    kept = upload(run, world, "two", b"two", may_replace=is_ours)
    assert asked == [first.id]
    assert world.repository.artifacts == [kept]
