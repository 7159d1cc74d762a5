"""Comparing two sides: stored runs in, verdicts and gate out, and what reports say of them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from zelda_ci.compare.comparison import compare, compare_trials
from zelda_ci.compare.gate import failures, gate, recorded_settings
from zelda_ci.compare.pool import TrialPool, is_valid, pool_of
from zelda_ci.compare.schedule import of_stored
from zelda_ci.domain.comparison import SAME_FILES, BaselineOrigin, BaselineState, Comparison, GateResult
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult, StoredComparison, StoredTrials, batch_of
from zelda_ci.domain.suite import GateSettings
from zelda_ci.domain.trials import PoolSettings, Side
from zelda_ci.errors import StorageError
from zelda_ci.report.ci_report import CiReport, PullRequestChanges
from zelda_ci.selection.choice import line_changes
from zelda_ci.storage.references import SideReference
from zelda_ci.storage.result_store import ResultStore, is_run_id


@dataclass(frozen=True)
class Compared:
    """What a comparison says, and what the gate makes of it."""

    comparison: Comparison
    gate: GateResult
    broken: tuple[str, ...] = ()
    """Suites of which no run of the candidate could be evaluated: nothing stands against them, and nothing for them."""


def compare_sides(
    baseline: SideReference,
    candidate: SideReference,
    gates: Mapping[str, GateSettings],
    *,
    allow_mixed: bool = False,
    pair_suites: bool = False,
) -> Compared:
    """Compare, and judge by the gates of suites as they are configured now; others have the one recorded with them.

    `allow_mixed` shows deltas even where the sides differ in more than the steering files; `pair_suites` compares the
    only suites of two sides even if they are different ones. Both have runs.
    """
    # Under today's gate: its tolerance is part of the comparison.
    runs = tuple(
        run.replace(config=run.config.replace(gate=gates[run.suite])) if run.suite in gates else run
        for run in candidate.runs
    )
    comparison = compare(baseline.runs, runs, allow_mixed=allow_mixed, pair_suites=pair_suites)
    suites = (
        suite.replace(notes=(SAME_FILES, *suite.notes)) if _is_same(suite.suite, baseline.runs, runs) else suite
        for suite in comparison.suites
    )
    return _judged(batch_of(runs), comparison.replace(suites=tuple(suites)), baseline.runs)


def _is_same(suite: str, *sides: Iterable[RunResult]) -> bool:
    """Whether nothing that a trial's outcome depends on differs within the sides or between them."""
    valid = [[run.fingerprint for run in side if run.suite == suite and is_valid(run)] for side in sides]
    found = {(state.outcome, state.tree, state.platform) for states in valid for state in states if state}
    return len(found) == 1 and all(valid)


def compare_arms(batch: BatchResult, stored: Mapping[str, StoredTrials]) -> Compared:
    """The two arms of an invocation at the looks that were fixed, with the stored trials that were counted."""
    base = batch.base.commit if batch.base else None
    suites, heads, bases = [], list[RunResult](), list[RunResult]()
    for arms in batch.arms:
        known = stored.get(arms.suite, StoredTrials())
        own, beside = ([run for run in runs if run.suite == arms.suite] for runs in (batch.runs, batch.base_runs))
        # Those of the base that ran beside earlier trials of this head count as these trials do.
        trials = known.replace(head=(*known.head, *own), base=(*known.base, *beside))
        suites.append(of_stored(arms.suite, arms.trials, trials, has_base=bool(base)))
        heads += trials.head
        bases += trials.base
    # Of stored trials those of the head's code or of the very base: of other code one excuses no failing command.
    trees = {(head.suite, head.fingerprint.tree) for head in batch.runs if head.fingerprint}
    excusing = [
        run
        for each in stored.values()
        for run in each.stored
        if (base and run.source and run.source.commit == base)
        or (run.fingerprint and (run.suite, run.fingerprint.tree) in trees)
    ]
    return _judged(batch.replace(runs=tuple(heads), base_runs=tuple(bases)), compare_trials(suites), excusing)


def _judged(batch: BatchResult, comparison: Comparison, known: Iterable[RunResult]) -> Compared:
    evaluated = {run.suite for run in batch.runs if run_outcome(run) < Outcome.INCOMPLETE}
    broken = sorted({run.suite for run in batch.runs} - evaluated)
    return Compared(comparison, gate(batch, recorded_settings(batch.runs), comparison, known), tuple(broken))


def keep_comparison(results_dir: Path, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> None:
    """Store what the comparison of two arms rests on."""
    counted, sides = [stored[arms.suite] for arms in batch.arms if arms.suite in stored], ("head", "base", "stored")
    head, base, known = (tuple(run.run_id for it in counted for run in getattr(it, side)) for side in sides)
    runs, bare = tuple(run.run_id for run in (*batch.runs, *batch.base_runs)), batch.replace(runs=(), base_runs=())
    kept = StoredComparison(batch=bare, runs=runs, head=head, base=base, stored=known)
    ResultStore(results_dir).keep_comparison(kept)


def kept_comparison(results_dir: Path, batch_id: str) -> tuple[Compared, CiReport] | None:
    """A stored invocation with two arms, compared again, and its report with what `zelda why` has found since.

    None where it compared nothing; raises StorageError where a run that was counted cannot be read.
    """
    store = ResultStore(results_dir)
    if (kept := store.comparison(batch_id)) is None:
        return None
    try:
        runs = [store.result(run_id) for run_id in kept.runs]
        found = kept.each(lambda ids: tuple(map(store.result, ids)))
    except StorageError as problem:
        hint = "`zelda show RUN` shows each that is left; `zelda run --against REF` compares again."
        message = f"The comparison of {batch_id} rests on a run that cannot be read: {problem.message}"
        raise StorageError(message, hint=hint, code="STORAGE_UNREADABLE") from problem
    suites = [arms.suite for arms in kept.batch.arms]
    counted = {name: found.each(lambda runs: tuple(r for r in runs if r.suite == name)) for name in suites}  # noqa: B023
    head, base = (tuple(run for run in runs if run.side is side) for side in (Side.HEAD, Side.BASE))
    batch = kept.batch.replace(runs=head, base_runs=base)
    compared = compare_arms(batch, counted)
    return compared, replace(report_of(batch, compared), attributions=store.attributions(batch_id))


def changed_steering(
    history: ResultStore, baseline: Iterable[RunResult], candidate: Iterable[RunResult]
) -> tuple[SteeringChange, ...]:
    """The files that steer and differ between two sides, as far as the newest run of each that is stored here knows."""
    found: list[Mapping[str, Sequence[str]]] = []
    for side in (baseline, candidate):
        newest = sorted(side, key=lambda run: run.started_at, reverse=True)
        # Results may come from a file that somebody else has made: an id is no path that leads elsewhere.
        stored = (history.run(run.run_id).steering() for run in newest if is_run_id(run.run_id))
        found += [lines for lines in stored if lines is not None][:1]
    return line_changes(*found) if len(found) == 2 else ()


def report_of(
    batch: BatchResult,
    compared: Compared | None = None,
    baseline: BatchResult | None = None,
    changed: Sequence[SteeringChange] = (),
) -> CiReport:
    """What reports say of runs: alone, or compared, either with the base beside them or with another batch."""
    if compared is None:
        without = BaselineOrigin(state=BaselineState.OFF, sentence="")
        return CiReport(batch, failures(batch, recorded_settings(batch.runs)), without)
    commits, created_at = {batch.base.commit if batch.base else None}, None
    if baseline:
        commits = {run.source.commit for run in baseline.runs if run.source and run.source.commit}
        created_at = baseline.finished_at
    commit = commits.pop() if len(commits) == 1 else None
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence="", commit=commit, created_at=created_at)
    changes = PullRequestChanges(steering=batch.base.changed if batch.base else tuple(changed))
    return CiReport(batch, compared.gate, origin, compared.comparison, baseline, changes=changes)


# Results that are read for a pool, as a multiple of the trials that one state of a suite may have: stored runs are of
# many states, and only the result says of which.
STATES_READ = 5


def stored_pool(
    history: ResultStore, settings: Mapping[str, PoolSettings], now: datetime, variant: str | None = None
) -> TrialPool:
    """The `newest_results` of suites as a pool, by their settings: on a laptop they are nobody else's."""
    numbers = {name: STATES_READ * limits.max_trials for name, limits in settings.items()}
    found = newest_results(history, numbers, variant)
    found = [run for run in found if run_outcome(run) is not Outcome.INCOMPLETE]
    return pool_of([found], lambda suite: settings[suite], now)


def newest_results(history: ResultStore, numbers: Mapping[str, int], variant: str | None = None) -> list[RunResult]:
    """The newest results of suites, so many of each, that can be read and are of no other variant of the files."""
    left, found = dict(numbers), list[RunResult]()
    for run in history.overview().runs:
        if left.get(run.suite) and run.variant in (None, variant):
            left[run.suite] -= 1
            with suppress(StorageError):
                found.append(history.result(run.run_id))
    return found
