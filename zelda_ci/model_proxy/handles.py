"""Ids that Claude Code invents during a session, and that the model uses again: they are other ones in every run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from zelda_ci.model_proxy.wire import Call

_HANDLE = re.compile(r"(?:\bagentId: |\bwith ID: |/tool-results/)([ab][0-9a-z]{8,16})\b")
"""Of a sub-agent, of a command in the background, of the file that holds an output too long to show."""


def named(call: Call) -> dict[str, str]:
    """The session's id and the handles in the request's tool results, by names that are the same in every run."""
    session = call.header("x-claude-code-session-id")
    found = {f"handle_{re.sub(r'[^A-Za-z0-9]', '_', name)}": handle for name, handle in _handles(call.body)}
    return {**({"sessionId": session} if session else {}), **found}


def _handles(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for message in _objects(body.get("messages")):
        for block in _objects(message.get("content")):
            if block.get("type") == "tool_result" and (match := _HANDLE.search(_text(block.get("content")))):
                yield str(block.get("tool_use_id")), match[1]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in _objects(content))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
