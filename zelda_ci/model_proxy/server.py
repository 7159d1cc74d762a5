"""The HTTP server: uvicorn on loopback and on a socket in the file system; who may ask, and what."""

import asyncio
import logging
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
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from zelda_ci.model_proxy.limits import Limits, in_mib
from zelda_ci.model_proxy.run import ProxyRun
from zelda_ci.model_proxy.wire import (
    DO_NOT_RETRY,
    BrokenOff,
    Call,
    Headers,
    OverLimitError,
    RefusedHereError,
    send_error,
)

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


def _config(app: ASGIApp) -> uvicorn.Config:
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


log = logging.getLogger(__name__)

PATHS = ("/v1/messages", "/v1/messages/count_tokens")
LOCAL_NAMES = ("127.0.0.1", "localhost")


class Endpoint:
    """An ASGI application over the runs that are open now, by token."""

    def __init__(self, runs: Mapping[str, ProxyRun]) -> None:
        self._runs = runs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        request, client = Request(scope, receive), _Client(send)
        try:
            await self._answer(request, client)
        except ClientDisconnect:
            log.debug("a session left before it had sent its request")
        except RefusedHereError as exc:
            await send_error(client, exc.status, exc.kind, exc.message, exc.headers)
        except BrokenOff as exc:
            if client.started:
                raise  # the server then cuts the connection, as the API's side did
            why, again = str(exc) or "the answer broke off before it began", not isinstance(exc, OverLimitError)
            await send_error(client, 502, "api_error", why, [] if again else DO_NOT_RETRY)
        except Exception:
            log.exception("the model proxy failed on a request")
            if client.started:
                raise
            await send_error(client, 500, "api_error", "Zelda's model proxy failed; see its debug log", DO_NOT_RETRY)
        await client.end()

    async def _answer(self, request: Request, client: "_Client") -> None:
        run = self._admitted(request)
        raw = await _whole(request, run.limits)
        call = await run.call(request.url.path, request.headers.raw, raw)
        del raw
        await _unless_it_leaves(request.receive, run, call, client)

    def _admitted(self, request: Request) -> ProxyRun:
        """The run that asks.

        Raises:
            RefusedHereError: Nobody may ask this, or not this one.
        """
        # A web page in the user's browser could have a name resolve to this address (DNS rebinding); its name gives
        # it away.
        if request.headers.get("host", "").rsplit(":", 1)[0] not in LOCAL_NAMES:
            raise _refused(403, "permission_error", "this host name is not served here")
        if request.url.path not in PATHS:
            raise _refused(404, "not_found_error", "only the Messages API is served here")
        if request.method != "POST":
            raise _refused(405, "invalid_request_error", "use POST", (b"allow", b"POST"))
        run = self._run_of(request)
        if run is None:
            raise _refused(401, "authentication_error", "this is not the token of a running session")
        return run

    def _run_of(self, request: Request) -> ProxyRun | None:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        tokens = (request.headers.get("x-api-key", ""), bearer.strip() if scheme.lower() == "bearer" else "")
        # A token is 256 random bits: the time of a look-up tells nothing about it.
        return next((self._runs[token] for token in tokens if token in self._runs), None)


def _refused(status: int, kind: str, message: str, *headers: tuple[bytes, bytes]) -> RefusedHereError:
    return RefusedHereError(status, kind, message, [*headers])


def refused_for_good(status: int, kind: str, message: str) -> RefusedHereError:
    """A refusal after which the connection is closed: the rest of the request is not read."""
    return RefusedHereError(status, kind, message, [(b"connection", b"close"), *DO_NOT_RETRY])


async def _whole(request: Request, limits: Limits) -> bytes:
    """The body.

    Raises:
        RefusedHereError: It is too large, takes too long or is compressed; the rest is not read.
    """
    encoding = request.headers.get("content-encoding", "identity")
    # A few kilobytes could unpack to gigabytes before any limit sees them.
    if encoding != "identity":
        raise refused_for_good(415, "invalid_request_error", f"compressed requests ({encoding[:20]}) are not taken")
    # What is announced as too large is refused before the first byte is read, and what lies about it by its true
    # size.
    announced = request.headers.get("content-length", "0")
    _check_size(int(announced[:15]) if announced.isdecimal() else 0, limits)
    try:
        with anyio.fail_after(limits.request_seconds):
            return b"".join([part async for part in _parts(request, limits)])
    except TimeoutError:
        message = f"the request did not arrive within {limits.request_seconds:g} s"
        raise refused_for_good(408, "timeout_error", message) from None


async def _parts(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    size = 0
    async for part in request.stream():
        size += len(part)
        _check_size(size, limits)
        yield part


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.request_bytes:
        message = f"the request is larger than the {in_mib(limits.request_bytes)} that Zelda's model proxy takes"
        raise refused_for_good(413, "request_too_large", message)


async def _unless_it_leaves(receive: Receive, run: ProxyRun, call: Call, client: "_Client") -> None:
    """Serve the call; when the session goes away, so does the request to the API."""
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        # What nobody waits for any more would still be paid for.
        group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
        try:
            await run.serve(call, client)
        except Exception as exc:  # noqa: BLE001 - raised again below, outside the group, which would wrap it
            failure = exc
        group.cancel_scope.cancel()
    if failure:
        raise failure


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


class _Client:
    """The session's side of an answer, as a sink."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def start(self, status: int, headers: Headers) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def chunk(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        if self.started:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
