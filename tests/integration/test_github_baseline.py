"""The lookup of a baseline against a server that checks every request against GitHub's own description."""

import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support.baselines import JOB, NAME, World, five_commits, look, provenance, store
from tests.support.github_clients import artifacts_of
from tests.support.github_server import answered
from zelda_ci.ci.baseline_search import MAX_ELSEWHERE
from zelda_ci.ci.stored_artifacts import PROVENANCE, RESULTS, JobIdentity
from zelda_ci.domain.ci import BaselineState


@pytest.fixture
def world() -> Iterator[World]:
    with five_commits() as world:
        yield world


def test_the_results_of_the_wanted_commit_are_taken(world: World) -> None:
    store(world.repository.add_run(world.commits[3]), "older")
    run = world.repository.add_run(world.commits[4])
    artifact = store(run, "exact")

    found = look(world.github, world.own, world.commits[4])

    assert found.results == "exact"
    assert found.origin.state is BaselineState.FOUND
    assert found.origin.sentence == f"baseline main@{world.commits[4][:7]}, 2 days old"
    assert (found.origin.run_id, found.origin.artifact_id) == (run.id, artifact.id)
    assert (found.origin.wanted, found.origin.commit, found.origin.behind) == (world.commits[4], world.commits[4], 0)
    assert world.github.calls("GET */commits") == []


def test_the_nearest_ancestor_stands_in(world: World) -> None:
    for commit in (world.commits[0], world.commits[1]):
        store(world.repository.add_run(commit), commit)

    found = look(world.github, world.own, world.commits[4])

    assert found.results == world.commits[1]
    assert found.origin.sentence == f"baseline main@{world.commits[1][:7]}, 3 commits behind, 2 days old"
    assert found.origin.behind == 3


def test_later_commits_are_no_baseline(world: World) -> None:
    store(world.repository.add_run(world.commits[4]))
    found = look(world.github, world.own, world.commits[2])
    assert (found.origin.state, found.results) == (BaselineState.NONE_YET, None)
    assert "none for" in found.origin.sentence


def test_without_a_wanted_commit_the_newest_of_the_branch_is_taken(world: World) -> None:
    store(world.repository.add_run(world.commits[2]), "older")
    store(world.repository.add_run(world.commits[3]), "newer")
    found = look(world.github, world.own, None)
    assert found.results == "newer"
    assert (found.origin.wanted, found.origin.behind) == (world.commits[4], 1)


def test_of_two_runs_for_one_commit_the_last_counts(world: World) -> None:
    for results in ("first", "second"):
        store(world.repository.add_run(world.commits[4]), results)
    assert look(world.github, world.own, world.commits[4]).results == "second"


def test_the_results_of_the_run_itself_are_no_baseline(world: World) -> None:
    own = world.repository.add_run(world.commits[4], event="schedule")
    store(world.repository.add_run(world.commits[3]), "other")
    store(own, "first attempt")
    assert look(world.github, own, None).results == "other"


def test_a_red_run_is_a_baseline_too(world: World) -> None:
    store(world.repository.add_run(world.commits[4], conclusion="failure"))
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.FOUND


@pytest.mark.parametrize("event", ["schedule", "workflow_dispatch"])
def test_other_runs_on_the_branch_are_as_good(world: World, event: str) -> None:
    store(world.repository.add_run(world.commits[4], event=event))
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.FOUND


def test_a_branch_that_never_stored_anything_is_told_how_to(world: World) -> None:
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.NONE_YET
    assert "main has not stored one" in found.origin.sentence


def test_a_forks_branch_called_main_poisons_nothing(world: World) -> None:
    fork = world.fork()
    for event in ("pull_request", "push"):
        run = world.repository.add_run(world.commits[4], event=event, head_repository=fork)
        store(run, "poison")

    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.NONE_YET

    store(world.repository.add_run(world.commits[2]), "honest")
    assert look(world.github, world.own, world.commits[4]).results == "honest"


def test_a_deleted_forks_branch_called_main_poisons_nothing(world: World) -> None:
    store(world.repository.add_run(world.commits[4], event="pull_request", deleted_fork=True), "poison")
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.NONE_YET


def test_an_artifact_whose_run_was_deleted_is_no_baseline(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    world.repository.add_artifact(NAME, {PROVENANCE: provenance(run), RESULTS: b'{"results": ""}'}, run=None)
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.NONE_YET


def test_a_pull_request_from_main_to_another_branch_is_no_baseline(world: World) -> None:
    store(world.repository.add_run(world.commits[4], event="pull_request"))
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert found.origin.sentence.endswith("refused: it was stored by a pull_request run")


def test_a_tag_called_main_elsewhere_in_history_is_no_baseline(world: World) -> None:
    elsewhere = world.repository.add_commit(parents=[world.commits[0]], branch="experiment")
    store(world.repository.add_run(elsewhere, branch="main"), "tagged")
    found = look(world.github, world.own, world.commits[4])
    assert (found.origin.state, found.results) == (BaselineState.NONE_YET, None)


def test_another_workflow_stores_no_baseline_of_ours(world: World) -> None:
    store(world.repository.add_run(world.commits[4], workflow="other.yml"))
    store(world.repository.add_run(world.commits[3]), "ours")
    assert look(world.github, world.own, world.commits[4]).results == "ours"


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ({"sha": "f" * 40}, "another commit"),
        ({"run_id": 1}, "another run"),
        ({"repository_id": 1}, "another repository"),
        ({"complete": False}, "interrupted"),
    ],
)
def test_an_artifact_that_lies_about_itself_is_passed_over(world: World, lie: dict[str, object], reason: str) -> None:
    store(world.repository.add_run(world.commits[4]), "liar", lies=lie)
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert reason in found.origin.sentence

    store(world.repository.add_run(world.commits[1]), "honest")
    assert look(world.github, world.own, world.commits[4]).results == "honest"


def test_a_week_of_broken_nights_hides_nothing(world: World) -> None:
    store(world.repository.add_run(world.commits[4], event="schedule"), "honest")
    for _ in range(7):
        store(world.repository.add_run(world.commits[4], event="schedule"), lies={"complete": False})
    assert look(world.github, world.own, world.commits[4]).results == "honest"


def test_of_several_refusals_the_nearest_is_told(world: World) -> None:
    store(world.repository.add_run(world.commits[3], workflow="other.yml"))
    store(world.repository.add_run(world.commits[4]), lies={"complete": False})
    sentence = look(world.github, world.own, world.commits[4]).origin.sentence
    assert f"main@{world.commits[4][:7]} were refused: its run was interrupted" in sentence


def test_storage_that_was_tampered_with_is_noticed(world: World) -> None:
    store(world.repository.add_run(world.commits[4]), digest=f"sha256:{'0' * 64}")
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert "digest" in found.origin.sentence


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "holds no zelda-ci.json"),
        ({PROVENANCE: b"{}", RESULTS: b"{}"}, "zelda-ci.json cannot be read"),
        ({PROVENANCE: b"[" * 100_000, RESULTS: b"{}"}, "zelda-ci.json cannot be read"),
        ({PROVENANCE: b'{"sha": NaN}', RESULTS: b"{}"}, "zelda-ci.json cannot be read"),
        ({PROVENANCE: b"\xff\xfe\x00", RESULTS: b"{}"}, "zelda-ci.json cannot be read"),
    ],
)
def test_other_peoples_files_are_no_baseline(world: World, members: dict[str, bytes], reason: str) -> None:
    run = world.repository.add_run(world.commits[4])
    world.repository.add_artifact(NAME, members, run=run)
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert reason in found.origin.sentence


@pytest.mark.parametrize("results", [b"", b"not json", b"{}", b"\x00" * 1000])
def test_results_that_cannot_be_read_are_no_baseline(world: World, results: bytes) -> None:
    run = world.repository.add_run(world.commits[4])
    world.repository.add_artifact(NAME, {PROVENANCE: provenance(run), RESULTS: results}, run=run)
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert found.origin.sentence.endswith("refused: the results are damaged")


def test_results_without_their_file_are_no_baseline(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    world.repository.add_artifact(NAME, {PROVENANCE: provenance(run)}, run=run)
    assert "holds no zelda-results.json" in look(world.github, world.own, world.commits[4]).origin.sentence


def test_a_zip_bomb_is_refused_unexploded(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(PROVENANCE, provenance(run))
        with archive.open(RESULTS, "w") as member:
            for _ in range(80):
                member.write(bytes(1 << 20))
    world.repository.add_artifact(NAME, bomb.getvalue(), run=run)

    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert f"{RESULTS} has more than" in found.origin.sentence

    store(world.repository.add_run(world.commits[3]), "honest")
    assert look(world.github, world.own, world.commits[4]).results == "honest"


@pytest.mark.parametrize("blob", [b"", b"PK", b"<html>not a zip</html>"])
def test_what_is_no_archive_is_no_baseline(world: World, blob: bytes) -> None:
    world.repository.add_artifact(NAME, blob, run=world.repository.add_run(world.commits[4]))
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.INVALID


def test_expired_baselines_are_told_apart_from_none(world: World) -> None:
    store(world.repository.add_run(world.commits[4]), expired=True)
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.EXPIRED
    assert "retention-days" in found.origin.sentence


def test_an_older_baseline_is_better_than_an_expired_one(world: World) -> None:
    store(world.repository.add_run(world.commits[4]), expired=True)
    store(world.repository.add_run(world.commits[3]), "older")
    assert look(world.github, world.own, world.commits[4]).results == "older"


def test_one_that_expires_during_the_lookup_has_expired(world: World) -> None:
    store(world.repository.add_run(world.commits[4]))
    world.github.script_failures([answered(410, on="GET */zip")])
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.EXPIRED


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((path, status) for path in ("*/actions/runs/*", "*/actions/artifacts", "*/zip") for status in (403, 404)),
        ("*/commits", 403),
    ],
)
def test_a_token_that_may_not_read_is_told_what_it_needs(world: World, path: str, status: int) -> None:
    store(world.repository.add_run(world.commits[3]))
    world.github.script_failures([answered(status, on=f"GET {path}")])
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.NOT_PERMITTED
    assert "permissions: actions: read" in found.origin.sentence


def test_a_token_that_is_wrong_is_not_told_to_ask_for_permissions(world: World) -> None:
    store(world.repository.add_run(world.commits[3]))
    world.github.script_failures([answered(401, on="GET *")])
    origin = look(world.github, world.own, world.commits[4]).origin
    assert origin.state is BaselineState.NOT_PERMITTED
    assert "no longer valid" in origin.sentence
    assert "permissions" not in origin.sentence


def test_a_wanted_commit_that_was_rewritten_has_no_ancestors(world: World) -> None:
    store(world.repository.add_run(world.commits[3]))
    found = look(world.github, world.own, "f" * 40)
    assert found.origin.state is BaselineState.NONE_YET
    assert "none for fffffff" in found.origin.sentence


@pytest.mark.parametrize("status", [400, 500])
def test_a_github_that_does_not_answer_is_no_error(world: World, status: int) -> None:
    world.github.script_failures([answered(status, on="GET */actions/artifacts") for _ in range(9)])
    found = look(world.github, world.own, world.commits[4])
    assert (found.origin.state, found.results) == (BaselineState.UNREACHABLE, None)


@pytest.mark.parametrize("path", ["*/runs/*", "*/actions/artifacts", "*/commits", "*/compare/*", "*/zip"])
@pytest.mark.parametrize(
    "body", [None, [], {}, "text", 1, [None], {"artifacts": [{"id": "x"}]}, [{"sha": 1}], b"<html>", b'{"id": NaN}']
)
def test_a_github_that_answers_nonsense_is_no_error(world: World, path: str, body: object) -> None:
    store(world.repository.add_run(world.commits[3]), "stored")
    nonsense = b"null" if body is None else body
    world.github.script_failures([answered(200, nonsense, on=f"GET {path}")])
    found = look(world.github, world.own, world.commits[4])
    assert (found.results == "stored") == (found.origin.state is BaselineState.FOUND)


def test_an_unknown_distance_is_no_reason_to_do_without(world: World) -> None:
    store(world.repository.add_run(world.commits[3]), "older")
    world.github.script_failures([answered(404, on="GET */compare/*")])
    found = look(world.github, world.own, world.commits[4])
    assert (found.results, found.origin.behind) == ("older", None)
    assert found.origin.sentence == f"baseline main@{world.commits[3][:7]}, 2 days old"


@pytest.mark.parametrize(("job", "requests"), [(JOB, 8), (JobIdentity(NAME), 7)])
def test_a_usual_lookup_is_eight_requests_or_one_less_where_there_is_one_name(
    world: World, job: JobIdentity, requests: int
) -> None:
    store(world.repository.add_run(world.commits[3]))
    look(world.github, world.own, world.commits[4], job=job)
    assert len(world.github.calls("GET")) == requests


def test_many_refused_artifacts_do_not_cost_many_requests(world: World) -> None:
    for commit in world.commits * 3:
        store(world.repository.add_run(commit, workflow="other.yml"))
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert len(world.github.calls("GET")) <= 14 + 2 * MAX_ELSEWHERE


def test_hundreds_of_pull_requests_do_not_hide_the_baseline(world: World) -> None:
    store(world.repository.add_run(world.commits[4], created_at=datetime(2026, 1, 1, tzinfo=UTC)), "hidden")
    for _ in range(250):
        store(world.repository.add_run(world.own.head_sha, branch="feature", event="pull_request"), "noise")
    assert look(world.github, world.own, world.commits[4]).results == "hidden"


def test_a_branch_with_an_odd_name_is_looked_up_like_any(world: World) -> None:
    branch = "release/1.x & co #2"
    tip = world.repository.add_commit(parents=[world.commits[1]], branch=branch)
    store(world.repository.add_run(tip, branch=branch), "odd")
    found = look(world.github, world.own, None, branch=branch)
    assert found.results == "odd"


def test_what_one_run_uploads_the_next_one_finds(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    files = {PROVENANCE: provenance(run), RESULTS: b'{"results": "uploaded"}', "runs/a/result.json": b"{}"}
    uploaded = artifacts_of(world.github, run).upload(NAME, files, retention_days=None)

    found = look(world.github, world.own, world.commits[4])

    assert (found.results, found.origin.artifact_id) == ("uploaded", uploaded.id)
