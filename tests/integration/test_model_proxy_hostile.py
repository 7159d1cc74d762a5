"""The proxy against a session that holds it up, or asks for more than its suite grants."""

import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack

import anyio
import httpx2
import pytest
from anyio.abc import AnyByteStream

from tests.support.patience import PATIENCE
from tests.support.proxied import BODY, ask, client, listening, open_run, plain_client, upstream
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.model_proxy import connections
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.modes import LiveMode

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_connections_without_end_take_neither_descriptors_nor_the_way_of_others() -> None:
    many = 2 * connections.MAX_CONNECTIONS
    with ScriptedApi([text("One."), text("Two."), text("Three.")]) as api, ExitStack() as stack:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            first = await http.post("/v1/messages", json=BODY)
            held = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(many)]
            for one in held:
                one.settimeout(5)
                await anyio.to_thread.run_sync(one.connect, str(meter.socket))
            second = await http.post("/v1/messages", json=BODY)
            new = await ask(meter)
            for one in held:
                one.settimeout(0)
            closed = sum(map(_is_closed, held))
    assert (first.status_code, second.status_code) == (200, 200)
    assert new.status_code == 200
    assert closed >= many - connections.MAX_CONNECTIONS


def _is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_a_request_without_end_is_refused_before_it_fills_the_memory() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 4 * Limits.request_bytes:
            sent += 1 << 20
            yield b" " * (1 << 20)

    with ScriptedApi([]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            try:
                status = (await http.post("/v1/messages", content=endless())).status_code
            except httpx2.HTTPError:
                status = 413  # cut while it was still sending
    assert status == 413
    assert sent < 2 * Limits.request_bytes
    assert meter.usage().requests == 0


async def test_an_answer_that_is_left_before_it_tells_its_price_counts_against_the_budget() -> None:
    async def never(stream: AnyByteStream) -> None:
        async with stream:
            await stream.receive()
            await anyio.sleep_forever()

    async with listening(never) as url, open_run(LiveMode(upstream(url)), budget_usd=0.01) as meter:
        body = {**BODY, "stream": False, "messages": [{"role": "user", "content": "x" * 100_000}]}
        async with plain_client(base_url=meter.base_url, headers={"x-api-key": meter.token}) as http:
            with anyio.move_on_after(1):
                await http.post("/v1/messages", json=body)
        with anyio.fail_after(PATIENCE):
            await meter.exhausted.wait()
        refused = await ask(meter)
    assert refused.status_code == 402
    assert meter.cost_usd == 0
