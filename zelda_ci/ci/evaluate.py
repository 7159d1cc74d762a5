"""Suites are run, kept, compared, stored and told; each step leaves what the next may fail to add to."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from zelda_ci.ci import baseline, nightly, publish, storing
from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.acceptances import apply_acceptances, pull_request_in
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.evidence import Evidence
from zelda_ci.ci.outputs import Files, json_of, write
from zelda_ci.compare.pool import summarize_pool
from zelda_ci.domain.run import BatchResult, batch_of
from zelda_ci.errors import ZeldaError
from zelda_ci.github.workflow_commands import empty
from zelda_ci.pipeline.batch import ending_signals, handlers_kept
from zelda_ci.pipeline.comparing import compare_arms, compare_sides
from zelda_ci.storage.references import SideReference


def evaluate(case: CiContext, run: Callable[[], BatchResult], evidence: Evidence) -> int:
    """Run the suites, compare, store and report; returns the exit code.

    Raises:
        ZeldaError: Nothing could be run, or its results could not be written.
    """
    files = Files(case)
    files.clear()
    batch = emptying(case, run)
    for note in batch.notes:
        case.log.report("warning", note, title="Not in the tested tree")
    # The baseline is what stays if the step is killed from here on.
    result = CiResult(batch, words.CANCELLED, evidence=evidence, cancelled=True)
    result.notes += [*case.notes, *evidence.remarks, *batch.notes]
    result.refused, result.nights = case.refused, evidence.nights
    with undisturbed():
        try:
            write(files.results, json_of(batch))
        finally:
            publish.record(case, files, result)
    result.cancelled = batch.interrupted
    _until_cancelled(
        case,
        result,
        lambda: _add_earlier(case, result),
        lambda: compare(case, result, files),
        lambda: apply_acceptances(case, result, pull_request_in(case.settings.event)),
        lambda: storing.store_results(case, files, result),
        lambda: storing.store_transcripts(case, result),
        lambda: storing.store_report(case, files, result),
    )
    with undisturbed():
        publish.publish_results(case, files, result)
        if result.cancelled and result.artifact_id is None:
            _attempt(case, result, lambda: storing.store_trials(case, result))
    _until_cancelled(case, result, lambda: publish.comment(case, result))
    with undisturbed():
        publish.finish(case, files, result)
    return result.exit_code


def _add_earlier(case: CiContext, result: CiResult) -> None:
    before, runs = result.evidence, result.batch.runs
    if before.limits is None and not case.settings.baseline:  # who names a file asks GitHub for nothing
        result.evidence = baseline.with_earlier(case, before, baseline.heads_of(runs), runs)
        result.notes += result.evidence.remarks[len(before.remarks) :]
    if earlier := result.evidence.heads:
        note = words.counted_too(len(earlier), len({run.batch_id for run in earlier}))
        result.notes.append(note)
        case.log.say(note)


def compare(case: CiContext, result: CiResult, files: Files | None = None) -> None:
    """Compare with the base that ran beside the head, in whichever job that was; else with what is stored."""
    batch, found = result.batch, result.evidence
    if batch.base and batch.base.problem:
        result.notes.append(f"nothing ran side by side with the base: {batch.base.problem}")
    if result.head and batch.is_planned_by_looks:
        found = _compare_beside(case, result, found)
        result.notes.append(found.origin.sentence)
    else:
        if batch.runs:
            found = found.against(batch.runs, case.now(), is_choice=bool(case.settings.suites or found.known))
        if nightly.is_nightly(case):
            nightly.keep_watch(case, result, found)
        # Where the baseline is not what everybody expects it to be.
        result.notes += [found.origin.sentence] if found.origin.stands_for or found.origin.workflow else []
        if found.results and batch.runs:
            sides = SideReference("the baseline", found.results.runs), SideReference("this run", result.head)
            result.compared = compare_sides(*sides, {})
    result.evidence, result.baseline = found, found.origin
    case.log.say(found.origin.sentence)
    if files and result.comparison:
        write(files.comparison, json_of(result.comparison))


def _compare_beside(case: CiContext, result: CiResult, found: Evidence) -> Evidence:
    batch, origin, bases = result.batch, found.origin, result.bases
    result.compared = compare_arms(batch, found.stored)
    if batch.base and batch.base.commit:
        branch = case.decision.target.branch if case.decision.target else origin.branch
        origin = words.side_by_side(branch or "", batch.base.commit, len(result.head), len(bases))
    if pool := summarize_pool(run for each in found.stored.values() for run in each.stored):
        origin = words.with_pool(origin, pool, case.now())
    return found.replace(origin=origin, results=batch_of(bases) if bases else None)


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
