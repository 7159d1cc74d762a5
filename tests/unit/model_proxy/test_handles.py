from typing import Any

import pytest

from tests.unit.model_proxy.requests import body, returned, said
from zelda_ci.model_proxy.cassettes.normalise import named
from zelda_ci.model_proxy.wire import Call


def call(request: dict[str, Any], **headers: str) -> Call:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Call("/v1/messages", raw, b"", request)


@pytest.mark.parametrize(
    ("output", "handle"),
    [
        ("Async agent launched.\nagentId: a261dd97fa5c6f07d (internal ID", "a261dd97fa5c6f07d"),
        ([{"type": "text", "text": "agentId: a261dd97fa5c6f07d"}], "a261dd97fa5c6f07d"),
        ("Command running in background with ID: b32pjnzel. Output is", "b32pjnzel"),
        ("Full output saved to: /h/projects/-ws/1/tool-results/blh0xd6me.txt\n", "blh0xd6me"),
    ],
)
def test_handles_are_named_after_the_call_that_made_them(output: Any, handle: str) -> None:
    assert named(call(body(said("x"), returned(output, call="toolu_01-A")))) == {"handle_toolu_01_A": handle}


@pytest.mark.parametrize("output", ["deployed with ID: production", "agentId: none", "", None, 7, [{"type": "image"}]])
def test_other_output_names_nothing(output: Any) -> None:
    assert named(call(body(returned(output)))) == {}
