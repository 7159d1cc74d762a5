"""The HTTP server: uvicorn on a loopback socket of our own, inside the running event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import uvicorn
from starlette.types import ASGIApp

from zelda_ci.model_proxy.connections import AT_ONCE, Connection
from zelda_ci.model_proxy.endpoint import Endpoint
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.run import Run

KEEP_ALIVE_SECONDS = 24 * 3600
"""An idle connection that the server closes can meet the session's next request half-way, and cost a retry."""


@asynccontextmanager
async def serving(runs: Callable[[], Iterable[Run]], limits: Limits, place: Path | None = None) -> AsyncIterator[str]:
    """Serve the runs that are open at any time on 127.0.0.1, and on a socket at `place`.

    The value is the base URL. The end waits for nobody.
    """
    # Our own start and end instead of uvicorn's `serve`: that one takes over the process's signal handlers, looks ten
    # times a second whether to end, and then waits for open streams.
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every answer would wait 40 ms for the
    # client's delayed acknowledgement.
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listener.bind(("127.0.0.1", 0))
        local = [stack.enter_context(_bound(place))] if place else []
        server = uvicorn.Server(_config(Endpoint(runs), limits))
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[listener, *local])
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            with anyio.CancelScope(shield=True):
                await _end(server)


def _bound(place: Path) -> socket.socket:
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    local.bind(str(place))
    place.chmod(0o666)
    return local


def _config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast("type[Connection]", partial(Connection, head_seconds=limits.request_seconds)),
        backlog=AT_ONCE,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # what goes wrong in a request is logged by the endpoint, in its own words
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


async def _end(server: uvicorn.Server) -> None:
    for listening in server.servers:
        listening.close()
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    if tasks := set(server.server_state.tasks):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
