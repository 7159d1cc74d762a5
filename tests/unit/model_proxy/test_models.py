"""Which models a run may ask."""

import pytest

from zelda_ci.model_proxy.pricing import Models

SONNET = "claude-sonnet-5-5"


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
