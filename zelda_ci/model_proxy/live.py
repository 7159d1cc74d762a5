"""Answers from the real API, passed on as they come."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import anyio
import httpx2

from zelda_ci.model_proxy.client import open_client
from zelda_ci.model_proxy.modes import Upstream
from zelda_ci.model_proxy.wire import BrokenOff, Call, Headers, Sink, Source, Unreachable, send_whole
from zelda_ci.redact import MASK

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade "
    b"transfer-encoding".split()
)
OURS = frozenset(b"host content-length accept-encoding authorization x-api-key cookie".split())
"""Request headers that the proxy sets itself, or that must not leave the machine."""

READABLE = ("", "identity", "gzip", "deflate")
"""Content encodings that can be metered."""


@asynccontextmanager
async def live_source(upstream: Upstream) -> AsyncIterator[Source]:
    """One source for all runs, with one pool of connections.

    Raises:
        ProxyError: The API's address, the HTTP proxy or the certificates cannot be used.
    """
    async with open_client(upstream) as client:
        yield LiveSource(client, upstream)


class LiveSource(Source):
    """Asks the API with the real credentials."""

    def __init__(self, client: httpx2.AsyncClient, upstream: Upstream) -> None:
        self._client = client
        self._upstream = upstream

    async def answer(self, call: Call, sink: Sink) -> None:
        """Pass the call on to the API and its answer back, bytes unchanged."""
        response = await self._send(call)
        try:
            await self._pass_on(response, sink)
        except httpx2.HTTPError as exc:
            raise BrokenOff from exc
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _send(self, call: Call) -> httpx2.Response:
        url = self._upstream.base_url.rstrip("/") + call.path
        request = self._client.build_request("POST", url, headers=self._headers(call), content=call.raw_body)
        try:
            return await self._client.send(request, stream=True)
        except httpx2.HTTPError as exc:
            # Some of these exceptions have no words of their own.
            why = str(exc) or type(exc).__name__
            raise Unreachable(f"Zelda's model proxy could not reach {request.url.host}: {self._masked(why)}") from exc

    def _headers(self, call: Call) -> Headers:
        theirs = _end_to_end(call.headers)
        secrets = {name.lower().encode(): value.reveal().encode() for name, value in self._upstream.headers.items()}
        routing = {name.lower().encode(): value.encode() for name, value in self._upstream.routing.items()}
        replaced = OURS | secrets.keys() | routing.keys()
        kept = [(name, value) for name, value in theirs if name not in replaced]
        # Without compression, what is counted is what is passed on.
        return [*kept, (b"accept-encoding", b"identity"), *routing.items(), *secrets.items()]

    async def _pass_on(self, response: httpx2.Response, sink: Sink) -> None:
        encoding = response.headers.get("content-encoding", "").lower()
        if encoding not in READABLE:
            raise Unreachable(f"{response.url.host} answers with content encoding {encoding}, which cannot be metered")
        headers = _end_to_end(response.headers.raw)
        if response.status_code >= 400:
            await self._pass_on_error(response, headers, sink)
            return
        if encoding:
            headers = _without(headers, b"content-encoding", b"content-length")
        await sink.start(response.status_code, headers)
        async with aclosing(_chunks(response, decoded=bool(encoding))) as chunks:
            async for chunk in chunks:
                await sink.chunk(chunk)

    async def _pass_on_error(self, response: httpx2.Response, headers: Headers, sink: Sink) -> None:
        """Errors are short, and some gateways quote the key in them: the session must not read it there."""
        try:
            body = self._masked((await response.aread()).decode("utf-8", "surrogateescape"))
        except httpx2.HTTPError as exc:
            raise Unreachable(f"{response.url.host} broke off an answer with status {response.status_code}") from exc
        kept = _without(headers, b"content-encoding", b"content-length")
        safe = [(name, self._masked(value.decode("latin-1")).encode("latin-1")) for name, value in kept]
        await send_whole(sink, response.status_code, safe, body.encode("utf-8", "surrogateescape"))

    def _masked(self, text: str) -> str:
        for secret in self._upstream.headers.values():
            # A value like "Bearer x" can be quoted without its scheme.
            for part in {secret.reveal(), secret.reveal().rsplit(" ", 1)[-1]}:
                text = text.replace(part, MASK) if part else text
        return text


async def _chunks(response: httpx2.Response, *, decoded: bool) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_bytes() if decoded else response.aiter_raw():
        yield chunk


def _end_to_end(headers: Headers) -> Headers:
    """Headers without those that concern one connection only, in lower case."""
    named = [value.lower() for name, value in headers if name.lower() == b"connection"]
    dropped = HOP_BY_HOP.union(*(name.replace(b" ", b"").split(b",") for name in named))
    return [(name.lower(), value) for name, value in headers if name.lower() not in dropped]


def _without(headers: Headers, *names: bytes) -> Headers:
    return [(name, value) for name, value in headers if name not in names]
