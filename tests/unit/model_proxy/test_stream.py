from typing import Any

import pytest

from tests.support.scripted_replies import ApiRequest, Message, Tokens, events, text, tool_calls
from zelda_ci.model_proxy.cassettes import cassette

REQUEST = ApiRequest("/v1/messages", {}, {"model": "claude-sonnet-5-5"}, b"", None, 0)
REPLY = tool_calls(
    [("Write", {"file_path": "/ws/a", "content": 'x\n"y"\\' * 20}), ("Bash", {"command": "ls"})],
    text="I write.",
    thinking="A long thought about the matter.",
    tokens=Tokens(cache_read=7),
)


def streamed(reply: Message) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    whole = reply.as_json(REQUEST)
    return whole, list(events(whole, reply.tokens))


@pytest.mark.parametrize("reply", [REPLY, text("Done."), text("")])
def test_a_joined_stream_is_the_same_message(reply: Message) -> None:
    whole, sent = streamed(reply)
    joined = cassette.joined(sent)
    assert cassette.joined_message(joined) == whole
    assert cassette.joined_message(cassette.joined(cassette.played(joined))) == whole


def test_each_block_has_one_delta_and_tool_input_is_json() -> None:
    _, sent = streamed(REPLY)
    deltas = [event["delta"] for event in cassette.joined(sent) if event["type"] == "content_block_delta"]
    assert [delta["type"] for delta in deltas] == [
        "thinking_delta",
        "signature_delta",
        "text_delta",
        "input_json_delta",
        "input_json_delta",
    ]
    assert deltas[3]["input"]["file_path"] == "/ws/a"
    assert "ping" not in {event["type"] for event in cassette.joined(sent)}


def test_input_that_is_no_json_stays_as_the_model_wrote_it() -> None:
    def delta(piece: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}

    assert cassette.joined([delta('{"a": '), delta("oops")]) == [delta('{"a": oops')]
    assert list(cassette.played([delta('{"a": oops')])) == [delta('{"a": oops')]
