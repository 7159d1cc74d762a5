"""The model proxy in front of an API, and clients of it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.abc import AnyByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from tests.support.patience import PATIENCE
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.model_proxy.upstream import Upstream
from zelda_ci.redact import Redactor, Secret

KEY = "sk-ant-fake-the-real-one"
REDACT = Redactor([Secret(KEY)])
BODY: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 100,
    "stream": True,
    "messages": [{"role": "user", "content": "Hello"}],
}


def upstream(base_url: str, environ: Mapping[str, str] | None = None) -> Upstream:
    """An API that takes the fake key."""
    return Upstream({"x-api-key": Secret(KEY)}, base_url, environ or {})


@asynccontextmanager
async def open_run(
    api: Upstream | None,
    cassettes: Path | None = None,
    budget_usd: float | None = None,
    places: Mapping[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[Meter]:
    """One run of a proxy of its own, with `more` for its session."""
    async with (
        ModelProxy(api, REDACT, cassettes) as proxy,
        proxy.session(run_label="run", budget_usd=budget_usd, placeholders=places or {}, **more) as meter,
    ):
        yield meter


def plain_client(**options: Any) -> httpx2.AsyncClient:
    """A client for loopback: reading the system's certificates would take longer than most tests."""
    return httpx2.AsyncClient(trust_env=False, verify=False, timeout=PATIENCE, **options)


def client(meter: Meter, **headers: str) -> httpx2.AsyncClient:
    """A client that has the run's token."""
    return plain_client(base_url=meter.base_url, headers={"x-api-key": meter.token, **headers})


async def ask(meter: Meter, said: str = "Hello", **options: Any) -> httpx2.Response:
    """One whole request and answer."""
    body = {**BODY, "messages": [{"role": "user", "content": said}], **options}
    async with client(meter) as http:
        return await http.post("/v1/messages?beta=true", json=body)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in another thread; the test's own time limit ends a wait in vain."""
    while not condition():  # noqa: ASYNC110 - the other thread has no event of this loop
        await anyio.sleep(0.01)


@asynccontextmanager
async def listening(
    serve: Callable[[AnyByteStream], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """A server of a few lines; the value is its base URL."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        served = TLSListener(listener, tls, standard_compatible=False) if tls else listener
        group.start_soon(served.serve, serve)
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()
