"""Which models a run may ask."""

import pytest

from zelda_ci.model_proxy.pricing import Models

SONNET = "claude-sonnet-5-5"


@pytest.mark.parametrize(
    ("main", "asked"),
    [
        (SONNET, SONNET),
        (f"{SONNET}[1m]", SONNET),
        (SONNET, f"{SONNET}[1m]"),
        (SONNET, "claude-haiku-5-5"),
        (SONNET, "claude-haiku-4-5-20251001"),
        ("claude-opus-5-5", SONNET),
        ("@team/claude-opus-5-5", "@team/claude-haiku-5-5"),
        ("claude-of-tomorrow", "claude-of-tomorrow"),
    ],
)
def test_its_own_model_and_smaller_known_ones_may_be_asked(main: str, asked: str) -> None:
    assert Models.of(main).allow(asked)


@pytest.mark.parametrize(
    ("main", "asked"),
    [
        (SONNET, "claude-opus-5-5"),
        (SONNET, "claude-of-tomorrow"),
        (SONNET, "@other/claude-haiku-5-5"),
        (SONNET, "us.anthropic.claude-haiku-5-5"),
        ("@team/claude-opus-5-5", "claude-haiku-5-5"),
        ("claude-of-tomorrow", "claude-haiku-5-5"),
        (SONNET, ""),
        (SONNET, None),
        (SONNET, [SONNET]),
    ],
)
def test_dearer_unknown_and_strangely_routed_ones_may_not(main: str, asked: object) -> None:
    assert not Models.of(main).allow(asked)


def test_a_suite_can_name_more() -> None:
    assert Models.of(SONNET, ["claude-opus-5-5[1m]"]).allow("claude-opus-5-5")
