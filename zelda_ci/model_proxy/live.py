"""Answers from the real API, passed on as they come; and why it cannot be reached, with no more than was configured."""

import errno
import math
import os
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2

from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.upstream import Translation, Upstream, shown
from zelda_ci.model_proxy.wire import AnswerSource, ApiAnswer, BrokenOff, Call, UnreachableError, once

CONNECT_SECONDS = 10.0
# For the head of an answer that streams; Claude Code waits for longer, because it counts what we wait.
HEAD_SECONDS = 120.0
# Without a byte from the API; Claude Code's own patience is shorter.
SILENCE_SECONDS = 600.0
# For an answer to arrive in full: 128,000 tokens at 40 a second are 53 minutes. The longest stream, with each of them
# in an event of its own, is a third of the size.
ANSWER_SECONDS, MAX_ANSWER_MIB = 3600.0, 64
# For the body of an error to arrive; and in which an API that cannot be reached is tried.
ERROR_SECONDS = MAX_OUTAGE_SECONDS = 60.0
# Headers of an answer that concern one connection, and the length of what may be decoded, translated or masked.
DROPPED = {*b"connection keep-alive te trailer upgrade transfer-encoding content-encoding content-length".split()}
DROPPED |= {*b"proxy-authenticate proxy-authorization proxy-connection".split()}
# Content encodings that are undone, to be metered; none is asked for.
DECODED = {"gzip", "deflate", "identity", ""}


@asynccontextmanager
async def live_source(upstream: Upstream) -> AsyncIterator[AnswerSource]:
    """One source for all runs, with one pool of connections."""
    url, proxy = urlsplit(upstream.base_url), None
    if url.scheme not in ("http", "https") or not url.hostname:
        hint = "Set ANTHROPIC_BASE_URL (or gatewayUrl) to an http:// or https:// address, or unset it."
        raise ProxyError(f"{upstream.base_url!r} is not the address of an API", hint=hint, code="BASE_URL_INVALID")
    try:
        proxy = upstream.http_proxy
        # Loading the system's certificates takes long, and a plain http gateway needs none.
        is_plain = "https" not in (url.scheme, urlsplit(proxy or "").scheme)
        client = httpx2.AsyncClient(
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else _certificates(upstream.environ),
            proxy=proxy,
            # The variables come from the environment of the run that asked; httpx would read this process's own.
            trust_env=False,
            timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS, pool=None),
            # A redirect would take the key to whoever the answer names.
            follow_redirects=False,
            # The number of requests under way is limited per run; a limit here would let one run keep others waiting.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=60),
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as exc:
        message = f"the proxy {(proxy or '').rpartition('@')[2]} cannot be used: {exc}"
        hint = "Set HTTPS_PROXY to an http:// or https:// address."
        raise ProxyError(message, hint=hint, code="HTTP_PROXY_INVALID") from exc
    async with client:
        yield _LiveApi(client, upstream).answer


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
        message = f"the certificates of {file or folder or extra} cannot be read: {exc}"
        hint = "Check SSL_CERT_FILE, SSL_CERT_DIR and NODE_EXTRA_CA_CERTS."
        raise ProxyError(message, hint=hint, code="CERTIFICATES_UNREADABLE") from exc
    return context


class _LiveApi:
    """Asks the API with the real credentials."""

    def __init__(self, client: httpx2.AsyncClient, upstream: Upstream) -> None:
        self._client, self._upstream, self.address = client, upstream, upstream.address
        self._silent_since: float | None = None

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncIterator[ApiAnswer]:
        """Pass the call on to the API and its answer back, bytes unchanged."""
        url, headers, body = await anyio.to_thread.run_sync(self._upstream.wired, call)
        request = self._client.build_request("POST", url, headers=headers, content=body)
        began, seconds = time.monotonic(), HEAD_SECONDS if call.body.get("stream") else math.inf
        try:
            with anyio.fail_after(seconds):
                response = await self._client.send(request, stream=True)
        except TimeoutError:
            message = f"Zelda's model proxy got no answer from {self.address} within {seconds:g} s"
            raise UnreachableError(message, abandoned=True) from None
        except httpx2.HTTPError as exc:
            # From the first failure on, not from this one: otherwise each attempt would start the time anew.
            self._silent_since = began if self._silent_since is None else self._silent_since
            proxy, (why, lasts) = self._upstream.http_proxy, _reason(exc)
            way = f" through the HTTP proxy {shown(proxy)}" if proxy else ""
            message = f"Zelda's model proxy could not reach {self.address}{way}: {self._upstream.masked(why)}"
            is_new = time.monotonic() - self._silent_since < MAX_OUTAGE_SECONDS
            raise UnreachableError(message, again=is_new and not lasts) from exc
        self._silent_since = None
        async with aclosing(response):
            yield await self._passed_on(response)

    async def _passed_on(self, response: httpx2.Response) -> ApiAnswer:
        status, masked = response.status_code, self._upstream.masked
        if 300 <= status < 400:
            # A client that followed it would leave the proxy, with the conversation and past every limit.
            location = response.headers.get("location")
            where = masked(shown(str(response.url), location)) if location else "no address"
            why = f"{self.address} redirects ({status}) to {where}, and Zelda does not follow: is the address right?"
            raise UnreachableError(why, again=False)
        if status == 404 and "/v1/v1/" in response.url.path:
            # Claude Code would say that there is no such model.
            raise UnreachableError(f"{self.address} ends in /v1, which is added to it: leave it out", again=False)
        encodings = response.headers.get_list("content-encoding", split_commas=True)
        if not DECODED.issuperset(map(str.lower, encodings)):
            # What the session understood and nobody could compare with would look forged.
            why = f"{self.address} answers ({status}) in the encoding {', '.join(encodings)}, which Zelda cannot read"
            raise UnreachableError(masked(why), again=False, abandoned=True)
        chunks = response.aiter_bytes()
        headers = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in DROPPED]
        if status >= 400:
            # Some gateways quote the key in an error: the session must not read it there.
            try:
                with anyio.fail_after(ERROR_SECONDS):
                    body = b"".join([chunk async for chunk in _body(chunks)])
            except (BrokenOff, TimeoutError) as exc:
                raise UnreachableError(f"{self.address} broke off an answer with status {status}") from exc
            said = masked(self._upstream.error(body).decode("utf-8", "surrogateescape"))
            headers = [(name, masked(value.decode("latin-1")).encode("latin-1")) for name, value in headers]
            return ApiAnswer(status, headers, once(said.encode("utf-8", "surrogateescape")))
        if translate := self._upstream.translation(response.headers.get("content-type", "")):
            headers = [*(it for it in headers if it[0] != b"content-type"), (b"content-type", b"text/event-stream")]
        return ApiAnswer(status, headers, _body(chunks, translate))


async def _body(raw: AsyncGenerator[bytes, None], translate: Translation | None = None) -> AsyncGenerator[bytes, None]:
    """The body of an answer, up to limits beside the client's on a pause: an answer that drips would never end."""
    size, ends_at = 0, time.monotonic() + ANSWER_SECONDS
    try:
        async with aclosing(raw) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > MAX_ANSWER_MIB << 20:
                    raise BrokenOff(f"The API's answer is larger than the {MAX_ANSWER_MIB} MiB that Zelda passes on")
                if time.monotonic() > ends_at:
                    raise BrokenOff(f"The API's answer was not complete after {ANSWER_SECONDS:g} s")
                for piece in translate(chunk) if translate else (chunk,):
                    yield piece
    except httpx2.HTTPError as exc:
        raise BrokenOff from exc


def _reason(error: httpx2.HTTPError) -> tuple[str, bool]:
    """What went wrong, without the addresses that it went wrong at; and whether it stays so."""
    cause: BaseException | None = error
    while cause:
        match cause:
            case ssl.SSLError():
                why = getattr(cause, "verify_message", "")
                return f"TLS failed: {cause.reason or cause}{f' ({why})' if why else ''}", True
            case socket.gaierror():
                return f"its name cannot be resolved ({cause.strerror})", cause.errno != socket.EAI_AGAIN
            case OSError(errno=int(number)) if number in errno.errorcode:
                # Asyncio's own text is about addresses.
                return os.strerror(number).lower(), False
            case httpx2.ProxyError():  # whose words begin with the status
                return str(cause), str(cause).startswith("4")
            case httpx2.ConnectTimeout():
                return f"no connection within {CONNECT_SECONDS:g} s", False
            case httpx2.TimeoutException():
                return "it fell silent", False
            case _:
                pass
        # Of several that came together, the first.
        group = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        cause = group[0] if group else cause.__cause__ or cause.__context__
    # Some of these exceptions have no words of their own.
    return str(error) or type(error).__name__, False
