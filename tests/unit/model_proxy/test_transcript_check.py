"""What of a transcript counts as forged, and what an honest session may say otherwise than the API did."""

from typing import Any

import pytest

from tests.support.scripted_replies import ApiRequest, Message, events, text, tool_call
from tests.unit.model_proxy.requests import body, said
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.transcript_check import MAX_DESCRIPTION, MAX_DIFFERENCES, PassedAnswer, TranscriptCheck
from zelda_ci.model_proxy.wire import AnswerEvents


def answered(reply: Message, *, most: int | None = None) -> tuple[TranscriptCheck, dict[str, Any]]:
    """A check that has seen an answer, or so many of its events; and the answer's message."""
    check = TranscriptCheck()
    message = reply.as_json(ApiRequest("/v1/messages", {}, body(said("Do it.")), b"", None, 0))
    passed = PassedAnswer(check)
    for event in list(events(message, reply.tokens))[:most]:
        passed.event(event)
    return check, message


def see(check: TranscriptCheck, message: dict[str, Any]) -> None:
    """Have a check see an answer that is no stream."""
    events, passed = AnswerEvents(), PassedAnswer(check)
    for event in (*events.feed(wire.write(message)), *events.end()):
        passed.event(event)


def sent(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}]}


def result(call: str, content: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def test_what_the_api_said_may_be_said() -> None:
    check, message = answered(text("  I am done. \U0001f600\n", thinking="Hm."))
    check.said(message["id"], "Hm.", thinking=True)
    check.said(message["id"], "I am done. \U0001f600", thinking=False)
    assert check.differences() == ()


def test_a_message_that_no_model_sent_is_named() -> None:
    check, _ = answered(text("Done."))
    check.said("msg_forged", "All tests pass.", thinking=False)
    assert check.differences() == ("the text of message msg_forged",)


@pytest.mark.parametrize("thinking", [False, True])
def test_words_put_into_a_real_message_are_named(*, thinking: bool) -> None:
    check, message = answered(text("Done."))
    check.said(message["id"], "Done.", thinking=False)
    check.said(message["id"], "All tests pass.", thinking=thinking)
    (difference,) = check.differences()
    assert difference.endswith(f"of message {message['id']}")


def test_of_an_answer_that_broke_off_the_rest_may_be_anything() -> None:
    check, message = answered(text("A long answer that breaks off somewhere."), most=4)
    check.said(message["id"], "A long", thinking=False)
    assert check.differences() == ()


def test_a_call_is_the_apis_or_what_claude_code_made_of_it_and_told_the_api() -> None:
    check, message = answered(tool_call("Write", {"content": "a  \n"}))
    call = message["content"][0]["id"]
    check.called(message["id"], call, "Write", {"content": "a\n"})
    completed = {"type": "tool_use", "id": call, "name": "Write", "input": {"content": "a\n"}}
    check.request({"messages": [*sent(completed, role="assistant")["messages"], *sent(result(call, "ok"))["messages"]]})
    assert check.differences() == ()
    check.called(message["id"], call, "Write", {"content": "other"})
    assert check.differences() == (f"the call {call} of Write in message {message['id']}",)


def test_a_call_that_no_model_made_is_named_in_a_real_message_too() -> None:
    check, message = answered(text("Done."))
    check.called(message["id"], "toolu_forged", "Bash", {})
    check.returned("toolu_forged")
    assert set(check.differences()) == {
        f"the call toolu_forged of Bash in message {message['id']}",
        "the result of toolu_forged, a call that no model made",
    }


def test_calls_of_several_answers_may_have_one_id() -> None:
    """As some gateways name them, which number the calls of each answer."""
    check = TranscriptCheck()
    for number, command in enumerate(("first", "second")):
        block = {"type": "tool_use", "id": "call_0", "name": "Bash", "input": {"command": command}}
        see(check, {"id": f"msg_{number}", "content": [block]})
        check.request(sent(block, role="assistant"))
        check.called(f"msg_{number}", "call_0", "Bash", {"command": command})
        check.returned("call_0")
    assert check.differences() == ()


def test_a_call_whose_input_is_cut_off_may_be_completed_at_will() -> None:
    check = TranscriptCheck()
    passed = PassedAnswer(check)
    block = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {}}
    for event in (
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"content": "a'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ):
        passed.event(event)
    check.called("msg_1", "toolu_1", "Write", {"content": "a"})
    assert check.differences() == ()


def test_of_a_flood_of_forgeries_the_first_are_named_shortened() -> None:
    check, message = answered(text("Done."))
    for number in range(2000):
        check.said(f"msg_{number}{'x' * 1000}", "x" * 1000, thinking=False)
        check.returned(message["id"])
    assert len(check.differences()) == MAX_DIFFERENCES
    assert max(map(len, check.differences())) == MAX_DESCRIPTION


@pytest.mark.parametrize("garbage", [None, 3, "x", [3], [{"role": 3}], [{"content": 3}], [{"content": [3, None]}]])
def test_requests_and_answers_of_any_shape_are_taken(garbage: object) -> None:
    check = TranscriptCheck()
    check.request({"messages": garbage})
    passed = PassedAnswer(check)
    see(check, {"id": garbage, "content": garbage})
    passed.event({"type": "message_start", "message": garbage})
    for kind in ("content_block_start", "content_block_delta", "content_block_stop", "message_stop"):
        passed.event({"type": kind, "index": garbage, "delta": garbage, "content_block": garbage})
    assert check.differences() == ()


def test_an_answer_that_is_no_stream_counts_like_one() -> None:
    check = TranscriptCheck()
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"timeout": 5.0}}
    see(check, {"id": "msg_1", "content": [{"type": "text", "text": "Now."}, block]})
    check.said("msg_1", "Now.", thinking=False)
    # JavaScript writes 5 for 5.0.
    check.called("msg_1", "toolu_1", "Bash", {"timeout": 5})
    assert check.differences() == ()
