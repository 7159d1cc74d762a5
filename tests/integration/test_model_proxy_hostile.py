"""The proxy against a session that holds it up, or asks for more than its suite grants."""

import gc
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import AnyByteStream

from tests.support.patience import PATIENCE
from tests.support.proxied import BODY, ask, client, listening, open_run, plain_client, upstream
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.model_proxy import server
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.modes import LiveMode, RecordMode, ReplayMode
from zelda_ci.model_proxy.wire import Call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_connections_that_say_nothing_hold_up_nobody_until_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 20)
    with ScriptedApi(lambda _: text("Hello.")) as api, ExitStack() as stack:
        async with open_run(LiveMode(upstream(api.url))) as meter:
            statuses = []
            for _ in range(2):
                for _ in range(15):
                    silent = stack.enter_context(socket.socket(socket.AF_UNIX))
                    await anyio.to_thread.run_sync(silent.connect, str(meter.socket))
                await anyio.sleep(0.1)
                statuses.append((await ask(meter)).status_code)
    assert statuses == [200, 503]


@pytest.mark.parametrize("mode", ["live", "record", "replay"])
async def test_a_request_is_forgotten_when_it_is_answered(mode: str, tmp_path: Path) -> None:
    with ScriptedApi(lambda _: text("Hello.")) as api:
        record = RecordMode(upstream(api.url), tmp_path)
        modes: dict[str, LiveMode | RecordMode | ReplayMode] = {
            "live": LiveMode(upstream(api.url)),
            "record": record,
            "replay": ReplayMode(tmp_path),
        }
        if mode == "replay":
            async with open_run(record) as meter:
                await ask(meter, "x" * 100_000)
        async with open_run(modes[mode]) as meter:
            assert (await ask(meter, "x" * 100_000)).status_code == 200
            gc.collect()
            kept = [each for each in gc.get_objects() if isinstance(each, Call)]
            assert meter.usage().requests == 1
    assert kept == []


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
