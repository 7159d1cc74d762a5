"""Earlier runs and attempts of the same pull request: nobody can repeat a run until chance turns it green."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import number, path_in
from zelda_ci.ci.stored_artifacts import (
    Candidate,
    JobIdentity,
    StoredResults,
    artifacts_of_run,
    identity_of,
    read_stored,
    refuse,
    results_of_run,
    runs_of,
)
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import WorkflowRun, understand

# Artifacts of earlier runs of one pull request that are read; each with a pool carries the trials of those before it.
MAX_EARLIER = 3
# Runs whose artifacts are listed for it, of the own workflow and again of all others: a branch has runs of other pull
# requests, too, and more of them must not push those of this one out of sight.
MAX_RUNS = 30


@dataclass(frozen=True)
class OwnRun:
    """The run of a pull request whose earlier runs are looked for."""

    run_id: int
    attempt: int
    pull_request: int
    job: JobIdentity
    repository_id: int


def own_run(case: CiContext) -> OwnRun | None:
    """Of a pull request; nothing for other events, nor where a comment asks for a run: for GitHub it is the base's."""
    pull_request = number(case.settings.event, "pull_request", "number")
    if pull_request is None or path_in(case.settings.event, "comment") is not None:
        return None
    context = case.settings.context
    job = identity_of(case.settings)
    return OwnRun(context.run_id, context.run_attempt, pull_request, job, context.repository_id)


def earlier_results(api: Api, own: OwnRun) -> list[StoredResults]:
    """What earlier runs and attempts of the same pull request stored; nothing for a fork, whose author chooses it.

    Raises:
        GitHubError: GitHub did not tell.
    """
    run = understand(WorkflowRun, api.get(f"actions/runs/{own.run_id}"))
    if run.head_repository is None or run.head_repository.id != own.repository_id or not run.head_branch:
        return []
    found: list[StoredResults] = []
    # Also those of newer runs: who runs an old one again must not get rid of what came after it.
    for candidate in _stored(api, own, run, run.head_branch):
        with suppress(ArtifactError, StorageError):
            found.append(_trusted(read_stored(api, candidate.artifact), candidate.run, own, run))
        # One of a run that was cancelled may carry nothing, and must not hide those before it.
        if sum(each.knows_earlier for each in found) == MAX_EARLIER:
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
    if case.pinned and case.pinned.origin.run_attempt < own.attempt:
        # Some shards ran in that attempt, and count.
        return ""
    earlier = {own.job.stored_as(attempt) for attempt in range(1, own.attempt)}
    is_left = any(each.name in earlier and not each.expired for each in artifacts_of_run(case.api, own.run_id))
    return "" if is_left else words.ATTEMPTS_LOST


def _stored(api: Api, own: OwnRun, own_run: WorkflowRun, branch: str) -> Iterator[Candidate]:
    """The results of the own workflow's runs, then of those of others that say they are of this job."""
    for workflow in (own_run.workflow_id, None):
        runs = runs_of(api, branch, (own_run.event,), own.repository_id, workflow)
        new = (run for run in runs if (run.workflow_id == own_run.workflow_id) == (workflow is not None))
        stored = chain.from_iterable(results_of_run(api, run, own.job) for run in islice(new, MAX_RUNS))
        yield from (candidate for candidate in stored if not candidate.artifact.expired)


def _trusted(stored: StoredResults, run: WorkflowRun, own: OwnRun, own_run: WorkflowRun) -> StoredResults:
    told = stored.provenance
    if (told.repository_id, told.run_id, told.head_sha) != (own.repository_id, run.id, run.head_sha):
        refuse("it names another run than GitHub")
    refuse(own.job.distrust(told, run, own_run.workflow_id))
    if told.pull_request != own.pull_request:
        refuse("it is of another pull request")
    if run.id == own.run_id and told.run_attempt >= own.attempt:
        refuse("it is of the same attempt")
    return stored
