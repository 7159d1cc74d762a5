"""The stored results that a run is compared with: those of the commit that fits best, or of its nearest ancestor."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.errors import ArtifactError, GitHubError, StorageError
from zelda_ci.github import origins
from zelda_ci.github.api import Api
from zelda_ci.github.candidates import Candidate, candidates, results_of
from zelda_ci.github.commits import ancestors, behind
from zelda_ci.github.schemas import Run, understand

MOST_TRIED = 5
"""Artifacts that are looked into. So a lookup is usually 7 requests, and never more than 26:
one for the run itself, 5 pages of artifacts, 4 of commits, three per artifact and one for the distance."""

T = TypeVar("T")


@dataclass(frozen=True)
class Search:
    """Which results would fit.

    Attributes:
        wanted: The commit whose results would fit best; without one, the newest of the branch.
        branch: The branch that must have stored them.
        artifact_name: Under which it stores them.
        repository_id: Of the repository that must have stored them.
        own_run_id: The run whose results are to be compared: the baseline's must be of the same workflow, and another.
    """

    wanted: str | None
    branch: str
    artifact_name: str
    repository_id: int
    own_run_id: int


@dataclass(frozen=True)
class Stored(Generic[T]):
    """A baseline, or why there is none; `results` are present exactly where the origin's state is `FOUND`."""

    origin: BaselineOrigin
    results: T | None


def find_baseline(api: Api, search: Search, *, read: Callable[[bytes], T], now: datetime) -> Stored[T]:
    """The results to compare with. A missing baseline is a normal state: the origin tells, nothing is raised.

    Args:
        api: Of the repository that is searched; the token needs `actions: read` and `contents: read`.
        search: Which results would fit.
        read: Results from the bytes of their file; raises `StorageError` for what it cannot read.
        now: For the age.
    """
    try:
        return _Lookup(api, search, read, now).find()
    except GitHubError as error:
        return Stored(origins.not_told(search.branch, search.wanted, error), None)


@dataclass(frozen=True)
class _Lookup(Generic[T]):
    api: Api
    search: Search
    read: Callable[[bytes], T]
    now: datetime

    def find(self) -> Stored[T]:
        search = self.search
        own = understand(Run, self.api.get(f"actions/runs/{search.own_run_id}"))
        stored = candidates(self.api, search.artifact_name, search.branch, search.repository_id)
        others = [each for each in stored if each.run.id != search.own_run_id]
        if not others:
            return Stored(origins.never_stored(search.branch, search.wanted), None)
        if all(each.artifact.expired for each in others):
            return Stored(origins.all_expired(search.branch, search.wanted), None)
        return self._nearest([each for each in others if not each.artifact.expired], own.workflow_id)

    def _nearest(self, stored: list[Candidate], workflow_id: int) -> Stored[T]:
        branch = self.search.branch
        wanted = self.search.wanted or next(ancestors(self.api, branch), branch)
        refusal = None
        for candidate in islice(self._in_line(stored, wanted), MOST_TRIED):
            try:
                results = results_of(self.api, candidate, workflow_id, self.read)
            except (ArtifactError, StorageError) as error:
                refusal = refusal or origins.refused(branch, wanted, candidate.commit, error)
            else:
                return Stored(self._found(candidate, wanted), results)
        return Stored(refusal or origins.none_related(branch, wanted), None)

    def _in_line(self, stored: list[Candidate], wanted: str) -> Iterator[Candidate]:
        """Candidates for the wanted commit, then for its ancestors, which are only asked for when those do not do."""
        by_commit = defaultdict(list)
        for candidate in stored:
            by_commit[candidate.commit].append(candidate)
        yield from by_commit.pop(wanted, ())
        line = ancestors(self.api, wanted)
        while by_commit and (commit := next(line, None)):
            yield from by_commit.pop(commit, ())

    def _found(self, candidate: Candidate, wanted: str) -> BaselineOrigin:
        created_at = candidate.artifact.created_at
        distance = self._distance(candidate.commit, wanted)
        age = self.now - created_at if created_at else None
        return BaselineOrigin(
            state=BaselineState.FOUND,
            sentence=origins.found(self.search.branch, candidate.commit, distance, age),
            branch=self.search.branch,
            wanted=wanted,
            commit=candidate.commit,
            behind=distance,
            created_at=created_at,
            run_id=candidate.run.id,
            artifact_id=candidate.artifact.id,
        )

    def _distance(self, commit: str, wanted: str) -> int | None:
        """Good to know, but no reason to do without the results."""
        try:
            return behind(self.api, commit, wanted)
        except GitHubError:
            return None
