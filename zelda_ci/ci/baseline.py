"""What a run in CI is compared with: a file, or what GitHub stores for the commit that fits best."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from zelda_ci.ci.baseline_search import Search, StoredBaseline, find_baseline
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import BaselineTarget
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.errors import ConfigError, GitHubError, StorageError
from zelda_ci.github.revisions import merge_base
from zelda_ci.report.builders import baseline as words
from zelda_ci.storage import codec
from zelda_ci.storage.references import read_results

BatchBaseline = StoredBaseline[BatchResult]


def resolve_baseline(case: CiContext, target: BaselineTarget | None, own_run_id: int) -> BatchBaseline:
    """The baseline, or plainly why there is none."""
    if target is None:
        return StoredBaseline(words.SWITCHED_OFF, None)
    if case.api is None:
        return StoredBaseline(words.NO_TOKEN, None)
    try:
        commit = _commit(case, target)
    except GitHubError as problem:
        return StoredBaseline(words.not_readable(target.branch, None, problem), None)
    search = Search(
        commit=commit,
        branch=target.branch,
        artifact_name=case.settings.artifact_name,
        repository_id=case.settings.context.repository_id,
        own_run_id=own_run_id,
    )
    baseline = find_baseline(case.api, search, read=read_batch, now=case.now())
    if baseline.origin.state is BaselineState.NONE_YET:
        case.log.say(f"Looked for: the artifact {search.artifact_name} of this workflow's runs on {search.branch}.")
    return _counted(baseline)


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
    return _counted(StoredBaseline(origin, batch))


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


def read_batch(data: bytes) -> BatchResult:
    """Results from the bytes of their file.

    Raises:
        StorageError: They are none, or none at all.
    """
    batch = codec.decode_batch(data, "zelda-results.json")
    if not batch.runs:
        raise StorageError("it holds no run", code="NO_RUNS")
    return batch


def of_chosen(case: CiContext, baseline: BatchBaseline, batch: BatchResult) -> BatchBaseline:
    """Of the stored results, those of the suites that were run: where some were chosen, the others were not removed."""
    if baseline.results is None or not case.settings.suites:
        return baseline
    names = {run.suite for run in batch.runs}
    chosen = tuple(run for run in baseline.results.runs if run.suite in names)
    if chosen:
        return replace(baseline, results=baseline.results.replace(runs=chosen))
    return StoredBaseline(words.of_other_suites(baseline.origin), None)


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
    trials = max(Counter(run.suite for run in baseline.results.runs).values())
    return replace(baseline, origin=baseline.origin.replace(trials=trials))
