"""Answers from the real API, passed on as they come; and why it cannot be reached, with no more than was configured."""

import errno
import math
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2

from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.limits import Limits, in_mib
from zelda_ci.model_proxy.platforms import BrokenStreamError, CredentialError
from zelda_ci.model_proxy.rate_limits import Throttled, is_throttled
from zelda_ci.model_proxy.upstream import Upstream, shown
from zelda_ci.model_proxy.wire import (
    AnswerSource,
    BrokenOff,
    Call,
    OverLimitError,
    Sink,
    Unreachable,
    error_body,
    send_whole,
)

# Headers of an answer that concern one connection.
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade "
    b"transfer-encoding".split()
)
# Content encodings that are undone, to be metered; what comes in another one is counted as spent.
DECODED = ("gzip", "deflate")

# For the body of an error to arrive.
ERROR_SECONDS = 60.0

# In which an API that cannot be reached is tried.
MAX_OUTAGE_SECONDS = 60.0

NO_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


@asynccontextmanager
async def live_source(upstream: Upstream, limits: Limits) -> AsyncIterator[AnswerSource]:
    """One source for all runs, with one pool of connections.

    Raises:
        ProxyError: The API's address, the HTTP proxy or the certificates cannot be used.
    """
    url, proxy = urlsplit(upstream.base_url), None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ProxyError(
            f"{upstream.base_url!r} is not the address of an API",
            hint="Set ANTHROPIC_BASE_URL (or gatewayUrl) to an http:// or https:// address, or unset it.",
            code="BASE_URL_INVALID",
        )
    try:
        proxy = upstream.http_proxy
        # Loading the system's certificates takes long, and a plain http gateway needs none.
        is_plain = "https" not in (url.scheme, urlsplit(proxy or "").scheme)
        client = httpx2.AsyncClient(
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else _certificates(upstream.environ),
            proxy=proxy,
            # The variables come from the environment of the run that asked; httpx would read this process's own.
            trust_env=False,
            timeout=httpx2.Timeout(limits.silence_seconds, connect=limits.connect_seconds, pool=None),
            # A redirect would take the key to whoever the answer names.
            follow_redirects=False,
            # The number of requests under way is limited per run; a limit here would let one run keep others waiting.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=60),
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as exc:
        raise ProxyError(
            f"the proxy {(proxy or '').rpartition('@')[2]} cannot be used: {exc}",
            hint="Set HTTPS_PROXY to an http:// or https:// address.",
            code="HTTP_PROXY_INVALID",
        ) from exc
    async with client:
        yield _LiveSource(client, upstream, limits)


def _certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    file, folder = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    extra = environ.get("NODE_EXTRA_CA_CERTS")
    try:
        if file or folder:
            context = ssl.create_default_context(cafile=file or None, capath=folder or None)
        else:
            context = httpx2.create_ssl_context(trust_env=False)
        if extra:
            context.load_verify_locations(cafile=extra)
    except (OSError, ssl.SSLError) as exc:
        raise ProxyError(
            f"the certificates of {file or folder or extra} cannot be read: {exc}",
            hint="Check SSL_CERT_FILE, SSL_CERT_DIR and NODE_EXTRA_CA_CERTS.",
            code="CERTIFICATES_UNREADABLE",
        ) from exc
    return context


class _LiveSource(AnswerSource):
    """Asks the API with the real credentials."""

    def __init__(self, client: httpx2.AsyncClient, upstream: Upstream, limits: Limits) -> None:
        self._client = client
        self._upstream = upstream
        self._limits = limits
        self._silent_since: float | None = None
        self.address = upstream.address

    async def answer(self, call: Call, sink: Sink) -> None:
        """Pass the call on to the API and its answer back, bytes unchanged."""
        response = await self._send(call)
        try:
            # The pause between two bytes is limited by the client; an answer that drips would never end.
            with anyio.fail_after(self._limits.answer_seconds):
                await self._pass_on(call, response, sink)
        except (httpx2.HTTPError, BrokenStreamError) as exc:
            raise BrokenOff from exc
        except TimeoutError:
            why = f"The API's answer was not complete after {self._limits.answer_seconds:g} s"
            raise OverLimitError(why) from None
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _send(self, call: Call) -> httpx2.Response:
        # Without compression, what is counted is what is passed on.
        given = {b"accept-encoding": b"identity"}
        given |= {name.lower().encode(): value.encode() for name, value in self._upstream.routing.items()}
        given |= {name.lower().encode(): key.reveal().encode() for name, key in self._upstream.headers.items()}
        headers = [*((name, value) for name, value in call.headers if name not in given), *given.items()]
        try:
            base_url = self._upstream.base_url.rstrip("/")
            wired = self._upstream.platform.wired
            url, sent, body = await anyio.to_thread.run_sync(wired, base_url, call, headers)
        except CredentialError as exc:
            raise Unreachable(f"Zelda's model proxy cannot ask {self.address}: {exc}", again=False) from exc
        request = self._client.build_request("POST", url, headers=sent, content=body)
        began, seconds = time.monotonic(), self._limits.head_seconds if call.body.get("stream") else math.inf
        try:
            with anyio.fail_after(seconds):
                response = await self._client.send(request, stream=True, follow_redirects=False)
        except TimeoutError:
            message = f"Zelda's model proxy got no answer from {self.address} within {seconds:g} s"
            raise Unreachable(message, abandoned=True) from None
        except httpx2.HTTPError as exc:
            raise self._unreachable(exc, began) from exc
        self._silent_since = None
        return response

    def _unreachable(self, error: httpx2.HTTPError, began: float) -> Unreachable:
        # From the first failure on, not from this one: otherwise each attempt would start the time anew.
        self._silent_since = began if self._silent_since is None else self._silent_since
        proxy = self._upstream.http_proxy
        way = f" through the HTTP proxy {shown(proxy)}" if proxy else ""
        why = self._upstream.masked(_reason(error, self._limits.connect_seconds))
        message = f"Zelda's model proxy could not reach {self.address}{way}: {why}"
        is_new = time.monotonic() - self._silent_since < MAX_OUTAGE_SECONDS
        return Unreachable(message, again=is_new and not _lasts(error))

    async def _pass_on(self, call: Call, response: httpx2.Response, sink: Sink) -> None:
        status, url = response.status_code, str(response.url)
        if 300 <= status < 400:
            # A client that followed it would leave the proxy, with the conversation and past every limit.
            location = response.headers.get("location")
            where = self._upstream.masked(shown(url, location)) if location else "no address"
            why = f"{self.address} redirects ({status}) to {where}, and Zelda does not follow: is the address right?"
            raise Unreachable(why, again=False)
        is_decoded = response.headers.get("content-encoding", "").lower() in DECODED
        events = self._upstream.platform.events(response.headers.get("content-type", ""))
        dropped = set(HOP_BY_HOP)
        # Neither the encoding nor the length is true any more of what was decoded, translated or masked.
        dropped |= {b"content-encoding"} if is_decoded else set()
        dropped |= {b"content-length"} if is_decoded or events or status >= 400 else set()
        dropped |= {b"content-type"} if events else set()
        lower = [(name.lower(), value) for name, value in response.headers.raw]
        headers = [(name, value) for name, value in lower if name not in dropped]
        if status >= 400:
            # Some gateways quote the key in an error: the session must not read it there.
            masked = self._upstream.masked
            said = self._upstream.platform.error(await self._error(response)).decode("utf-8", "surrogateescape")
            body = masked(said).encode("utf-8", "surrogateescape")
            headers = [(name, masked(value.decode("latin-1")).encode("latin-1")) for name, value in headers]
            # A refused count of tokens says nothing about messages, and Claude Code does without.
            if is_throttled(status, headers) and not call.counts_tokens:
                raise Throttled(self.address, status, headers, body)
            await send_whole(sink, status, headers, body)
            return
        await sink.start(status, [*headers, (b"content-type", b"text/event-stream")] if events else headers)
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                for piece in events.feed(chunk) if events else (chunk,):
                    await sink.chunk(piece)

    async def _error(self, response: httpx2.Response) -> bytes:
        """The body of an error; in place of an endless one, a sentence about it."""
        body, limit = bytearray(), self._limits.error_bytes
        try:
            with anyio.fail_after(ERROR_SECONDS):
                async with aclosing(response.aiter_bytes()) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > limit:
                            why = f"{self.address} answered with an error of more than {in_mib(limit)}"
                            return error_body("api_error", why)
        except (httpx2.HTTPError, TimeoutError) as exc:
            raise Unreachable(f"{self.address} broke off an answer with status {response.status_code}") from exc
        return bytes(body)


def _reason(error: httpx2.HTTPError, connect_seconds: float) -> str:
    """What went wrong, without the addresses that it went wrong at."""
    for cause in _causes(error):
        match cause:
            case ssl.SSLError():
                why = getattr(cause, "verify_message", "")
                return f"TLS failed: {cause.reason or cause}{f' ({why})' if why else ''}"
            case socket.gaierror():
                return f"its name cannot be resolved ({cause.strerror})"
            case OSError(errno=int(number)) if number in errno.errorcode:
                # Asyncio's own text is about addresses.
                return os.strerror(number).lower()
            case httpx2.ConnectTimeout():
                return f"no connection within {connect_seconds:g} s"
            case httpx2.TimeoutException():
                return "it fell silent"
            case _:
                pass
    # Some of these exceptions have no words of their own.
    return str(error) or type(error).__name__


def _lasts(error: BaseException) -> bool:
    """Whether a cause stays: a certificate, or a name that does not exist."""
    return any(isinstance(cause, ssl.SSLError) or getattr(cause, "errno", 0) in NO_NAME for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and all that led to it; of several that came together, the first."""
    while error:
        yield error
        group = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        error = group[0] if group else error.__cause__ or error.__context__
