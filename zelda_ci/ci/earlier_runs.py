"""Earlier runs and attempts of the same pull request: nobody can repeat a run until chance turns it green."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import number, path_in
from zelda_ci.ci.stored_artifacts import (
    Candidate,
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


def pull_request_of(case: CiContext) -> int | None:
    """Number of the pull request that a run is of; absent where a comment asks for it: for GitHub it is the base's."""
    is_asked = path_in(case.settings.event, "comment") is not None
    return None if is_asked else number(case.settings.event, "pull_request", "number")


def earlier_results(case: CiContext) -> list[StoredResults]:
    """What earlier runs and attempts of the same pull request stored; nothing for a fork, whose author chooses it.

    Raises:
        GitHubError: GitHub did not tell.
    """
    context = case.settings.context
    if case.api is None or pull_request_of(case) is None:
        return []
    own = understand(WorkflowRun, case.api.get(f"actions/runs/{context.run_id}"))
    if own.head_repository is None or own.head_repository.id != context.repository_id or not own.head_branch:
        return []
    found: list[StoredResults] = []
    # Also those of newer runs: who runs an old one again must not get rid of what came after it.
    for candidate in _stored(case, case.api, own, own.head_branch):
        with suppress(ArtifactError, StorageError):
            found.append(_trusted(read_stored(case.api, candidate.artifact), candidate.run, case, own))
        # One of a run that was cancelled may carry nothing, and must not hide those before it.
        if sum(each.knows_earlier for each in found) == MAX_EARLIER:
            break
    return found


def lost_attempts(case: CiContext) -> str:
    """A sentence where earlier attempts of this run have left nothing that could count; empty otherwise.

    Raises:
        GitHubError: GitHub did not tell.
    """
    attempt = case.settings.context.run_attempt
    if case.api is None or pull_request_of(case) is None or attempt == 1:
        return ""
    if case.pinned and case.pinned.origin.run_attempt < attempt:
        # Some shards ran in that attempt, and count.
        return ""
    earlier = {identity_of(case.settings).stored_as(number) for number in range(1, attempt)}
    listed = artifacts_of_run(case.api, case.settings.context.run_id)
    return "" if any(each.name in earlier and not each.expired for each in listed) else words.ATTEMPTS_LOST


def _stored(case: CiContext, api: Api, own: WorkflowRun, branch: str) -> Iterator[Candidate]:
    """The results of the own workflow's runs, then of those of others that say they are of this job."""
    job = identity_of(case.settings)
    for workflow in (own.workflow_id, None):
        runs = runs_of(api, branch, (own.event,), case.settings.context.repository_id, workflow)
        new = (run for run in runs if (run.workflow_id == own.workflow_id) == (workflow is not None))
        stored = chain.from_iterable(results_of_run(api, run, job) for run in islice(new, MAX_RUNS))
        yield from (candidate for candidate in stored if not candidate.artifact.expired)


def _trusted(stored: StoredResults, run: WorkflowRun, case: CiContext, own: WorkflowRun) -> StoredResults:
    told, context = stored.provenance, case.settings.context
    if (told.repository_id, told.run_id, told.head_sha) != (context.repository_id, run.id, run.head_sha):
        refuse("it names another run than GitHub")
    refuse(identity_of(case.settings).distrust(told, run, own.workflow_id))
    if told.pull_request != pull_request_of(case):
        refuse("it is of another pull request")
    if run.id == context.run_id and told.run_attempt >= context.run_attempt:
        refuse("it is of the same attempt")
    return stored
