"""The lookup of a baseline against a server that checks every request against GitHub's own description."""

import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.support.baselines import NAME, NOW, STORED_AS, World, five_commits, provenance, store
from tests.support.github_clients import api_of
from tests.support.github_server import GitHubServer, Run, answered
from zelda_ci.ci.baseline import earlier_results, find_baseline, has_lost_attempts
from zelda_ci.ci.stored import PROVENANCE, RESULTS, JobIdentity
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState


@pytest.fixture
def world() -> Iterator[World]:
    with five_commits() as world:
        yield world


def case_of(github: GitHubServer, own: Run, *, attempt: int = 2, pull_request: int = 7) -> Any:
    """As much of a job's context as the searches need."""
    context = SimpleNamespace(run_id=own.id, run_attempt=attempt, repository_id=github.repository.id)
    event = SimpleNamespace(pull_request=SimpleNamespace(number=pull_request), comment=None)
    settings, identity = SimpleNamespace(context=context, event=event), JobIdentity(NAME, "zelda", ".")
    api, log, more = api_of(github), SimpleNamespace(say=print), {"pinned": None, "identity": identity}
    return SimpleNamespace(api=api, github=api, log=log, settings=settings, run_id=own.id, now=lambda: NOW, **more)


class Found(NamedTuple):
    """Where the results come from, and how they are named."""

    origin: BaselineOrigin
    results: str | None


def look(github: GitHubServer, own: Run, wanted: str | None) -> Found:
    """The lookup of a pull request's run on main."""
    found = find_baseline(case_of(github, own), "main", wanted)
    return Found(found.origin, found.results.runs[0].run_id if found.results else None)


def test_the_results_of_the_wanted_commit_are_taken(world: World) -> None:
    store(world.repository.add_run(world.commits[3]), "older")
    run = world.repository.add_run(world.commits[4])
    store(run, "exact")

    found = look(world.github, world.own, world.commits[4])

    assert found.results == "exact"
    assert found.origin.state is BaselineState.FOUND
    assert found.origin.sentence == f"baseline main@{world.commits[4][:7]}, 2 days old"
    assert (found.origin.wanted, found.origin.commit, found.origin.behind) == (world.commits[4], world.commits[4], 0)


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


def test_the_last_of_several_trusted_runs_counts_whatever_started_it_and_however_it_ended(world: World) -> None:
    runs: list[tuple[str, dict[str, Any]]] = [
        ("first", {}),
        ("second", {}),
        ("red", {"conclusion": "failure"}),
        ("night", {"event": "schedule"}),
        ("asked for", {"event": "workflow_dispatch"}),
    ]
    for results, how in runs:
        store(world.repository.add_run(world.commits[4], **how), results)
        assert look(world.github, world.own, world.commits[4]).results == results
    for _ in range(7):
        store(world.repository.add_run(world.commits[4], event="schedule"), lies={"complete": False})
    assert look(world.github, world.own, world.commits[4]).results == "asked for"


def test_the_results_of_the_run_itself_are_no_baseline(world: World) -> None:
    own = world.repository.add_run(world.commits[4], event="schedule")
    store(world.repository.add_run(world.commits[3]), "other")
    store(own, "first attempt")
    assert look(world.github, own, None).results == "other"


NOT_OURS: dict[str, tuple[dict[str, Any], dict[str, Any], BaselineState, str]] = {
    "a fork's main": ({"fork": True}, {}, BaselineState.NONE_YET, ""),
    "a pull request of it": ({"fork": True, "event": "pull_request"}, {}, BaselineState.NONE_YET, ""),
    "a deleted fork's": ({"deleted_fork": True, "event": "pull_request"}, {}, BaselineState.NONE_YET, ""),
    "a tag called main": ({"elsewhere": True}, {}, BaselineState.NONE_YET, ""),
    "a pull request": ({"event": "pull_request"}, {}, BaselineState.NONE_YET, ""),
    "another workflow": ({"workflow": "other.yml"}, {"workflow": None}, BaselineState.INVALID, "another workflow"),
    "another commit": ({}, {"sha": "f" * 40}, BaselineState.INVALID, "another commit"),
    "another run": ({}, {"run_id": 1}, BaselineState.INVALID, "another run"),
    "another repository": ({}, {"repository_id": 1}, BaselineState.INVALID, "another repository"),
    "cut short": ({}, {"complete": False}, BaselineState.INVALID, "interrupted"),
}


def test_what_is_not_a_trusted_run_of_the_branch_is_passed_over_with_a_reason(world: World) -> None:
    fork = world.fork()
    elsewhere = world.repository.add_commit(parents=[world.commits[0]], branch="experiment")
    for name, (how, lies, state, reason) in NOT_OURS.items():
        commit = elsewhere if how.get("elsewhere") else world.commits[4]
        more = {key: value for key, value in how.items() if key not in {"fork", "elsewhere"}}
        head = fork if how.get("fork") else None
        store(world.repository.add_run(commit, head_repository=head, **more), "poison", lies=lies)
        found = look(world.github, world.own, world.commits[4])
        assert (found.origin.state, found.results, reason in found.origin.sentence) == (state, None, True), name
        store(world.repository.add_run(world.commits[2]), "honest")
        assert look(world.github, world.own, world.commits[4]).results == "honest", name
        world.repository.artifacts.clear()


def test_what_cannot_be_read_is_refused_with_the_reason(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    told = {PROVENANCE: provenance(run)}
    for files, reason in (
        ({}, "holds no zelda-ci.json"),
        (told, "holds no zelda-results.json"),
        *(({PROVENANCE: data, RESULTS: b"{}"}, "zelda-ci.json is ") for data in (b"{}", b"[" * 100_000)),
        *(({**told, RESULTS: data}, "zelda-results.json") for data in (b"", b"not json", b"{}", b"\0" * 1000)),
        *((blob, "no zip archive") for blob in (b"", b"PK", b"<html>not a zip</html>")),
    ):
        world.repository.artifacts.clear()
        world.repository.add_artifact(STORED_AS, files, run=run)
        origin = look(world.github, world.own, world.commits[4]).origin
        assert (origin.state, reason in origin.sentence) == (BaselineState.INVALID, True), origin.sentence
    for digest in (f"sha256:{'0' * 64}", None):
        store(run, digest=digest)
        assert "its digest is " in look(world.github, world.own, world.commits[4]).origin.sentence


def test_a_zip_bomb_is_refused_unexploded(world: World) -> None:
    run = world.repository.add_run(world.commits[4])
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(PROVENANCE, provenance(run))
        with archive.open(RESULTS, "w") as member:
            for _ in range(80):
                member.write(bytes(1 << 20))
    world.repository.add_artifact(STORED_AS, bomb.getvalue(), run=run)

    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.INVALID
    assert f"{RESULTS} has more than" in found.origin.sentence

    store(world.repository.add_run(world.commits[3]), "honest")
    assert look(world.github, world.own, world.commits[4]).results == "honest"


@pytest.mark.parametrize("where", ["GET */zip", "GET /storage/*"])
def test_of_results_that_were_deleted_since_an_older_one_is_better(world: World, where: str) -> None:
    for commit in (world.commits[1], world.commits[4]):
        store(world.repository.add_run(commit), commit)
    world.github.script_failures([answered(404, on=where)])
    assert look(world.github, world.own, world.commits[4]).results == world.commits[1]


def test_an_expired_baseline_is_told_apart_from_none_and_an_older_one_is_better(world: World) -> None:
    store(world.repository.add_run(world.commits[4]), expired=True)
    found = look(world.github, world.own, world.commits[4])
    assert found.origin.state is BaselineState.EXPIRED
    assert "retention-days" in found.origin.sentence
    # One that expires during the lookup.
    store(world.repository.add_run(world.commits[3]), "older")
    world.github.script_failures([answered(410, on="GET */zip")])
    assert look(world.github, world.own, world.commits[4]).origin.state is BaselineState.EXPIRED
    assert look(world.github, world.own, world.commits[4]).results == "older"


def test_a_token_that_may_not_read_is_told_what_it_needs(world: World) -> None:
    store(world.repository.add_run(world.commits[3]))
    for path, status in (
        ("*/actions/runs/*", 403),
        ("*/actions/workflows/*/runs", 403),
        ("*/zip", 403),
        ("*/commits", 403),
    ):
        world.github.script_failures([answered(status, on=f"GET {path}")])
        found = look(world.github, world.own, world.commits[4])
        assert found.origin.state is BaselineState.NOT_PERMITTED, path
        assert "permissions: actions: read" in found.origin.sentence
        assert not world.github.failures


def test_what_github_does_not_find_is_no_missing_permission(world: World) -> None:
    for commit in (world.commits[1], world.commits[4]):
        store(world.repository.add_run(commit), commit)
    for path in ("*/actions/runs/*", "*/actions/workflows/*/runs"):
        world.github.script_failures([answered(404, on=f"GET {path}")])
        said = look(world.github, world.own, world.commits[4]).origin.sentence
        assert "knows no such run" in said
        assert "permissions" not in said
    # A run that was deleted since it was listed hides none of those before it.
    world.github.script_failures([answered(404, on="GET */artifacts")])
    assert look(world.github, world.own, world.commits[4]).results == world.commits[1]


def test_a_token_that_is_wrong_is_not_told_to_ask_for_permissions(world: World) -> None:
    store(world.repository.add_run(world.commits[3]))
    world.github.script_failures([answered(401, on="GET *")])
    origin = look(world.github, world.own, world.commits[4]).origin
    assert origin.state is BaselineState.NOT_PERMITTED
    assert "no longer valid" in origin.sentence
    assert "permissions" not in origin.sentence


@pytest.mark.parametrize("status", [400, 500])
def test_a_github_that_does_not_answer_is_no_error(
    world: World, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    world.github.script_failures([answered(status, on="GET */actions/workflows/*/runs") for _ in range(9)])
    found = look(world.github, world.own, world.commits[4])
    assert (found.origin.state, found.results) == (BaselineState.UNREACHABLE, None)
    assert f"was answered with {status}" in capsys.readouterr().out


NONSENSE: tuple[Any, ...] = (
    [],
    {},
    "text",
    [None],
    {"artifacts": [{"id": "x"}]},
    {"workflow_runs": [{"id": "x"}]},
    [{"sha": 1}],
    b"<html>",
    b"null",
    b'{"id": NaN}',
)


@pytest.mark.parametrize(
    "path", ["*/runs/*", "*/workflows/*/runs", "*/runs/*/artifacts", "*/commits", "*/compare/*", "*/zip"]
)
def test_a_github_that_answers_nonsense_is_no_error(world: World, path: str) -> None:
    store(world.repository.add_run(world.commits[3]), "stored")
    for body in NONSENSE:
        world.github.failures.clear()
        world.github.script_failures([answered(200, body, on=f"GET {path}")])
        found = look(world.github, world.own, world.commits[4])
        assert (found.results == "stored") == (found.origin.state is BaselineState.FOUND), body


def test_nothing_that_others_store_hides_the_baseline(world: World) -> None:
    """A fork may store artifacts of any name, in as many runs and workflows as it likes, from a branch called main."""
    store(world.repository.add_run(world.commits[4], created_at=datetime(2026, 1, 1, tzinfo=UTC)), "hidden")
    fork = world.fork()
    for number in range(600):
        how: dict[str, Any] = {"head_repository": fork} if number % 2 else {"branch": "feature"}
        store(world.repository.add_run(world.own.head_sha, event="pull_request", **how), "noise")
    assert look(world.github, world.own, world.commits[4]).results == "hidden"


# --- whose results they are: renamed and separate workflows, several jobs, and forgeries of them ----------------------

OLD = "old-name.yml"


def elsewhere(world: World, commit: int = 4, **how: Any) -> Run:
    return world.repository.add_run(world.commits[commit], **{"workflow": OLD, **how})


def test_a_renamed_workflow_file_keeps_its_baseline_and_the_sentence_says_so(world: World) -> None:
    store(elsewhere(world), "renamed")
    found = look(world.github, world.own, world.commits[4])
    assert found.results == "renamed"
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


def earlier(world: World) -> list[int]:
    return [each.provenance.run_id for each in earlier_results(case_of(world.github, world.own))]


def test_another_job_of_the_same_run_is_no_earlier_run(world: World) -> None:
    store(world.own, lies={"pull_request": 7, "job": "other"}, name=f"{NAME}.other.1")
    assert earlier(world) == []
    assert has_lost_attempts(case_of(world.github, world.own))
    store(world.own, lies={"pull_request": 7})
    assert earlier(world) == [world.own.id]
    assert not has_lost_attempts(case_of(world.github, world.own))
