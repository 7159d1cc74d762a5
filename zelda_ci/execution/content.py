"""What messages carry, as text."""

import json
from collections.abc import Iterable
from typing import Any

ENVELOPE = frozenset({"type", "subtype", "uuid", "session_id"})


def flatten(content: object) -> str:
    """The text of a tool result: a string, or a list of blocks of which images and documents are only named."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(_block(block) for block in content)
        case _:
            return _json(content)


def note(data: dict[str, Any]) -> str:
    """The text of a system message: its own, or else its fields as JSON."""
    for key in ("content", "message", "text", "summary", "description"):
        if isinstance(text := data.get(key), str) and text:
            return text
    fields = {key: value for key, value in data.items() if key not in ENVELOPE and value is not None}
    return _json(fields) if fields else ""


def texts(values: object) -> Iterable[str]:
    """Strings or names out of a list of the init message, whose items are strings or objects with a name."""
    if not isinstance(values, list):
        return ()
    return tuple(str(value.get("name", "")) if isinstance(value, dict) else str(value) for value in values)


def _block(block: object) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": str(kind), "source": {"data": str(data), "media_type": str(media_type)}}:
            return f"[{kind}: {media_type}, {len(data) * 3 // 4} bytes]"
        case str():
            return block
        case _:
            return _json(block)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
