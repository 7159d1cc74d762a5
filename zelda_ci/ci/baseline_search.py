"""The stored results to compare with: which artifacts of the base branch are trusted, and which fits best.

Results of the job's own workflow come first. Where it has stored none that can be used, those of other workflows of
the repository may stand in: the file was renamed, or pushes and pull requests have workflows of their own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

from zelda_ci.ci.stored_artifacts import (
    OTHER_WORKFLOW,
    Candidate,
    JobIdentity,
    Opened,
    candidates,
    distrust_of_provenance,
    distrust_of_run,
    opened,
    refuse,
)
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.errors import ArtifactError, GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.revisions import ancestors, behind
from zelda_ci.github.schemas import WorkflowRun, understand
from zelda_ci.report.builders import baseline as words

T = TypeVar("T")

# Artifacts that are looked into. So a lookup is usually 8 requests, and never more than 56: one for the run itself, 10
# pages of artifacts, 4 of commits, three per artifact, two for each of another workflow and one for the distance. Each
# run carries pool and history on: a week of nights that broke for want of a key must not hide them.
MAX_TRIED = 10

# Of those, artifacts of other workflows whose contents are read.
MAX_ELSEWHERE = 5

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


# What was refused, by artifact, the nearest first.
_Refusals = dict[int, tuple[Candidate, ArtifactError | StorageError]]


@dataclass(frozen=True)
class _Lookup(Generic[T]):
    api: Api
    search: Search
    read: Callable[[Opened], T]
    now: datetime
    runs: dict[int, WorkflowRun] = field(default_factory=dict)
    """What GitHub has told of them."""

    def find(self) -> StoredBaseline[T]:
        search = self.search
        own = self._run(search.own_run_id)
        stored = candidates(self.api, search.job.names, search.branch, search.repository_id)
        others = [candidate for candidate in stored if candidate.run.id != search.own_run_id]
        if not others:
            return StoredBaseline(words.never_stored(search.branch, search.commit), None)
        if all(candidate.artifact.expired for candidate in others):
            return StoredBaseline(words.all_expired(search.branch, search.commit), None)
        return self._nearest([candidate for candidate in others if not candidate.artifact.expired], own.workflow_id)

    def _nearest(self, stored: list[Candidate], own: int) -> StoredBaseline[T]:
        branch = self.search.branch
        base_commit = self.search.commit or next(ancestors(self.api, branch), branch)
        refusals: _Refusals = {}
        line = islice(self._in_line(stored, base_commit), MAX_TRIED)
        for each, is_own in ((line, True), (_elsewhere(refusals), False)):
            if found := self._first(each, refusals, own, is_own=is_own):
                candidate, results = found
                further = tuple(self._further(each, own, is_own=is_own))
                return StoredBaseline(self._origin(candidate, base_commit, own), results, further)
        for candidate, error in refusals.values():
            return StoredBaseline(words.refused(branch, base_commit, candidate.commit, error), None)
        return StoredBaseline(words.none_related(branch, base_commit), None)

    def _first(
        self, line: Iterator[Candidate], refusals: _Refusals, own: int, *, is_own: bool
    ) -> tuple[Candidate, T] | None:
        """The first that can be trusted and read."""
        for candidate in line:
            try:
                return candidate, self._results(candidate, own, is_own=is_own)
            except (ArtifactError, StorageError) as error:
                refusals[candidate.artifact.id] = candidate, error
        return None

    def _further(self, line: Iterator[Candidate], own: int, *, is_own: bool) -> Iterator[T]:
        """What lies behind the baseline, as trusted as it; what cannot be had or read of it is only missing."""
        wanted = self.search.further
        # The end of what GitHub tells of the line is the end of it.
        with suppress(GitHubError):
            while wanted and (candidate := next(line, None)):
                if candidate.artifact.size_in_bytes > MAX_FURTHER_BYTES:
                    continue
                with suppress(ArtifactError, StorageError):
                    yield self._results(candidate, own, is_own=is_own)
                    wanted -= 1

    def _results(self, candidate: Candidate, own: int, *, is_own: bool) -> T:
        """The results in a candidate.

        Args:
            candidate: What was stored.
            own: The id of the job's own workflow.
            is_own: Whether it must be of that one.

        Raises:
            ArtifactError: It is no baseline, or damaged; the message says which condition failed.
            StorageError: `read` could not read the results.
            GitHubError: GitHub did not give it.
        """
        run = self._run(candidate.run.id)
        refuse(distrust_of_run(run, candidate.run))
        if is_own and run.workflow_id != own:
            refuse("it was stored by another workflow", OTHER_WORKFLOW)
        stored = opened(self.api, candidate.artifact)
        refuse(distrust_of_provenance(stored.provenance, run))
        refuse(self.search.job.distrust(stored.provenance, run, own))
        return self.read(stored)

    def _run(self, run_id: int) -> WorkflowRun:
        if run_id not in self.runs:
            self.runs[run_id] = understand(WorkflowRun, self.api.get(f"actions/runs/{run_id}"))
        return self.runs[run_id]

    def _in_line(self, stored: list[Candidate], base_commit: str) -> Iterator[Candidate]:
        """Candidates for the wanted commit, then for its ancestors, which are only asked for when those do not do."""
        by_commit = defaultdict(list)
        for candidate in stored:
            by_commit[candidate.commit].append(candidate)
        yield from by_commit.pop(base_commit, ())
        line = ancestors(self.api, base_commit)
        while by_commit and (commit := next(line, None)):
            yield from by_commit.pop(commit, ())

    def _origin(self, candidate: Candidate, base_commit: str, own: int) -> BaselineOrigin:
        created_at = candidate.artifact.created_at
        distance = self._distance(candidate.commit, base_commit)
        age = self.now - created_at if created_at else None
        run = self._run(candidate.run.id)
        workflow = run.workflow if run.workflow_id != own else None
        return BaselineOrigin(
            state=BaselineState.FOUND,
            sentence=words.found(self.search.branch, candidate.commit, distance, age, workflow),
            branch=self.search.branch,
            workflow=workflow,
            wanted=base_commit,
            commit=candidate.commit,
            behind=distance,
            created_at=created_at,
            run_id=candidate.run.id,
            artifact_id=candidate.artifact.id,
        )

    def _distance(self, commit: str, base_commit: str) -> int | None:
        """Good to know, but no reason to do without the results."""
        try:
            return behind(self.api, commit, base_commit)
        except GitHubError:
            return None


def _elsewhere(refusals: _Refusals) -> Iterator[Candidate]:
    """What other workflows have stored, of all that was refused; asked only after the own workflow's have failed."""
    others = [candidate for candidate, error in refusals.values() if error.code == OTHER_WORKFLOW]
    yield from others[:MAX_ELSEWHERE]
