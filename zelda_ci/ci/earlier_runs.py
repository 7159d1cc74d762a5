"""Earlier runs and attempts of the same pull request: nobody can repeat a run until chance turns it green."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import number, path_in
from zelda_ci.ci.stored_artifacts import (
    Candidate,
    JobIdentity,
    Opened,
    candidates,
    distrust_of_origin,
    identity_of,
    opened,
    provenance_in,
    refuse,
)
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Artifact, WorkflowRun, understand
from zelda_ci.report.builders import baseline as words

# Artifacts of earlier runs of one pull request that are read; each with a pool carries the trials of those before it.
MAX_EARLIER = 3
# That are looked at for it: a branch has artifacts of other events and pull requests, too, and more of them must not
# push those of this one out of sight.
MAX_EARLIER_TRIED = 30
# Of those, artifacts of other workflows whose contents are read.
MAX_ELSEWHERE = 5

T = TypeVar("T")


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


def earlier_results(api: Api, own: OwnRun, read: Callable[[Opened], T]) -> list[T]:
    """What earlier runs and attempts of the same pull request stored; nothing for a fork, whose author chooses it.

    Raises:
        GitHubError: GitHub did not tell.
    """
    run = understand(WorkflowRun, api.get(f"actions/runs/{own.run_id}"))
    if run.head_repository is None or run.head_repository.id != own.repository_id or not run.head_branch:
        return []
    stored = candidates(api, own.job.names, run.head_branch, own.repository_id)
    # Also those of newer runs: who runs an old one again must not get rid of what came after it.
    usable = (each for each in stored if not each.artifact.expired)
    found: list[T] = []
    carrying = 0
    for earlier in _trusted(api, [*islice(usable, MAX_EARLIER_TRIED)], own, run):
        with suppress(ArtifactError, StorageError):
            found.append(read(earlier))
            # One of a run that was cancelled may carry nothing, and must not hide those before it.
            carrying += earlier.pool is not None
        if carrying == MAX_EARLIER:
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
    path = f"actions/runs/{own.run_id}/artifacts"
    for name in own.job.names:
        listed = case.api.pages(path, key="artifacts", limit=1, name=name)
        if any(_is_left(case.api, understand(Artifact, entry), own) for entry in listed):
            return ""
    return words.ATTEMPTS_LOST


def _is_left(api: Api, artifact: Artifact, own: OwnRun) -> bool:
    if artifact.expired:
        return False
    try:
        stored_by = provenance_in(api, artifact).job
    except ArtifactError:
        return True
    # The default name may be another job's.
    return own.job.second_name is None or stored_by in {None, own.job.job}


def _trusted(api: Api, stored: list[Candidate], own: OwnRun, own_run: WorkflowRun) -> Iterator[Opened]:
    """The results of the own workflow's runs, then of those of others that say they are of this job."""
    elsewhere: list[tuple[Candidate, WorkflowRun]] = []
    for candidate in stored:
        run = understand(WorkflowRun, api.get(f"actions/runs/{candidate.run.id}"))
        if run.event != own_run.event or distrust_of_origin(run, candidate.run):
            continue
        if run.workflow_id != own_run.workflow_id:
            elsewhere.append((candidate, run))
            continue
        with suppress(ArtifactError):
            yield _earlier(api, candidate, run, own, own_run)
    for candidate, run in elsewhere[:MAX_ELSEWHERE]:
        with suppress(ArtifactError):
            yield _earlier(api, candidate, run, own, own_run)


def _earlier(api: Api, candidate: Candidate, run: WorkflowRun, own: OwnRun, own_run: WorkflowRun) -> Opened:
    stored = opened(api, candidate.artifact)
    told = stored.provenance
    if (told.repository_id, told.run_id, told.head_sha) != (own.repository_id, run.id, run.head_sha):
        refuse("it names another run than GitHub")
    refuse(own.job.distrust(told, run, own_run.workflow_id))
    if told.pull_request != own.pull_request:
        refuse("it is of another pull request")
    if run.id == own.run_id and told.run_attempt >= own.attempt:
        refuse("it is of the same attempt")
    return stored
