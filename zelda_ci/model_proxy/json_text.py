"""JSON of the wire: fast where possible, and tolerant of the half emojis that JavaScript writes."""

import json
from typing import Any

import orjson


def read_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object in `data`, or None where there is none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _read_tolerantly(data)
    return value if isinstance(value, dict) else None


def most_values(data: bytes) -> int:
    """How many values the text has at most: where one begins or another follows is a mark, and so are some in texts."""
    return sum(data.count(mark) for mark in (b"[", b"{", b","))


def _read_tolerantly(data: bytes) -> Any:
    """Python's own reader accepts lone surrogates, which a text cut in the middle of an emoji contains."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def write(value: Any) -> bytes:
    """Compact JSON with keys in their order."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()
