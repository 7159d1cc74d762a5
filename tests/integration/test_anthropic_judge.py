"""The judge against a real server on loopback: answers, every kind of failure, deadlines."""

import json
from typing import Literal

import pytest
from pydantic import BaseModel

from tests.support.judging import judge, said
from tests.support.patience import PATIENCE
from tests.support.scripted_api import Reply, ScriptedApi, Tokens, hang, http_error, raw, text
from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError
from zelda_ci.judge.anthropic_judge import Backoff
from zelda_ci.judge.base import JudgeQuestion

pytestmark = pytest.mark.anyio


class Colour(BaseModel):
    colour: Literal["red", "green"]
    points: int


QUESTION = JudgeQuestion("colour", "1", "You see colours.", ("The same for several.", "And this."), "Which one?")
GREEN = text('{"colour": "green", "points": 3}', tokens=Tokens(input=100, output=7, cache_read=5, cache_write_5m=50))
PATIENT = Backoff(first_seconds=0.001, longest_seconds=0.002, most_attempts=20)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def failure(
    *replies: Reply, timeout_seconds: float = PATIENCE, backoff: Backoff | None = None
) -> tuple[str, str, int]:
    """Code and sentence of the failure, and how often was asked."""
    with ScriptedApi(list(replies)) as api:
        with pytest.raises(JudgeError) as caught:
            await judge(
                api.url, timeout_seconds=timeout_seconds, backoff=backoff or Backoff(0.001, 0.002, len(replies))
            ).ask(QUESTION, Colour)
        return caught.value.code, caught.value.message, len(api.requests)


async def test_a_question_is_sent_with_its_form_and_the_answer_is_counted() -> None:
    with ScriptedApi([GREEN]) as api:
        found = await judge(api.url).ask(QUESTION, Colour)
    assert found.value == Colour(colour="green", points=3)
    assert (found.attempts, found.cost_usd) == (1, 7.0)
    assert found.usage == Usage(input_tokens=100, output_tokens=7, cache_read_tokens=5, cache_write_tokens=50)
    (request,) = api.requests
    assert request.headers["authorization"] == "Bearer sk-ant-fake-judge"
    assert request.body["system"] == "You see colours."
    assert request.body["output_config"]["format"]["schema"]["additionalProperties"] is False
    blocks = request.messages[0]["content"]
    assert [block["text"] for block in blocks] == ["The same for several.", "And this.", "Which one?"]
    assert ["cache_control" in block for block in blocks] == [False, True, False]
    assert not request.body.get("stream")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    with ScriptedApi([http_error(status), http_error(status), GREEN]) as api:
        found = await judge(api.url).ask(QUESTION, Colour)
    assert (found.value.colour, found.attempts) == ("green", 3)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "JUDGE_REQUEST_REFUSED"),
        (401, "JUDGE_AUTHENTICATION_FAILED"),
        (402, "JUDGE_BILLING_FAILED"),
        (403, "JUDGE_ACCESS_DENIED"),
        (404, "JUDGE_MODEL_NOT_FOUND"),
        (413, "JUDGE_PROMPT_TOO_LONG"),
        (422, "JUDGE_REQUEST_REFUSED"),
    ],
)
async def test_what_will_not_pass_is_told_at_once(status: int, code: str) -> None:
    found, sentence, requests = await failure(http_error(status, "the server's own words"))
    assert (found, requests) == (code, 1)
    assert f"(HTTP {status})" in sentence
    assert "the server's own words" in sentence


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    """The SDK's own client would send the token, and what the session did, wherever a server says."""
    with ScriptedApi([]) as elsewhere:
        moved = raw(b"", status=status, headers={"location": f"{elsewhere.url}/v1/messages"})
        code, sentence, requests = await failure(moved)
    assert (code, requests) == ("JUDGE_NOT_AN_API", 1)
    assert f"redirects elsewhere, and Zelda does not follow (HTTP {status})" in sentence
    assert (elsewhere.requests, elsewhere.others) == ([], [])


async def test_a_prompt_that_is_too_long_is_called_so() -> None:
    code, _, _ = await failure(http_error(400, "prompt is too long: 210000 tokens > 200000 maximum"))
    assert code == "JUDGE_PROMPT_TOO_LONG"


@pytest.mark.parametrize(
    ("status", "code"), [(429, "JUDGE_RATE_LIMITED"), (500, "JUDGE_API_FAILED"), (529, "JUDGE_OVERLOADED")]
)
async def test_attempts_are_bounded(status: int, code: str) -> None:
    assert (await failure(*[http_error(status)] * 4))[::2] == (code, 4)


async def test_a_server_that_forbids_to_try_again_is_heeded() -> None:
    code, _, requests = await failure(http_error(529, headers={"x-should-retry": "false"}))
    assert (code, requests) == ("JUDGE_OVERLOADED", 1)


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    code, _, requests = await failure(http_error(429, headers={"retry-after": "86400"}), backoff=PATIENT)
    assert (code, requests) == ("JUDGE_RATE_LIMITED", 1)


@pytest.mark.parametrize("value", ["0.01", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "-5", "nan", ""])
async def test_any_retry_after_is_survived(value: str) -> None:
    with ScriptedApi([http_error(429, headers={"retry-after": value}), GREEN]) as api:
        assert (await judge(api.url).ask(QUESTION, Colour)).attempts == 2


@pytest.mark.parametrize("reply", [hang(), hang(after_headers=True)])
async def test_silence_ends_at_the_deadline(reply: Reply) -> None:
    code, sentence, _ = await failure(reply, timeout_seconds=0.5)
    assert code == "JUDGE_TIMEOUT"
    assert "within 0.5 s" in sentence


async def test_the_deadline_tells_of_the_failure_before_it() -> None:
    code, sentence, _ = await failure(http_error(529), hang(), timeout_seconds=1, backoff=PATIENT)
    assert code == "JUDGE_TIMEOUT"
    assert "overloaded" in sentence


async def test_a_dead_server_is_unreachable() -> None:
    with ScriptedApi([]) as api:
        address = api.url
    with pytest.raises(JudgeError) as caught:
        await judge(address).ask(QUESTION, Colour)
    assert caught.value.code == "JUDGE_UNREACHABLE"


async def test_an_answer_that_breaks_off_is_asked_again() -> None:
    broken = raw(b'{"type": "message"', headers={"content-type": "application/json"}, length=5000)
    with ScriptedApi([broken, GREEN]) as api:
        assert (await judge(api.url).ask(QUESTION, Colour)).attempts == 2


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html><body>Please log in</body></html>", "text/html"),
        (b"not json", "application/json"),
        (b"[]", "application/json"),
        (b"{}", "application/json"),
        (b"", "application/json"),
        (b"\xff\xfe\x00", "application/octet-stream"),
    ],
)
async def test_what_is_no_messages_api_is_called_so(body: bytes, kind: str) -> None:
    code, sentence, requests = await failure(raw(body, headers={"content-type": kind}))
    assert (code, requests) == ("JUDGE_NOT_AN_API", 1)
    assert "does not answer like the Messages API" in sentence


@pytest.mark.parametrize("bad", ['{"colour": "blue", "points": 1}', '{"colour": "green"', "Green, I think.", "[]", ""])
async def test_an_invalid_answer_is_told_why_once_and_then_taken(bad: str) -> None:
    with ScriptedApi([text(bad), GREEN]) as api:
        found = await judge(api.url).ask(QUESTION, Colour)
    assert (found.value.points, found.attempts, found.cost_usd) == (3, 2, 27.0)
    assert [message["role"] for message in api.requests[1].messages] == ["user", "assistant", "user"]
    assert "That answer cannot be used" in said(api.requests[1])


async def test_an_answer_that_stays_invalid_is_a_failure() -> None:
    code, sentence, requests = await failure(text('{"points": 1}'), text('{"points": 1}'))
    assert (code, requests) == ("JUDGE_ANSWER_INVALID", 2)
    assert "colour" in sentence


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
    question = JudgeQuestion("q", "1", "key sk-ant-fake0123456789", ("sk-ant-fake0123456789",), "sk-ant-fake0123456789")
    with ScriptedApi([http_error(401, "bad key sk-ant-fake0123456789")]) as api:
        with pytest.raises(JudgeError) as caught:
            await judge(api.url).ask(question, Colour)
        assert "sk-ant-fake0123456789" not in json.dumps(api.requests[0].body)
    assert "sk-ant-fake0123456789" not in caught.value.message


async def test_the_end_of_a_models_life_is_told_once() -> None:
    heard: list[str] = []
    with ScriptedApi([GREEN, GREEN]) as api:
        asked = judge(api.url, model="claude-sonnet-4-5", notify=heard.append)
        await asked.ask(QUESTION, Colour)
        await asked.ask(QUESTION, Colour)
    assert len(heard) == 1
    assert "claude-sonnet-4-5 is deprecated and ends on" in heard[0]
