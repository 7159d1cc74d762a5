"""Suites are run, kept, compared, stored and told; each step leaves what the next may fail to add to."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from zelda_ci.ci import baseline, cancelled, nightly, publish, storing
from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.acceptances import apply_acceptances, pull_request_in
from zelda_ci.ci.baseline import BatchBaseline, of_chosen
from zelda_ci.ci.baseline_words import CANCELLED
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.earlier_runs import lost_attempts
from zelda_ci.ci.outputs import Files, json_of, write
from zelda_ci.compare.pool import summarize_pool
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.run import BatchResult, RunResult, StoredTrials, batch_of
from zelda_ci.domain.trials import PoolSettings
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.github.workflow_commands import empty
from zelda_ci.pipeline.batch import ending_signals, handlers_kept
from zelda_ci.pipeline.comparing import compare_arms, compare_sides
from zelda_ci.storage.references import SideReference


@dataclass(frozen=True)
class PushPlan:
    """What was found out before anything ran."""

    baseline: BatchBaseline | None = None
    fingerprints: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Of all suites, by name."""
    known: Mapping[str, int] = field(default_factory=dict)
    """Suites that need not run, with the number of their stored trials."""
    stored: Mapping[str, StoredTrials] | None = None
    """By suite, all that counts beside the trials to be made; absent where their number is fixed."""
    knows_earlier: bool = True
    """Whether GitHub could be asked for the trials of earlier runs, which are among these."""
    remarks: tuple[str, ...] = ()
    further: tuple[RunResult, ...] = ()
    """Where the number of trials is fixed: those of earlier attempts of jobs that share the run."""

    @property
    def new(self) -> tuple[str, ...]:
        """Of the suites with a fingerprint, those that need to run."""
        return tuple(name for name in self.fingerprints if name not in self.known)

    @property
    def trials(self) -> Iterator[RunResult]:
        """All stored ones that were found, some of them more than once."""
        if self.baseline:
            yield from self.baseline.trials_of_base
            yield from self.baseline.pool.trials
        for each in (self.stored or {}).values():
            yield from each.all

    @property
    def notes(self) -> list[str]:
        """Which suites are not run, and why; and what else is to be told."""
        return [*([words.not_run(self.known)] if self.known else []), *self.remarks]


def count_stored(
    case: CiContext,
    found: BatchBaseline,
    planned: Mapping[str, Fingerprint],
    settings: Mapping[str, PoolSettings],
) -> PushPlan:
    """Where trials are added as they are needed, what counts from the beginning.

    Args:
        case: The run.
        found: The baseline with its pool.
        planned: By suite, the expected fingerprint of the head.
        settings: By suite.
    """
    try:
        stored = baseline.stored_for(case, found, planned, settings, case.decision.base)
        remarks = tuple(filter(None, [lost_attempts(case)]))
    except GitHubError as problem:
        case.log.say(f"{words.EARLIER_UNKNOWN} {problem.message}")
        stored = baseline.stored_for(replace(case, api=None), found, planned, settings)
        return PushPlan(found, stored=stored, remarks=(words.EARLIER_UNKNOWN,), knows_earlier=False)
    return PushPlan(found, stored=stored, remarks=remarks)


def evaluate(case: CiContext, run: Callable[[], BatchResult], planned: PushPlan | None = None) -> int:
    """Tell the whole story; returns the exit code.

    Args:
        case: What is known before.
        run: Runs the suites.
        planned: What was found out for that already.

    Raises:
        ZeldaError: Nothing could be run, or its results could not be written.
    """
    planned = planned or PushPlan()
    case = replace(case, notes=(*case.notes, *planned.notes))
    files = Files.of(case)
    files.clear()
    baseline_given = baseline.given(case)
    batch = emptying(case, run)
    for note in batch.notes:
        case.log.report("warning", note, title="Not in the tested tree")
    case = replace(case, notes=(*case.notes, *batch.notes))
    # The baseline is what stays if the step is killed from here on.
    result = CiResult(batch, CANCELLED, cancelled=batch.interrupted, notes=[*case.notes])
    result.planned, result.refused = planned.fingerprints, case.refused
    _add_planned(result, planned)
    with undisturbed():
        try:
            write(files.results, json_of(batch))
        finally:
            publish.record(case, files, CiResult(batch, CANCELLED, cancelled=True, notes=[*case.notes]))
    _until_cancelled(
        case,
        result,
        lambda: _add_earlier(case, result, planned),
        lambda: _compare(case, files, result, baseline_given, planned),
        lambda: apply_acceptances(case, result, pull_request_in(case.settings.event)),
        lambda: storing.store_results(case, files, result),
        lambda: storing.store_transcripts(case, result),
        lambda: storing.store_report(case, files, result),
    )
    with undisturbed():
        publish.publish_results(case, files, result)
        if result.cancelled and result.artifact_id is None:
            _attempt(case, result, lambda: cancelled.store_trials(case, result))
    _until_cancelled(case, result, lambda: publish.comment(case, result))
    with undisturbed():
        publish.finish(case, files, result)
    return result.exit_code


def _add_planned(result: CiResult, planned: PushPlan) -> None:
    """What was known before anything ran is known also when the run is cancelled."""
    if planned.stored is not None:
        result.earlier = tuple(run for each in planned.stored.values() for run in each.head)
        result.earlier_base = tuple(run for each in planned.stored.values() for run in each.base)
        result.knows_earlier = planned.knows_earlier


def _add_earlier(case: CiContext, result: CiResult, planned: PushPlan) -> None:
    if planned.stored is None and not case.settings.baseline:  # who names a file asks GitHub for nothing
        _ask_for_earlier(case, result)
        result.earlier = (*result.earlier, *planned.further)
    if result.earlier:
        note = words.counted_too(len(result.earlier), len({run.batch_id for run in result.earlier}))
        result.notes.append(note)
        case.log.say(note)


def _ask_for_earlier(case: CiContext, result: CiResult) -> None:
    heads = baseline.heads_of(result.batch.runs)
    try:
        result.earlier = baseline.earlier_trials(case, heads, result.batch.runs)
        result.knows_earlier = True
        if lost := lost_attempts(case):
            result.notes.append(lost)
            case.log.say(lost)
    except GitHubError as problem:
        result.notes.append(words.EARLIER_UNKNOWN)
        case.log.say(f"{words.EARLIER_UNKNOWN} {problem.message}")


def _compare(
    case: CiContext, files: Files, result: CiResult, baseline_given: BatchBaseline | None, planned: PushPlan
) -> None:
    if result.batch.base and result.batch.base.problem:
        result.notes.append(f"nothing ran side by side with the base: {result.batch.base.problem}")
    if result.head and result.batch.is_planned_by_looks:
        compare_beside(case, result, planned.baseline, planned.stored or {})
        _write_comparison(files, result)
        return
    stored = baseline_given or planned.baseline or baseline.resolve_baseline(case, case.decision.target, case.run_id)
    if result.batch.runs:
        stored = of_chosen(case, stored, result.batch, some=bool(planned.known))
        stored = stored.against(result.batch.runs, case.now())
    result.nights = stored.nights
    if nightly.is_nightly(case):
        nightly.keep_watch(case, result, stored)
    result.pool, result.baseline, result.stored = stored.pool, stored.origin, stored.results
    case.log.say(stored.origin.sentence)
    result.notes += words.worth_a_note(stored.origin)
    if stored.results is None or not result.batch.runs:
        return
    sides = SideReference("the baseline", stored.results.runs), SideReference("this run", result.head)
    result.compared = compare_sides(*sides, {})
    _write_comparison(files, result)


def _write_comparison(files: Files, result: CiResult) -> None:
    if result.comparison:
        write(files.comparison, json_of(result.comparison))


def compare_beside(
    case: CiContext, result: CiResult, found: BatchBaseline | None, stored: Mapping[str, StoredTrials]
) -> None:
    """Compare with the base that ran beside the head, in this job or in the one whose results are told.

    Args:
        case: The run.
        result: What was run; told what the comparison shows.
        found: The stored baseline, where it was looked for.
        stored: By suite, what counts beside the trials of the run.
    """
    batch, bases = result.batch, (*result.earlier_base, *result.batch.base_runs)
    result.compared = compare_arms(batch, stored)
    branch = found.origin.branch if found else ""
    origin = found.origin if found else result.baseline
    if batch.base and batch.base.commit:
        branch = (case.decision.target.branch if case.decision.target else branch) or ""
        origin = words.side_by_side(branch, batch.base.commit, len(result.head), len(bases))
    if pool := summarize_pool(run for each in stored.values() for run in each.stored):
        origin = words.with_pool(origin, pool, case.now())
    result.baseline = origin
    case.log.say(origin.sentence)
    result.notes.append(origin.sentence)
    result.stored = batch_of(bases) if bases else None


def _until_cancelled(case: CiContext, result: CiResult, *steps: Callable[[], None]) -> None:
    """After a signal nothing more is asked of anybody far away: the runner waits for seconds only."""
    try:
        for step in steps if not result.cancelled else ():
            _attempt(case, result, step)
    except KeyboardInterrupt:
        result.cancelled = True


def _attempt(case: CiContext, result: CiResult, step: Callable[[], None]) -> None:
    """What fails here is told beside the results, which are there already."""
    try:
        step()
    except ZeldaError as problem:
        result.notes.append(problem.message)
        case.log.report("warning", problem.user_message, title="Zelda")


def emptying(case: CiContext, run: Callable[[], BatchResult]) -> BatchResult:
    """What a run of suites gives; however it ends, nothing stays in the files in which we speak to the runner.

    Whatever ran in the sessions may have found them.
    """
    try:
        with handlers_kept():
            return run()
    finally:
        with undisturbed():
            empty(case.settings.context.command_files.values())


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is told on this machine takes an instant, and is told to its end."""
    with handlers_kept():
        for number in ending_signals():
            signal.signal(number, signal.SIG_IGN)
        yield
