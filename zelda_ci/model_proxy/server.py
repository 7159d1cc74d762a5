"""The HTTP server: uvicorn on loopback and on a socket in the file system; who may ask, and what."""

import asyncio
import logging
import os
import resource
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send
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

log = logging.getLogger(__name__)

# Of all sessions together: 64 at once, each with ten sub-agents. Further ones get 503, which is retried.
MAX_CONNECTIONS = 1024
# Each request has a connection on both sides, and sessions have pipes.
MAX_DESCRIPTORS = 1 << 16
# An idle connection that the server closes can meet the session's next request half-way, and cost a retry.
KEEP_ALIVE_SECONDS = 24 * 3600
# Bytes of a socket's path that every kernel takes; Linux takes four more.
MAX_ADDRESS_LENGTH = 103

PATHS = ("/v1/messages", "/v1/messages/count_tokens")
LOCAL_NAMES = ("127.0.0.1", "localhost")


@asynccontextmanager
async def serving(runs: Mapping[str, ProxyRun], place: Path) -> AsyncIterator[str]:
    """Serve the runs that are open at any time, by token, on 127.0.0.1, and on a socket at `place`.

    The value is the base URL. The end waits for nobody.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a sandbox around Zelda may refuse it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    config = uvicorn.Config(
        Endpoint(runs),
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
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()

    def protocol() -> H11Protocol:
        return H11Protocol(config, state, {})

    # Our own start and end instead of uvicorn's `serve`: that one takes over the process's signal handlers, looks ten
    # times a second whether to end, and then waits for open streams.
    listener = await loop.create_server(protocol, "127.0.0.1", 0, backlog=MAX_CONNECTIONS)
    local = await loop.create_unix_server(protocol, place, backlog=MAX_CONNECTIONS)
    os.chmod(place, 0o666)  # noqa: PTH101, S103 - runs have tokens; a path of anyio's would do it in a thread
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        local.close()
        for connection in list(state.connections):
            connection.transport.abort()
        for task in state.tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*state.tasks, return_exceptions=True)


@contextmanager
def socket_path() -> Iterator[Path]:
    """A path for a socket, short enough for every kernel, in a folder that only this user can list."""
    top = tempfile.gettempdir()
    is_short = len(os.fsencode(top)) + len("/zelda-model-12345678/s") <= MAX_ADDRESS_LENGTH
    folder = Path(tempfile.mkdtemp(prefix="zelda-model-", dir=top if is_short else "/tmp"))  # noqa: S108 - private
    try:
        # A session may run as another user, whom its token admits: those who know the name may pass.
        folder.chmod(0o711)
        yield folder / "s"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Endpoint:
    """An ASGI application over the runs that are open now, by token."""

    def __init__(self, runs: Mapping[str, ProxyRun]) -> None:
        self._runs = runs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        request, client = Request(scope, receive), _Client(send)
        try:
            run = self._admitted(request)
            call = await run.call(scope["path"], request.headers.raw, await _whole(request, run.limits))
            await _serve_until_it_leaves(receive, run, call, client)
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

    def _admitted(self, request: Request) -> ProxyRun:
        """The run that asks.

        Raises:
            RefusedHereError: Nobody may ask this, or not this one.
        """
        # A web page in the user's browser could have a name resolve to this address (DNS rebinding); its name gives
        # it away.
        if request.headers.get("host", "").rsplit(":", 1)[0] not in LOCAL_NAMES:
            raise RefusedHereError(403, "permission_error", "this host name is not served here")
        if request.scope["path"] not in PATHS:
            raise RefusedHereError(404, "not_found_error", "only the Messages API is served here")
        if request.method != "POST":
            raise RefusedHereError(405, "invalid_request_error", "use POST", [(b"allow", b"POST")])
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        tokens = (request.headers.get("x-api-key", ""), bearer.strip() if scheme.lower() == "bearer" else "")
        # A token is 256 random bits: the time of a look-up tells nothing about it.
        run = next((self._runs[token] for token in tokens if token in self._runs), None)
        if run is None:
            raise RefusedHereError(401, "authentication_error", "this is not the token of a running session")
        return run


async def _whole(request: Request, limits: Limits) -> bytes:
    """The body.

    Raises:
        RefusedHereError: It is too large, takes too long or is compressed; the rest is not read.
    """
    rest_unread = [(b"connection", b"close"), *DO_NOT_RETRY]
    # A few kilobytes could unpack to gigabytes before any limit sees them.
    if (encoding := request.headers.get("content-encoding", "identity")) != "identity":
        message = f"compressed requests ({encoding[:20]}) are not taken"
        raise RefusedHereError(415, "invalid_request_error", message, rest_unread)
    parts, size = [], 0
    try:
        with anyio.fail_after(limits.request_seconds):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limits.request_bytes:
                    message = (
                        f"the request is larger than the {in_mib(limits.request_bytes)} that Zelda's model proxy takes"
                    )
                    raise RefusedHereError(413, "request_too_large", message, rest_unread)
    except TimeoutError:
        message = f"the request did not arrive within {limits.request_seconds:g} s"
        raise RefusedHereError(408, "timeout_error", message, rest_unread) from None
    return b"".join(parts)


async def _serve_until_it_leaves(receive: Receive, run: ProxyRun, call: Call, client: "_Client") -> None:
    """Serve the call; when the session goes away, so does the request to the API, which would still be paid for."""

    async def cancel_when_gone(scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(cancel_when_gone, group.cancel_scope)
        try:
            await run.serve(call, client)
        except Exception as exc:  # noqa: BLE001 - raised again below, outside the group, which would wrap it
            failure = exc
        group.cancel_scope.cancel()
    if failure:
        raise failure


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
