"""What a list shows of a file is what the whole result says."""

import orjson
import pytest

from tests.unit.compare.runs import correctness, efficiency, fulfillment, run, tool_usage, unscored
from zelda_ci.domain.history import at_a_glance
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import JudgeUsage, RunResult
from zelda_ci.domain.session import ApiUsage, ModelUsage, SessionStatus
from zelda_ci.storage import codec
from zelda_ci.storage.codec import UnreadableError, summarize_run

NAME = "alpha-2026-02-13T14-30-00"


def judge(cost: float, *, known: bool = True) -> JudgeUsage:
    return JudgeUsage(requests=1, models={"j": ModelUsage(cost_usd=cost, cost_known=known)})


FULL = run([efficiency(cost=0.5, turns=7), correctness(50), fulfillment("PF"), tool_usage()], run_id=NAME)
RESULTS = {
    "everything": FULL,
    "incomplete": run([efficiency(), fulfillment("P?")], run_id=NAME),
    "incomplete, by an older Zelda": run(
        [efficiency(), fulfillment("P?").model_copy(update={"failed": False, "score": 100.0})], run_id=NAME
    ),
    "nothing": run(run_id=NAME, status=SessionStatus.FAILED),
    "unscored": run([efficiency(), unscored(Metric.TOOL_USAGE)], run_id=NAME),
    "wire only": run(run_id=NAME).model_copy(
        update={"api": ApiUsage(requests=2, models={"m": ModelUsage(cost_usd=0.25, cost_known=False)})}
    ),
    "judged": FULL.model_copy(update={"judge": judge(0.25)}),
    "judged at a guess, and no session": run(run_id=NAME).model_copy(update={"judge": judge(0.25, known=False)}),
    "no source": FULL.model_copy(update={"source": None, "replayed": True}),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_glance_sees_what_the_whole_result_says(result: RunResult) -> None:
    assert summarize_run(codec.encode(result, indent=2), NAME) == at_a_glance(result)


def changed(**fields: object) -> bytes:
    return orjson.dumps(orjson.loads(codec.encode(FULL, indent=2)) | fields)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "RESULT_DAMAGED"),
        (codec.encode(FULL, indent=2)[:-40], "RESULT_DAMAGED"),
        (b'{"runs": []}', "RESULT_FOREIGN"),
        (orjson.dumps({"schemaVersion": 1, "evaluations": {"efficiency": {"details": 3}}}), "RESULT_FOREIGN"),
        (changed(schemaVersion=2, config=3), "RESULT_NEWER"),
        (changed(status="dancing"), "RESULT_FOREIGN"),
        (changed(startedAt="yesterday"), "RESULT_FOREIGN"),
        (changed(startedAt="2026-02-13T14:30:00"), "RESULT_FOREIGN"),
        (changed(startedAt="0001-01-01T00:00:00+14:00"), "RESULT_FOREIGN"),
    ],
)
def test_what_is_no_result_is_called_so(data: bytes, code: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        summarize_run(data, "result.json")
    assert caught.value.code == code
