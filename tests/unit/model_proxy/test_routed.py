"""When a routing session is over: at the request that shows that a call was carried out, and at no other."""

from typing import Any

import pytest

from tests.unit.model_proxy.requests import body, call
from zelda_ci.model_proxy.proxy import is_routed

ASKED = {"role": "user", "content": "Ship it."}


def used(name: str, *, is_error: bool = False) -> list[dict[str, Any]]:
    """What stands in a conversation after the model called a tool, which answered."""
    block = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}}
    answer = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": "x", "is_error": is_error}
    return [{"role": "assistant", "content": [block]}, {"role": "user", "content": [answer]}]


@pytest.mark.parametrize(
    ("messages", "agent", "called", "is_over"),
    [
        ([], None, set(), False),
        (used("Bash"), None, {"Bash"}, False),
        (used("Skill"), None, {"Skill"}, True),
        (used("Task"), None, {"Task"}, True),
        (used("Skill", is_error=True), None, {"Skill"}, False),
        ([*used("Skill", is_error=True), *used("Bash")], None, {"Skill", "Bash"}, False),
        ([], "a1", {"Agent"}, True),
        # A hook of the project may start one, too.
        ([], "a1", {"Bash"}, False),
    ],
)
def test_the_request_after_a_call_that_was_carried_out(
    messages: list[dict[str, Any]], agent: str | None, called: set[str], *, is_over: bool
) -> None:
    request = call(body(ASKED, *messages), agent)
    assert is_routed(request, called) is is_over
