"""The stored results that a run in CI is compared with, and the earlier trials of the same pull request.

Results of the job's own workflow come first. Where it has stored none that can be used, those of other workflows of
the repository may stand in: the file was renamed, or pushes and pull requests have workflows of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

from zelda_ci.ci.context import CiContext
from zelda_ci.ci.stored import Claims, Evidence, StoredResults, read_stored, results_of_run, runs_of
from zelda_ci.compare.drift import merged
from zelda_ci.compare.pool import by_age, is_beside, is_usable, is_valid, pool_of, same_as
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.run import Fingerprint, RunResult, batch_of
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ArtifactError, ConfigError, GitHubError, StorageError, ZeldaError
from zelda_ci.github.api import Api
from zelda_ci.github.repository import WorkflowRun, ancestors, compare_commits, read_run
from zelda_ci.report.builders.phrases import age_words, commit_name
from zelda_ci.storage.references import read_results

# What runs on commits that are already on a branch of this repository; pull requests are not.
TRUSTED_EVENTS = ("push", "schedule", "workflow_dispatch")
# Runs whose artifacts are listed, and artifacts of them that are looked into, for the own workflow and again for all
# others. Each run carries pool and history on: a week of nights that broke for want of a key must not hide them. And a
# branch has runs of other pull requests, too: more of them must not push those of this one out of sight.
MAX_RUNS, MAX_TRIED = 30, 10
# Runs that overlap do not know each other's trials, so that the nearest artifact may lack those of the newest.
MAX_POOLED = 3
# Artifacts of earlier runs of one pull request that are read; each with a pool carries the trials of those before it.
MAX_EARLIER = 3
# Where the base of a pull request has nothing, as the branches of other pull requests, which store none that counts.
NOTHING_USABLE = frozenset({BaselineState.NONE_YET, BaselineState.EXPIRED, BaselineState.INVALID})
WRONG_TOKEN = 401
ATTEMPTS_LOST = (
    "This run was run before, and the results of its earlier attempts do not count: they were deleted, have expired, "
    "or were never stored, as when a run is cancelled before its first trial is over."
)
EARLIER_UNKNOWN = "Trials of earlier runs of this pull request are not counted: GitHub could not be asked for them."
# Every project starts here.
NONE_YET = (
    "no baseline yet: {branch} has stored none for {wanted} or a commit shortly before it (push to {branch} or run the "
    "workflow there once)"
)
EXPIRED = (
    "no baseline: what {branch} stored has expired or was deleted (run the workflow there again, or raise "
    "retention-days)"
)
NOT_PERMITTED = "no baseline: the token may not read artifacts (permissions: actions: read, contents: read)"
NOT_FOUND = (
    "no baseline: GitHub knows no such run, workflow or commit, or does not show it to this token (run the job again, "
    "or check github-token)"
)
TOKENLESS = "No token was given, so that the stored results of the base branch could not be read."
# By the code of what hindered, whose own words are left out of a text that a bot will post.
MISSING = {
    "OFF": (BaselineState.OFF, "Nothing was compared: the input baseline is none."),
    "TOKENLESS": (BaselineState.NOT_PERMITTED, TOKENLESS),
    "": (BaselineState.NONE_YET, NONE_YET),
    "ARTIFACT_EXPIRED": (BaselineState.EXPIRED, EXPIRED),
    "REFUSED": (BaselineState.INVALID, "no usable baseline: the results of {results} were refused: {reason}"),
    "WRONG_TOKEN": (BaselineState.NOT_PERMITTED, "no baseline: the token is wrong or no longer valid (github-token)"),
    "GITHUB_NOT_PERMITTED": (BaselineState.NOT_PERMITTED, NOT_PERMITTED),
    "GITHUB_NOT_FOUND": (BaselineState.NOT_PERMITTED, NOT_FOUND),
    "GITHUB_RATE_LIMITED": (BaselineState.UNREACHABLE, "no baseline: GitHub limits how often it may be asked"),
    "UNREACHABLE": (BaselineState.UNREACHABLE, "no baseline: GitHub could not be asked"),
}

Refusals = list[tuple[ZeldaError, str]]
"""Why results were not used, and their commits, the nearest first."""


def resolve_baseline(case: CiContext) -> Evidence:
    """The baseline, or plainly why there is none: a file (or `ConfigError`), a plan's, or what GitHub stores."""
    target, api, settings = case.decision.target, case.api, case.settings
    if case.pinned:
        return case.pinned.evidence
    if settings.baseline and case.evaluated is None:
        return _from_file(settings.baseline)
    if target is None or api is None:
        state, sentence = MISSING["TOKENLESS" if target else "OFF"]
        return Evidence(origin=BaselineOrigin(state=state, sentence=sentence))
    branch, commit, default = target.branch, target.commit, settings.context.default_branch
    if target.head and not commit:
        try:
            commit = compare_commits(api, target.branch, target.head).merge_base
        except GitHubError as problem:
            case.log.say(f"The commit on which this one is based is not known: {problem.message}")
            if problem.code not in {"GITHUB_NOT_FOUND", "GITHUB_REFUSED"}:
                return Evidence(origin=missing(branch, None, problem))
            # A commit that GitHub does not know may be made up. The newest of the branch is the next best.
    found = find_baseline(case, branch, commit)
    # A stacked pull request has another one's branch as its base. A branch that the workflow names is the one wanted.
    if found.origin.state in NOTHING_USABLE and branch != default and not settings.baseline_branch:
        case.log.say(f"{found.origin.sentence}. The default branch, {default}, is searched.")
        try:
            below = find_baseline(case, default, compare_commits(api, default, commit or branch).merge_base)
            if below.results:
                return below.replace(origin=with_sentence(below.origin.replace(stands_for=branch), case.now()))
        except GitHubError as problem:
            case.log.say(f"The commit of {default} on which {branch} is based is not known: {problem.message}")
    if found.origin.state is BaselineState.NONE_YET:
        case.log.say(f"Looked for: the artifacts {case.identity.stem}.* of this workflow's runs on {branch}.")
    return found


def _from_file(path: Path) -> Evidence:
    try:
        runs, why = read_results(path), f"{path} holds no run."
    except StorageError as problem:
        runs, why = (), problem.message
    if not runs:
        hint = "It takes a zelda-results.json that `zelda ci` left, or what `zelda run --json` printed."
        raise ConfigError(f"The input baseline cannot be used: {why}", hint=hint, code="INPUT_INVALID")
    batch = batch_of(runs)
    sentence = f"Compared with the file {path.name}."
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence=sentence, created_at=batch.finished_at)
    return Evidence(origin=origin, results=batch)


def find_baseline(case: CiContext, branch: str, commit: str | None) -> Evidence:
    """What a branch has stored for a commit, by default its newest, or nearest before it; an origin says if none."""
    api, wanted, refused = case.github, commit, Refusals()
    try:
        own = read_run(api, case.run_id)
        wanted = commit or next(ancestors(api, branch), branch)
        for runs in runs_of(api, branch, TRUSTED_EVENTS, case.settings.context.repository_id, own):
            # Its own results are nothing to compare a run with.
            line = _in_line(api, wanted, (run for run in runs if run.id != own.id))
            stored = _believed(case, own, line, refused)
            if nearest := next(stored, None):
                sources = [nearest]
                # What lies behind it and cannot be had is only missing.
                with suppress(GitHubError):
                    sources.extend(islice(stored, MAX_POOLED - 1))
                return _evidence(case, branch, wanted, own, sources)
    except GitHubError as error:
        case.log.say(f"The results that {branch} has stored could not be read: {error.message}")
        return Evidence(origin=missing(branch, wanted, error))
    # What has expired says less than what was refused for a reason.
    refused.sort(key=lambda each: each[0].code == "ARTIFACT_EXPIRED")
    return Evidence(origin=missing(branch, wanted, *next(iter(refused), ())))


def _in_line(api: Api, commit: str, runs: Iterable[WorkflowRun]) -> Iterator[WorkflowRun]:
    """Runs for a commit, then for its ancestors, which are only asked for when those do not do."""
    by_commit = defaultdict(list)
    for run in runs:
        by_commit[run.head_sha].append(run)
    line = chain([commit], ancestors(api, commit))
    while by_commit and (commit := next(line, "")):
        yield from by_commit.pop(commit, ())


def _believed(
    case: CiContext, own: WorkflowRun, runs: Iterable[WorkflowRun], refused: Refusals, pull_request: int | None = None
) -> Iterator[StoredResults]:
    """The results of the job in runs that may be a baseline, or without limit those of a pull request."""
    api, context, job = case.github, case.settings.context, case.identity
    # Of this very run, those of the attempts before this one.
    attempts = {own.id: context.run_attempt - 1}
    stored = (
        (run, artifact)
        for run in islice(runs, MAX_RUNS)
        for artifact in results_of_run(api, run.id, job, attempts.get(run.id, run.run_attempt))
    )
    for run, artifact in islice(stored, None if pull_request else MAX_TRIED):
        claims: Claims = {"sha": run.head_sha, "complete": True}
        if pull_request:
            # A merge commit was tested, and its run may have been cancelled.
            claims = {"head_sha": run.head_sha, "pull_request": pull_request}
        expected = {"repository_id": context.repository_id, "run_id": run.id, **claims, **job.claims(run, own)}
        try:
            yield read_stored(api, artifact, expected)
        except (ArtifactError, StorageError) as problem:
            refused.append((problem, run.head_sha))


def _evidence(case: CiContext, branch: str, wanted: str, own: WorkflowRun, sources: list[StoredResults]) -> Evidence:
    """The baseline with the trials of all that was read, the nearest first."""
    nearest, now, distance = sources[0], case.now(), None
    provenance = nearest.provenance
    # Good to know, but no reason to do without the results.
    with suppress(GitHubError):
        distance = 0 if provenance.sha == wanted else compare_commits(case.github, wanted, provenance.sha).behind_by
    origin = BaselineOrigin(
        state=BaselineState.FOUND,
        sentence="",
        branch=branch,
        workflow=provenance.workflow if provenance.workflow != own.workflow else None,
        wanted=wanted,
        commit=provenance.sha,
        behind=distance,
        created_at=nearest.artifact.created_at,
    )
    # Of each suite, the limits that the newest run has, which is the base's own configuration.
    newest = sorted((run for source in sources for run in source.own_trials), key=by_age)
    settings = {run.suite: run.config.pool for run in newest}
    return Evidence(
        origin=with_sentence(origin, now),
        results=nearest.batch,
        pool=pool_of((source.own_trials for source in sources), lambda suite: settings[suite], now).trials,
        references={**nearest.pool.suites, **heads_of(nearest.batch.runs)},
        nights=merged([source.nights for source in sources], now),
        damage=nearest.damage,
    )


def heads_of(runs: Iterable[RunResult]) -> dict[str, Fingerprint]:
    """By suite, the fingerprint of its newest valid trial."""
    return {run.suite: run.fingerprint for run in runs if is_valid(run) and run.fingerprint}


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
    """Add the trials of earlier runs of this pull request with the head's fingerprint, which is known by suite.

    Otherwise a run could be repeated until chance turns it green. Trials that the run has `made` itself count anyway,
    and beside a `base` those of the base that ran beside those of the head.
    """
    try:
        trials = [run for each in earlier_results(case) for run in each.trials] if heads else []
        remarks = [ATTEMPTS_LOST] if has_lost_attempts(case) else []
    except GitHubError as problem:
        case.log.say(f"{EARLIER_UNKNOWN} {problem.message}")
        return found.replace(remarks=(*found.remarks, EARLIER_UNKNOWN))
    for remark in remarks:
        case.log.say(remark)

    def counts(run: RunResult) -> bool:
        head, own = heads.get(run.suite), run.fingerprint
        if not head or not own or not is_usable(run) or run.finished_at > case.now():
            return False
        if run.side is Side.HEAD:
            return bool(same_as([run], head))
        return bool(base and run.source and run.source.commit == base and is_beside(own, head))

    known = {(run.batch_id, run.run_id) for run in (*found.earlier, *made)}
    counted = {key: run for run in trials if counts(run) and (key := (run.batch_id, run.run_id)) not in known}
    earlier = (*found.earlier, *sorted(counted.values(), key=by_age))
    return found.replace(earlier=earlier, knows_earlier=True, remarks=(*found.remarks, *remarks))


def earlier_results(case: CiContext) -> Iterator[StoredResults]:
    """What earlier runs and attempts of the same pull request stored; nothing for a fork, whose author chooses it."""
    api, context, pull_request = case.api, case.settings.context, pull_request_of(case)
    if api is None or pull_request is None:
        return
    own, complete = read_run(api, context.run_id), 0
    branch = own.head_branch or ""
    if not own.is_of(branch, context.repository_id):
        return
    # Also those of newer runs: who runs an old one again must not get rid of what came after it.
    for runs in runs_of(api, branch, (own.event,), context.repository_id, own):
        for stored in _believed(case, own, runs, [], pull_request):
            yield stored
            # One of a run that was cancelled may carry nothing, and must not hide those before it.
            complete += stored.knows_earlier
            if complete == MAX_EARLIER:
                return


def has_lost_attempts(case: CiContext) -> bool:
    """Whether earlier attempts of a pull request's run have left nothing that could count."""
    attempt = case.settings.context.run_attempt
    # Where the run was planned before this attempt, some shards ran before it, and count.
    is_older = case.pinned is not None and case.pinned.attempt < attempt
    if case.api is None or pull_request_of(case) is None or attempt == 1 or is_older:
        return False
    stored = results_of_run(case.api, case.settings.context.run_id, case.identity, attempt - 1)
    return all(artifact.expired for artifact in stored)


def with_sentence(origin: BaselineOrigin, now: datetime) -> BaselineOrigin:
    """A baseline that GitHub stores, with its sentence; of a stacked pull request, that below its base."""
    name = commit_name(origin.branch, origin.commit)
    first, where = f"baseline {name}", f"{format_count(origin.behind, 'commit')} behind" if origin.behind else ""
    if origin.stands_for:
        first = f"no results of {origin.stands_for}; compared with {name}"
        where = f"{where} the one on which it is based" if where else "on which it is based"
    age = age_words(now - origin.created_at) if origin.created_at else ""
    by = f"stored by the workflow {origin.workflow.rpartition('/')[2]}" if origin.workflow else ""
    return origin.replace(sentence=", ".join(filter(None, (first, where, age, by))))


def missing(branch: str, wanted: str | None, error: ZeldaError | None = None, commit: str = "") -> BaselineOrigin:
    """Why a branch has no baseline: nothing was stored, an error of what was stored for a commit, or one of GitHub."""
    row, message = (error.code, error.message) if error else ("", "")
    if isinstance(error, GitHubError) and error.status == WRONG_TOKEN:
        row = "WRONG_TOKEN"
    if row not in MISSING:
        row = "REFUSED" if isinstance(error, ArtifactError | StorageError) else "UNREACHABLE"
    state, sentence = MISSING[row]
    first, _, rest = message.rstrip(".").partition(" ")
    # A name such as GitHub keeps its letters.
    reason = f"{first.lower() if first.istitle() else first} {rest}"
    short, results = (wanted or "")[:7], commit_name(branch, commit)
    sentence = sentence.format(branch=branch, wanted=short, results=results, reason=reason)
    return BaselineOrigin(state=state, sentence=sentence, branch=branch, wanted=wanted)


def side_by_side(branch: str, commit: str, head: int, base: int) -> BaselineOrigin:
    """The base ran in the same job, as far as it was needed."""
    here, name = format_count(head, "trial"), commit_name(branch, commit)
    sentence = f"{here} of the head in this job; none of {name} was needed"
    if base:
        sentence = f"compared with {name} in this job: {here} of the head, {base} of the base, side by side"
    return BaselineOrigin(
        state=BaselineState.FOUND, sentence=sentence, branch=branch, wanted=commit, commit=commit, behind=0
    )
