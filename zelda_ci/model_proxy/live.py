"""Answers from the real API, passed on as they come."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import anyio
import httpx2

from zelda_ci.model_proxy.client import open_client, proxy_of
from zelda_ci.model_proxy.limits import Limits, in_mib
from zelda_ci.model_proxy.modes import Upstream
from zelda_ci.model_proxy.outage import Outage, reason, shown, target
from zelda_ci.model_proxy.wire import (
    BrokenOff,
    Call,
    Headers,
    OverLimitError,
    Sink,
    Source,
    Unreachable,
    error_body,
    send_whole,
)
from zelda_ci.redact import MASK

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade "
    b"transfer-encoding".split()
)
OURS = frozenset(b"host content-length accept-encoding authorization x-api-key cookie".split())
"""Request headers that the proxy sets itself, or that must not leave the machine."""

READABLE = ("", "identity", "gzip", "deflate")
"""Content encodings that can be metered."""


ERROR_SECONDS = 60.0
"""For the body of an error to arrive."""


@asynccontextmanager
async def live_source(upstream: Upstream, limits: Limits) -> AsyncIterator[Source]:
    """One source for all runs, with one pool of connections.

    Raises:
        ProxyError: The API's address, the HTTP proxy or the certificates cannot be used.
    """
    async with open_client(upstream, limits) as client:
        yield LiveSource(client, upstream, limits)


class LiveSource(Source):
    """Asks the API with the real credentials."""

    def __init__(self, client: httpx2.AsyncClient, upstream: Upstream, limits: Limits) -> None:
        self._client = client
        self._upstream = upstream
        self._limits = limits
        self._outage = Outage()
        self._address = self._masked(shown(upstream.base_url))
        """For messages."""

    async def answer(self, call: Call, sink: Sink) -> None:
        """Pass the call on to the API and its answer back, bytes unchanged."""
        seconds = self._limits.answer_seconds
        response = await self._send(call)
        try:
            with anyio.fail_after(seconds):
                await self._pass_on(response, sink)
        except httpx2.HTTPError as exc:
            raise BrokenOff from exc
        except TimeoutError:
            raise OverLimitError(f"The API's answer was not complete after {seconds:g} s") from None
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _send(self, call: Call) -> httpx2.Response:
        url = self._upstream.base_url.rstrip("/") + call.path
        request = self._client.build_request("POST", url, headers=self._headers(call), content=call.raw_body)
        began = time.monotonic()
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except httpx2.HTTPError as exc:
            raise self._unreachable(exc, began) from exc
        self._outage.over()
        return response

    def _unreachable(self, error: httpx2.HTTPError, began: float) -> Unreachable:
        proxy = proxy_of(self._upstream)
        way = f" through the HTTP proxy {shown(proxy)}" if proxy else ""
        why = self._masked(reason(error, self._limits.connect_seconds))
        message = f"Zelda's model proxy could not reach {self._address}{way}: {why}"
        return Unreachable(message, again=self._outage.may_pass(error, began))

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
            why = f"{self._address} answers with content encoding {encoding[:50]}, which cannot be metered"
            raise Unreachable(self._masked(why), again=False)
        if 300 <= response.status_code < 400:
            raise self._moved(response)
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

    def _moved(self, response: httpx2.Response) -> Unreachable:
        """A client that followed it would leave the proxy, with the conversation and past every limit."""
        location = response.headers.get("location", "")
        where = self._masked(target(str(response.url), location)) if location else "no address"
        status = response.status_code
        why = f"{self._address} redirects ({status}) to {where}, and Zelda does not follow: is the address right?"
        return Unreachable(why, again=False)

    async def _pass_on_error(self, response: httpx2.Response, headers: Headers, sink: Sink) -> None:
        """Errors are short, and some gateways quote the key in them: the session must not read it there."""
        body = self._masked((await self._error(response)).decode("utf-8", "surrogateescape"))
        kept = _without(headers, b"content-encoding", b"content-length")
        safe = [(name, self._masked(value.decode("latin-1")).encode("latin-1")) for name, value in kept]
        await send_whole(sink, response.status_code, safe, body.encode("utf-8", "surrogateescape"))

    async def _error(self, response: httpx2.Response) -> bytes:
        """The body of an error; in place of an endless one, a sentence about it."""
        body, limit = bytearray(), self._limits.error_bytes
        try:
            with anyio.fail_after(ERROR_SECONDS):
                async with aclosing(_chunks(response, decoded=True)) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > limit:
                            return error_body(
                                "api_error", f"{self._address} answered with an error of more than {in_mib(limit)}"
                            )
        except (httpx2.HTTPError, TimeoutError) as exc:
            why = f"{self._address} broke off an answer with status {response.status_code}"
            raise Unreachable(why) from exc
        return bytes(body)

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
