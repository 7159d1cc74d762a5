"""The few facts of a result that a list shows, taken without validating all the others. Pure: no disk."""

from datetime import UTC
from typing import Any

import orjson
from pydantic import ValidationError

from zelda_ci.domain.history import StoredRun, at_a_glance
from zelda_ci.domain.run import SCHEMA_VERSION
from zelda_ci.storage import codec
from zelda_ci.storage.codec import UnreadableError

_PLAIN = ("runId", "batchId", "suite", "trial", "status", "startedAt", "finishedAt")
_ELSEWHERE = (KeyError, TypeError, AttributeError, orjson.JSONDecodeError, ValidationError, OverflowError)


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


def _facts(tree: dict[str, Any]) -> dict[str, Any]:
    if tree["schemaVersion"] != SCHEMA_VERSION or not {"config", "versions"} <= tree.keys():
        raise KeyError
    evaluations = tree["evaluations"]
    details = evaluations["efficiency"]["details"]
    source = tree.get("source")
    return {
        **{key: tree[key] for key in _PLAIN},
        "scores": {metric: found["score"] for metric, found in evaluations.items() if "score" in found},
        "costUsd": details["costUsd"],
        "costKnown": details["costKnown"],
        "turns": details["turns"],
        "incomplete": tree["status"] not in ("failed", "interrupted") and _is_unjudged(evaluations),
        "replayed": tree["replayed"],
        "commit": source.get("commit") if source else None,
    }


def _is_unjudged(evaluations: dict[str, Any]) -> bool:
    """Whether something was not judged; `domain.outcome` says what that is."""
    details = evaluations.get("requirementFulfillment", {}).get("details", {})
    missing = any(criterion["verdict"] == "notJudged" for criterion in details.get("criteria", ()))
    return missing or any(found["failed"] for found in evaluations.values())
