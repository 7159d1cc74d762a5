"""Which models a run may ask, what they count and what they cost."""

from typing import Any

import pytest

from zelda_ci.model_proxy.pricing import Models, Tokens, base_name, cost_usd, from_usage, is_known

MILLION = 1_000_000
SONNET = "claude-sonnet-5-5"


@pytest.mark.parametrize(
    ("tokens", "factor"),
    [
        (Tokens(input=100_000), 1),
        (Tokens(input=100_001), 5),
        (Tokens(input=1, cache_read=50_000, cache_write_5m=30_000, cache_write_1h=20_000), 5),
        (Tokens(input=10, output=200_000), 1),
    ],
    ids=["at the limit", "above it", "cache counts too", "output does not count"],
)
def test_a_long_prompt_makes_everything_dearer(tokens: Tokens, factor: float) -> None:
    short = (
        tokens.input * 0.1
        + tokens.output * 0.5
        + tokens.cache_read * 0.01
        + tokens.cache_write_5m * 0.125
        + tokens.cache_write_1h * 0.2
    ) / MILLION
    assert cost_usd("claude-haiku-5-5", tokens) == pytest.approx(factor * short)


def test_fast_mode_and_place_multiply_tokens_but_not_searches() -> None:
    tokens = Tokens(input=MILLION, web_searches=1, fast=True, us_only=True)
    assert cost_usd("claude-opus-5-5", tokens) == pytest.approx(4 * 2 * 1.1 + 0.01)


@pytest.mark.parametrize(
    "spelling",
    [
        "claude-haiku-4-5",
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5@20251001",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "anthropic.claude-haiku-4-5",
        "@my-provider/claude-haiku-4-5-20251001",
        "claude-haiku-4-5-latest",
        "claude-haiku-4-5[1m]",
    ],
)
def test_a_model_is_known_in_every_spelling(spelling: str) -> None:
    assert base_name(spelling) == "claude-haiku-4-5"
    assert is_known(spelling)


@pytest.mark.parametrize("model", ["claude-sonnet-99", "gpt-7", "", "claude-", "claude-haiku-4-5-turbo", "a/b/c"])
def test_an_unknown_model_costs_what_the_default_model_costs(model: str) -> None:
    assert not is_known(model)
    assert cost_usd(model, Tokens(input=MILLION)) == pytest.approx(4)


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


ASKED = [
    (SONNET, True, [SONNET, f"{SONNET}[1m]", "claude-haiku-5-5", "claude-haiku-4-5-20251001"]),
    (f"{SONNET}[1m]", True, [SONNET]),
    ("claude-opus-5-5", True, [SONNET]),
    ("@team/claude-opus-5-5", True, ["@team/claude-haiku-5-5"]),
    ("claude-of-tomorrow", True, ["claude-of-tomorrow"]),
    (SONNET, False, ["claude-opus-5-5", "claude-of-tomorrow", "", None, [SONNET]]),
    (SONNET, False, ["@other/claude-haiku-5-5", "us.anthropic.claude-haiku-5-5"]),
    ("@team/claude-opus-5-5", False, ["claude-haiku-5-5"]),
    ("claude-of-tomorrow", False, ["claude-haiku-5-5"]),
]


@pytest.mark.parametrize(("main", "allowed", "asked"), ASKED)
def test_smaller_known_models_may_be_asked_and_dearer_unknown_or_strangely_routed_ones_not(
    main: str, *, allowed: bool, asked: list[object]
) -> None:
    assert {Models.of(main).allow(name) for name in asked} == {allowed}


def test_a_suite_can_name_more() -> None:
    assert Models.of(SONNET, ["claude-opus-5-5[1m]"]).allow("claude-opus-5-5")
