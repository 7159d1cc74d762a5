"""Results, transcripts and journal lines as bytes."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import records, result, safe, session, suite
from tests.golden.batches import efficiency
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import BatchResult, Failure, RunResult
from zelda_ci.domain.session import ApiUsage, ModelUsage, SessionStatus, SessionTranscript, ToolCalled
from zelda_ci.domain.workspace import Changes, ChangeSummary, IgnoredFiles, TestedSource, WorkspaceSource
from zelda_ci.storage import codec

FULL = result(
    trial=2,
    status=SessionStatus.TIMED_OUT,
    failure=Failure(code="SESSION_TIMED_OUT", message=safe("It took too long.")),
    phase_seconds={"session": 1.5},
    source=TestedSource(kind="worktree", commit="0" * 40, branch="main", dirty=True),
    models=("claude-sonnet-5-5",),
    api=ApiUsage(requests=3, errors={"529": 1}, models={"m": ModelUsage(input_tokens=5, cost_usd=0.25)}),
    changes=ChangeSummary(files=(safe("a.py"),), insertions=3),
    setup=CommandResult(command=safe("npm ci"), exit_code=0, seconds=1, output=safe("\u00fc\n"), output_bytes=3),
    evaluations={
        Metric.EFFICIENCY: EvalResult(
            metric=Metric.EFFICIENCY, version="1", score=87.25, reasoning=safe("r"), details=efficiency().details
        )
    },
    config=suite(setupCommand="npm ci", execution={"maxCostUsd": 1.5}),
    replayed=True,
)


@pytest.mark.parametrize("original", [result(), FULL], ids=["small", "full"])
def test_a_result_comes_back_as_it_was(original: RunResult) -> None:
    assert codec.decode(RunResult, codec.encode(original, indent=2), "result.json") == original


def test_a_result_stores_of_source_and_changes_what_it_is_read_back_with(tmp_path: Path) -> None:
    source = WorkspaceSource(kind="worktree", commit="0" * 40, changed=("a.py",), left_out=(".env",))
    changes = Changes(files=(safe("a.py"),), insertions=3, patch=tmp_path, ignored=IgnoredFiles(more=1))
    stored = codec.decode(RunResult, codec.encode(FULL.replace(source=source, changes=changes)), "result.json")
    assert stored.source == TestedSource(kind="worktree", commit="0" * 40)
    assert stored.changes == FULL.changes


STEPS = ("Read a.py + Bash ls -> error", "Agent reviewer", "> Read b.py -> nothing", '!"API Error"', '"Done."')


@pytest.mark.parametrize("steps", [(), STEPS])
def test_a_transcript_comes_back_as_it_was(steps: tuple[str, ...]) -> None:
    original = session(*steps)
    assert codec.decode(SessionTranscript, b"".join(codec.encode_transcript(original)), "t") == original


def test_a_journal_line_is_one_line() -> None:
    for record in records("Bash a\nb -> c\r\nd\u2028e", '"x\ny"'):
        line = codec.encode(record)
        assert line.count(b"\n") == 1
        assert codec.decode_record(line) == record


@settings(max_examples=50)
@given(st.integers(0, 300))
def test_a_torn_line_is_no_record(length: int) -> None:
    line = codec.encode(records("Read a.py", '"Done."')[2])
    assert codec.decode_record(line[: min(length, len(line) - 2)]) is None


def changed(**changes: Any) -> bytes:
    return orjson.dumps({**orjson.loads(codec.encode(FULL, indent=2)), **changes})


TIMES = ("yesterday", "2026-02-13T14:30:00", "0001-01-01T00:00:00+14:00")
BAD = {
    "RESULT_DAMAGED": [b"", b"\xff\xfe{}", codec.encode(FULL, indent=2)[:-200], b"[" * 100_000],
    "RESULT_NEWER": [changed(schemaVersion=2), b'{"schemaVersion": 7, "entirely": "different"}'],
    "RESULT_FOREIGN": [
        *(b"[]", b"{}", b'{"schemaVersion": 1}', changed(status="finished"), changed(config=None)),
        *(changed(schemaVersion=0), *(changed(finishedAt=time) for time in TIMES)),
        *(changed(phaseSeconds={"setup": "NaN"}), changed(api={"models": {"m": {"inputTokens": 2**62}}})),
        orjson.dumps({"schemaVersion": 1, "evaluations": {"efficiency": {"details": 3}}}),
    ],
}


@pytest.mark.parametrize(("data", "code"), [(data, code) for code, each in BAD.items() for data in each])
def test_a_file_that_is_no_result_is_named_with_what_to_do(data: bytes, code: str) -> None:
    with pytest.raises(codec.UnreadableError) as caught:
        codec.decode(RunResult, data, "runs/x/result.json")
    assert caught.value.code == code
    assert caught.value.message.startswith("runs/x/result.json ")
    assert caught.value.hint


def test_keys_of_another_version_are_ignored_settings_included() -> None:
    tree = orjson.loads(codec.encode(FULL, indent=2))
    tree["novelty"] = 1
    tree["versions"]["novelty"] = 1
    tree["config"]["execution"]["novelty"] = {"a": 1}
    tree["config"]["judge"]["novelty"] = [1]
    assert codec.decode(RunResult, orjson.dumps(tree), "result.json") == FULL


def test_a_metric_of_a_newer_version_is_left_out() -> None:
    tree = orjson.loads(codec.encode(FULL, indent=2))
    newer = {"metric": "patchSize", "version": "1", "score": 80.0, "reasoning": "42 lines.", "details": {}}
    tree["evaluations"]["patchSize"] = newer
    tree["config"]["metrics"]["patchSize"] = True
    tree["config"]["gate"]["minScore"] = {"patchSize": 50}
    data = orjson.dumps(tree)
    read = codec.decode(RunResult, data, "result.json")
    assert read == FULL
    batch = {"schemaVersion": 1, "batchId": "b", "startedAt": tree["startedAt"], "finishedAt": tree["finishedAt"]}
    read_batch = codec.decode(BatchResult, orjson.dumps({**batch, "runs": [tree], "baseRuns": [tree]}), "results.json")
    assert (*read_batch.runs, *read_batch.base_runs) == (read, read)


@pytest.mark.parametrize(
    "wrong", [{"mediaType": "image/svg+xml"}, {"sha256": "../../etc/passwd"}, {"sha256": "AB" * 32}, {"sizeBytes": -1}]
)
def test_an_image_that_names_another_file_is_no_record(wrong: dict[str, Any]) -> None:
    image = {"mediaType": "image/png", "sizeBytes": 7, "sha256": "ab" * 32, **wrong}
    line = {"type": "toolReturned", "at": 1, "id": "t1", "output": "", "images": [image]}
    assert codec.decode_record(json.dumps(line).encode()) is None


def test_results_are_written_for_people_and_nulls_of_a_tool_are_kept() -> None:
    text = codec.encode(FULL, indent=2).decode()
    assert text.startswith('{\n  "runId": "example-2026-02-13T14-30-00",\n')
    assert (text[-2:], "\u00fc" in text, "null" in text) == ("}\n", True, False)
    [called] = [r for r in records("Read a.py") if isinstance(r, ToolCalled)]
    record = called.model_copy(update={"input": safe.json({"a": None})})
    assert codec.decode_record(codec.encode(record)) == record


def test_the_key_that_does_not_fit_is_named_and_cannot_act() -> None:
    with pytest.raises(codec.UnreadableError, match=r"versions\.zelda is missing"):
        codec.decode(RunResult, changed(versions={"agentSdk": "1", "python": "3"}), "result.json")
    tree = orjson.loads(codec.encode(FULL, indent=2))
    tree["api"]["models"]["\x1b[2J\u202e"] = 1
    with pytest.raises(codec.UnreadableError, match=r"\\x1b\[2J\\u202e") as caught:
        codec.decode(RunResult, orjson.dumps(tree), "result.json")
    assert caught.value.message.isprintable()
