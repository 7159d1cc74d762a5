import pytest

from zelda_ci.model_proxy.pricing import Tokens, base_name, cost_usd, is_known

MILLION = 1_000_000


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
