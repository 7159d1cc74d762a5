"""The stored results to compare with: candidates on the base branch, which are trusted, and the best one."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

from pydantic import ValidationError

from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import number, path_in
from zelda_ci.domain.ci import BaselineOrigin, BaselineState, Provenance
from zelda_ci.errors import ArtifactError, GitHubError, StorageError
from zelda_ci.github import schemas
from zelda_ci.github.api import Api
from zelda_ci.github.archives import read_members
from zelda_ci.github.revisions import ancestors, behind
from zelda_ci.github.schemas import Artifact, ArtifactRun, WorkflowRun, understand
from zelda_ci.report.builders import baseline as words

# What runs on commits that are already on a branch of this repository; pull requests are not.
TRUSTED_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})


def is_of_branch(run: ArtifactRun, branch: str, repository_id: int) -> bool:
    """Whether a run was for this repository's own branch, as far as a list of artifacts tells."""
    return run.repository_id == run.head_repository_id == repository_id and run.head_branch == branch


def distrust_of_run(run: WorkflowRun, listed: ArtifactRun, workflow_id: int) -> str | None:
    """Why the results of a run are nobody's baseline; absent where they may be one."""
    if run.event not in TRUSTED_EVENTS:
        return f"it was stored by a {run.event} run"
    return _distrust_of_origin(run, listed, workflow_id)


def _distrust_of_origin(run: WorkflowRun, listed: ArtifactRun, workflow_id: int) -> str | None:
    if run.workflow_id != workflow_id:
        return "it was stored by another workflow"
    if run.head_repository is None or run.head_repository.id != listed.repository_id:
        return "it was stored by a run for another repository"
    if (run.id, run.head_branch, run.head_sha) != (listed.id, listed.head_branch, listed.head_sha):
        return "GitHub gives contradicting data on its run"
    return None


def distrust_of_provenance(provenance: Provenance, run: WorkflowRun) -> str | None:
    """Why what an artifact tells of itself, which whoever stored it can choose, is not believed.

    A repository may be renamed: its id tells.
    """
    if run.head_repository is None or provenance.repository_id != run.head_repository.id:
        return "it names another repository than GitHub"
    if provenance.run_id != run.id:
        return "it names another run than GitHub"
    if run.head_sha != provenance.sha:
        return "it names another commit than GitHub"
    if not provenance.complete:
        return "its run was interrupted, or not judged completely"
    return None


PROVENANCE = "zelda-ci.json"
RESULTS = "zelda-results.json"
POOL = "zelda-pool.json"
NIGHTS = "history.json"

# Of 100 each: every pull request stores one under the same name, and GitHub cannot filter by branch.
PAGES_OF_ARTIFACTS = 5

MAX_ARCHIVE_BYTES = 256 << 20
MAX_MEMBER_BYTES = 64 << 20
MAX_MEMBERS = 20_000

T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """What an artifact holds, as bytes."""

    provenance: Provenance
    results: bytes
    pool: bytes | None = None
    """Trials of earlier runs; absent in artifacts of older versions."""
    stored_at: datetime | None = None
    nights: bytes | None = None
    """What suites showed night by night; absent where no scheduled run was before it."""


@dataclass(frozen=True)
class Candidate:
    """An artifact that a run for the branch stored, as far as a list tells."""

    artifact: Artifact
    run: ArtifactRun

    @property
    def commit(self) -> str:
        """The commit that it is about."""
        return self.run.head_sha


def candidates(api: Api, name: str, branch: str, repository_id: int) -> list[Candidate]:
    """What runs for a branch stored, expired or not; the newest first, since GitHub promises no order."""
    listed = api.pages("actions/artifacts", key="artifacts", limit=PAGES_OF_ARTIFACTS, name=name)
    artifacts = sorted((understand(Artifact, entry) for entry in listed), key=lambda entry: entry.id, reverse=True)
    return [
        Candidate(artifact, run)
        for artifact in artifacts
        if (run := artifact.workflow_run) and is_of_branch(run, branch, repository_id)
    ]


def results_of(api: Api, candidate: Candidate, workflow_id: int, read: Callable[[Opened], T]) -> T:
    """The results in a candidate.

    Raises:
        ArtifactError: It is no baseline, or damaged; the message says which condition failed.
        StorageError: `read` could not read the results.
        GitHubError: GitHub did not give it.
    """
    run = understand(WorkflowRun, api.get(f"actions/runs/{candidate.run.id}"))
    _refuse(distrust_of_run(run, candidate.run, workflow_id))
    stored = opened(api, candidate.artifact)
    _refuse(distrust_of_provenance(stored.provenance, run))
    return read(stored)


# Artifacts of earlier runs of one pull request that are read; each carries the trials of those before it.
MAX_EARLIER = 3
# That are looked at for it: a branch has artifacts of other events and pull requests, too, and more of them must not
# push those of this one out of sight.
MAX_EARLIER_TRIED = 30


@dataclass(frozen=True)
class OwnRun:
    """The run of a pull request whose earlier runs are looked for."""

    run_id: int
    attempt: int
    pull_request: int
    artifact_name: str
    repository_id: int


def own_run(case: CiContext) -> OwnRun | None:
    """Of a pull request; nothing for other events, nor where a comment asks for a run: for GitHub it is the base's."""
    pull_request = number(case.settings.event, "pull_request", "number")
    if pull_request is None or path_in(case.settings.event, "comment") is not None:
        return None
    context = case.settings.context
    return OwnRun(context.run_id, context.run_attempt, pull_request, case.settings.artifact_name, context.repository_id)


def earlier_results(api: Api, own: OwnRun, read: Callable[[Opened], T]) -> list[T]:
    """What earlier runs and attempts of the same pull request stored; nothing for a fork, whose author chooses it.

    Raises:
        GitHubError: GitHub did not tell.
    """
    run = understand(WorkflowRun, api.get(f"actions/runs/{own.run_id}"))
    if run.head_repository is None or run.head_repository.id != own.repository_id or not run.head_branch:
        return []
    stored = candidates(api, own.artifact_name, run.head_branch, own.repository_id)
    # Also those of newer runs: who runs an old one again must not get rid of what came after it.
    usable = (each for each in stored if not each.artifact.expired)
    found: list[T] = []
    for candidate in islice(usable, MAX_EARLIER_TRIED):
        with suppress(ArtifactError, StorageError):
            found.append(_earlier(api, candidate, run, own, read))
        if len(found) == MAX_EARLIER:
            break
    return found


def lost_attempts(case: CiContext) -> str:
    """A sentence where earlier attempts of this run have left nothing that could count; empty otherwise.

    Raises:
        GitHubError: GitHub did not tell.
    """
    own = own_run(case)
    if case.api is None or own is None or own.attempt == 1:
        return ""
    path = f"actions/runs/{own.run_id}/artifacts"
    listed = case.api.pages(path, key="artifacts", limit=1, name=own.artifact_name)
    return words.ATTEMPTS_LOST if all(understand(Artifact, entry).expired for entry in listed) else ""


def _earlier(api: Api, candidate: Candidate, own_run: WorkflowRun, own: OwnRun, read: Callable[[Opened], T]) -> T:
    run = understand(WorkflowRun, api.get(f"actions/runs/{candidate.run.id}"))
    _refuse(None if run.event == own_run.event else f"it was stored by a {run.event} run")
    _refuse(_distrust_of_origin(run, candidate.run, own_run.workflow_id))
    stored = opened(api, candidate.artifact)
    told = stored.provenance
    if (told.repository_id, told.run_id, told.head_sha) != (own.repository_id, run.id, run.head_sha):
        raise ArtifactError("it names another run than GitHub", code="BASELINE_REFUSED")
    if told.pull_request != own.pull_request:
        raise ArtifactError("it is of another pull request", code="BASELINE_REFUSED")
    if run.id == own.run_id and told.run_attempt >= own.attempt:
        raise ArtifactError("it is of the same attempt", code="BASELINE_REFUSED")
    return read(stored)


def _members(api: Api, artifact: Artifact) -> dict[str, bytes]:
    blob = api.download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
    members = read_members(
        blob,
        {PROVENANCE, RESULTS, POOL, NIGHTS},
        max_member_bytes=MAX_MEMBER_BYTES,
        max_total_bytes=4 * MAX_MEMBER_BYTES,
        max_members=MAX_MEMBERS,
    )
    for name in (PROVENANCE, RESULTS):
        _refuse(None if name in members else f"it holds no {name}")
    return members


def _provenance(data: bytes) -> Provenance:
    try:
        return Provenance.model_validate(schemas.parse_strict(data))
    except (schemas.NotStrictJsonError, ValidationError):
        raise ArtifactError(f"its {PROVENANCE} cannot be read", code="BASELINE_REFUSED") from None


def _refuse(reason: str | None) -> None:
    if reason:
        raise ArtifactError(reason, code="BASELINE_REFUSED")


def opened(api: Api, artifact: Artifact) -> Opened:
    """What an artifact tells of itself, and its results, nothing of it believed yet.

    Raises:
        ArtifactError: It holds no such things.
        GitHubError: GitHub did not give it.
    """
    members = _members(api, artifact)
    origin = _provenance(members[PROVENANCE])
    return Opened(origin, members[RESULTS], members.get(POOL), artifact.created_at, members.get(NIGHTS))


# Artifacts that are looked into. So a lookup is usually 7 requests, and never more than 41: one for the run itself, 5
# pages of artifacts, 4 of commits, three per artifact and one for the distance. Each run carries pool and history on:
# a week of nights that broke for want of a key must not hide them.
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
        artifact_name: Under which it stores them.
        repository_id: Of the repository that must have stored them.
        own_run_id: The run whose results are to be compared: the baseline's must be of the same workflow, and another.
        further: How many artifacts of the same line of commits are read, too.
    """

    commit: str | None
    branch: str
    artifact_name: str
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

    def find(self) -> StoredBaseline[T]:
        search = self.search
        own = understand(WorkflowRun, self.api.get(f"actions/runs/{search.own_run_id}"))
        stored = candidates(self.api, search.artifact_name, search.branch, search.repository_id)
        others = [candidate for candidate in stored if candidate.run.id != search.own_run_id]
        if not others:
            return StoredBaseline(words.never_stored(search.branch, search.commit), None)
        if all(candidate.artifact.expired for candidate in others):
            return StoredBaseline(words.all_expired(search.branch, search.commit), None)
        return self._nearest([candidate for candidate in others if not candidate.artifact.expired], own.workflow_id)

    def _nearest(self, stored: list[Candidate], workflow_id: int) -> StoredBaseline[T]:
        branch = self.search.branch
        base_commit = self.search.commit or next(ancestors(self.api, branch), branch)
        refusal = None
        line = islice(self._in_line(stored, base_commit), MAX_TRIED)
        for candidate in line:
            try:
                results = results_of(self.api, candidate, workflow_id, self.read)
            except (ArtifactError, StorageError) as error:
                refusal = refusal or words.refused(branch, base_commit, candidate.commit, error)
            else:
                origin = self._origin(candidate, base_commit)
                return StoredBaseline(origin, results, tuple(self._further(line, workflow_id)))
        return StoredBaseline(refusal or words.none_related(branch, base_commit), None)

    def _further(self, line: Iterator[Candidate], workflow_id: int) -> Iterator[T]:
        """What lies behind the baseline, as trusted as it; what cannot be had or read of it is only missing."""
        wanted = self.search.further
        # The end of what GitHub tells of the line is the end of it.
        with suppress(GitHubError):
            while wanted and (candidate := next(line, None)):
                if candidate.artifact.size_in_bytes > MAX_FURTHER_BYTES:
                    continue
                with suppress(ArtifactError, StorageError):
                    yield results_of(self.api, candidate, workflow_id, self.read)
                    wanted -= 1

    def _in_line(self, stored: list[Candidate], base_commit: str) -> Iterator[Candidate]:
        """Candidates for the wanted commit, then for its ancestors, which are only asked for when those do not do."""
        by_commit = defaultdict(list)
        for candidate in stored:
            by_commit[candidate.commit].append(candidate)
        yield from by_commit.pop(base_commit, ())
        line = ancestors(self.api, base_commit)
        while by_commit and (commit := next(line, None)):
            yield from by_commit.pop(commit, ())

    def _origin(self, candidate: Candidate, base_commit: str) -> BaselineOrigin:
        created_at = candidate.artifact.created_at
        distance = self._distance(candidate.commit, base_commit)
        age = self.now - created_at if created_at else None
        return BaselineOrigin(
            state=BaselineState.FOUND,
            sentence=words.found(self.search.branch, candidate.commit, distance, age),
            branch=self.search.branch,
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
