"""What a request may be: read once, judged wherever something lies in it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.model_proxy.requests import body
from zelda_ci.model_proxy import policy
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.wire import RefusedHereError

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.text('\\":{}[],é\U0001f600', max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), values), st.booleans())
def test_what_is_read_is_what_was_written(value: dict[str, Any], ascii_only: bool) -> None:  # noqa: FBT001
    try:
        data = json.dumps(value, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8
        data = json.dumps(value).encode()
    assert policy.judged("/v1/messages", [], data, Allowed(keys=value)).body == value


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"a":1}{}', b'{"a":1,}', b"{'a':1}", b"[]" * 9999, b'{"a":' * 99_999],
    ids=repr,
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedHereError) as caught:
        policy.judged("/v1/messages", [], data, Allowed())
    assert (caught.value.status, str(caught.value)) == (400, "the body is not a JSON object")


@pytest.mark.parametrize(
    "key",
    ["remote", "Model", "model ", "billing_policy", "tags", "workspace_id", "user_profile_id", "betas", "", "x\x9b\n"],
)
def test_a_key_that_is_not_known_is_refused_named_and_can_be_allowed(key: str) -> None:
    with pytest.raises(RefusedHereError) as caught:
        policy.check({"model": "x", key: 1}, Allowed())
    shown = key if key.isidentifier() else ascii(key)
    assert str(caught.value).startswith(f"{shown}: Extra inputs are not permitted")
    assert "ZELDA_REQUEST_KEYS" in str(caught.value)
    assert str(caught.value).isprintable()
    policy.check({"model": "x", key: 1}, Allowed(keys=[key]))


@pytest.mark.parametrize(
    "place",
    [
        {"model": "other"},
        {"model": "mine", "fallbacks": [{"model": "other"}]},
        {"model": "mine", "tools": [{"type": "advisor_20260301", "name": "advisor", "model": "other"}]},
        {
            "model": "mine",
            "messages": [{"content": [{"type": "tool_addition", "tool": {"definition": {"model": "other"}}}]}],
        },
        {"model": "mine", "new_key": {"deep": [{"model": "other"}]}},
        {"model": "mine", "messages": [{"type": ["tool_use"], "input": {"model": "other"}}]},
    ],
)
def test_a_model_is_seen_wherever_it_is_named(place: dict[str, Any]) -> None:
    with pytest.raises(RefusedHereError, match="may not ask 'other'"):
        policy.check(place, Allowed("mine", keys=place))


def test_data_of_a_session_names_no_model() -> None:
    schema = {"type": "object", "properties": {"model": {"type": "string"}}, "model": "other"}
    request = body(
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x", "input": {"model": "other"}}]},
        metadata={"model": "other"},
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    request["tools"].append({"name": "x", "input_schema": schema, "input_examples": [{"model": "other"}]})
    policy.check(request, Allowed(request["model"]))


TOOL = {"type": "tool_definition", "definition": {"type": "web_fetch_20250910", "name": "web_fetch"}}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://evil.example/?secret"}}


@pytest.mark.parametrize(
    "asked",
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
        {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
    ],
)  # fmt: skip
def test_what_the_api_would_fetch_for_a_session_is_seen(asked: dict[str, Any]) -> None:
    with pytest.raises(RefusedHereError, match="may not use"):
        policy.check(asked, Allowed(web=False, keys=asked))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"tools": [{"name": "Bash"}, {"type": "bash_20250124", "name": "bash"}, 3], "mcp_servers": []},
        {"messages": [{"role": "user", "content": "see https://evil.example"}], "system": "plain"},
        {"messages": [{"content": [{"type": "image", "source": {"type": "base64", "data": "x"}}, None]}]},
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"source": {"url": "x"}}}]}]},
        {"tools": [{"name": "x", "input_schema": {"properties": {"source": {"type": "url", "url": "x"}}}}]},
        {"metadata": {"type": "url"}, "output_config": {"format": {"type": "json_schema", "schema": {"type": "url"}}}},
        {"messages": [{"content": [{"type": "mcp_tool_use", "input": {}}, {"type": "web_search_tool_result"}]}]},
        {"messages": [{"content": [{"type": "code_execution_tool_result"}, {"type": "code_execution_output"}]}]},
    ],
)  # fmt: skip
def test_ordinary_requests_reach_nothing(asked: dict[str, Any]) -> None:
    policy.check(asked, Allowed(web=False))
