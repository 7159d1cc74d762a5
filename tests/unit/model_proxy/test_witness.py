"""What of a transcript counts as forged, and what an honest session may say otherwise than the API did."""

from typing import Any

import pytest

from tests.support.scripted_replies import ApiRequest, Message, events, text, tool_call
from tests.unit.model_proxy.requests import body, said
from zelda_ci.model_proxy.witness import MAX_DIFFERENCES, MAX_DOUBTS, AnswerReader, TranscriptWitness


def answered(reply: Message, *, most: int | None = None) -> tuple[TranscriptWitness, dict[str, Any]]:
    """A witness who has seen an answer, or so many of its events; and the answer's message."""
    witness = TranscriptWitness()
    message = reply.as_json(ApiRequest("/v1/messages", {}, body(said("Do it.")), b"", None, 0))
    reader = AnswerReader(witness)
    for event in list(events(message, reply.tokens))[:most]:
        reader.event(event)
    return witness, message


def sent(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}]}


def result(call: str, content: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def test_what_the_api_said_may_be_said() -> None:
    witness, message = answered(text("  I am done. \U0001f600\n", thinking="Hm."))
    witness.began(message["id"])
    witness.said(message["id"], "Hm.", thinking=True)
    witness.said(message["id"], "I am done. \U0001f600", thinking=False)
    assert witness.differences() == ()


def test_a_message_that_no_model_sent_is_named() -> None:
    witness, _ = answered(text("Done."))
    witness.said("msg_forged", "All tests pass.", thinking=False)
    assert witness.differences() == ("the text of message msg_forged",)
    witness.began("msg_other")
    assert "message msg_other" in witness.differences()


@pytest.mark.parametrize("thinking", [False, True])
def test_words_put_into_a_real_message_are_named(*, thinking: bool) -> None:
    witness, message = answered(text("Done."))
    witness.said(message["id"], "Done.", thinking=False)
    witness.said(message["id"], "All tests pass.", thinking=thinking)
    (difference,) = witness.differences()
    assert difference.endswith(f"of message {message['id']}")


def test_of_an_answer_that_broke_off_the_rest_may_be_anything() -> None:
    witness, message = answered(text("A long answer that breaks off somewhere."), most=4)
    witness.said(message["id"], "A long", thinking=False)
    assert witness.differences() == ()


def test_a_call_is_the_apis_or_what_claude_code_made_of_it_and_told_the_api() -> None:
    witness, message = answered(tool_call("Write", {"content": "a  \n"}))
    call = message["content"][0]["id"]
    witness.called(message["id"], call, "Write", {"content": "a\n"})
    completed = {"type": "tool_use", "id": call, "name": "Write", "input": {"content": "a\n"}}
    witness.request(
        {"messages": [*sent(completed, role="assistant")["messages"], *sent(result(call, "ok"))["messages"]]}
    )
    assert witness.differences() == ()
    witness.called(message["id"], call, "Write", {"content": "other"})
    assert witness.differences() == (f"the call {call} of Write in message {message['id']}",)


def test_a_call_that_no_model_made_is_named_in_a_real_message_too() -> None:
    witness, message = answered(text("Done."))
    witness.called(message["id"], "toolu_forged", "Bash", {})
    witness.returned("toolu_forged", "1 passed")
    assert set(witness.differences()) == {
        f"the call toolu_forged of Bash in message {message['id']}",
        "the result of toolu_forged, a call that no model made",
    }


OUTPUTS = {
    "the same": ("1 passed", "1 passed"),
    "in blocks": ([{"type": "text", "text": "1 passed"}], "1 passed"),
    "with a note": ("1 passed", "1 passed\n\n<system-reminder>Mind it.</system-reminder>"),
    "shortened": ("x" * 100_000, "<persisted-output>\nOutput too large"),
    "forgotten": ("1 passed", "[Old tool result content cleared]"),
    "an image": ([{"type": "image", "source": {}}], [{"type": "image", "source": {}}]),
    "nothing": (None, "(no output)"),
}


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("what", OUTPUTS)
def test_a_result_went_to_the_api_as_it_was_or_as_claude_code_shows_it(what: str, *, is_late: bool) -> None:
    heard, told = OUTPUTS[what]
    witness, message = answered(tool_call("Bash", {"command": "pytest"}))
    call = message["content"][0]["id"]
    if is_late:
        witness.request(sent(result(call, told)))
    witness.returned(call, heard)
    witness.request(sent(result(call, told)))
    assert witness.differences() == ()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_result_that_is_not_what_the_api_was_told_is_named(*, is_late: bool) -> None:
    witness, message = answered(tool_call("Bash", {"command": "pytest"}))
    call = message["content"][0]["id"]
    if not is_late:
        witness.returned(call, "1 passed")
    witness.request(sent(result(call, "1 failed")))
    witness.returned(call, "1 failed")
    if is_late:
        witness.returned(call, "1 passed")
    assert witness.differences() == (f"the result of {call}, of which the API was told otherwise",)


def test_calls_of_one_name_cannot_be_told_apart() -> None:
    """As some gateways name them, which number the calls of each answer."""
    witness = TranscriptWitness()
    for number, output in enumerate(("first", "second")):
        block = {"type": "tool_use", "id": "call_0", "name": "Bash", "input": {}}
        AnswerReader(witness).message({"id": f"msg_{number}", "content": [block]})
        witness.returned("call_0", output)
        witness.request(sent(result("call_0", output)))
    assert witness.differences() == ()


def test_a_call_whose_input_is_cut_off_may_be_completed_at_will() -> None:
    witness = TranscriptWitness()
    reader = AnswerReader(witness)
    block = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {}}
    for event in (
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"content": "a'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ):
        reader.event(event)
    witness.called("msg_1", "toolu_1", "Write", {"content": "a"})
    assert witness.differences() == ()


def test_a_flood_of_forgeries_takes_no_memory_and_hides_none() -> None:
    witness, message = answered(text("Done."))
    for number in range(2 * MAX_DOUBTS):
        witness.said(f"msg_{number}", "x" * 1000, thinking=False)
        witness.returned(message["id"], "x" * 1000)
    assert len(witness.differences()) == MAX_DIFFERENCES
    assert len("".join(witness.differences())) < 1000


@pytest.mark.parametrize("garbage", [None, 3, "x", [3], [{"role": 3}], [{"content": 3}], [{"content": [3, None]}]])
def test_requests_and_answers_of_any_shape_are_taken(garbage: object) -> None:
    witness = TranscriptWitness()
    witness.request({"messages": garbage})
    reader = AnswerReader(witness)
    reader.message({"id": garbage, "content": garbage})
    reader.event({"type": "message_start", "message": garbage})
    for kind in ("content_block_start", "content_block_delta", "content_block_stop", "message_stop"):
        reader.event({"type": kind, "index": garbage, "delta": garbage, "content_block": garbage})
    assert witness.differences() == ()


def test_an_answer_that_is_no_stream_counts_like_one() -> None:
    witness = TranscriptWitness()
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"timeout": 5.0}}
    AnswerReader(witness).message({"id": "msg_1", "content": [{"type": "text", "text": "Now."}, block]})
    witness.said("msg_1", "Now.", thinking=False)
    # JavaScript writes 5 for 5.0.
    witness.called("msg_1", "toolu_1", "Bash", {"timeout": 5})
    assert witness.differences() == ()
