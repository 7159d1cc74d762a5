"""The stored results that a run in CI is compared with, and the earlier trials of the same pull request.

Results of the job's own workflow come first. Where it has stored none that can be used, those of other workflows of
the repository may stand in: the file was renamed, or pushes and pull requests have workflows of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import BaselineTarget
from zelda_ci.ci.evidence import Evidence, by_age
from zelda_ci.ci.stored_artifacts import (
    TRUSTED_EVENTS,
    Candidate,
    JobIdentity,
    StoredResults,
    artifacts_of_run,
    distrust_of_provenance,
    identity_of,
    read_stored,
    refuse,
    results_of_run,
    runs_of,
)
from zelda_ci.compare.drift import merged
from zelda_ci.compare.pool import is_beside, is_usable, is_valid, pool_of, same_as
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.run import RunResult, batch_of
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ArtifactError, ConfigError, GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.revisions import ancestors, behind, merge_base
from zelda_ci.github.schemas import WorkflowRun, understand
from zelda_ci.storage.references import read_results

# Runs whose artifacts are listed, and artifacts of them that are looked into, for the own workflow and again for all
# others. Each run carries pool and history on: a week of nights that broke for want of a key must not hide them. And a
# branch has runs of other pull requests, too: more of them must not push those of this one out of sight.
MAX_RUNS = 30
MAX_TRIED = 10

# Runs that overlap do not know each other's trials, so that the nearest artifact may lack those of the newest.
MAX_FURTHER = 2
MAX_FURTHER_BYTES = 32 << 20

# Artifacts of earlier runs of one pull request that are read; each with a pool carries the trials of those before it.
MAX_EARLIER = 3

# Where the base of a pull request has nothing, as the branches of other pull requests, which store none that counts.
_NOTHING_USABLE = frozenset({BaselineState.NONE_YET, BaselineState.EXPIRED, BaselineState.INVALID})


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


def resolve_baseline(case: CiContext, target: BaselineTarget | None, own_run_id: int) -> Evidence:
    """The baseline, or plainly why there is none: a file, what a job before this one has found, or what GitHub stores.

    Raises:
        ConfigError: The file that the workflow names holds no results.
    """
    if case.pinned:
        return case.pinned.evidence
    if case.settings.baseline and case.evaluated is None:
        return _from_file(case.settings.baseline)
    if target is None:
        return Evidence(origin=words.SWITCHED_OFF)
    if case.api is None:
        return Evidence(origin=words.NO_TOKEN)
    try:
        commit = _commit(case, case.api, target)
    except GitHubError as problem:
        return Evidence(origin=words.not_readable(target.branch, None, problem))
    search = Search(
        commit=commit,
        branch=target.branch,
        job=identity_of(case.settings, case.evaluated),
        repository_id=case.settings.context.repository_id,
        own_run_id=own_run_id,
    )
    baseline = find_baseline(case.api, search, case.now())
    if baseline.origin.state in _NOTHING_USABLE:
        baseline = _of_default_branch(case, case.api, search, baseline.origin) or baseline
    if baseline.origin.state is BaselineState.NONE_YET:
        case.log.say(f"Looked for: the artifacts {search.job.stem}.* of this workflow's runs on {search.branch}.")
    return baseline


def _from_file(path: Path) -> Evidence:
    try:
        runs = read_results(path)
        why = "" if runs else f"{path} holds no run."
    except StorageError as problem:
        runs, why = (), problem.message
    if not runs:
        hint = "It takes a zelda-results.json that `zelda ci` left, or what `zelda run --json` printed."
        raise ConfigError(f"The input baseline cannot be used: {why}", hint=hint, code="INPUT_INVALID")
    batch = batch_of(runs)
    sentence = f"Compared with the file {path.name}."
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence=sentence, created_at=batch.finished_at)
    return Evidence(origin=origin, results=batch)


def _commit(case: CiContext, api: Api, target: BaselineTarget) -> str | None:
    """The commit that is wanted; where GitHub knows of none, the newest of the branch is the next best."""
    if target.commit:
        return target.commit
    try:
        return merge_base(api, target.branch, target.head)
    except GitHubError as problem:
        if problem.code != "GITHUB_NOT_FOUND":
            raise
        case.log.say(f"The commit on which this one is based is not known: {problem.message}")
        return None


def _of_default_branch(case: CiContext, api: Api, search: Search, missing: BaselineOrigin) -> Evidence | None:
    """For a stacked pull request, what the default branch has stored for the commit on which its base is based.

    Nothing where the workflow names the branch: its author wants that one.
    """
    default, base = case.settings.context.default_branch, search.branch
    if base == default or case.settings.baseline_branch:
        return None
    case.log.say(f"{missing.sentence}. The default branch, {default}, is searched.")
    try:
        commit = merge_base(api, default, search.commit or base)
    except GitHubError as problem:
        case.log.say(f"The commit of {default} on which {base} is based is not known: {problem.message}")
        return None
    found = find_baseline(api, replace(search, branch=default, commit=commit), case.now())
    return found.replace(origin=words.in_place_of(found.origin, base, case.now())) if found.results else None


def find_baseline(api: Api, search: Search, now: datetime) -> Evidence:
    """The results to compare with. A missing baseline is a normal state: the origin says so, nothing is raised."""
    try:
        return _find(api, search, now)
    except GitHubError as error:
        return Evidence(origin=words.not_readable(search.branch, search.commit, error))


def _find(api: Api, search: Search, now: datetime) -> Evidence:
    own = _run(api, search.own_run_id)
    base_commit = search.commit or next(ancestors(api, search.branch), search.branch)
    refusals: list[tuple[WorkflowRun, ArtifactError | StorageError]] = []

    def in_line(runs: Iterable[WorkflowRun]) -> Iterator[WorkflowRun]:
        """Runs for the wanted commit, then for its ancestors, which are only asked for when those do not do."""
        by_commit = defaultdict(list)
        for run in runs:
            if run.id != search.own_run_id:
                by_commit[run.head_sha].append(run)
        yield from by_commit.pop(base_commit, ())
        line = ancestors(api, base_commit)
        while by_commit and (commit := next(line, None)):
            yield from by_commit.pop(commit, ())

    for runs in runs_of(api, search.branch, TRUSTED_EVENTS, search.repository_id, own):
        stored = islice(_stored(api, in_line(runs), search.job), MAX_TRIED)
        for candidate in stored:
            try:
                nearest = _trusted(api, search.job, candidate, own.workflow_id)
            except (ArtifactError, StorageError) as error:
                refusals.append((candidate.run, error))
                continue
            origin = _origin(api, search, candidate, base_commit, own, now)
            return pooled(origin, [nearest, *_further(api, search.job, stored, own.workflow_id)], now)
    # What has expired says less than what was refused for a reason.
    for run, refusal in sorted(refusals, key=lambda each: each[1].code == "ARTIFACT_EXPIRED"):
        return Evidence(origin=words.refused(search.branch, base_commit, run.head_sha, refusal))
    return Evidence(origin=words.never_stored(search.branch, base_commit))


def _run(api: Api, run_id: int) -> WorkflowRun:
    return understand(WorkflowRun, api.get(f"actions/runs/{run_id}"))


def _stored(api: Api, runs: Iterable[WorkflowRun], job: JobIdentity) -> Iterator[Candidate]:
    return chain.from_iterable(results_of_run(api, run, job) for run in islice(runs, MAX_RUNS))


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
    api: Api, search: Search, candidate: Candidate, base_commit: str, own: WorkflowRun, now: datetime
) -> BaselineOrigin:
    created_at, run = candidate.artifact.created_at, candidate.run
    distance = None
    # Good to know, but no reason to do without the results.
    with suppress(GitHubError):
        distance = behind(api, run.head_sha, base_commit)
    workflow = run.workflow if run.workflow_id != own.workflow_id else None
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


def pooled(origin: BaselineOrigin, sources: Sequence[StoredResults], now: datetime) -> Evidence:
    """The baseline with the trials of all that was read, the nearest first."""
    nearest = sources[0]
    # Of each suite, the limits that the newest run has, which is the base's own configuration.
    newest = sorted((run for source in sources for run in source.own_trials), key=by_age)
    settings = {run.suite: run.config.pool for run in newest}
    return Evidence(
        origin=origin,
        results=nearest.batch,
        pool=pool_of((source.own_trials for source in sources), lambda suite: settings[suite], now).trials,
        references={**nearest.pool.suites, **heads_of(nearest.batch.runs)},
        nights=merged([source.nights for source in sources if source.nights], now),
        damage=nearest.damage,
    )


def heads_of(runs: Iterable[RunResult]) -> dict[str, Fingerprint]:
    """By suite, the fingerprint of its newest valid trial."""
    return {run.suite: run.fingerprint for run in runs if is_valid(run) and run.fingerprint}


# --- earlier runs of the same pull request ---------------------------------------------------------------------------


def pull_request_of(case: CiContext) -> int | None:
    """Number of the pull request that a run is of; absent where a comment asks for it: for GitHub it is the base's."""
    event = case.settings.event
    return event.pull_request.number if event.pull_request and not event.comment else None


def with_earlier(
    case: CiContext,
    found: Evidence,
    heads: Mapping[str, Fingerprint],
    made: Iterable[RunResult] = (),
    base: str | None = None,
) -> Evidence:
    """Add the trials of earlier runs of this pull request with the head's fingerprint.

    Otherwise a run could be repeated until chance turns it green.

    Args:
        case: The run.
        found: What is known already.
        heads: By suite, the fingerprint of the head, or before there are trials the expected one.
        made: Trials of the run itself, which count anyway.
        base: The commit beside which the head runs: trials of it that ran beside those of the head count, too.
    """
    try:
        stored = [run for each in earlier_results(case) for run in each.trials] if heads else []
        lost = lost_attempts(case)
    except GitHubError as problem:
        case.log.say(f"{words.EARLIER_UNKNOWN} {problem.message}")
        return found.replace(remarks=(*found.remarks, words.EARLIER_UNKNOWN))
    if lost:
        case.log.say(lost)
    now, here = case.now(), {(run.batch_id, run.run_id) for run in made}
    usable = {(run.batch_id, run.run_id): run for run in stored if is_usable(run) and run.finished_at <= now}
    counted = [
        run
        for name, head in heads.items()
        for run in _counted([run for key, run in usable.items() if key not in here and run.suite == name], head, base)
    ]
    earlier, remarks = (*found.earlier, *sorted(counted, key=by_age)), (*found.remarks, *([lost] if lost else []))
    return found.replace(earlier=earlier, knows_earlier=True, remarks=remarks)


def _counted(trials: Sequence[RunResult], head: Fingerprint, base: str | None) -> list[RunResult]:
    """Of one suite's trials, those of the head, and those of the base that ran beside them."""
    heads = same_as((run for run in trials if run.side is Side.HEAD), head)
    bases = (run for run in trials if run.side is Side.BASE and base and run.source and run.source.commit == base)
    return [*heads, *(run for run in bases if run.fingerprint and is_beside(run.fingerprint, head))]


def earlier_results(case: CiContext) -> list[StoredResults]:
    """What earlier runs and attempts of the same pull request stored; nothing for a fork, whose author chooses it."""
    context, job = case.settings.context, identity_of(case.settings)
    if case.api is None or pull_request_of(case) is None:
        return []
    own = _run(case.api, context.run_id)
    if own.head_repository is None or own.head_repository.id != context.repository_id or not own.head_branch:
        return []
    found: list[StoredResults] = []
    # Also those of newer runs: who runs an old one again must not get rid of what came after it.
    for runs in runs_of(case.api, own.head_branch, (own.event,), context.repository_id, own):
        for candidate in _stored(case.api, runs, job):
            if candidate.artifact.expired:
                continue
            with suppress(ArtifactError, StorageError):
                stored = read_stored(case.api, candidate.artifact)
                refuse(_distrust_of_earlier(case, stored, candidate.run, own))
                found.append(stored)
            # One of a run that was cancelled may carry nothing, and must not hide those before it.
            if sum(each.knows_earlier for each in found) == MAX_EARLIER:
                return found
    return found


def _distrust_of_earlier(case: CiContext, stored: StoredResults, run: WorkflowRun, own: WorkflowRun) -> str | None:
    told, context = stored.provenance, case.settings.context
    if (told.repository_id, told.run_id, told.head_sha) != (context.repository_id, run.id, run.head_sha):
        return "it names another run than GitHub"
    if told.pull_request != pull_request_of(case):
        return "it is of another pull request"
    if run.id == context.run_id and told.run_attempt >= context.run_attempt:
        return "it is of the same attempt"
    return identity_of(case.settings).distrust(told, run, own.workflow_id)


def lost_attempts(case: CiContext) -> str:
    """A sentence where earlier attempts of this run have left nothing that could count; empty otherwise."""
    attempt = case.settings.context.run_attempt
    if case.api is None or pull_request_of(case) is None or attempt == 1:
        return ""
    if case.pinned and case.pinned.origin.run_attempt < attempt:
        # Some shards ran in that attempt, and count.
        return ""
    earlier = {identity_of(case.settings).stored_as(number) for number in range(1, attempt)}
    listed = artifacts_of_run(case.api, case.settings.context.run_id)
    return "" if any(each.name in earlier and not each.expired for each in listed) else words.ATTEMPTS_LOST
