"""Connections without end, without a token, without a word: none of them costs a run its way to the model."""

import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
import pytest

from tests.support.proxied import BODY, REDACT, ask, client, open_run, plain_client, until, upstream
from tests.support.scripted_api import ScriptedApi, hang, text
from zelda_ci.model_proxy import connections
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.modes import LiveMode
from zelda_ci.model_proxy.proxy import ModelProxy

pytestmark = pytest.mark.anyio

DESCRIPTORS = 1024
MANY = 1000

PROXY = """
import os, resource, sys, anyio
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[3])))
from tests.support.proxied import REDACT, upstream
from zelda_ci.model_proxy.modes import LiveMode
from zelda_ci.model_proxy.proxy import ModelProxy

async def main():
    async with ModelProxy(LiveMode(upstream(sys.argv[1])), REDACT) as proxy:
        with proxy.session(run_label="run", budget_usd=None, placeholders={}) as meter:
            print(meter.base_url, meter.token, meter.socket, flush=True)
            while await anyio.to_thread.run_sync(sys.stdin.readline):
                print(len(os.listdir("/proc/self/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)

anyio.run(main)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Served:
    """A proxy in a process of its own."""

    process: "subprocess.Popen[str]"
    base_url: str
    token: str
    socket: str

    async def descriptors(self) -> tuple[int, int]:
        """How many it has open, and how many it may have."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout
        used, limit = (await anyio.to_thread.run_sync(self.process.stdout.readline)).split()
        return int(used), int(limit)

    async def ask(self) -> int:
        async with self.client() as http:
            return (await http.post("/v1/messages", json=BODY)).status_code

    def client(self) -> httpx2.AsyncClient:
        return plain_client(base_url=self.base_url, headers={"x-api-key": self.token})


@asynccontextmanager
async def served(url: str, soft: int, hard: int, errors: Path) -> AsyncIterator[Served]:
    command = [sys.executable, "-c", PROXY, url, str(soft), str(hard)]
    with (
        errors.open("w") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,  # noqa: ASYNC220
    ):
        assert process.stdout
        assert process.stdin
        base_url, token, place = (await anyio.to_thread.run_sync(process.stdout.readline)).split()
        yield Served(process, base_url, token, place)
        process.stdin.close()


@contextmanager
def held(count: int, proxy: Served, family: int) -> Iterator[list[socket.socket]]:
    """So many connections on which nothing is ever said."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * MANY)), hard))
    place = proxy.socket if family == socket.AF_UNIX else ("127.0.0.1", int(proxy.base_url.rpartition(":")[2]))
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.socket(family)) for _ in range(count)]
        for one in opened:
            one.settimeout(10)
            one.connect(place)
        yield opened


def closed(connections: list[socket.socket]) -> int:
    count = 0
    for one in connections:
        one.settimeout(0)
        try:
            while one.recv(1 << 16):
                pass
            count += 1
        except BlockingIOError:
            pass
        except ConnectionError:
            count += 1
    return count


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX], ids=["tcp", "unix"])
@pytest.mark.parametrize("descriptors", [DESCRIPTORS, 256])
async def test_a_thousand_silent_connections_cost_nobody_anything(
    family: int, descriptors: int, tmp_path: Path
) -> None:
    errors = tmp_path / "errors"
    with ScriptedApi(lambda _: text("Fine.")) as api:
        async with served(api.url, descriptors, descriptors, errors) as proxy, proxy.client() as http:
            first = (await http.post("/v1/messages", json=BODY)).status_code
            began = time.monotonic()
            with held(MANY, proxy, family):
                used, _ = await proxy.descriptors()
                kept, new = (await http.post("/v1/messages", json=BODY)).status_code, await proxy.ask()
            seconds = time.monotonic() - began
    assert (first, kept, new) == (200, 200, 200)
    # The larger part is left for runs, files and the API.
    assert used < descriptors // 2
    assert seconds < 10
    assert errors.read_text() == ""


async def test_a_session_gets_through_while_silent_connections_keep_coming(tmp_path: Path) -> None:
    with ScriptedApi(lambda _: text("Fine.")) as api:
        async with served(api.url, DESCRIPTORS, DESCRIPTORS, tmp_path / "errors") as proxy:
            command = [sys.executable, "-c", FLOOD, proxy.base_url.rpartition(":")[2]]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as flood:  # noqa: ASYNC220
                assert flood.stdout
                await anyio.to_thread.run_sync(flood.stdout.readline)
                statuses = [await proxy.ask() for _ in range(20)]
                flood.kill()
    assert statuses == [200] * 20


FLOOD = """
import collections, socket, sys
held = collections.deque(maxlen=400)
for number in range(1_000_000):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    if number == 500:
        print("begun", flush=True)
"""


async def test_the_limit_of_descriptors_is_raised_as_far_as_it_can_be(tmp_path: Path) -> None:
    with ScriptedApi([]) as api:
        async with served(api.url, 256, DESCRIPTORS, tmp_path / "errors") as proxy:
            assert (await proxy.descriptors())[1] == DESCRIPTORS


async def test_who_shows_no_token_is_cut_off_soon_and_a_session_never() -> None:
    async with ModelProxy(LiveMode(upstream("http://127.0.0.1:9")), REDACT, Limits(request_seconds=0.5)) as proxy:
        with proxy.session(run_label="run", budget_usd=None, placeholders={}) as meter:
            async with client(meter) as http:
                before = await http.post("/v1/messages", json=BODY)
                with _connected(meter) as silent:
                    with anyio.fail_after(20):
                        while not closed([silent]):  # noqa: ASYNC110 - a plain socket has no event
                            await anyio.sleep(0.05)
                await anyio.sleep(1)
                port = _port_of(http)
                after = await http.post("/v1/messages", json=BODY)
                assert _port_of(http) == port
    assert (before.status_code, after.status_code) == (502, 502)


def _connected(meter: Meter) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(meter.base_url.rpartition(":")[2])))


def _port_of(http: httpx2.AsyncClient) -> object:
    """Which connection a client uses."""
    [connection] = http._transport._pool.connections  # type: ignore[attr-defined]
    return connection


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "wrong"}])
async def test_who_is_refused_for_its_token_loses_its_connection(headers: Mapping[str, str]) -> None:
    with ScriptedApi([]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, plain_client(base_url=meter.base_url) as http:
            answer = await http.post("/v1/messages", json=BODY, headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (401, "close")


async def test_a_run_has_its_share_of_connections_and_loses_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_RUN_CONNECTIONS", 5)
    with ScriptedApi(lambda request: hang() if "x" in request.last_user_text else text("Fine.")) as api:
        async with ModelProxy(LiveMode(upstream(api.url)), REDACT) as proxy:
            with (
                proxy.session(run_label="a", budget_usd=None, placeholders={}) as greedy,
                proxy.session(run_label="b", budget_usd=None, placeholders={}) as other,
                ExitStack() as stack,
            ):
                async with anyio.create_task_group() as group:
                    group.start_soon(_in_vain, other)
                    await until(lambda: len(api.requests) == 1)
                    idle = [stack.enter_context(_connected(greedy)) for _ in range(20)]
                    for one in idle:
                        one.sendall(_head(greedy))
                        await anyio.to_thread.run_sync(one.recv, 1 << 16)
                    await until(lambda: closed(idle) == 15)
                    assert api.disconnects == 0
                    assert (await ask(greedy)).status_code == 200
                    group.cancel_scope.cancel()


def _head(meter: Meter) -> bytes:
    return (
        f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {meter.token}\r\ncontent-length: 2\r\n\r\n[]"
    ).encode()


async def _in_vain(meter: Meter) -> None:
    with pytest.raises(httpx2.HTTPError):
        await ask(meter, "x")
