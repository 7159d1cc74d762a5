"""Requests, answers, connections and recordings that are too large, many or slow: refused, in bounded memory."""

import contextlib
import gc
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import AnyByteStream

from tests.support.patience import PATIENCE
from tests.support.proxied import BODY, ask, client, listening, open_run, until, upstream
from tests.support.scripted_api import ScriptedApi, hang, raw, text
from zelda_ci.model_proxy import live, server
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.wire import Call

pytestmark = pytest.mark.anyio

MIB = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MiB for a request and for an answer, and a second for each to go on."""
    for module in (server, live):
        for name in ("MAX_REQUEST_MIB", "REQUEST_SECONDS", "MAX_ANSWER_MIB", "SILENCE_SECONDS"):
            monkeypatch.setattr(module, name, 1, raising=False)


async def post(meter: Meter, content: bytes | AsyncIterator[bytes], **headers: str) -> httpx2.Response:
    async with client(meter, **headers) as http:
        return await http.post("/v1/messages", content=content)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    """A body without a length."""
    for part in parts:
        yield part


def said(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["message"])


# Requests


@pytest.mark.usefixtures("small")
async def test_a_large_request_is_refused_with_its_limit_however_it_is_sent() -> None:
    large = b" " * (MIB + 1)
    with ScriptedApi([]) as api:
        async with open_run(upstream(api.url)) as meter:
            for content in (large, pieces(large[: MIB // 2], large[MIB // 2 :])):
                answer = await post(meter, content)
                assert answer.status_code == 413
                assert said(answer) == "the request is larger than the 1 MiB that Zelda's model proxy takes"
                assert answer.headers["x-should-retry"] == "false"


@pytest.mark.usefixtures("small")
async def test_a_request_that_does_not_arrive_is_ended() -> None:
    with ScriptedApi([]) as api:
        async with (
            open_run(upstream(api.url)) as meter,
            await anyio.connect_tcp("127.0.0.1", int(meter.base_url.rpartition(":")[2])) as line,
        ):
            await line.send(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
            answer = b""
            with anyio.fail_after(PATIENCE):
                while b"did not arrive within 1 s" not in answer:
                    answer += await line.receive()
    assert answer.startswith(b"HTTP/1.1 408 ")


# Answers


def sending(head: bytes, part: bytes) -> Callable[[AnyByteStream], Awaitable[None]]:
    """An API whose answer never ends."""

    async def serve(stream: AnyByteStream) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):
            async with stream:
                await stream.receive()
                await stream.send(head)
                while True:
                    await stream.send(part)

    return serve


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
EVENT = b'event: ping\ndata: {"type":"ping"}\n\n'


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("kind", "path"), [(STREAM, "/v1/messages"), (PLAIN, "/v1/messages/count_tokens")])
async def test_an_answer_without_end_is_cut_at_its_limit_and_told(kind: bytes, path: str) -> None:
    async with listening(sending(kind, EVENT * 1000)) as url, open_run(upstream(url)) as meter:
        size = 0
        async with client(meter) as http, http.stream("POST", path, json=BODY) as answer:
            with pytest.raises(httpx2.RemoteProtocolError):  # noqa: PT012 - what came before counts
                async for part in answer.aiter_raw():
                    size += len(part)
        assert size <= MIB
        assert meter.outage == "The API's answer is larger than the 1 MiB that Zelda passes on"


@pytest.mark.usefixtures("small")
async def test_a_compressed_answer_without_end_is_cut_at_what_it_unpacks_to() -> None:
    bomb = gzip.compress(b" " * (64 * MIB))
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    with ScriptedApi([raw(bomb, headers=headers)]) as api:
        async with open_run(upstream(api.url)) as meter:
            with pytest.raises(httpx2.RemoteProtocolError):
                await ask(meter)
            assert "larger than the 1 MiB" in str(meter.outage)


@pytest.mark.usefixtures("small")
async def test_an_api_that_falls_silent_is_left() -> None:
    with ScriptedApi([hang()]) as api:
        async with open_run(upstream(api.url)) as meter:
            answer = await ask(meter)
    message = f"Zelda's model proxy could not reach {api.url}: it fell silent"
    assert (answer.status_code, said(answer)) == (502, message)


@pytest.mark.parametrize("mode", ["live", "record", "replay"])
async def test_a_request_is_forgotten_when_it_is_answered(mode: str, tmp_path: Path) -> None:
    with ScriptedApi(lambda _: text("Hello.")) as api:
        recorded = None if mode == "live" else tmp_path
        if mode == "replay":
            async with open_run(upstream(api.url), cassettes=recorded) as meter:
                await ask(meter, "x" * 100_000)
        async with open_run(None if mode == "replay" else upstream(api.url), cassettes=recorded) as meter:
            assert (await ask(meter, "x" * 100_000)).status_code == 200
            assert meter.usage().requests == 1
            # A recording reads it in a thread.
            await until(lambda: gc.collect() >= 0 and not any(isinstance(each, Call) for each in gc.get_objects()))


@pytest.mark.parametrize("ends", ["left", "broken off"])
async def test_an_answer_that_ends_before_it_tells_its_price_counts_against_the_budget(ends: str) -> None:
    asked = anyio.Event()

    async def begin(stream: AnyByteStream) -> None:
        async with stream:
            length = 0
            while length < 100_000:
                length += len(await stream.receive())
            asked.set()
            if ends == "left":
                await anyio.sleep_forever()
            await stream.send(PLAIN.replace(b"connection: close", b"content-length: 10000") + b"{")

    async def leave_or_hear(meter: Meter) -> None:
        body = {**BODY, "stream": False, "messages": [{"role": "user", "content": "x" * 100_000}]}
        async with client(meter) as http:
            with contextlib.suppress(httpx2.RemoteProtocolError):
                await http.post("/v1/messages", json=body)

    async with listening(begin) as url, open_run(upstream(url), budget_usd=0.01) as meter:
        async with anyio.create_task_group() as group:
            group.start_soon(leave_or_hear, meter)
            await asked.wait()
            if ends == "left":
                group.cancel_scope.cancel()
        with anyio.fail_after(PATIENCE):
            await meter.exhausted.wait()
        refused = await ask(meter)
    assert refused.status_code == 402
    assert meter.cost_usd == 0
