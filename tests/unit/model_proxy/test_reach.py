"""Requests that would send the API's servers to an address."""

from typing import Any

import pytest

from zelda_ci.model_proxy.requests import external_address

TOOL = {"type": "tool_definition", "definition": {"type": "web_fetch_20250910", "name": "web_fetch"}}
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
        {"messages": [{"content": [{"type": "tool_addition", "tool": TOOL}]}]},
        {"messages": [{"content": [{"type": "tool_addition", "tool": {"definition": {"type": "mcp_toolset"}}}]}]},
        {"messages": [{"content": [{"mcp_servers": [{"type": "url", "url": "https://evil.example"}]}]}]},
        {"messages": [{"content": [{"type": "new_block", "parts": {"first": [IMAGE]}}]}]},
        {"messages": [{"content": [{"type": "image", "input": IMAGE}]}]},
        {"messages": [{"content": [{"type": "document", "source": {"url": "https://evil.example"}}]}]},
        {"container": {"skills": [{"type": "url", "url": "https://evil.example"}]}},
        {"new_key": [IMAGE]},
        {"tools": [{"type": "web_browse_20991231"}]},
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
        {"tools": [{"name": "x", "input_schema": {"properties": {"source": {"type": "url", "url": "x"}}}}]},
        {"metadata": {"type": "url"}, "output_config": {"format": {"type": "json_schema", "schema": {"type": "url"}}}},
        {"messages": [{"content": [{"type": "mcp_tool_use", "input": {}}, {"type": "web_search_tool_result"}]}]},
    ],
)  # fmt: skip
def test_ordinary_requests_reach_nothing(body: dict[str, Any]) -> None:
    assert external_address(body) is None
