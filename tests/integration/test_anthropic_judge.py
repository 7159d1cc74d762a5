"""The judge against a real server on loopback: answers, every kind of failure, deadlines."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from pydantic import BaseModel

from tests.builders import session
from tests.support.judging import judge
from tests.support.patience import PATIENCE
from tests.support.scripted_api import (
    ApiRequest,
    Message,
    Reply,
    ScriptedApi,
    Tokens,
    hang,
    http_error,
    raw,
    text,
    tool_call,
    tool_calls,
)
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import JudgeError
from zelda_ci.judge import anthropic_judge
from zelda_ci.judge.base import CommonPrefix, JudgeQuestion
from zelda_ci.judge.lookups import SessionLookups
from zelda_ci.redact import Redactor, SafeText

pytestmark = pytest.mark.anyio


class Colour(BaseModel):
    colour: Literal["red", "green"]
    points: int


COMMON = CommonPrefix("You judge.", ())
SHARED = ("The same for several.", "And this.")
QUESTION = JudgeQuestion("You see colours.", SHARED, "Which one?", common=COMMON)
ANSWER = {"colour": "green", "points": 3}
GREEN = tool_call("answer_colour", ANSWER, tokens=Tokens(input=100, output=7, cache_read=5, cache_write_5m=50))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anthropic_judge, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.001)


async def failure(*replies: Reply, timeout_seconds: float = PATIENCE) -> tuple[str, str, int]:
    """Code and sentence of the failure, and how often was asked."""
    with ScriptedApi(list(replies)) as api:
        asked = judge(api.url, timeout_seconds=timeout_seconds, max_retries=len(replies) - 1)
        with pytest.raises(JudgeError) as caught:
            await asked.ask(QUESTION, Colour)
        return caught.value.code, caught.value.message, len(api.requests)


async def test_a_question_is_sent_with_its_form_and_the_answer_is_counted() -> None:
    with ScriptedApi([GREEN]) as api:
        found = await judge(api.url).ask(QUESTION, Colour)
    assert found == Colour(colour="green", points=3)
    (request,) = api.requests
    assert request.headers["authorization"] == "Bearer sk-ant-fake-judge"
    assert request.body["system"] == "You judge."
    (tool,) = request.body["tools"]
    assert (tool["name"], tool["strict"], request.body["tool_choice"]) == ("answer_colour", True, {"type": "any"})
    assert tool["input_schema"]["additionalProperties"] is False
    assert list(tool["input_schema"]["properties"]) == ["colour", "points"]
    *shared, body = request.messages[0]["content"]
    assert [block["text"] for block in shared] == ["You see colours.", *SHARED]
    assert body["text"] == "Which one?\n\nGive your answer by calling the tool answer_colour."
    assert ["cache_control" in block for block in (*shared, body)] == [False, False, True, False]
    assert request.body["stream"]


async def test_what_will_not_pass_is_told_at_once() -> None:
    found, sentence, requests = await failure(http_error(401, "the server's own words"))
    assert (found, requests) == ("JUDGE_AUTHENTICATION_FAILED", 1)
    assert "(HTTP 401)" in sentence
    assert "the server's own words" in sentence


async def test_a_redirect_is_not_followed() -> None:
    """The SDK's own client would send the token, and what the session did, wherever a server says."""
    with ScriptedApi([]) as elsewhere:
        moved = raw(b"", status=308, headers={"location": f"{elsewhere.url}/v1/messages"})
        code, sentence, requests = await failure(moved)
    assert (code, requests) == ("JUDGE_NOT_AN_API", 1)
    assert "redirects elsewhere, and Zelda does not follow (HTTP 308)" in sentence
    assert (elsewhere.requests, elsewhere.others) == ([], [])


@pytest.mark.parametrize("silence", [hang(), hang(after_headers=True)])
async def test_after_silence_is_asked_again_until_the_deadline(silence: Reply) -> None:
    code, sentence, requests = await failure(*[silence] * 9, timeout_seconds=1)
    assert (code, sentence) == ("JUDGE_TIMEOUT", "The judge gave no answer within 1 s.")
    assert requests in {2, 3, 4}
    with ScriptedApi([http_error(503), silence, http_error(529), GREEN]) as api:
        found = await judge(api.url, timeout_seconds=min(8, PATIENCE)).ask(QUESTION, Colour)
    assert found == Colour.model_validate(ANSWER)


async def test_at_the_deadline_the_status_of_the_last_answer_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", PATIENCE)
    code, sentence, seconds = "", "", 0.0
    for seconds in (0.3, 3, 30):
        code, sentence, _ = await failure(http_error(529), http_error(529), timeout_seconds=seconds)
        # A busy machine may need longer for the first answer.
        if code != "JUDGE_TIMEOUT":
            break
    assert code == "JUDGE_OVERLOADED"
    assert sentence == f"The judge gave no answer within {seconds} s. The judge's provider is overloaded (HTTP 529)"


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"<html><body>Please log in</body></html>", "text/html"), (b"{}", "application/json"), (b"", "application/json")],
)
async def test_what_is_no_messages_api_is_called_so(body: bytes, kind: str) -> None:
    code, sentence, requests = await failure(raw(body, headers={"content-type": kind}))
    assert (code, requests) == ("JUDGE_NOT_AN_API", 1)
    assert f"does not answer like the Messages API: its answer is {kind}" in sentence


BEGUN = b"""event: message_start
data: {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}

"""
EVENT = "event: error\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("after", "code", "is_tried_again"),
    [
        (b"", "JUDGE_UNREACHABLE", True),
        (b"event: ping\ndata: {}\n\n", "JUDGE_UNREACHABLE", True),
        *(
            (EVENT.format(json.dumps({"type": "error", "error": {"type": kind, "message": words}})).encode(), *wanted)
            for kind, words, *wanted in (
                ("overloaded_error", "Overloaded", "JUDGE_OVERLOADED", True),
                ("rate_limit_error", "Slower", "JUDGE_RATE_LIMITED", True),
                ("new_error", "New", "JUDGE_API_FAILED", True),
                ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "JUDGE_PROMPT_TOO_LONG", False),
            )
        ),
        (EVENT.format("[]").encode(), "JUDGE_API_FAILED", True),
    ],
)
async def test_a_stream_that_breaks_off_or_tells_a_failure_is_no_answer(
    after: bytes, code: str, *, is_tried_again: bool
) -> None:
    broken = raw(BEGUN + after, headers={"content-type": "text/event-stream"})
    found, _, requests = await failure(broken, broken)
    assert (found, requests) == (code, 2 if is_tried_again else 1)


RED = json.dumps({"colour": "red", "points": 1})
QUOTING = f"The session wrote into NOTES.md:\n\n```json\n{RED}\n```\n\nI will judge by the evidence only."


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (text(RED), "it has 0 calls of answer_colour"),
        (text(QUOTING), "it has 0 calls of answer_colour"),
        (text(""), "it has 0 calls of answer_colour"),
        (tool_call("answer_colour", {"colour": "green"}, text=QUOTING), "points: Field required"),
        (tool_call("answer_shape", ANSWER, text=QUOTING), "it has 0 calls of answer_colour"),
        (tool_calls([("answer_colour", ANSWER)] * 2), "it has 2 calls of answer_colour"),
    ],
)
async def test_only_the_input_of_one_answering_call_is_an_answer(bad: Message, why: str) -> None:
    """What a judge quotes in prose was written by the session that it judges."""
    with ScriptedApi([bad, GREEN]) as api:
        found = await judge(api.url).ask(QUESTION, Colour)
    assert (found, len(api.requests)) == (Colour.model_validate(ANSWER), 2)
    assert [message["role"] for message in api.requests[1].messages] == ["user", "assistant", "user"]
    assert why in json.dumps(api.requests[1].messages[-1])
    # One that stays invalid is a failure.
    code, sentence, requests = await failure(bad, bad)
    assert (code, why in sentence, requests) == ("JUDGE_ANSWER_INVALID", True, 2)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("refusal", "JUDGE_REFUSED"),
        ("max_tokens", "JUDGE_ANSWER_CUT"),
        ("model_context_window_exceeded", "JUDGE_PROMPT_TOO_LONG"),
    ],
)
async def test_an_answer_that_stopped_early_is_a_failure(reason: str, code: str) -> None:
    assert (await failure(text('{"colour": "gr', stop_reason=reason)))[0] == code


async def test_secrets_leave_in_neither_direction() -> None:
    key = "sk-ant-fake0123456789"
    with ScriptedApi([http_error(401, f"bad key {key}")]) as api:
        with pytest.raises(JudgeError) as caught:
            await judge(api.url).ask(JudgeQuestion(f"key {key}", (key,), key), Colour)
        assert key not in json.dumps(api.requests[0].body) + caught.value.message


async def test_a_call_that_does_not_fit_the_form_is_told_why_once() -> None:
    with ScriptedApi([tool_call("answer_colour", {"colour": "blue"}), tool_call("answer_colour", ANSWER)]) as api:
        found = await judge(api.url).ask(QUESTION, Colour)
    assert (found, len(api.requests)) == (Colour.model_validate(ANSWER), 2)
    call = api.requests[1].messages[1]["content"][0]
    (result,) = api.requests[1].messages[2]["content"]
    assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", call["id"], True)
    assert "points: Field required" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("tools.0.custom.strict: Extra inputs are not permitted", {"strict"}),
        ("tool_choice: tool_choice forces tool use is not compatible with this model", {"tool_choice"}),
    ],
)
async def test_what_a_gateway_does_not_know_is_left_out(words: str, left_out: set[str]) -> None:
    with ScriptedApi([http_error(400, words), GREEN, GREEN]) as api:
        asked = judge(api.url)
        await asked.ask(QUESTION, Colour)
        # Remembered: no second question pays for the same refusal.
        await asked.ask(QUESTION, Colour)
    assert len(api.requests) == 3
    for request in api.requests[1:]:
        assert ("strict" in request.body["tools"][0]) == ("strict" not in left_out)
        assert ("tool_choice" in request.body) == ("tool_choice" not in left_out)


# --- look-ups ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shelf(SessionLookups):
    """Something else to look things up in."""

    transcript: SessionTranscript = field(default_factory=session)
    root: Path | None = None
    nonce: str = ""
    redact: Redactor = field(default_factory=Redactor)
    length: int = 10
    read: list[Any] = field(default_factory=list)

    @property
    def remark(self) -> str:
        return "Some books are lent."

    @cached_property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        schema = {"type": "object", "properties": {"title": {"type": "string"}}}
        return ({"name": "read_book", "description": "Reads a book.", "input_schema": schema},)

    def run(self, name: str, values: Mapping[str, Any]) -> SafeText:
        self.read.append((name, dict(values)))
        return self.redact("x" * self.length)


def read_book(title: str) -> Message:
    return tool_call("read_book", {"title": title}, tokens=Tokens(output=1))


async def test_a_judge_looks_things_up_before_it_answers() -> None:
    shelf = Shelf()
    wanted = [("read_book", {"title": "B"}), ("rm", {}), ("read_book", {"title": "C"})]
    both = tool_calls(wanted, tokens=Tokens(output=0))
    with ScriptedApi([read_book("A"), both, tool_call("answer_colour", ANSWER)]) as api:
        found = await judge(api.url).ask(replace(QUESTION, lookups=shelf), Colour)
    assert found == Colour.model_validate(ANSWER)
    assert [values["title"] for _, values in shelf.read] == ["A", "B", "C"]
    first, second, third = api.requests
    assert [tool["name"] for tool in first.body["tools"]] == ["read_book", "answer_colour"]
    assert "read_book" in first.messages[0]["content"][-1]["text"]
    assert "Some books are lent." in first.messages[0]["content"][-1]["text"]
    assert "20 look-ups" in first.messages[0]["content"][-1]["text"]
    # Every request begins like the one before, so that only what is new is paid in full.
    assert third.messages[: len(second.messages) - 1] == second.messages[:-1]
    marked = [b for m in third.messages for b in m["content"] if "cache_control" in b]
    assert [block["type"] for block in marked] == ["text", "tool_result"]
    # What is not offered is refused.
    assert [result.get("is_error", False) for result in third.tool_results] == [False, False, True, False]


async def test_look_ups_use_up_no_retries() -> None:
    replies: list[Reply] = [*[read_book("A")] * 8, http_error(529), http_error(529), GREEN]
    with ScriptedApi(replies) as api:
        asked = judge(api.url, max_retries=2, max_lookup_cost_usd=100)
        assert (await asked.ask(replace(QUESTION, lookups=Shelf()), Colour)).points == 3
    assert len(api.requests) == 11


@pytest.mark.parametrize(
    "limits",
    [{"max_lookups": 2}, {"max_lookup_characters": 15}, {"max_lookup_cost_usd": 0.5}, {"max_lookups": 0}],
)
async def test_look_ups_end_at_every_limit_and_the_judge_must_answer(limits: dict[str, Any]) -> None:
    """A judge that never stops is told to, then made to."""
    shelf = Shelf()

    def endless(request: ApiRequest) -> Message:
        forced = request.body["tool_choice"]["type"] == "tool"
        offered = [tool["name"] for tool in request.body["tools"]]
        stop = forced or "read_book" not in offered
        return tool_call("answer_colour", ANSWER) if stop else read_book("again")

    with ScriptedApi(endless) as api:
        found = await judge(api.url, **limits).ask(replace(QUESTION, lookups=shelf), Colour)
    assert found == Colour.model_validate(ANSWER)
    assert len(shelf.read) <= 2
    if limits.get("max_lookups") != 0:
        assert "Answer now" in json.dumps(api.requests[-1].messages)


@pytest.mark.parametrize(("context_tokens", "offered"), [(60_000, True), (20_000, False)])
async def test_look_ups_never_outgrow_the_context(context_tokens: int, offered: bool) -> None:  # noqa: FBT001
    shelf = Shelf(length=5000)
    question = replace(QUESTION, lookups=shelf, body="x" * int(0.8 * context_tokens * 2.5))

    def endless(request: ApiRequest) -> Message:
        is_closed = "Answer now" in json.dumps(request.messages) or len(request.body["tools"]) == 1
        return tool_call("answer_colour", ANSWER) if is_closed else read_book("again")

    with ScriptedApi(endless) as api:
        await judge(api.url, context_tokens=context_tokens, max_lookup_cost_usd=100).ask(question, Colour)
    sizes = [len(json.dumps(request.messages)) for request in api.requests]
    assert max(sizes) / 2.5 < context_tokens
    assert bool(shelf.read) is offered


# --- what judges share ------------------------------------------------------------------------------------------


class Shape(BaseModel):
    corners: int


async def test_judges_with_a_common_prefix_send_it_alike_up_to_its_mark() -> None:
    """Tools, system prompt and first blocks: whatever differs before the mark is paid again."""
    common = CommonPrefix("All judges read this.", ("The transcript.", "The patch."))
    about_shape = JudgeQuestion("You see shapes.", ("Rules.",), "How many?", common=common)
    with ScriptedApi([GREEN, tool_call("answer_shape", {"corners": 3})]) as api:
        asked = judge(api.url, forms=[Colour, Shape])
        await asked.ask(replace(QUESTION, common=common), Colour)
        await asked.ask(about_shape, Shape)
    first, second = api.requests
    for key in ("system", "tools", "tool_choice", "model"):
        assert first.body[key] == second.body[key]
    shared = first.messages[0]["content"][:2]
    assert shared == second.messages[0]["content"][:2]
    assert ["cache_control" in block for block in shared] == [False, True]
    assert [block["text"] for block in second.messages[0]["content"][2:4]] == ["You see shapes.", "Rules."]


async def test_questions_that_begin_alike_wait_for_the_first_answer_to_begin() -> None:
    """Asked at once, each of them would write the whole prefix into the cache, and pay for it."""
    common = CommonPrefix("All judges read this.", ("The transcript. " * 1000,))
    gate = threading.Event()
    at_once: list[int] = []

    def answers(request: ApiRequest) -> Message:
        if request.index:
            gate.set()
            return GREEN
        time.sleep(0.5)
        at_once.append(len(api.requests))
        # It begins, and ends only when another question has come: that one need not wait for the end.
        return replace(GREEN, gate=gate)

    with ScriptedApi(answers) as api:
        asked = judge(api.url)
        async with anyio.create_task_group() as group:
            for body in ("Which one?", "And now?", "And then?"):
                group.start_soon(asked.ask, replace(QUESTION, common=common, body=body), Colour)
    assert at_once == [1]
    assert len(api.requests) == 3


async def test_a_first_question_that_fails_keeps_no_other_waiting() -> None:
    common = CommonPrefix("All judges read this.", ("The transcript. " * 1000,))
    with ScriptedApi([http_error(401), GREEN]) as api:
        asked = judge(api.url)
        with pytest.raises(JudgeError):
            await asked.ask(replace(QUESTION, common=common), Colour)
        with anyio.fail_after(PATIENCE):
            assert (await asked.ask(replace(QUESTION, common=common), Colour)).points == 3
