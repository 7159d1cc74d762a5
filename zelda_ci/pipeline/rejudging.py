"""The story of judging a stored run again: no session, no workspace, what was kept is what is judged."""

from zelda_ci.domain.evaluation import EvalContext, EvalResult, Metric
from zelda_ci.domain.loading import settle
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.workspace import Changes
from zelda_ci.events import Emit, Warned
from zelda_ci.pipeline.evaluation import checks
from zelda_ci.pipeline.judging import Judging
from zelda_ci.storage.finished_run import FinishedRun
from zelda_ci.storage.run_folder import stored_manifest


async def rejudge(stored: FinishedRun, judging: Judging, emit: Emit, *, judge_model: str | None = None) -> RunResult:
    """Judge a run again by its own configuration, and put the new verdicts in the place of the old ones.

    A verdict that could not be had again does not replace one that is there.

    Returns:
        What this judging came to: as stored, but with failures where they replaced nothing.

    Raises:
        StorageError: The run cannot be read, or its result not be written.
    """
    run = stored.result()
    if judge_model:
        judge = run.config.judge.model_copy(update={"model": judge_model})
        run = run.model_copy(
            update={"config": run.config.model_copy(update={"judge_model": judge_model, "judge": judge})}
        )
    transcript, offered = stored.transcript(), stored_manifest(stored.path)
    context = EvalContext(
        run.config,
        None,
        transcript,
        run.api,
        _changes(run, stored),
        checks=checks(run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS), judging.redact),
        manifest=settle(offered, transcript, judging.redact) if offered else None,
    )
    court = judging.court(run.run_id, context)
    await court.sit()
    for notice in court.notices:
        emit(Warned(notice, run.run_id))
    fresh = {result.metric: result for result in court.results}
    judged = run.model_copy(update={"judge": court.usage() or run.judge, "evaluations": run.evaluations | fresh})
    kept = {metric: result for metric, result in fresh.items() if not _is_worse(result, run.evaluations.get(metric))}
    if kept:
        stored.rewrite(judged.model_copy(update={"evaluations": _ordered(run.evaluations | kept)}))
    return judged.model_copy(update={"evaluations": _ordered(judged.evaluations)})


def _is_worse(new: EvalResult, old: EvalResult | None) -> bool:
    return new.failed and old is not None and not old.failed


def _ordered(evaluations: dict[Metric, EvalResult]) -> dict[Metric, EvalResult]:
    return {metric: evaluations[metric] for metric in Metric if metric in evaluations}


def _changes(run: RunResult, stored: FinishedRun) -> Changes | None:
    if run.changes is None:
        return None
    known = run.changes
    return Changes(
        files=known.files,
        insertions=known.insertions,
        deletions=known.deletions,
        patch=stored.patch_file,
        patch_bytes=known.patch_bytes,
        truncated=known.truncated,
    )
