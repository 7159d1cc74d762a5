"""The HTTP server: h11 on loopback and on a socket; who may ask, and what. Importing a framework costs too much."""

import asyncio
import logging
import os
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import h11

from zelda_ci.files import temporary
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, AnswerRequest, BrokenOff, Headers, RefusedHereError

log = logging.getLogger(__name__)

# Twice what the API takes; and for a request to arrive in full, from a process on the same machine.
MAX_REQUEST_MIB, REQUEST_SECONDS = 64, 120.0
# Bytes of a socket's path that every kernel takes; Linux takes four more.
MAX_ADDRESS_LENGTH = 103
READ_BYTES = 1 << 16
# For a client to read the answer to a request that was not read to its end.
LINGER_SECONDS = 1.0
PATHS = ("/v1/messages", "/v1/messages/count_tokens")
Runs = Mapping[str, AnswerRequest]  # by token
LOCAL_NAMES = ("127.0.0.1", "localhost")
# The rest of such a request is not read.
CLOSE: Headers = [(b"connection", b"close"), *DO_NOT_RETRY]
FAILED = RefusedHereError(500, "api_error", "Zelda's model proxy failed; see its debug log")


@asynccontextmanager
async def serving(runs: Runs) -> AsyncIterator[tuple[str, Path]]:
    """Serve the runs that are open at any time, by token: at a base URL on 127.0.0.1 and, as a socket, at a path."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Connection(reader, writer).serve(runs)
        except (BrokenOff, ConnectionError, h11.ProtocolError):
            log.debug("an answer broke off, or a session left or did not speak HTTP")
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()

    top = tempfile.gettempdir()
    is_short = len(os.fsencode(top)) + len(f"/{temporary.PREFIX}12345678/s") <= MAX_ADDRESS_LENGTH
    with temporary.folder(top if is_short else temporary.SHORT) as folder:
        socket = folder / "s"
        # A session may run as another user, whom its token admits: those who know the name may pass.
        os.chmod(folder, 0o711)  # noqa: PTH101, S103 - a path of anyio's would do it in a thread
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        local = await asyncio.start_unix_server(serve, socket)
        os.chmod(socket, 0o666)  # noqa: PTH101, S103 - runs have tokens
        try:
            yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", socket
        finally:
            # This waits for nobody: what is under way ends with its run, and connections end with the event loop.
            listener.close()
            local.close()
            # Newer Pythons remove it themselves.
            socket.unlink(missing_ok=True)


class _Connection:
    """One connection of a session."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._http = reader, writer, h11.Connection(h11.SERVER)

    async def serve(self, runs: Runs) -> None:
        """Answer one request after the other; `BrokenOff` where the API's side cut an answer."""
        while isinstance(request := await self._event(), h11.Request):
            try:
                await self._answer(request, runs)
            except (BrokenOff, ConnectionError, h11.RemoteProtocolError):
                raise
            except Exception as exc:
                refusal = exc if isinstance(exc, RefusedHereError) else FAILED
                if refusal is FAILED:
                    log.exception("the model proxy failed on a request")
                if self._http.our_state is not h11.SEND_RESPONSE:
                    return
                await self._send(h11.Response(status_code=refusal.status, headers=refusal.headers))
                if request.method != b"HEAD":
                    await self._send(h11.Data(data=refusal.body))
            await self._send(h11.EndOfMessage())
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                with anyio.move_on_after(LINGER_SECONDS):
                    while await self._reader.read(READ_BYTES):
                        pass
                return
            self._http.start_next_cycle()

    async def _answer(self, request: h11.Request, runs: Runs) -> None:
        """Have a run answer; when the session goes away, so does the request to the API, which would still be paid."""
        path, task = request.target.decode("latin-1").partition("?")[0], asyncio.current_task()
        body = await self._body()
        answer_request = _admitted(request, path, runs)
        # Nothing but the end may come before it has the answer: no client pipelines.
        left = asyncio.create_task(self._reader.read(1))
        left.add_done_callback(lambda _: task and not left.cancelled() and task.cancel())
        try:
            async with answer_request(path, list(request.headers), body) as answer:
                await self._send(h11.Response(status_code=answer.status, headers=answer.headers))
                async for chunk in answer.chunks:
                    await self._send(h11.Data(data=chunk))
        finally:
            left.cancel()
            await asyncio.gather(left, return_exceptions=True)

    async def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(READ_BYTES))
        return event

    async def _body(self) -> bytes:
        """The body of a request, unless it is too large or takes too long: then that is refused."""
        body = bytearray()
        try:
            with anyio.fail_after(REQUEST_SECONDS):
                while isinstance(event := await self._event(), h11.Data):
                    body += event.data
                    if len(body) > MAX_REQUEST_MIB << 20:
                        message = f"the request is larger than the {MAX_REQUEST_MIB} MiB that Zelda's model proxy takes"
                        raise RefusedHereError(413, "request_too_large", message, CLOSE)
        except TimeoutError:
            message = f"the request did not arrive within {REQUEST_SECONDS:g} s"
            raise RefusedHereError(408, "timeout_error", message, CLOSE) from None
        return bytes(body)

    async def _send(self, event: h11.Event) -> None:
        if data := self._http.send(event):
            self._writer.write(data)
            await self._writer.drain()


def _admitted(request: h11.Request, path: str, runs: Runs) -> AnswerRequest:
    """The run that asks; what nobody may ask, or not this one, is refused."""
    header = defaultdict(str, ((name, value.decode("latin-1")) for name, value in request.headers))
    # A web page in the user's browser could have a name resolve to this address (DNS rebinding): that name is refused.
    if header[b"host"].rsplit(":", 1)[0] not in LOCAL_NAMES:
        raise RefusedHereError(403, "permission_error", "this host name is not served here")
    if path not in PATHS:
        raise RefusedHereError(404, "not_found_error", "only the Messages API is served here")
    if request.method != b"POST":
        raise RefusedHereError(405, "invalid_request_error", "use POST", [(b"allow", b"POST")])
    scheme, _, bearer = header[b"authorization"].partition(" ")
    tokens = (header[b"x-api-key"], bearer.strip() if scheme.lower() == "bearer" else "")
    # A token is 256 random bits: the time of a look-up tells nothing about it.
    run = next((runs[token] for token in tokens if token in runs), None)
    if run is None:
        raise RefusedHereError(401, "authentication_error", "this is not the token of a running session")
    return run
