"""Results, transcripts and journal lines as bytes. Pure: no disk."""

from collections.abc import Iterator
from datetime import UTC
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from zelda_ci.domain.base import Record
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.history import OutcomeWord, StoredRun, at_a_glance, listed_numbers, word_of
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.outcome import Evaluations, Undecided, outcome_of
from zelda_ci.domain.pool import Pool
from zelda_ci.domain.run import SCHEMA_VERSION, BatchResult, RunResult
from zelda_ci.domain.session import SessionRecord, SessionStatus, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.redact import SafeText

_RECORD: Final = TypeAdapter[SessionRecord](SessionRecord)
_Stored = TypeVar("_Stored", bound=Record)


class UnreadableError(StorageError):
    """A file is not what its name says: `RESULT_DAMAGED`, `RESULT_FOREIGN` or `RESULT_NEWER`."""


class Provisional(Record):
    """What will be true of a run if nothing more is heard of it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    result: RunResult
    prompt: SafeText


def encode_result(result: RunResult) -> bytes:
    """A file that people read, too."""
    return orjson.dumps(_tree(result), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_result(data: bytes, name: str) -> RunResult:
    """The result in a file; unknown keys are ignored.

    Args:
        data: The whole file.
        name: What a message calls the file.

    Raises:
        UnreadableError: The file is damaged, foreign or of a newer Zelda.
    """
    return decode(RunResult, data, name)


def decode_batch(data: bytes, name: str) -> BatchResult:
    """The results in what `zelda run --json` printed; arguments and errors as for `decode_result`."""
    return decode(BatchResult, data, name)


def encode(record: Record) -> bytes:
    """A record as a file that people read, too."""
    return orjson.dumps(_tree(record), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def encode_pool(pool: Pool, max_bytes: int) -> bytes:
    """A pool that fits: where it is too large, its oldest trials are left out."""
    head = orjson.dumps(_tree(pool, without={"trials"}))[:-1] + b',"trials":['
    lines: list[bytes] = []
    size = len(head) + 3
    for run in sorted(pool.trials, key=attrgetter("finished_at", "run_id"), reverse=True):
        line = orjson.dumps(_tree(run))
        size += len(line) + 2
        if size > max_bytes:
            break
        lines.append(line)
    return head + b",\n".join(lines) + b"]}\n"


def decode_pool(data: bytes, name: str) -> Pool:
    """The pool in a file; arguments and errors as for `decode_result`."""
    return decode(Pool, data, name)


def encode_nights(history: NightlyHistory, max_bytes: int) -> bytes:
    """A history that fits: where it is too large, its oldest nights are left out."""
    while True:
        data = orjson.dumps(_tree(history), option=orjson.OPT_APPEND_NEWLINE)
        if len(data) <= max_bytes or not history.nights:
            return data
        history = history.replace(nights=history.nights[len(history.nights) // 4 + 1 :])


def decode_nights(data: bytes, name: str) -> NightlyHistory:
    """The history in a file; arguments and errors as for `decode_result`."""
    return decode(NightlyHistory, data, name)


def encode_transcript(transcript: SessionTranscript) -> Iterator[bytes]:
    """One entry per line, so that no more than one is held in memory twice."""
    yield orjson.dumps(_tree(transcript, without={"entries"}))[:-1]
    separator = b',"entries":[\n'
    for entry in transcript.entries:
        yield separator + orjson.dumps(_tree(entry))
        separator = b",\n"
    yield b"\n]}\n" if transcript.entries else b"}\n"


def decode_transcript(data: bytes, name: str) -> SessionTranscript:
    """The transcript in a file; arguments and errors as for `decode_result`."""
    return decode(SessionTranscript, data, name)


def encode_record(record: SessionRecord) -> bytes:
    """One line of the journal, its end included."""
    return orjson.dumps(_tree(record), option=orjson.OPT_APPEND_NEWLINE)


def decode_record(line: bytes) -> SessionRecord | None:
    """The record in a line of the journal; nothing where the line is torn or was never ours."""
    try:
        return _RECORD.validate_json(line)
    except ValidationError:
        return None


def _tree(record: Record, without: set[str] | None = None) -> dict[str, Any]:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=without)


def decode(model: type[_Stored], data: bytes, name: str) -> _Stored:
    """The record in a file; errors as for `decode_result`."""
    try:
        return model.model_validate_json(data)
    except ValidationError as problem:
        return _second_try(model, data, name, problem)


def _second_try(model: type[_Stored], data: bytes, name: str, problem: ValidationError) -> _Stored:
    tree = _parsed(data, name)
    _leave_out_newer_metrics(tree)
    # Settings refuse unknown keys where users write them; in a result they tell of another version, and are ignored.
    for place in [error["loc"] for error in problem.errors() if error["type"] == "extra_forbidden"]:
        _drop(tree, place)
    try:
        return model.model_validate(tree)
    except ValidationError as still:
        # Keys of a foreign file are foreign text: spelled out, none of it acts on a terminal.
        key = ascii(".".join(map(str, still.errors()[0]["loc"])))[1:-1][:MAX_PLACE_LENGTH]
        raise _foreign(f"{name} is not a file that Zelda wrote: {key} is missing or has an unexpected value.") from None


def _leave_out_newer_metrics(tree: dict[str, Any]) -> None:
    runs = tree.get("runs", tree.get("trials", [tree]))
    for run in runs if isinstance(runs, list) else []:
        evaluations = run.get("evaluations") if isinstance(run, dict) else None
        if not isinstance(evaluations, dict):
            continue
        # Names only: whatever else stands there could not be told from damage.
        newer = sorted(key for key in set(evaluations) - set(Metric) if _may_be_a_metric(key))
        for key in newer:
            del evaluations[key]
        if newer:
            run["unknownMetrics"] = newer


def _may_be_a_metric(key: str) -> bool:
    return len(key) <= MAX_METRIC_KEY_LENGTH and key.isascii() and key.isidentifier()


def _parsed(data: bytes, name: str) -> dict[str, Any]:
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        hint = "Delete its folder; the run has to be repeated."
        raise UnreadableError(f"{name} is damaged: {problem}.", hint=hint, code="RESULT_DAMAGED") from None
    version = tree.get("schemaVersion") if isinstance(tree, dict) else None
    if not isinstance(version, int):
        raise _foreign(f"{name} is not a file that Zelda wrote.")
    if version > SCHEMA_VERSION:
        message = f"{name} was written by a newer Zelda (schema {version}, this one reads up to {SCHEMA_VERSION})."
        raise UnreadableError(message, hint="Update Zelda, or repeat the run.", code="RESULT_NEWER")
    return dict(tree)


def _foreign(message: str) -> UnreadableError:
    return UnreadableError(message, hint="Move it away, or make it anew with a run.", code="RESULT_FOREIGN")


def _drop(tree: Any, place: tuple[int | str, ...]) -> None:
    for step in place[:-1]:
        tree = tree[step]
    del tree[place[-1]]


MAX_METRIC_KEY_LENGTH = 60
MAX_PLACE_LENGTH = 200
_PLAIN = ("runId", "batchId", "suite", "trial", "status", "startedAt", "finishedAt")
_ELSEWHERE = (KeyError, TypeError, ValueError, AttributeError, orjson.JSONDecodeError, ValidationError, OverflowError)


def summarize_run(data: bytes, name: str) -> StoredRun:
    """What a list shows of a result: the same as `at_a_glance` of the whole result, at a third of its price.

    Args:
        data: The whole file.
        name: What a message calls the file.

    Raises:
        UnreadableError: The file is damaged, foreign or of a newer Zelda.
    """
    try:
        return _dated(StoredRun.model_validate(_facts(orjson.loads(data))))
    except _ELSEWHERE:
        # Not as this Zelda writes it: the careful reader knows what to make of it, or how to say what is wrong.
        run = at_a_glance(decode_result(data, name))
    try:
        return _dated(run)
    except OverflowError:
        raise UnreadableError(f"{name} contains a time that does not exist.", code="RESULT_FOREIGN") from None


def _dated(run: StoredRun) -> StoredRun:
    """The run, if the moment it began exists in every time zone: shown, sorted and chosen by it."""
    run.started_at.astimezone(UTC)
    return run


def _evaluations(stored: dict[str, Any]) -> Iterator[tuple[Metric, EvalResult]]:
    """As much of them as outcomes and lists rest on."""
    for metric, result in stored.items():
        facts = {"score": result.get("score"), "details": result["details"], "failed": result["failed"]}
        yield Metric(metric), EvalResult.model_construct(**facts)


def _outcome(tree: dict[str, Any], evaluations: Evaluations) -> OutcomeWord:
    undecided: Undecided = "ignore" if tree["config"].get("undecided") == "ignore" else "fail"
    return word_of(outcome_of(SessionStatus(tree["status"]), evaluations, undecided))


def _facts(tree: dict[str, Any]) -> dict[str, Any]:
    if tree["schemaVersion"] != SCHEMA_VERSION or not {"config", "versions"} <= tree.keys():
        raise KeyError
    evaluations = dict(_evaluations(tree["evaluations"]))
    details = evaluations[Metric.EFFICIENCY].details
    source, judges = tree.get("source"), _judges(tree)
    return {
        **{key: tree[key] for key in _PLAIN},
        "outcome": _outcome(tree, evaluations),
        "scores": {metric: result.score for metric, result in evaluations.items() if result.score is not None},
        "costUsd": details["costUsd"],
        "judgeCostUsd": sum(model["costUsd"] for model in judges) if "judge" in tree else None,
        "costKnown": details["costKnown"] and all(model["costKnown"] for model in judges),
        "turns": details["turns"],
        "numbers": listed_numbers(evaluations),
        "replayed": tree["replayed"],
        "commit": source.get("commit") if source else None,
        "side": tree.get("side", "head"),
    }


def _judges(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """What each model that judged used."""
    return list(tree["judge"]["models"].values()) if "judge" in tree else []
