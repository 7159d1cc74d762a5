"""The stored results to compare with: which runs of the base branch are trusted, and whose results fit best.

Results of the job's own workflow come first. Where it has stored none that can be used, those of other workflows of
the repository may stand in: the file was renamed, or pushes and pull requests have workflows of their own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from typing import Generic, TypeVar

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.stored_artifacts import (
    TRUSTED_EVENTS,
    Candidate,
    JobIdentity,
    Opened,
    distrust_of_provenance,
    opened,
    refuse,
    results_of_run,
    runs_of,
)
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.errors import ArtifactError, GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.revisions import ancestors, behind
from zelda_ci.github.schemas import WorkflowRun, understand

T = TypeVar("T")

# Runs whose artifacts are listed, and artifacts of them that are looked into, for the own workflow and again for all
# others. Each run carries pool and history on: a week of nights that broke for want of a key must not hide them.
MAX_RUNS = 30
MAX_TRIED = 10

# Runs that overlap do not know each other's trials, so that the nearest artifact may lack those of the newest.
MAX_FURTHER = 2
MAX_FURTHER_BYTES = 32 << 20


@dataclass(frozen=True)
class Search:
    """Which results would fit.

    Attributes:
        commit: The commit whose results would fit best; without one, the newest of the branch.
        branch: The branch that must have stored them.
        job: The job that must have stored them.
        repository_id: Of the repository that must have stored them.
        own_run_id: The run whose results are to be compared: the baseline's is another, usually of the same workflow.
        further: How many artifacts of the same line of commits are read, too.
    """

    commit: str | None
    branch: str
    job: JobIdentity
    repository_id: int
    own_run_id: int
    further: int = 0


@dataclass(frozen=True)
class StoredBaseline(Generic[T]):
    """A baseline, or why there is none; `results` are present exactly where the origin's state is `FOUND`."""

    origin: BaselineOrigin
    results: T | None
    further: tuple[T, ...] = ()
    """What other runs have stored, for the same commit or those before it."""


def find_baseline(api: Api, search: Search, *, read: Callable[[Opened], T], now: datetime) -> StoredBaseline[T]:
    """The results to compare with. A missing baseline is a normal state: the origin tells, nothing is raised.

    Args:
        api: Of the repository that is searched; the token needs `actions: read` and `contents: read`.
        search: Which results would fit.
        read: Results from the bytes of their files; raises `StorageError` for what it cannot read.
        now: For the age.
    """
    try:
        return _Lookup(api, search, read, now).find()
    except GitHubError as error:
        return StoredBaseline(words.not_readable(search.branch, search.commit, error), None)


@dataclass(frozen=True)
class _Lookup(Generic[T]):
    api: Api
    search: Search
    read: Callable[[Opened], T]
    now: datetime
    refusals: list[tuple[Candidate, ArtifactError | StorageError]] = field(default_factory=list)
    """What was refused, the nearest first."""

    def find(self) -> StoredBaseline[T]:
        search = self.search
        own = understand(WorkflowRun, self.api.get(f"actions/runs/{search.own_run_id}")).workflow_id
        base_commit = search.commit or next(ancestors(self.api, search.branch), search.branch)
        for runs in self._runs(own):
            stored = self._stored(runs, base_commit)
            if found := self._first(stored, own):
                candidate, results = found
                further = tuple(self._further(stored, own))
                return StoredBaseline(self._origin(candidate, base_commit, own), results, further)
        # What has expired says less than what was refused for a reason.
        for candidate, error in sorted(self.refusals, key=lambda each: each[1].code == "ARTIFACT_EXPIRED"):
            return StoredBaseline(words.refused(search.branch, base_commit, candidate.run.head_sha, error), None)
        return StoredBaseline(words.never_stored(search.branch, base_commit), None)

    def _runs(self, own: int) -> Iterator[list[WorkflowRun]]:
        """The branch's runs of the own workflow, then those of all others, which are only asked for if need be."""
        search = self.search
        for workflow in (own, None):
            runs = runs_of(self.api, search.branch, TRUSTED_EVENTS, search.repository_id, workflow)
            is_own = workflow is not None
            yield [run for run in runs if run.id != search.own_run_id and (run.workflow_id == own) == is_own]

    def _stored(self, runs: list[WorkflowRun], base_commit: str) -> Iterator[Candidate]:
        in_line = islice(self._in_line(runs, base_commit), MAX_RUNS)
        return islice(chain.from_iterable(results_of_run(self.api, run, self.search.job) for run in in_line), MAX_TRIED)

    def _in_line(self, runs: list[WorkflowRun], base_commit: str) -> Iterator[WorkflowRun]:
        """Runs for the wanted commit, then for its ancestors, which are only asked for when those do not do."""
        by_commit = defaultdict(list)
        for run in runs:
            by_commit[run.head_sha].append(run)
        yield from by_commit.pop(base_commit, ())
        line = ancestors(self.api, base_commit)
        while by_commit and (commit := next(line, None)):
            yield from by_commit.pop(commit, ())

    def _first(self, stored: Iterator[Candidate], own: int) -> tuple[Candidate, T] | None:
        """The first that can be trusted and read."""
        for candidate in stored:
            try:
                return candidate, self._results(candidate, own)
            except (ArtifactError, StorageError) as error:
                self.refusals.append((candidate, error))
        return None

    def _further(self, stored: Iterator[Candidate], own: int) -> Iterator[T]:
        """What lies behind the baseline, as trusted as it; what cannot be had or read of it is only missing."""
        wanted = self.search.further
        # The end of what GitHub tells of the line is the end of it.
        with suppress(GitHubError):
            while wanted and (candidate := next(stored, None)):
                if candidate.artifact.size_in_bytes > MAX_FURTHER_BYTES:
                    continue
                with suppress(ArtifactError, StorageError):
                    yield self._results(candidate, own)
                    wanted -= 1

    def _results(self, candidate: Candidate, own: int) -> T:
        """The results in a candidate.

        Raises:
            ArtifactError: It is no baseline, or damaged; the message says which condition failed.
            StorageError: `read` could not read the results.
            GitHubError: GitHub did not give it.
        """
        if candidate.artifact.expired:
            raise ArtifactError("The artifact has expired.", code="ARTIFACT_EXPIRED")
        stored = opened(self.api, candidate.artifact)
        refuse(distrust_of_provenance(stored.provenance, candidate.run))
        refuse(self.search.job.distrust(stored.provenance, candidate.run, own))
        return self.read(stored)

    def _origin(self, candidate: Candidate, base_commit: str, own: int) -> BaselineOrigin:
        created_at, run = candidate.artifact.created_at, candidate.run
        distance = self._distance(run.head_sha, base_commit)
        age = self.now - created_at if created_at else None
        workflow = run.workflow if run.workflow_id != own else None
        return BaselineOrigin(
            state=BaselineState.FOUND,
            sentence=words.found(self.search.branch, run.head_sha, distance, age, workflow),
            branch=self.search.branch,
            workflow=workflow,
            wanted=base_commit,
            commit=run.head_sha,
            behind=distance,
            created_at=created_at,
            run_id=run.id,
            artifact_id=candidate.artifact.id,
        )

    def _distance(self, commit: str, base_commit: str) -> int | None:
        """Good to know, but no reason to do without the results."""
        try:
            return behind(self.api, commit, base_commit)
        except GitHubError:
            return None
