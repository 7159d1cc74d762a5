"""Runs the suites; compares, stores and reports what they show. Each step leaves what the next may fail to add to."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from zelda_ci.ci import baseline, publish, storing
from zelda_ci.ci.acceptances import apply_acceptances
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.evidence import Evidence, with_pool
from zelda_ci.ci.nightly import keep_watch
from zelda_ci.ci.stored_artifacts import RESULTS
from zelda_ci.compare.pool import summarize_pool
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.run import BatchResult, batch_of
from zelda_ci.errors import ZeldaError
from zelda_ci.files.atomic import write_whole
from zelda_ci.pipeline.batch import ending_signals, handlers_kept
from zelda_ci.pipeline.comparing import compare_arms, compare_sides
from zelda_ci.report.comment.annotations import closing_line
from zelda_ci.report.text import json_of
from zelda_ci.storage.references import SideReference

T = TypeVar("T")


def evaluate(
    case: CiContext,
    run: Callable[[], BatchResult],
    evidence: Evidence,
    explain: Callable[[CiResult], None] = lambda _: None,
) -> int:
    """Run the suites, compare, store and report; returns the exit code. What got worse, `explain` looks into.

    Raises:
        ZeldaError: Nothing could be run, or its results could not be written.
    """
    storing.clear_files(case)
    batch = emptying(case, run)
    for note in batch.notes:
        case.log.report("warning", note, title="Not in the tested tree")
    # Cancelled, and without a comparison, is what stays if the step is killed from here on.
    result = CiResult(case, batch, evidence, cancelled=True, notes=[*case.notes, *evidence.remarks, *batch.notes])
    with undisturbed():
        try:
            write_whole(case.output / RESULTS, [json_of(batch).encode()], durable=False)
        finally:
            publish.record(result, quiet=True)
    result.cancelled = batch.interrupted
    looking = (_add_earlier, keep_watch, compare, lambda it: emptying(case, partial(explain, it)))
    steps = (*looking, apply_acceptances, storing.store_results, storing.store_pages)
    _until_cancelled(result, *steps)
    with undisturbed():
        publish.publish_results(result)
        if result.cancelled and "artifact-id" not in result.outputs:
            storing.store_trials(result)
    _until_cancelled(result, publish.comment)
    with undisturbed():
        publish.record(result, quiet=True)
        case.log.say(closing_line(result.report))
    return result.report.outcome.exit_code


def _add_earlier(result: CiResult) -> None:
    before, made = result.evidence, result.batch.runs
    if before.limits is None and not result.case.settings.baseline:  # who names a file asks GitHub for nothing
        result.evidence = baseline.with_earlier(result.case, before, baseline.heads_of(made), made)
        result.notes += result.evidence.remarks[len(before.remarks) :]
    if earlier := result.evidence.heads:
        runs, are = len({run.batch_id for run in earlier}), "is" if len(earlier) == 1 else "are"
        result.note(
            f"{format_count(len(earlier), 'trial')} of {format_count(runs, 'earlier run')} of this pull request, with "
            f"the same files and settings, {are} counted, too: running again adds trials and replaces none."
        )


def compare(result: CiResult) -> None:
    """Compare with the base that ran beside the head, in whichever job that was; else with what is stored."""
    case, batch, found = result.case, result.batch, result.evidence
    origin, bases = found.origin, result.bases
    if batch.base and batch.base.problem:
        result.notes.append(f"nothing ran side by side with the base: {batch.base.problem}")
    if result.head and batch.is_planned_by_looks:
        result.compared = compare_arms(batch, found.stored)
        if batch.base and batch.base.commit:
            branch = case.decision.target.branch if case.decision.target else origin.branch
            origin = baseline.side_by_side(branch or "", batch.base.commit, len(result.head), len(bases))
        if pool := summarize_pool(run for each in found.stored.values() for run in each.stored):
            origin = with_pool(origin, pool, case.now())
        found = found.replace(origin=origin, results=batch_of(bases) if bases else None)
        result.notes.append(origin.sentence)
    elif batch.runs:
        found = found.against(batch.runs, case.now(), is_choice=bool(case.settings.suites) or found.new is not None)
        if found.results:
            sides = SideReference("the baseline", found.results.runs), SideReference("this run", result.head)
            result.compared = compare_sides(*sides, {})
    result.evidence, result.baseline = found, found.origin
    case.log.say(found.origin.sentence)


def _until_cancelled(result: CiResult, *steps: Callable[[CiResult], None]) -> None:
    """Do what adds to results that are there already; what fails is noted beside them.

    After a signal nothing more is asked of anybody far away: the runner waits for seconds only.
    """
    try:
        for step in steps if not result.cancelled else ():
            try:
                step(result)
            except ZeldaError as problem:
                result.notes.append(problem.message)
    except KeyboardInterrupt:
        result.cancelled = True


def emptying(case: CiContext, run: Callable[[], T]) -> T:
    """What a run of suites gives; however it ends, nothing stays in the files in which we speak to the runner.

    Whatever ran in the sessions may have found them.
    """
    try:
        with handlers_kept():
            return run()
    finally:
        with undisturbed():
            case.log.forget_files()


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is written on this machine takes an instant, and is written to its end."""
    with handlers_kept():
        for number in ending_signals():
            signal.signal(number, signal.SIG_IGN)
        yield
