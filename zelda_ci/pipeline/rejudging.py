"""Stored runs before their judges again: first a word with each judge, then one run after the other."""

from collections.abc import Sequence
from datetime import UTC, datetime

from zelda_ci.domain.run import BatchResult
from zelda_ci.events import Emit
from zelda_ci.overrides import Overrides, apply
from zelda_ci.pipeline import checking, evaluation
from zelda_ci.pipeline.tools import JudgeFactory
from zelda_ci.storage.run_folder import FinishedRun


async def rejudge_each(
    runs: Sequence[FinishedRun], judging: JudgeFactory, overrides: Overrides, emit: Emit, *, check: bool
) -> BatchResult:
    """Judge stored runs again, one after the other, once each judge has answered.

    Raises:
        ZeldaError: A judge does not answer, or a run cannot be read or written.
    """
    started_at = datetime.now(UTC)
    async with judging.proxy:
        if check:
            suites = [apply(run.result().config, overrides) for run in runs]
            await checking.check_judges(suites, judging.proxy, judging.redact, emit)
        results = [await evaluation.rejudge(run, judging, emit, overrides) for run in runs]
    return BatchResult(
        batch_id=results[0].batch_id, started_at=started_at, finished_at=datetime.now(UTC), runs=tuple(results)
    )
