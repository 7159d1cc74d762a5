"""Which stored trials are pooled, on a GitHub that holds honest, forged, foreign and stale artifacts."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.builders import result
from tests.integration.test_github_baseline import case_of
from tests.support.baselines import NOW, STORED_AS, STORED_AT, World, five_commits, provenance
from tests.support.github_server import Artifact, Repository, Run
from zelda_ci.ci.baseline import find_baseline, with_earlier
from zelda_ci.ci.stored import POOL, PROVENANCE, RESULTS, Evidence
from zelda_ci.domain.run import BatchResult, Fingerprint, Pool, RunResult, StoredTrials
from zelda_ci.domain.trials import PoolSettings, Side
from zelda_ci.domain.workspace import TestedSource
from zelda_ci.report.text import json_of
from zelda_ci.storage.codec import encode_within

OWN = Fingerprint(outcome="steering", platform="Claude 1", tree="code")


@dataclass(frozen=True)
class PoolWorld(World):
    """What the pull request can count on."""

    def run(self, commit: int = 4, **how: Any) -> Run:
        return self.repository.add_run(self.commits[commit], **how)

    def look(self) -> Evidence:
        return find_baseline(case_of(self.github, self.own), "main", self.commits[4])

    def pooled(self) -> list[str]:
        return sorted(run.run_id for run in self.look().pool)


@pytest.fixture
def world() -> Iterator[PoolWorld]:
    with five_commits() as world:
        yield PoolWorld(world.github, world.commits, world.own)


def trial(name: str, at: datetime = STORED_AT, fingerprint: Fingerprint = OWN, **fields: Any) -> RunResult:
    return result(name, started_at=at, finished_at=at, fingerprint=fingerprint, **fields)


def store(
    run: Run, *own: RunResult, carried: tuple[RunResult, ...] = (), lies: dict[str, Any] | None = None, **more: Any
) -> Artifact:
    """What a run stores: its own trials, and those of earlier runs."""
    batch = BatchResult(batch_id="batch", started_at=STORED_AT, finished_at=STORED_AT, runs=own)
    pool = Pool(suites={"example": OWN}, trials=carried)
    members = {
        PROVENANCE: provenance(run, **(lies or {})),
        RESULTS: json_of(batch).encode(),
        POOL: encode_within(pool, 1 << 20),
        "runs/one/transcript.json": b"{}",
    }
    return run.repository.add_artifact(STORED_AS, members, run=run, **{"created_at": STORED_AT, **more})


def test_one_artifact_brings_its_own_trials_and_those_of_earlier_runs(world: PoolWorld) -> None:
    store(world.run(), trial("new"), carried=(trial("old"), trial("older")))
    assert world.pooled() == ["new", "old", "older"]
    found = world.look().against([trial("head")], NOW)
    assert found.results
    assert len(found.results.runs) == 3
    assert found.origin.sentence.endswith("2 days old; 3 trials from 3 runs, newest 2 days old")


@pytest.mark.parametrize("first", [True, False])
def test_forged_artifacts_bring_no_trial_whether_they_are_the_nearest_or_not(world: PoolWorld, *, first: bool) -> None:
    """They are refused for what they are, as each baseline is: more forgeries are tried there."""
    forgeries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"event": "pull_request"}, {}),
        ({}, {"lies": {"run_id": 1}}),
        ({}, {"digest": f"sha256:{'0' * 64}"}),
    ]
    for how, more in forgeries:
        world.repository.artifacts.clear()
        forge = partial(store, world.run(**how), trial("forged"), carried=(trial("carried"),), **more)
        honest = partial(store, world.run(), trial("honest"))
        for stored in (forge, honest) if first else (honest, forge):
            stored()
        assert world.pooled() == ["honest"], (how, more)
    store(world.run(event="workflow_dispatch"), trial("like the forged"), carried=(trial("carried"),))
    assert world.pooled() == ["carried", "honest", "like the forged"]


def test_trials_from_the_future_and_of_last_month_are_left_out(world: PoolWorld) -> None:
    later, older = STORED_AT + timedelta(minutes=6), NOW - timedelta(days=15)
    carried = (
        *(trial("later", later), trial("tomorrow", NOW + timedelta(days=1)), trial("stale", older)),
        trial("ran beside a head", side=Side.BASE),
    )
    store(world.run(), trial("good"), carried=carried)
    assert world.pooled() == ["good"]


def test_a_pool_that_is_damaged_is_no_baseline(world: PoolWorld) -> None:
    artifact = store(world.run(), trial("good"))
    members = {**artifact.files, POOL: b'{"schemaVersion": 1, "trials": [{}]}'}
    world.repository.add_artifact(STORED_AS, members, run=artifact.run, created_at=STORED_AT)
    assert world.pooled() == ["good"]


def test_trials_of_another_platform_or_state_are_told_and_not_compared(world: PoolWorld) -> None:
    other = (
        trial("cli", fingerprint=OWN.replace(platform="Claude 2")),
        trial("code", fingerprint=OWN.replace(tree="x")),
    )
    reverted = trial("reverted", fingerprint=OWN.replace(outcome="else"))
    store(world.run(), trial("good"), carried=(*other, reverted))
    found = world.look().against([trial("head")], NOW)
    assert found.results
    assert [run.run_id for run in found.results.runs] == ["good"]


HEAD = OWN.replace(outcome="changed")


def counted(world: PoolWorld, head: Fingerprint, base: str | None = None, **how: Any) -> StoredTrials:
    found = with_earlier(case_of(world.github, world.own, **how), world.look(), {"example": head}, base=base)
    return found.replace(limits={"example": PoolSettings()}).stored["example"]


def found_before(world: PoolWorld, **how: Any) -> tuple[list[str], ...]:
    found = counted(world, HEAD, **how)
    return tuple([run.run_id for run in runs] for runs in (found.head, found.stored))


def test_before_a_run_its_earlier_attempts_and_the_pool_of_the_base_are_known(world: PoolWorld) -> None:
    other = trial("other code", fingerprint=OWN.replace(tree="x"))
    store(world.run(), trial("base"), carried=(other,))
    store(
        world.own,
        trial("first attempt", fingerprint=HEAD),
        trial("base in disguise"),
        carried=(trial("push before", fingerprint=HEAD), trial("tomorrow", NOW + timedelta(days=1), HEAD)),
        lies={"pull_request": 7},
    )
    assert found_before(world) == (["first attempt", "push before"], ["other code", "base"])


def test_a_trial_that_a_shard_has_counted_counts_once(world: PoolWorld) -> None:
    first = trial("first attempt", fingerprint=HEAD)
    store(world.own, first, lies={"pull_request": 7})
    known = world.look().replace(earlier=(first,))
    assert with_earlier(case_of(world.github, world.own), known, {"example": HEAD}).earlier == (first,)


def test_nothing_is_added_of_the_same_attempt_or_of_a_branch_that_had_another_pull_request(world: PoolWorld) -> None:
    store(world.run(), trial("base"))
    store(world.own, trial("first attempt", fingerprint=HEAD), lies={"pull_request": 7})
    assert found_before(world, attempt=1) == found_before(world, pull_request=8) == ([], ["base"])
    assert found_before(world) == (["first attempt"], ["base"])


def test_the_head_of_a_fork_has_no_earlier_runs(world: PoolWorld) -> None:
    world.own.head_repository = Repository("mallory/zelda", fork_of=world.repository)
    store(world.own, trial("first attempt", fingerprint=HEAD), lies={"pull_request": 7})
    store(world.run(), trial("base"))
    assert found_before(world) == ([], ["base"])


def test_trials_of_the_base_that_ran_beside_the_head_count_again_and_never_as_the_head(world: PoolWorld) -> None:
    commit = world.commits[4]
    head = HEAD.replace(parts={"prompt": "p", "steeringFiles": "new"})
    own = OWN.replace(parts={"prompt": "p", "steeringFiles": "old"})

    def beside(name: str, fingerprint: Fingerprint = own, of: str = commit) -> RunResult:
        source = TestedSource(kind="worktree", commit=of)
        return trial(name, fingerprint=fingerprint, side=Side.BASE, source=source)

    carried = (
        beside("beside"),
        beside("the same state", head),
        beside("another base", of=world.commits[3]),
        beside("another prompt", own.replace(parts={"prompt": "q"})),
        beside("another platform", own.replace(platform="Claude 2")),
    )
    store(world.own, trial("first attempt", fingerprint=head), carried=carried, lies={"pull_request": 7})
    found = counted(world, head, commit)
    assert [run.run_id for run in found.head] == ["first attempt"]
    assert [run.run_id for run in found.base] == ["beside", "the same state"]
    assert counted(world, head).base == ()


def test_artifacts_of_others_do_not_push_earlier_runs_out_of_sight(world: PoolWorld) -> None:
    """A branch with on: [push, pull_request] has one of each for every commit, and anybody may dispatch more."""
    store(world.run(), trial("base"))
    store(world.own, trial("first attempt", fingerprint=HEAD), lies={"pull_request": 7})
    for number in range(8):
        event = ("push", "workflow_dispatch")[number % 2]
        other = world.repository.add_run(world.own.head_sha, branch="feature", event=event)
        store(other, trial(f"r{number}", fingerprint=HEAD), lies={"pull_request": 7})
    assert found_before(world)[0] == ["first attempt"]
    # Two runs of one commit, as `opened` and `labeled` start them: the check is that of the last one to end.
    newer = world.repository.add_run(world.own.head_sha, branch="feature", event="pull_request")
    store(newer, trial("newer", fingerprint=HEAD), lies={"pull_request": 7})
    assert found_before(world)[0] == ["first attempt", "newer"]
