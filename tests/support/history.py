"""Stored runs, made through storage as a run would."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.builders import session
from tests.unit.compare.runs import START, correctness, efficiency, fulfillment, run, tool_usage
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.storage.result_store import ResultStore

PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\x1b[31m\n"


def store(
    results: Path,
    suite: str = "alpha",
    minute: int = 0,
    evaluations: Any = (),
    *,
    batch: str = "batch-1",
    trial: int = 1,
    transcript: SessionTranscript | None = None,
    patch: str | None = PATCH,
    **fields: Any,
) -> RunResult:
    """Store a run that began so many minutes after `START`."""
    folder = ResultStore(results).begin(suite, START + timedelta(minutes=minute))
    made = run(evaluations, suite=suite, run_id=folder.run_id, at=minute, **fields)
    made = made.model_copy(update={"batch_id": batch, "trial": trial})
    told = (transcript or session("Read a.py", '"Done."')).model_copy(update={"run_id": folder.run_id})
    folder.announce(made)
    if patch is not None:
        folder.patch_file.write_text(patch)
    folder.finish(made, told)
    return made


def store_sides(results: Path, *, trials: int = 5) -> tuple[str, str]:
    """Two invocations: in the second one `alpha` lost a criterion and costs more, `beta` is as it was, `gamma` new."""
    for n in range(trials):
        good = [efficiency(cost=0.1 + 0.01 * n, turns=8 + n % 2, tools={"Read": 3}), correctness(), fulfillment("PPP")]
        bad = [efficiency(cost=0.3 + 0.01 * n, turns=12 + n % 2, tools={"Bash": 3}), correctness(), fulfillment("PFP")]
        usage, missed = tool_usage(used={"Read": 3}), tool_usage(used={"Bash": 3}, missed=["mcp__db__query"])
        store(results, "alpha", n, [*good, usage], batch="old")
        store(results, "beta", n, good, batch="old")
        store(results, "alpha", 60 + n, [*bad, missed], batch="new")
        store(results, "beta", 60 + n, good, batch="new")
        store(results, "gamma", 60 + n, [efficiency()], batch="new")
    return "old", "new"
