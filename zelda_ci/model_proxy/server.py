"""The HTTP server: uvicorn on a loopback socket, and on a socket in the file system for sessions without a network."""

import asyncio
import os
import resource
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from zelda_ci.model_proxy.endpoint import Endpoint
from zelda_ci.model_proxy.run import ProxyRun

# Of all sessions together: 64 at once, each with ten sub-agents. Further ones get 503, which is retried.
MAX_CONNECTIONS = 1024

# An idle connection that the server closes can meet the session's next request half-way, and cost a retry.
KEEP_ALIVE_SECONDS = 24 * 3600

# Each request has a connection on both sides. More are of no use, and programs that close all that could be open take
# long over a billion.
MAX_DESCRIPTORS = 1 << 16


@asynccontextmanager
async def serving(runs: Mapping[str, ProxyRun], place: Path | None = None) -> AsyncIterator[str]:
    """Serve the runs that are open at any time, by token, on 127.0.0.1, and on a socket at `place`.

    The value is the base URL. The end waits for nobody.
    """
    _raise_descriptor_limit()
    # Our own start and end instead of uvicorn's `serve`: that one takes over the process's signal handlers, looks ten
    # times a second whether to end, and then waits for open streams.
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every answer would wait 40 ms for the
    # client's delayed acknowledgement.
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listener.bind(("127.0.0.1", 0))
        local = [stack.enter_context(_bound(place))] if place else []
        config, state = _config(Endpoint(runs)), ServerState()
        config.load()
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(lambda: H11Protocol(config, state, {}), sock=each, backlog=MAX_CONNECTIONS)
            for each in (listener, *local)
        ]
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for server in servers:
                server.close()
            with anyio.CancelScope(shield=True):
                await _end(state)


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a sandbox around Zelda may refuse it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _bound(place: Path) -> socket.socket:
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    local.bind(str(place))
    place.chmod(0o666)
    return local


def _config(app: Endpoint) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=H11Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # what goes wrong in a request is logged by the endpoint, in its own words
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


async def _end(state: ServerState) -> None:
    for connection in list(state.connections):
        connection.transport.abort()
    if tasks := set(state.tasks):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


PREFIX = "zelda-model-"
NAME = "s"
# Bytes of a socket's path that every kernel takes; Linux takes four more.
MAX_ADDRESS_LENGTH = 103


@contextmanager
def socket_folder() -> Iterator[Path | None]:
    """A path for a socket, in a folder that only this user can list; None where every such path is too long."""
    folder = _private_folder()
    try:
        yield folder and folder / NAME
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _private_folder() -> Path | None:
    for top in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - mkdtemp makes a private folder in it
        if len(os.fsencode(top)) + len(f"/{PREFIX}12345678/{NAME}") <= MAX_ADDRESS_LENGTH:
            with suppress(OSError):
                folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=top))
                # A session may run as another user, whom its token admits: those who know the name may pass.
                folder.chmod(0o711)
                return folder
    return None
