"""What a run in CI is compared with: a file, or what GitHub stores for the commit that fits best."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.baseline_search import Search, find_baseline
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.earlier_runs import earlier_results
from zelda_ci.ci.event import BaselineTarget, default_branch
from zelda_ci.ci.stored_artifacts import StoredResults, identity_of
from zelda_ci.compare.drift import merged
from zelda_ci.compare.pool import (
    TrialPool,
    grouped,
    is_beside,
    is_of_platform,
    is_usable,
    is_valid,
    pool_of,
    same_as,
    stored_trials,
    summarize_pool,
)
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import BatchResult, Pool, RunResult, StoredTrials
from zelda_ci.domain.shards import PinnedPlan
from zelda_ci.domain.trials import PoolSettings, Side
from zelda_ci.errors import ConfigError, GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.revisions import merge_base
from zelda_ci.storage.references import read_results


@dataclass(frozen=True)
class BatchBaseline:
    """What runs are compared with, or why there is nothing."""

    origin: BaselineOrigin
    results: BatchResult | None
    """Present where there are results of the base."""
    pool: TrialPool = field(default_factory=TrialPool)
    """Trusted trials of the base branch, of any state of its files."""
    references: Mapping[str, Fingerprint] = field(default_factory=dict)
    """By suite, which state is the base's."""
    nights: NightlyHistory = field(default_factory=NightlyHistory)
    """What suites showed in the scheduled runs before."""
    damage: str = ""
    """Why the newest history could not be read, where there is one."""

    @property
    def trials_of_base(self) -> tuple[RunResult, ...]:
        """The nearest commit's own, and stored ones of the same state of a suite; each once."""
        same = (run for name, each in self.references.items() for run in self.pool.of(name, each.outcome))
        own = self.results.runs if self.results else ()
        return tuple({(run.batch_id, run.run_id): run for run in (*own, *same)}.values())

    def stored(self, suite: str, settings: PoolSettings) -> tuple[RunResult, ...]:
        """The trials of the base's state of a suite."""
        return self.pool.stored(suite, self.references.get(suite), settings)

    def known(self, planned: Mapping[str, Fingerprint], wanted: Mapping[str, int]) -> dict[str, int]:
        """Of planned suites, those of which as many trials are stored as are wanted, with their number."""
        stored = {name: stored_trials(self.pool, name, expected) for name, expected in planned.items()}
        return {name: count for name, count in stored.items() if count >= wanted[name]}

    def against(self, runs: Sequence[RunResult], now: datetime) -> "BatchBaseline":
        """With the pooled trials that may be compared with these runs in place of one run's."""
        if self.results is None or not self.references:
            return self
        heads = {run.suite: run for run in runs if run.fingerprint}
        own = {name: tuple(each) for name, each in _by_suite(self.results.runs).items()}
        chosen = {
            name: self._chosen(name, heads.get(name), own.get(name, ()))
            for name in dict.fromkeys([*own, *self.references])
        }
        kept = tuple(run for each in chosen.values() for run in sorted(each, key=_by_age))
        if not kept:
            return self
        summary = summarize_pool(run for name in self.references if name in heads for run in chosen[name])
        origin = words.with_pool(self.origin, summary, now) if summary and summary.runs > 1 else self.origin
        return _counted(replace(self, results=self.results.replace(runs=kept), origin=origin))

    def _chosen(self, suite: str, head: RunResult | None, own: tuple[RunResult, ...]) -> tuple[RunResult, ...]:
        """What a suite is compared with: stored trials of the head's platform and of the code of a side, else others.

        Others are those of the nearest commit that ran it; the comparison names what differs.
        """
        if suite not in self.references:
            return own
        state, now = self.references[suite], head.fingerprint if head else None
        trials = self.pool.of(suite, state.outcome)
        exact = tuple(run for run in trials if run.fingerprint and run.fingerprint.tree == state.tree)
        if head is None or now is None:
            return own or exact or trials
        alike = tuple(
            run
            for run in trials[: head.config.pool.max_trials]
            if run.fingerprint
            and run.fingerprint.tree in {state.tree, now.tree}
            and is_of_platform(run.fingerprint, now)
        )
        return alike or own or exact or trials


def _by_age(run: RunResult) -> tuple[datetime, str]:
    return run.finished_at, run.run_id


def _by_suite(runs: Iterable[RunResult]) -> dict[str, list[RunResult]]:
    found: dict[str, list[RunResult]] = {}
    for run in runs:
        found.setdefault(run.suite, []).append(run)
    return found


def resolve_baseline(case: CiContext, target: BaselineTarget | None, own_run_id: int) -> BatchBaseline:
    """The baseline, or plainly why there is none; where a job before this one has found it, that one."""
    if case.pinned:
        return restored(case.pinned)
    if target is None:
        return BatchBaseline(words.SWITCHED_OFF, None)
    if case.api is None:
        return BatchBaseline(words.NO_TOKEN, None)
    try:
        commit = _commit(case, target)
    except GitHubError as problem:
        return BatchBaseline(words.not_readable(target.branch, None, problem), None)
    search = Search(
        commit=commit,
        branch=target.branch,
        job=identity_of(case.settings, case.evaluated),
        repository_id=case.settings.context.repository_id,
        own_run_id=own_run_id,
    )
    baseline = pooled_baseline(*find_baseline(case.api, search, case.now()), case.now())
    if baseline.origin.state in _NOTHING_USABLE:
        baseline = _of_default_branch(case, case.api, search, baseline.origin) or baseline
    if baseline.origin.state is BaselineState.NONE_YET:
        case.log.say(f"Looked for: the artifacts {search.job.stem}.* of this workflow's runs on {search.branch}.")
    return _counted(baseline)


def restored(pinned: PinnedPlan) -> BatchBaseline:
    """The baseline that was found when a plan was made."""
    pool = grouped(pinned.trials[key] for key in pinned.pool if key in pinned.trials)
    return BatchBaseline(pinned.baseline, pinned.results, pool, pinned.references, pinned.nights, pinned.damage)


# Where the base of a pull request has nothing, as the branches of other pull requests, which store none that counts.
_NOTHING_USABLE = frozenset({BaselineState.NONE_YET, BaselineState.EXPIRED, BaselineState.INVALID})


def _of_default_branch(case: CiContext, api: Api, search: Search, missing: BaselineOrigin) -> BatchBaseline | None:
    """For a stacked pull request, what the default branch has stored for the commit on which its base is based.

    Nothing where the workflow names the branch: its author wants that one.
    """
    default = default_branch(case.settings)
    if search.branch == default or case.settings.baseline_branch:
        return None
    case.log.say(f"{missing.sentence}. The default branch, {default}, is searched.")
    base = search.branch
    try:
        commit = merge_base(api, default, search.commit or base)
    except GitHubError as problem:
        case.log.say(f"The commit of {default} on which {base} is based is not known: {problem.message}")
        return None
    search = replace(search, branch=default, commit=commit)
    baseline = pooled_baseline(*find_baseline(api, search, case.now()), case.now())
    if baseline.results is None:
        return None
    return replace(baseline, origin=words.in_place_of(baseline.origin, base, case.now()))


def earlier_trials(
    case: CiContext,
    heads: Mapping[str, Fingerprint],
    made: Iterable[RunResult] = (),
    base: str | None = None,
) -> tuple[RunResult, ...]:
    """The trials of earlier runs of this pull request with the head's fingerprint: they add up.

    Otherwise a run could be repeated until chance turns it green.

    Args:
        case: The run.
        heads: By suite, the fingerprint of the head, or before there are trials the expected one.
        made: Trials of the run itself, which count anyway.
        base: The commit beside which the head runs: trials of it that ran beside those of the head count, too.

    Raises:
        GitHubError: GitHub did not tell.
    """
    if not heads:
        return ()
    now, here = case.now(), {(run.batch_id, run.run_id) for run in made}
    stored = [run for each in earlier_results(case) for run in each.trials]
    found = {(run.batch_id, run.run_id): run for run in stored if is_usable(run) and run.finished_at <= now}
    mine = _by_suite(run for key, run in found.items() if key not in here)
    counted = (run for name, head in heads.items() for run in _counted_for(mine.get(name, ()), head, base))
    return tuple(sorted(counted, key=_by_age))


def _counted_for(trials: Sequence[RunResult], head: Fingerprint, base: str | None) -> list[RunResult]:
    """Of one suite's trials, those of the head, and those of the base that ran beside them."""
    heads = same_as((run for run in trials if run.side is Side.HEAD), head)
    bases = (run for run in trials if run.side is Side.BASE and base and run.source and run.source.commit == base)
    return [*heads, *(run for run in bases if run.fingerprint and is_beside(run.fingerprint, head))]


def stored_for(
    case: CiContext,
    stored: BatchBaseline,
    planned: Mapping[str, Fingerprint],
    settings: Mapping[str, PoolSettings],
    base: str | None = None,
) -> dict[str, StoredTrials]:
    """Everything stored that counts for the suites of a run, before it has begun.

    Args:
        case: The run.
        stored: The baseline with its pool.
        planned: By suite, the expected fingerprint of the head.
        settings: By suite.
        base: The commit that runs beside the head.

    Raises:
        GitHubError: GitHub did not tell of earlier runs.
    """
    earlier = _by_suite(earlier_trials(case, planned, base=base))
    found = {}
    for name in planned:
        heads = tuple(run for run in earlier.get(name, ()) if run.side is Side.HEAD)
        bases = tuple(run for run in earlier.get(name, ()) if run.side is Side.BASE)
        found[name] = StoredTrials(head=heads, base=bases, stored=stored.stored(name, settings[name]))
    return found


def heads_of(runs: Iterable[RunResult]) -> dict[str, Fingerprint]:
    """By suite, the fingerprint of its newest valid trial."""
    return {run.suite: run.fingerprint for run in runs if is_valid(run) and run.fingerprint}


def pool_to_store(case: CiContext, result: CiResult) -> Pool:
    """What goes into the artifact beside the results.

    For the base branch, all trusted trials and the states of all suites; for a pull request, its own earlier trials.
    """
    batch, pool = result.batch, result.pool
    if not case.decision.is_of_base:
        return Pool(trials=(*result.earlier, *result.earlier_base))
    made = {(run.batch_id, run.run_id) for run in batch.runs}
    carried = tuple(run for run in pool.trials if (run.batch_id, run.run_id) not in made)
    return Pool(suites={**result.planned, **heads_of(batch.runs)}, trials=carried)


def pooled_baseline(origin: BaselineOrigin, sources: Sequence[StoredResults], now: datetime) -> BatchBaseline:
    """The baseline with the trials of all that was read, the nearest first."""
    if not sources:
        return BatchBaseline(origin, None)
    nearest = sources[0]
    # Of each suite, the limits that the newest run has, which is the base's own configuration.
    newest = sorted((run for source in sources for run in source.own_trials), key=_by_age)
    settings = {run.suite: run.config.pool for run in newest}
    pool = pool_of((source.own_trials for source in sources), lambda suite: settings[suite], now)
    references = {**nearest.pool.suites, **heads_of(nearest.batch.runs)}
    histories = [source.nights for source in sources if source.nights]
    nights = merged(histories, now)
    return BatchBaseline(origin, nearest.batch, pool, references, nights, nearest.damage)


def given(case: CiContext) -> BatchBaseline | None:
    """The baseline that the workflow names, read before anything is spent; absent where it names none.

    Raises:
        ConfigError: It holds no results.
    """
    path = case.settings.baseline
    if path is None:
        return None
    runs = _runs_in(path)
    batch = BatchResult(
        batch_id=runs[0].batch_id,
        started_at=min(run.started_at for run in runs),
        finished_at=max(run.finished_at for run in runs),
        runs=runs,
    )
    origin = BaselineOrigin(
        state=BaselineState.FOUND, sentence=words.from_file(path.name), created_at=batch.finished_at
    )
    return _counted(BatchBaseline(origin, batch))


def _runs_in(path: Path) -> tuple[RunResult, ...]:
    try:
        runs = read_results(path)
        why = "" if runs else f"{path} holds no run."
    except StorageError as problem:
        runs, why = (), problem.message
    if not runs:
        hint = "It takes a zelda-results.json that `zelda ci` left, or what `zelda run --json` printed."
        raise ConfigError(f"The input baseline cannot be used: {why}", hint=hint, code="INPUT_INVALID")
    return runs


def of_chosen(case: CiContext, baseline: BatchBaseline, batch: BatchResult, *, some: bool = False) -> BatchBaseline:
    """Of the stored results, those of the suites that were run: where some were chosen, the others were not removed."""
    if baseline.results is None or not (case.settings.suites or some):
        return baseline
    names = {run.suite for run in batch.runs}
    chosen = tuple(run for run in baseline.results.runs if run.suite in names)
    references = {name: each for name, each in baseline.references.items() if name in names}
    if chosen or references:
        return replace(baseline, results=baseline.results.replace(runs=chosen), references=references)
    return replace(baseline, origin=words.of_other_suites(baseline.origin), results=None)


def _commit(case: CiContext, target: BaselineTarget) -> str | None:
    """The commit that is wanted; where GitHub knows of none, the newest of the branch is the next best.

    Raises:
        GitHubError: It did not tell.
    """
    if target.commit or target.meeting is None or case.api is None:
        return target.commit
    try:
        return merge_base(case.api, *target.meeting)
    except GitHubError as problem:
        if problem.code != "GITHUB_NOT_FOUND":
            raise
        case.log.say(f"The commit on which this one is based is not known: {problem.message}")
        return None


def _counted(baseline: BatchBaseline) -> BatchBaseline:
    if baseline.results is None:
        return baseline
    trials = max(Counter(run.suite for run in baseline.results.runs).values(), default=None)
    return replace(baseline, origin=baseline.origin.replace(trials=trials))
