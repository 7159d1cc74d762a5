"""The proxy between real HTTP clients and a real API on loopback: what passes, and what is counted."""

import gzip
import json
import threading
import zlib
from collections.abc import Callable

import pytest

from tests.support.proxied import BODY, ask, client, open_run, upstream
from tests.support.scripted_api import ScriptedApi, Tokens, raw, text

USED = Tokens(input=1000, output=100)
COST = (1000 * 2 + 100 * 10) / 1e6

pytestmark = pytest.mark.anyio


async def test_the_first_event_arrives_before_the_api_has_sent_the_second() -> None:
    gate = threading.Event()
    with ScriptedApi([text("Hello.", gate=gate)]) as api:
        async with (
            open_run(upstream(api.url)) as meter,
            client(meter) as http,
            http.stream("POST", "/v1/messages?beta=true", json=BODY) as answer,
        ):
            chunks = answer.aiter_raw()
            assert b"message_start" in await anext(chunks)
            gate.set()
            rest = [chunk async for chunk in chunks]
    assert b"message_stop" in rest[-1]


@pytest.mark.parametrize(
    "body",
    [b"event: message_start\ndata: {no json\n\n", b"<html>502</html>", b"", b"\x00\xff" * 1000, b"data: {}\r\n\r\n: x"],
)
async def test_bytes_pass_unchanged_whatever_they_are(body: bytes) -> None:
    with ScriptedApi([raw(body, headers={"content-type": "text/event-stream", "request-id": "req_1"})]) as api:
        async with open_run(upstream(api.url)) as meter:
            answer = await ask(meter)
    assert (answer.status_code, answer.content, answer.headers["request-id"]) == (200, body, "req_1")
    assert meter.usage().models == {}


TWICE = ("deflate, GZIP", lambda body: gzip.compress(zlib.compress(body)))


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), TWICE, ("identity", bytes)]
)
async def test_a_compressed_answer_is_metered_and_passed_on_readable(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    body = json.dumps({"model": "claude-sonnet-5-5", "usage": {"input_tokens": 1000, "output_tokens": 100}}).encode()
    headers = {"content-type": "application/json", "content-encoding": encoding}
    with ScriptedApi([raw(compress(body), headers=headers)]) as api:
        async with open_run(upstream(api.url)) as meter:
            answer = await ask(meter, stream=False)
    assert api.requests[0].headers["accept-encoding"] == "identity"
    assert answer.content == body
    assert meter.usage().cost_usd == pytest.approx(COST)


async def test_once_the_budget_is_spent_requests_are_refused_and_never_reach_the_api() -> None:
    with ScriptedApi([text("x", tokens=USED)]) as api:
        async with open_run(upstream(api.url), budget_usd=COST) as meter:
            first = await ask(meter)
            assert meter.exhausted.is_set()
            second = await ask(meter)
    assert (first.status_code, second.status_code) == (200, 402)
    assert second.headers["x-should-retry"] == "false"
    assert second.json()["error"]["message"] == (
        "Zelda's cost limit for this run is reached: 0.0030 of 0.0030 US dollars are spent"
    )
    assert meter.usage().requests == 1


async def test_an_answer_that_streams_when_the_budget_is_spent_may_end() -> None:
    gate = threading.Event()
    with ScriptedApi([text("slow", tokens=USED, gate=gate), text("fast", tokens=USED)]) as api:
        async with (
            open_run(upstream(api.url), budget_usd=COST) as meter,
            client(meter) as http,
            http.stream("POST", "/v1/messages", json=BODY) as slow,
        ):
            chunks = slow.aiter_raw()
            await anext(chunks)
            await ask(meter)
            assert meter.exhausted.is_set()
            gate.set()
            rest = b"".join([chunk async for chunk in chunks])
    assert b"message_stop" in rest
    assert meter.usage().cost_usd == pytest.approx(2 * COST)
