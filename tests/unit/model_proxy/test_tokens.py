from typing import Any

import pytest

from zelda_ci.model_proxy.pricing import Tokens, from_usage


def test_cache_writes_are_split_by_lifetime() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 4},
        "server_tool_use": {"web_search_requests": 2},
    }
    assert from_usage(usage) == Tokens(1, 2, 3, 6, 4, 2)
    assert from_usage(usage).prompt == 14
    assert from_usage({"cache_creation_input_tokens": 10, "cache_creation": None}).cache_write_5m == 10
    tokens = from_usage({"speed": "fast", "inference_geo": "us"})
    assert (tokens.fast, tokens.us_only) == (True, True)


@pytest.mark.parametrize("nonsense", [None, "12", -5, 1.5, [], {}, {"x": 1}])
def test_what_is_no_count_is_zero(nonsense: Any) -> None:
    keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation", "server_tool_use")
    assert from_usage(dict.fromkeys(keys, nonsense)) == Tokens()
