"""The stored results to compare with: which runs of the base branch are trusted, and whose results fit best.

Results of the job's own workflow come first. Where it has stored none that can be used, those of other workflows of
the repository may stand in: the file was renamed, or pushes and pull requests have workflows of their own.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.stored_artifacts import (
    TRUSTED_EVENTS,
    Candidate,
    JobIdentity,
    StoredResults,
    distrust_of_provenance,
    read_stored,
    refuse,
    results_of_run,
    runs_of,
)
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.errors import ArtifactError, GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.revisions import ancestors, behind
from zelda_ci.github.schemas import WorkflowRun, understand

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
    """

    commit: str | None
    branch: str
    job: JobIdentity
    repository_id: int
    own_run_id: int


def find_baseline(api: Api, search: Search, now: datetime) -> tuple[BaselineOrigin, list[StoredResults]]:
    """The results to compare with. A missing baseline is a normal state: the origin tells, nothing is raised.

    Args:
        api: Of the repository that is searched; the token needs `actions: read` and `contents: read`.
        search: Which results would fit.
        now: For the age.

    Returns:
        Which baseline it is, or why there is none; its results, and behind them what other runs have stored for the
        same commit or those before it. Without a baseline there are none.
    """
    try:
        return _find(api, search, now)
    except GitHubError as error:
        return words.not_readable(search.branch, search.commit, error), []


def _find(api: Api, search: Search, now: datetime) -> tuple[BaselineOrigin, list[StoredResults]]:
    own = understand(WorkflowRun, api.get(f"actions/runs/{search.own_run_id}")).workflow_id
    base_commit = search.commit or next(ancestors(api, search.branch), search.branch)
    refusals: list[tuple[WorkflowRun, ArtifactError | StorageError]] = []
    # The branch's runs of the own workflow, then those of all others, which are only asked for if need be.
    for workflow in (own, None):
        listed = runs_of(api, search.branch, TRUSTED_EVENTS, search.repository_id, workflow)
        is_own = workflow is not None
        runs = [run for run in listed if run.id != search.own_run_id and (run.workflow_id == own) == is_own]
        in_line = islice(_in_line(api, runs, base_commit), MAX_RUNS)
        stored = islice(chain.from_iterable(results_of_run(api, run, search.job) for run in in_line), MAX_TRIED)
        for candidate in stored:
            try:
                nearest = _trusted(api, search.job, candidate, own)
            except (ArtifactError, StorageError) as error:
                refusals.append((candidate.run, error))
                continue
            return _origin(api, search, candidate, base_commit, own, now), [
                nearest,
                *_further(api, search.job, stored, own),
            ]
    # What has expired says less than what was refused for a reason.
    for run, refusal in sorted(refusals, key=lambda each: each[1].code == "ARTIFACT_EXPIRED"):
        return words.refused(search.branch, base_commit, run.head_sha, refusal), []
    return words.never_stored(search.branch, base_commit), []


def _in_line(api: Api, runs: list[WorkflowRun], base_commit: str) -> Iterator[WorkflowRun]:
    """Runs for the wanted commit, then for its ancestors, which are only asked for when those do not do."""
    by_commit = defaultdict(list)
    for run in runs:
        by_commit[run.head_sha].append(run)
    yield from by_commit.pop(base_commit, ())
    line = ancestors(api, base_commit)
    while by_commit and (commit := next(line, None)):
        yield from by_commit.pop(commit, ())


def _further(api: Api, job: JobIdentity, stored: Iterator[Candidate], own: int) -> Iterator[StoredResults]:
    """What lies behind the baseline, as trusted as it; what cannot be had or read of it is only missing."""
    wanted = MAX_FURTHER
    # The end of what GitHub tells of the line is the end of it.
    with suppress(GitHubError):
        while wanted and (candidate := next(stored, None)):
            if candidate.artifact.size_in_bytes <= MAX_FURTHER_BYTES:
                with suppress(ArtifactError, StorageError):
                    yield _trusted(api, job, candidate, own)
                    wanted -= 1


def _trusted(api: Api, job: JobIdentity, candidate: Candidate, own: int) -> StoredResults:
    """The results in a candidate.

    Raises:
        ArtifactError: It is no baseline, or damaged; the message says which condition failed.
        StorageError: Its results could not be read.
        GitHubError: GitHub did not give it.
    """
    if candidate.artifact.expired:
        raise ArtifactError("The artifact has expired.", code="ARTIFACT_EXPIRED")
    stored = read_stored(api, candidate.artifact)
    refuse(distrust_of_provenance(stored.provenance, candidate.run))
    refuse(job.distrust(stored.provenance, candidate.run, own))
    return stored


def _origin(
    api: Api, search: Search, candidate: Candidate, base_commit: str, own: int, now: datetime
) -> BaselineOrigin:
    created_at, run = candidate.artifact.created_at, candidate.run
    distance = None
    # Good to know, but no reason to do without the results.
    with suppress(GitHubError):
        distance = behind(api, run.head_sha, base_commit)
    workflow = run.workflow if run.workflow_id != own else None
    age = now - created_at if created_at else None
    return BaselineOrigin(
        state=BaselineState.FOUND,
        sentence=words.found(search.branch, run.head_sha, distance, age, workflow),
        branch=search.branch,
        workflow=workflow,
        wanted=base_commit,
        commit=run.head_sha,
        behind=distance,
        created_at=created_at,
        run_id=run.id,
        artifact_id=candidate.artifact.id,
    )
