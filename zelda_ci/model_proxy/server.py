"""The HTTP server: uvicorn on a loopback socket, and on a socket in the file system for sessions without a network."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import uvicorn
from starlette.types import ASGIApp

from zelda_ci.files import locks, untrusted
from zelda_ci.model_proxy.connections import Connection, Door, raise_descriptor_limit
from zelda_ci.model_proxy.endpoint import Endpoint
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.run import ProxyRun

# An idle connection that the server closes can meet the session's next request half-way, and cost a retry.
KEEP_ALIVE_SECONDS = 24 * 3600

# For a new connection to show a token, from a process on the same machine.
ANONYMOUS_SECONDS = 20.0


@asynccontextmanager
async def serving(
    runs: Callable[[], Iterable[ProxyRun]], limits: Limits, place: Path | None = None
) -> AsyncIterator[str]:
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
        make = cast("Callable[..., Connection]", server.config.http_protocol_class)
        state = server.server_state
        door = Door(partial(make, server.config, state, {}), state.connections, raise_descriptor_limit())
        try:
            with door.open([listener, *local]):
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
        http=cast("type[Connection]", _protocol(limits)),
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


def _protocol(limits: Limits) -> Callable[..., Connection]:
    return partial(
        Connection,
        head_seconds=limits.request_seconds,
        anonymous_seconds=min(ANONYMOUS_SECONDS, limits.request_seconds),
    )


async def _end(server: uvicorn.Server) -> None:
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    if tasks := set(server.server_state.tasks):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


PREFIX = "zelda-api-"
NAME = "s"
# Bytes of a socket's path that every kernel takes; Linux takes four more.
MAX_ADDRESS_LENGTH = 103

ATTEMPTS = 3


@contextmanager
def socket_folder() -> Iterator[Path | None]:
    """A path for a socket, in a folder that only this user can list; None where every such path is too long."""
    folder, number = _first_claimed()
    try:
        yield folder and folder / NAME
    finally:
        if folder and number is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(number)


def _first_claimed() -> tuple[Path | None, int | None]:
    for top in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - mkdtemp makes a private folder in it
        if len(os.fsencode(top)) + len(f"/{PREFIX}12345678/{NAME}") <= MAX_ADDRESS_LENGTH:
            _sweep(Path(top))
            for _ in range(ATTEMPTS):
                with suppress(OSError):
                    return _claimed(top)
    return None, None


def _claimed(top: str) -> tuple[Path, int]:
    """A new folder, and a lock on it that the kernel takes back when this process ends, however it ends."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=top))
    number = untrusted.open_folder(folder)
    try:
        locks.lock_open(number)
        # A session may run as another user, whom its token admits: those who know the name may pass. Where somebody
        # has swept the folder before it was locked, this fails.
        folder.chmod(0o711)
    except OSError:
        os.close(number)
        raise
    return folder, number


def _sweep(top: Path) -> None:
    """Remove the folders of processes that were killed; the lock of a living one cannot be taken."""
    for folder in top.glob(f"{PREFIX}*"):
        with suppress(OSError):
            number = untrusted.open_folder(folder)
            try:
                if os.fstat(number).st_uid == os.geteuid():
                    locks.lock_open(number)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(number)
