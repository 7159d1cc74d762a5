"""Which models a run may ask, what they count and what they cost."""

from typing import Any

import pytest

from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.pricing import base_name, cache_writes, cost_usd, is_known

MILLION = 1_000_000
SONNET = "claude-sonnet-5-5"


def usage(uncached: int = 0, output: int = 0, cached: int = 0, *, written: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    split = dict(zip(("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"), written, strict=True))
    return {
        "input_tokens": uncached,
        "output_tokens": output,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": sum(written),
        "cache_creation": split,
    }


@pytest.mark.parametrize(
    ("used", "factor"),
    [
        (usage(100_000), 1),
        (usage(100_001), 5),
        (usage(1, cached=50_000, written=(30_000, 20_000)), 5),
        (usage(10, 200_000), 1),
    ],
    ids=["at the limit", "above it", "cache counts too", "output does not count"],
)
def test_a_long_prompt_makes_everything_dearer(used: dict[str, Any], factor: float) -> None:
    five_minutes, one_hour = used["cache_creation"].values()
    short = (
        used["input_tokens"] * 0.1
        + used["output_tokens"] * 0.5
        + used["cache_read_input_tokens"] * 0.01
        + five_minutes * 0.125
        + one_hour * 0.2
    ) / MILLION
    assert cost_usd("claude-haiku-5-5", used) == pytest.approx(factor * short)


def test_fast_mode_and_place_multiply_tokens_but_not_searches() -> None:
    used = {"server_tool_use": {"web_search_requests": 1}, "speed": "fast", "inference_geo": "us", **usage(MILLION)}
    assert cost_usd("claude-opus-5-5", used) == pytest.approx(4 * 2 * 1.1 + 0.01)


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
    assert cost_usd(model, usage(MILLION)) == pytest.approx(4)


def test_cache_writes_are_split_by_lifetime() -> None:
    assert cache_writes(usage(written=(6, 4))) == (6, 4)
    assert cache_writes({"cache_creation_input_tokens": 10, "cache_creation": None}) == (10, 0)


def test_what_an_answers_own_counts_leave_out_is_paid_too() -> None:
    steps = [
        {"type": "message", **usage(5, 5)},
        {"type": "compaction", **usage(MILLION, 1000)},
        {"type": "advisor_message", "model": "claude-opus-5-5", "iterations": [{"type": "compaction"}], **usage(500)},
    ]
    own = usage(5, 5) | {"inference_geo": "us", "iterations": steps}
    beside = MILLION * 2 + 1000 * 10 + 500 * 4
    assert cost_usd(SONNET, own) == pytest.approx(1.1 * (5 * 2 + 5 * 10 + beside) / MILLION)
    assert cost_usd(SONNET, {"iterations": "x"}) == cost_usd(SONNET, {"iterations": [None, {"type": []}]}) == 0


def test_a_whole_number_may_be_written_with_a_fraction() -> None:
    assert cost_usd(SONNET, {"input_tokens": 1000.0}) == pytest.approx(0.002)


@pytest.mark.parametrize("nonsense", [None, "12", -5, 1.5, [], {}, {"x": 1}])
def test_what_is_no_count_is_zero(nonsense: Any) -> None:
    keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation", "server_tool_use")
    assert cost_usd(SONNET, dict.fromkeys(keys, nonsense)) == 0


def test_a_count_that_no_integer_holds_is_as_large_as_one_may_be() -> None:
    assert cost_usd(SONNET, {"input_tokens": 1e30}) == cost_usd(SONNET, {"input_tokens": 10**12})


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
    assert {Allowed(main).allows_model(name) for name in asked} == {allowed}


def test_a_suite_can_name_more() -> None:
    assert Allowed(SONNET, ["claude-opus-5-5[1m]"]).allows_model("claude-opus-5-5")
