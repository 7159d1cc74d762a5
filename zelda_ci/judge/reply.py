"""An answer of the Messages API, read with suspicion: whatever is missing or of another type is not there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from zelda_ci.domain.session import Usage


@dataclass(frozen=True)
class Reply:
    """What counts of one answer."""

    text: str
    stop_reason: str
    usage: Mapping[str, Any]

    @property
    def tokens(self) -> Usage:
        """Tokens by kind."""
        return Usage(
            input_tokens=self._count("input_tokens"),
            output_tokens=self._count("output_tokens"),
            cache_read_tokens=self._count("cache_read_input_tokens"),
            cache_write_tokens=self._count("cache_creation_input_tokens"),
        )

    def _count(self, name: str) -> int:
        value = self.usage.get(name)
        return value if isinstance(value, int) and value > 0 else 0


def read_reply(data: bytes) -> Reply | None:
    """The reply, or nothing where this is no message of the API."""
    try:
        message = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(message, dict) or not isinstance(content := message.get("content"), list):
        return None
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    usage = message.get("usage")
    return Reply(
        "".join(text for text in texts if isinstance(text, str)),
        str(message.get("stop_reason")),
        usage if isinstance(usage, dict) else {},
    )
