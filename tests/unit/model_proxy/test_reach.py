"""Requests that would send the API's servers to an address."""

from typing import Any

import pytest

from zelda_ci.model_proxy.run import external_address

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://evil.example/?secret"}}


@pytest.mark.parametrize(
    "body",
    [
        {"mcp_servers": [{"type": "url", "url": "https://evil.example"}]},
        {"tools": [{"name": "Bash"}, {"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]},
        {"messages": [{"role": "user", "content": [IMAGE]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [IMAGE]}]}]},
        {"messages": [{"content": [{"type": "document", "source": {"type": "content", "content": [IMAGE]}}]}]},
        {"system": [IMAGE]},
        {"messages": {"role": "user", "content": IMAGE}},
    ],
)  # fmt: skip
def test_what_the_api_would_fetch_for_a_session_is_seen(body: dict[str, Any]) -> None:
    assert external_address(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tools": [{"name": "Bash"}, {"type": "bash_20250124", "name": "bash"}, 3], "mcp_servers": []},
        {"messages": [{"role": "user", "content": "see https://evil.example"}], "system": "plain"},
        {"messages": [{"content": [{"type": "image", "source": {"type": "base64", "data": "x"}}, None]}]},
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"source": {"url": "x"}}}]}]},
    ],
)  # fmt: skip
def test_ordinary_requests_reach_nothing(body: dict[str, Any]) -> None:
    assert external_address(body) is None
