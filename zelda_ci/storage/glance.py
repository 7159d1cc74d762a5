"""The few facts of a result that a list shows, taken without validating all the others. Pure: no disk."""

from collections.abc import Iterator
from datetime import UTC
from typing import Any

import orjson
from pydantic import ValidationError

from zelda_ci.domain.evaluation import EvalResult, Metric
from zelda_ci.domain.history import StoredRun, at_a_glance, word_of
from zelda_ci.domain.outcome import Outcome, Undecided, outcome_of
from zelda_ci.domain.run import SCHEMA_VERSION
from zelda_ci.domain.session import SessionStatus
from zelda_ci.storage import codec
from zelda_ci.storage.codec import UnreadableError

_PLAIN = ("runId", "batchId", "suite", "trial", "status", "startedAt", "finishedAt")
_ELSEWHERE = (KeyError, TypeError, ValueError, AttributeError, orjson.JSONDecodeError, ValidationError, OverflowError)


def glance(data: bytes, name: str) -> StoredRun:
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
        run = at_a_glance(codec.decode_result(data, name))
    try:
        return _dated(run)
    except OverflowError:
        raise UnreadableError(f"{name} tells of a time that no calendar has.", code="RESULT_FOREIGN") from None


def _dated(run: StoredRun) -> StoredRun:
    """The run, if the moment it began exists in every time zone: shown, sorted and chosen by it."""
    run.started_at.astimezone(UTC)
    return run


def _evaluations(stored: dict[str, Any]) -> Iterator[tuple[Metric, EvalResult]]:
    """As much of them as an outcome rests on."""
    for metric, found in stored.items():
        facts = {"score": found.get("score"), "details": found["details"], "failed": found["failed"]}
        yield Metric(metric), EvalResult.model_construct(**facts)


def _outcome(tree: dict[str, Any]) -> Outcome:
    undecided: Undecided = "ignore" if tree["config"].get("undecided") == "ignore" else "fail"
    return outcome_of(SessionStatus(tree["status"]), dict(_evaluations(tree["evaluations"])), undecided)


def _facts(tree: dict[str, Any]) -> dict[str, Any]:
    if tree["schemaVersion"] != SCHEMA_VERSION or not {"config", "versions"} <= tree.keys():
        raise KeyError
    evaluations = tree["evaluations"]
    details = evaluations["efficiency"]["details"]
    source = tree.get("source")
    return {
        **{key: tree[key] for key in _PLAIN},
        "outcome": word_of(_outcome(tree)),
        "scores": {metric: found["score"] for metric, found in evaluations.items() if "score" in found},
        "costUsd": details["costUsd"],
        "costKnown": details["costKnown"],
        "turns": details["turns"],
        "replayed": tree["replayed"],
        "commit": source.get("commit") if source else None,
    }
