"""What in a request would make the API's own servers turn to an address that the session chooses.

A sandbox without a network would have one through these: a secret in an address is told to whoever serves it.
"""

from typing import Any

WEB_TOOLS = ("web_search", "web_fetch", "mcp_toolset")


def beyond(body: dict[str, Any]) -> str | None:
    """The first such thing in a request's body, in a few words."""
    if body.get("mcp_servers"):
        return "MCP servers that the API connects to"
    tools = [tool for tool in _items(body.get("tools")) if isinstance(tool, dict)]
    web = next((tool for tool in tools if str(tool.get("type", "")).startswith(WEB_TOOLS)), None)
    if web is not None:
        return f"the API's own tool {str(web['type'])[:50]}"
    return "content that the API fetches from an address" if _holds_address(body) else None


def _holds_address(body: dict[str, Any]) -> bool:
    """Whether some block's `source` is an address; blocks lie in messages, in the system prompt, in tool results."""
    waiting = [*_items(body.get("messages")), *_items(body.get("system"))]
    while waiting:
        block = waiting.pop()
        if not isinstance(block, dict):
            continue
        source = block.get("source")
        if isinstance(source, dict):
            if source.get("type") == "url" or "url" in source:
                return True
            waiting += _items(source.get("content"))
        waiting += _items(block.get("content"))
    return False


def _items(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []
