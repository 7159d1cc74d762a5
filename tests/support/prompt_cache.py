"""Prompt caching as the Messages API accounts for it: what a request reads, writes and pays in full."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.scripted_replies import ApiRequest, Tokens

CHARS_PER_TOKEN = 3
# Shorter prefixes are not cached.
MIN_TOKENS = 1024


class PromptCache:
    """Remembers prefixes up to every mark, in the API's order: tools, system prompt, messages."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def tokens(self, request: ApiRequest, *, output: int = 500) -> Tokens:
        """What the request uses; remembers what it writes."""
        size = read = written = 0
        digest = hashlib.sha256(json.dumps([request.body["model"], request.body.get("tool_choice")]).encode())
        new: set[str] = set()
        for part in _parts(request.body):
            marked = part.pop("cache_control", None)
            text = json.dumps(part, sort_keys=True)
            digest.update(text.encode())
            size += len(text)
            tokens = size // CHARS_PER_TOKEN
            if marked and tokens >= MIN_TOKENS:
                key = digest.hexdigest()
                read, written = (tokens, 0) if key in self._known else (read, tokens - read)
                new.add(key)
        self._known |= new
        total = size // CHARS_PER_TOKEN
        return Tokens(input=total - read - written, output=output, cache_read=read, cache_write_5m=written)


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (dict(tool) for tool in body.get("tools", []))
    yield {"system": body.get("system")}
    for message in body["messages"]:
        yield from ({"role": message["role"], **block} for block in message["content"])
