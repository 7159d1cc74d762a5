"""Suites are run, kept, compared, stored and told; each step leaves what the next may fail to add to."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from zelda_ci.ci import baseline, publish
from zelda_ci.ci.baseline import BatchBaseline, of_chosen
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.outputs import Files, json_of, members, provenance, write
from zelda_ci.domain.run import BatchResult
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.github.workflow_commands import empty
from zelda_ci.pipeline.comparing import compare_sides
from zelda_ci.report.builders.baseline import CANCELLED
from zelda_ci.report.builders.ci import NOT_STORED
from zelda_ci.storage.references import Calibrations, SideReference

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def evaluate(case: CiContext, run: Callable[[], BatchResult]) -> int:
    """Tell the whole story; returns the exit code.

    Raises:
        ZeldaError: Nothing could be run, or its results could not be written.
    """
    files = Files.of(case)
    files.clear()
    baseline_given = baseline.given(case)
    with _handlers_kept():
        batch = run()
    # The baseline is what stays if the step is killed from here on.
    result = CiResult(batch, CANCELLED, cancelled=batch.interrupted, notes=[*case.notes])
    with _undisturbed():
        # Whatever ran in the sessions may have found the files in which we speak to the runner.
        empty(case.settings.context.command_files.values())
        try:
            write(files.results, json_of(batch))
        finally:
            publish.record(case, files, CiResult(batch, CANCELLED, cancelled=True, notes=[*case.notes]))
    _until_cancelled(
        case, result, lambda: _compare(case, files, result, baseline_given), lambda: _store(case, files, result)
    )
    with _undisturbed():
        publish.publish_results(case, files, result)
    _until_cancelled(case, result, lambda: publish.comment(case, result))
    with _undisturbed():
        publish.finish(case, files, result)
    return result.exit_code


def _compare(case: CiContext, files: Files, result: CiResult, baseline_given: BatchBaseline | None) -> None:
    stored = of_chosen(
        case, baseline_given or baseline.resolve_baseline(case, case.decision.target, case.run_id), result.batch
    )
    result.baseline, result.stored = stored.origin, stored.results
    case.log.say(stored.origin.sentence)
    if stored.results is None or not result.batch.runs:
        return
    sides = SideReference("the baseline", stored.results.runs), SideReference("this run", result.batch.runs)
    result.compared = compare_sides(*sides, Calibrations(case.results_dir), {})
    write(files.comparison, json_of(result.compared.comparison))


def _store(case: CiContext, files: Files, result: CiResult) -> None:
    """Upload; where GitHub does not take it, the files are in the workspace still."""
    settings = case.settings
    base_commit = result.baseline.wanted or (case.decision.target.commit if case.decision.target else None)
    origin = provenance(case, result.batch, base_commit)
    write(files.provenance, json_of(origin))
    try:
        uploaded = case.artifacts().upload(
            settings.artifact_name,
            members(case, files, result.batch, origin),
            retention_days=settings.retention_days,
        )
    except GitHubError as problem:
        result.notes.append(f"{NOT_STORED}: {problem.message}")
        # A `run` step on the runner itself never has the service: actions/upload-artifact can store the folder.
        expected = problem.code == "ARTIFACTS_UNAVAILABLE"
        message = problem.user_message
        if expected:
            message += f"\nThe results are in {files.results.parent}; store it under the name {settings.artifact_name}."
        case.log.report("notice" if expected else "warning", message, title=NOT_STORED)
        return
    result.artifact_id = uploaded.id
    case.log.say(f"Stored as the artifact {settings.artifact_name} ({uploaded.size:,} bytes).")


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


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What is told on this machine takes an instant, and is told to its end."""
    with _handlers_kept():
        for name in SIGNALS:
            signal.signal(name, signal.SIG_IGN)
        yield


@contextmanager
def _handlers_kept() -> Iterator[None]:
    # The event loop that handles signals while suites run leaves them to their defaults: SIGTERM would kill us.
    before = {name: signal.getsignal(name) for name in SIGNALS}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
