"""Token counts of one response, read from the API's `usage` objects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tokens:
    """What one response used and what its price depends on."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0
    fast: bool = False
    us_only: bool = False

    @property
    def prompt(self) -> int:
        """Everything the model read, cached or not."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h


def merged(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """A stream's usage so far with that of a later event: counts are cumulative, null and zero mean "as before"."""
    return {**earlier, **{key: value for key, value in later.items() if value}}


def from_usage(usage: Mapping[str, Any]) -> Tokens:
    """Read a `usage` object; whatever is missing or not a count is zero."""
    split = _object(usage.get("cache_creation"))
    one_hour = _count(split.get("ephemeral_1h_input_tokens"))
    written = max(
        _count(usage.get("cache_creation_input_tokens")), one_hour + _count(split.get("ephemeral_5m_input_tokens"))
    )
    return Tokens(
        input=_count(usage.get("input_tokens")),
        output=_count(usage.get("output_tokens")),
        cache_read=_count(usage.get("cache_read_input_tokens")),
        cache_write_5m=written - one_hour,
        cache_write_1h=one_hour,
        web_searches=_count(_object(usage.get("server_tool_use")).get("web_search_requests")),
        fast=usage.get("speed") == "fast",
        us_only=usage.get("inference_geo") == "us",
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
