"""What jobs have stored as artifacts, which of it is believed, and which trials of it count beside those of a run."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from pydantic import Field

from zelda_ci.ci.settings import DEFAULT_ARTIFACT
from zelda_ci.compare.pool import (
    CLOCK_DIFFERENCE,
    TrialPool,
    by_age,
    grouped,
    is_of_platform,
    stored_trials,
    summarize_pool,
)
from zelda_ci.domain.base import Document
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState, PoolSummary, Provenance
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.run import BatchResult, Fingerprint, Pool, RunResult, ShardPlan, StoredTrials
from zelda_ci.domain.trials import PoolSettings, Side
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.github.api import ABSENT, Api, Tolerating
from zelda_ci.github.archives import MemberReader
from zelda_ci.github.repository import Artifact, WorkflowRun, artifacts_of_run
from zelda_ci.report.builders.phrases import pool_words
from zelda_ci.storage import codec

PROVENANCE, RESULTS, POOL, NIGHTS = "zelda-ci.json", "zelda-results.json", "zelda-pool.json", "history.json"
# Of 100 runs each: as many of an event as commits that are looked at.
PAGES_OF_RUNS = 3
MAX_FILE_BYTES, MAX_MEMBERS = 64 << 20, 20_000
# Suites that a sentence names.
MAX_NAMED = 20
# What an artifact tells of itself, which its author can choose, and what is said where it is not as expected.
# A repository may be renamed: its id tells.
CLAIMS = {
    "repository_id": "it names another repository than GitHub",
    "run_id": "it names another run than GitHub",
    "sha": "it names another commit than GitHub",
    "head_sha": "it names another commit than GitHub",
    "complete": "its run was interrupted, or not judged completely",
    "pull_request": "it is of another pull request",
    "workflow": "it was stored by another workflow",
    "artifact": "it belongs to another artifact-name or comment-id",
    "job": "it was stored by another job (jobs that belong together need one comment-id)",
    "folder": "it is of a project in another folder (jobs that belong together need one comment-id)",
}
Claims = Mapping[str, object]  # values that an artifact must tell of itself, by the names of `CLAIMS`


def distrust(provenance: Provenance, expected: Claims) -> str | None:
    """Why something of what an artifact tells of itself is not believed; absent where all is as expected."""
    return next((CLAIMS[it] for it in CLAIMS if it in expected and getattr(provenance, it) != expected[it]), None)


class JobIdentity(NamedTuple):
    """A job whose runs are compared with each other, in whatever file its workflow is written."""

    artifact: str
    """What the input artifact-name or comment-id says, or the default, which is everybody's."""
    job: str | None
    """Its id in the workflow; absent where the runner does not say."""
    folder: str | None
    """Of the project, below the workspace."""

    @property
    def stem(self) -> str:
        """The beginning of all names of its artifacts: no other job's."""
        return f"{self.artifact}.{self.job}" if self.artifact == DEFAULT_ARTIFACT and self.job else self.artifact

    def stored_as(self, attempt: int) -> str:
        """The artifact with the results of an attempt: each attempt has its own, and none replaces another's."""
        return f"{self.stem}.{attempt}"

    def claims(self, run: WorkflowRun, own: WorkflowRun) -> Claims:
        """What its results in a run of any workflow say. A name that its author has given them is enough."""
        is_elsewhere, claims = run.workflow_id != own.workflow_id, {"artifact": self.artifact}
        if is_elsewhere:
            claims["workflow"] = run.workflow
        if self.artifact != DEFAULT_ARTIFACT:
            return claims
        return {**claims, "job": self.job, **({"folder": self.folder} if is_elsewhere else {})}


def is_results_name(name: str, artifact: str) -> bool:
    """Whether an artifact may hold the results of a job that stores under `artifact`, whichever job that is."""
    job = r"(\.[^.]+)?" if artifact == DEFAULT_ARTIFACT else ""
    return re.fullmatch(rf"{re.escape(artifact)}{job}\.[0-9]+", name) is not None


def runs_of(
    api: Api, branch: str, events: Collection[str], repository_id: int, own: WorkflowRun
) -> Iterator[list[WorkflowRun]]:
    """The newest runs for a branch of the repository itself: of a run's own workflow, then, if need be, of all others.

    Listed by event, so that runs of pull requests, which anybody may cause in any number from a branch of the same
    name, push no other run out of the list.
    """
    for path, is_own in ((f"actions/workflows/{own.workflow_id}/runs", True), ("actions/runs", False)):
        listed = (
            WorkflowRun.of(entry)
            for event in events
            for entry in api.pages(path, key="workflow_runs", limit=PAGES_OF_RUNS, branch=branch, event=event)
        )
        # GitHub promises neither the order nor that its index is of this moment.
        runs = {run.id: run for run in listed if run.event in events and run.is_of(branch, repository_id)}
        wanted = (run for run in runs.values() if (run.workflow_id == own.workflow_id) == is_own)
        yield sorted(wanted, key=lambda run: run.id, reverse=True)


def results_of_run(api: Api, run_id: int, job: JobIdentity, attempts: int) -> Iterator[Artifact]:
    """The artifacts with the results of a job in the first attempts of a run, of its newest attempt first."""
    names = {job.stored_as(attempt) for attempt in range(1, attempts + 1)}
    with Tolerating(ABSENT):  # the run may have been deleted since it was listed
        yield from (artifact for artifact in (artifacts_of_run(api, run_id) if names else ()) if artifact.name in names)


def results_by_job(api: Api, run_id: int, artifact: str) -> dict[str, Artifact]:
    """Of each job of a run that stores under `artifact`, by its stem, the results of its newest attempt."""
    listed = (it for it in artifacts_of_run(api, run_id) if not it.expired and is_results_name(it.name, artifact))
    return {it.name.rpartition(".")[0]: it for it in reversed([*listed])}


class StoredResults(NamedTuple):
    """What one artifact holds."""

    artifact: Artifact
    provenance: Provenance
    batch: BatchResult
    pool: Pool
    """Trials of earlier runs."""
    knows_earlier: bool
    """Whether these were known when it was stored: GitHub could be asked for them."""
    nights: NightlyHistory
    """What suites showed in the scheduled runs before."""
    damage: str
    """Why its history cannot be read, if it has one."""

    @property
    def trials(self) -> Iterator[RunResult]:
        """Of the run and of earlier ones, on both sides; none that is newer than the artifact."""
        stored_at, runs = self.artifact.created_at, (*self.batch.runs, *self.batch.base_runs, *self.pool.trials)
        return (run for run in runs if stored_at is None or run.finished_at <= stored_at + CLOCK_DIFFERENCE)

    @property
    def own_trials(self) -> Iterator[RunResult]:
        """Those of the files that were tested."""
        return (run for run in self.trials if run.side is Side.HEAD)


def read_members(api: Api, artifact: Artifact, names: Collection[str], max_bytes: int) -> dict[str, bytes]:
    """What an artifact holds under these names, each of so many bytes at most, and all of four times as many."""
    with api.download(artifact.id, digest=artifact.digest, max_bytes=4 * max_bytes) as file:
        archive = MemberReader(file, max_members=MAX_MEMBERS)
        return archive.read(names, max_member_bytes=max_bytes, max_total_bytes=4 * max_bytes)


def read_stored(api: Api, artifact: Artifact, expected: Claims) -> StoredResults:
    """The results in an artifact that tells of itself what is expected; else an `ArtifactError` or `StorageError`."""
    if artifact.expired:
        raise ArtifactError("The artifact has expired.", code="ARTIFACT_EXPIRED")
    members = read_members(api, artifact, (PROVENANCE, RESULTS, POOL, NIGHTS), MAX_FILE_BYTES)
    for name in (PROVENANCE, RESULTS):
        if name not in members:
            raise ArtifactError(f"it holds no {name}", code="BASELINE_REFUSED")
    provenance = codec.decode(Provenance, members[PROVENANCE], PROVENANCE)
    if why := distrust(provenance, expected):
        raise ArtifactError(why, code="BASELINE_REFUSED")
    batch = codec.decode(BatchResult, members[RESULTS], RESULTS)
    pool = codec.decode(Pool, members[POOL], POOL) if POOL in members else Pool()
    # A push that changed nothing that a suite depends on has run none, and of a pull request all may have run before.
    # Of a fork without a key there is only what its change takes of the context, which is nobody's baseline.
    is_context = provenance.context_size is not None and expected.get("complete") is None
    if not batch.runs and not pool.suites and not pool.trials and not is_context:
        raise StorageError("it holds no run", code="NO_RUNS")
    nights, damage = NightlyHistory(), ""
    try:
        nights = codec.decode(NightlyHistory, members[NIGHTS], NIGHTS) if NIGHTS in members else nights
    except StorageError as problem:
        damage = problem.message  # results are worth keeping without it
    return StoredResults(artifact, provenance, batch, pool, POOL in members, nights, damage)


class Evidence(Document):
    """Stored trials that count beside those of a run, or why there are none; pinned for jobs that share the run."""

    origin: BaselineOrigin
    results: BatchResult | None = None
    """Results of the base; absent where there are none."""
    pool: tuple[RunResult, ...] = ()
    """Trusted trials of the base branch, of any state of its files."""
    references: dict[str, Fingerprint] = Field(default_factory=dict)
    """State of the base by suite."""
    nights: NightlyHistory = NightlyHistory()
    """What suites showed in the scheduled runs before."""
    damage: str = ""
    """Why the newest history could not be read, where there is one."""
    earlier: tuple[RunResult, ...] = ()
    """Trials of both commits by earlier runs of the same pull request: they count like the run's own."""
    knows_earlier: bool = False
    """Whether these are all of them: GitHub could be asked, and was."""
    fingerprints: dict[str, Fingerprint] = Field(default_factory=dict)
    """States of the tested commit by suite, also of suites that need not run; empty where nobody asked."""
    new: tuple[str, ...] | None = None
    """Suites that need to run; absent where all do."""
    limits: dict[str, PoolSettings] | None = None
    """Limits of the pool by suite, where trials are added as needed; absent where their number is fixed."""
    remarks: tuple[str, ...] = ()

    @cached_property
    def states(self) -> TrialPool:
        """The pool by suite and state."""
        return grouped(self.pool)

    @property
    def heads(self) -> tuple[RunResult, ...]:
        """Earlier trials of the tested files."""
        return tuple(run for run in self.earlier if run.side is Side.HEAD)

    @property
    def bases(self) -> tuple[RunResult, ...]:
        """Trials of the base that ran beside them."""
        return tuple(run for run in self.earlier if run.side is Side.BASE)

    @property
    def trials_of_base(self) -> tuple[RunResult, ...]:
        """The nearest commit's own, and stored ones of the same state of a suite; each once."""
        same = (run for name, each in self.references.items() for run in self.states.of(name, each.outcome))
        own = self.results.runs if self.results else ()
        return tuple({(run.batch_id, run.run_id): run for run in (*own, *same)}.values())

    @cached_property
    def stored(self) -> dict[str, StoredTrials]:
        """What counts before any trial is made, by suite; nothing where the number of trials is fixed."""
        return {
            name: StoredTrials(
                head=tuple(run for run in self.heads if run.suite == name),
                base=tuple(run for run in self.bases if run.suite == name),
                stored=self.states.stored(name, self.references.get(name), limits),
            )
            for name, limits in (self.limits or {}).items()
        }

    def knowing(self, expected: Mapping[str, Fingerprint], wanted: Mapping[str, int]) -> "Evidence":
        """With the suites that need not run: as many trials of them are stored as are wanted."""
        stored = {name: stored_trials(self.states, name, each) for name, each in expected.items()}
        new = tuple(name for name, count in stored.items() if count < wanted[name])
        named = [f"{name} ({format_count(stored[name], 'stored trial')})" for name in stored if name not in new]
        if not named:
            return self.replace(fingerprints=dict(expected))
        remark = f"Not run, since trials of the same files and settings are stored: {some_of(named, MAX_NAMED)}."
        remarks = (*self.remarks, f"{remark} The input run-all runs every suite.")
        return self.replace(fingerprints=dict(expected), new=new, remarks=remarks)

    def against(self, runs: Sequence[RunResult], now: datetime, *, is_choice: bool = False) -> "Evidence":
        """With the pooled trials that may be compared with these runs; of a choice of suites, the rest is not gone."""
        if self.results is None:
            return self
        heads, names = {run.suite: run for run in runs if run.fingerprint}, {run.suite for run in runs}
        known = dict.fromkeys([*(run.suite for run in self.results.runs), *self.references])
        suites = [name for name in known if name in names or not is_choice]
        if not suites:
            sentence = f"no baseline yet: the stored results ({self.origin.sentence}) are of other suites"
            origin = self.origin.replace(state=BaselineState.NONE_YET, sentence=sentence, commit=None)
            return self.replace(origin=origin, results=None)
        chosen = {name: self._chosen(name, heads.get(name)) for name in suites}
        kept = tuple(run for each in chosen.values() for run in sorted(each, key=by_age))
        pool = summarize_pool(run for name in suites if name in heads.keys() & self.references for run in chosen[name])
        origin = with_pool(self.origin, pool, now) if pool and pool.runs > 1 else self.origin
        return self.replace(results=self.results.replace(runs=kept), origin=origin)

    def _chosen(self, suite: str, head: RunResult | None) -> Sequence[RunResult]:
        """Stored trials of the head's platform and of the code of a side; else those of the nearest commit with any."""
        own = [run for run in self.results.runs if run.suite == suite] if self.results else []
        if suite not in self.references:
            return own
        state, alike = self.references[suite], list[RunResult]()
        stored = [(run, run.fingerprint) for run in self.states.of(suite, state.outcome) if run.fingerprint]
        if head and (now := head.fingerprint):
            recent, trees = stored[: head.config.pool.max_trials], {state.tree, now.tree}
            alike = [run for run, each in recent if each.tree in trees and is_of_platform(each, now)]
        exact = [run for run, each in stored if each.tree == state.tree]
        return alike or own or exact or [run for run, _ in stored]


def with_pool(origin: BaselineOrigin, pool: PoolSummary, now: datetime) -> BaselineOrigin:
    return origin.replace(sentence=f"{origin.sentence}; {pool_words(pool, now)}", pool=pool)


NOTHING = Evidence(origin=BaselineOrigin(state=BaselineState.OFF, sentence=""))


class PinnedPlan(Document):
    """A plan with the evidence that it rests on, so that nothing that is stored later changes it."""

    plan: ShardPlan
    attempt: int
    """Attempt of the workflow's run that made it."""
    evidence: Evidence
