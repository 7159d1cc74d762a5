"""Answers from the real API, passed on as they come; and why it cannot be reached, with no more than was configured."""

import errno
import math
import os
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio
import httpx2

from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.limits import Limits, in_mib
from zelda_ci.model_proxy.modes import Upstream
from zelda_ci.model_proxy.platforms import BrokenStreamError, EventStream
from zelda_ci.model_proxy.rate_limits import Throttled, is_throttled
from zelda_ci.model_proxy.wire import (
    AnswerSource,
    BrokenOff,
    Call,
    Headers,
    OverLimitError,
    Sink,
    Unreachable,
    error_body,
    send_whole,
)


def open_client(upstream: Upstream, limits: Limits) -> httpx2.AsyncClient:
    """Make the client.

    Raises:
        ProxyError: The base URL, the proxy or the certificates cannot be used.
    """
    url, proxy = _base_url(upstream.base_url), proxy_of(upstream)
    try:
        return httpx2.AsyncClient(
            verify=_certificates(upstream.environ) if "https" in (url.scheme, urlsplit(proxy or "").scheme) else _NONE,
            proxy=proxy,
            # The variables were read above, from the environment of the run that asked; httpx would read this
            # process's own.
            trust_env=False,
            timeout=httpx2.Timeout(limits.silence_seconds, connect=limits.connect_seconds, pool=None),
            # A redirect would take the key to whoever the answer names.
            follow_redirects=False,
            # The number of requests under way is limited per run; a limit here would let one run keep others waiting.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=60),
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as exc:
        raise ProxyError(
            f"the proxy {_without_password(proxy)} cannot be used: {exc}",
            hint="Set HTTPS_PROXY to an http:// or https:// address.",
            code="HTTP_PROXY_INVALID",
        ) from exc


# A context of its own would load the system's certificates, for a plain http gateway that has none.
_NONE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _base_url(text: str) -> SplitResult:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ProxyError(
            f"{text!r} is not the address of an API",
            hint="Set ANTHROPIC_BASE_URL (or gatewayUrl) to an http:// or https:// address, or unset it.",
            code="BASE_URL_INVALID",
        )
    return url


def proxy_of(upstream: Upstream) -> str | None:
    """The HTTP proxy that curl would use: by scheme, lower case first, unless NO_PROXY exempts the host."""
    url, environ = urlsplit(upstream.base_url), upstream.environ
    if _is_exempt(url, _variable(environ, "NO_PROXY") or ""):
        return None
    address = _variable(environ, f"{url.scheme}_proxy") or _variable(environ, "ALL_PROXY")
    return address if not address or "://" in address else f"http://{address}"


def _is_exempt(url: SplitResult, exempt: str) -> bool:
    """Whether NO_PROXY names the host, a domain above it, host and port, or everything."""
    host = (url.hostname or "").lower()
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    for entry in exempt.lower().replace(",", " ").split():
        name = entry.lstrip("*").lstrip(".") if entry != "*" else ""
        if not name or name in (host, f"{host}:{port}") or host.endswith(f".{name}"):
            return True
    return False


def _variable(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name.lower()) or environ.get(name.upper()) or None


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


def _without_password(proxy: str | None) -> str:
    return (proxy or "").rsplit("@", 1)[-1]


HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade "
    b"transfer-encoding".split()
)
# Request headers that the proxy sets itself, or that must not leave the machine.
OURS = frozenset(b"host content-length accept-encoding authorization x-api-key cookie".split())

# Content encodings that can be metered.
READABLE = ("", "identity", "gzip", "deflate")


# For the body of an error to arrive.
ERROR_SECONDS = 60.0


@asynccontextmanager
async def live_source(upstream: Upstream, limits: Limits) -> AsyncIterator[AnswerSource]:
    """One source for all runs, with one pool of connections.

    Raises:
        ProxyError: The API's address, the HTTP proxy or the certificates cannot be used.
    """
    async with open_client(upstream, limits) as client:
        yield LiveSource(client, upstream, limits)


class LiveSource(AnswerSource):
    """Asks the API with the real credentials."""

    def __init__(self, client: httpx2.AsyncClient, upstream: Upstream, limits: Limits) -> None:
        self._client = client
        self._upstream = upstream
        self._limits = limits
        self._outage = Outage()
        self.address = self._masked(shown(upstream.base_url))

    async def answer(self, call: Call, sink: Sink) -> None:
        """Pass the call on to the API and its answer back, bytes unchanged."""
        response = await self._send(call)
        try:
            # The pause between two bytes is limited by the client; an answer that drips would never end.
            with anyio.fail_after(self._limits.answer_seconds):
                await self._pass_on(call, response, sink)
        except httpx2.HTTPError as exc:
            raise BrokenOff from exc
        except TimeoutError:
            why = f"The API's answer was not complete after {self._limits.answer_seconds:g} s"
            raise OverLimitError(why) from None
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _send(self, call: Call) -> httpx2.Response:
        wired = self._upstream.platform.wired(self._upstream.base_url.rstrip("/"), call, self._headers(call))
        request = self._client.build_request("POST", wired.url, headers=wired.headers, content=wired.body)
        began = time.monotonic()
        seconds = self._limits.head_seconds if call.body.get("stream") else math.inf
        try:
            with anyio.fail_after(seconds):
                response = await self._client.send(request, stream=True, follow_redirects=False)
        except TimeoutError:
            message = f"Zelda's model proxy got no answer from {self.address} within {seconds:g} s"
            raise Unreachable(message, abandoned=True) from None
        except httpx2.HTTPError as exc:
            raise self._unreachable(exc, began) from exc
        self._outage.over()
        return response

    def _unreachable(self, error: httpx2.HTTPError, began: float) -> Unreachable:
        proxy = proxy_of(self._upstream)
        way = f" through the HTTP proxy {shown(proxy)}" if proxy else ""
        why = self._masked(reason(error, self._limits.connect_seconds))
        message = f"Zelda's model proxy could not reach {self.address}{way}: {why}"
        return Unreachable(message, again=self._outage.may_pass(error, began))

    def _headers(self, call: Call) -> Headers:
        theirs = _end_to_end(call.headers)
        secrets = {name.lower().encode(): value.reveal().encode() for name, value in self._upstream.headers.items()}
        routing = {name.lower().encode(): value.encode() for name, value in self._upstream.routing.items()}
        replaced = OURS | secrets.keys() | routing.keys()
        passed = [(name, value) for name, value in theirs if name not in replaced]
        # Without compression, what is counted is what is passed on.
        return [*passed, (b"accept-encoding", b"identity"), *routing.items(), *secrets.items()]

    async def _pass_on(self, call: Call, response: httpx2.Response, sink: Sink) -> None:
        encoding = response.headers.get("content-encoding", "").lower()
        if encoding not in READABLE:
            why = f"{self.address} answers with content encoding {encoding[:50]}, which cannot be metered"
            raise Unreachable(self._masked(why), again=False)
        if 300 <= response.status_code < 400:
            raise self._moved(response)
        headers = _end_to_end(response.headers.raw)
        events = self._upstream.platform.events(response.headers.get("content-type", ""))
        if response.status_code >= 400:
            headers, body = await self._masked_error(response, headers)
            # A refused count of tokens says nothing about messages, and Claude Code does without.
            if is_throttled(response.status_code, headers) and not call.counts_tokens:
                raise Throttled(response.status_code, headers, body)
            await send_whole(sink, response.status_code, headers, body)
            return
        # It was decoded on the way, so that neither the encoding nor the length is true any more.
        if encoding:
            headers = _without(headers, b"content-encoding", b"content-length")
        if events:
            headers = [*_without(headers, b"content-type", b"content-length"), (b"content-type", b"text/event-stream")]
        await sink.start(response.status_code, headers)
        async with aclosing(_chunks(response, decoded=bool(encoding))) as chunks:
            async for chunk in chunks:
                for piece in _translated(events, chunk):
                    await sink.chunk(piece)

    def _moved(self, response: httpx2.Response) -> Unreachable:
        # A client that followed it would leave the proxy, with the conversation and past every limit.
        location = response.headers.get("location", "")
        where = self._masked(target(str(response.url), location)) if location else "no address"
        status = response.status_code
        why = f"{self.address} redirects ({status}) to {where}, and Zelda does not follow: is the address right?"
        return Unreachable(why, again=False)

    async def _masked_error(self, response: httpx2.Response, headers: Headers) -> tuple[Headers, bytes]:
        # Errors are short, and some gateways quote the key in them: the session must not read it there.
        said = self._upstream.platform.error(await self._error(response))
        body = self._masked(said.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        remaining = _without(headers, b"content-encoding", b"content-length")
        return [(name, self._masked(value.decode("latin-1")).encode("latin-1")) for name, value in remaining], body

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
                                "api_error", f"{self.address} answered with an error of more than {in_mib(limit)}"
                            )
        except (httpx2.HTTPError, TimeoutError) as exc:
            why = f"{self.address} broke off an answer with status {response.status_code}"
            raise Unreachable(why) from exc
        return bytes(body)

    def _masked(self, text: str) -> str:
        for secret in self._upstream.secrets:
            text = secret.mask(text)
        return text


async def _chunks(response: httpx2.Response, *, decoded: bool) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_bytes() if decoded else response.aiter_raw():
        yield chunk


def _translated(events: EventStream | None, chunk: bytes) -> Iterator[bytes]:
    """A piece of an answer as server-sent events.

    Raises:
        BrokenOff: It is no piece of one.
    """
    if events is None:
        yield chunk
        return
    try:
        yield from events.feed(chunk)
    except BrokenStreamError:
        raise BrokenOff("the answer is no event stream") from None


def _end_to_end(headers: Headers) -> Headers:
    """Headers without those that concern one connection only, in lower case."""
    hop_by_hop = [value.lower() for name, value in headers if name.lower() == b"connection"]
    dropped = HOP_BY_HOP.union(*(name.replace(b" ", b"").split(b",") for name in hop_by_hop))
    return [(name.lower(), value) for name, value in headers if name.lower() not in dropped]


def _without(headers: Headers, *names: bytes) -> Headers:
    return [(name, value) for name, value in headers if name not in names]


# Seconds in which an API that never answered is tried: a wrong address does not become right.
FIRST_TIMEOUT = 5.0

# Seconds in which one that has answered before is tried.
LATER_TIMEOUT = 60.0

MAX_PATH_LENGTH = 200

LASTING_NAME_ERRORS = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Outage:
    """Since when the API has been silent, and whether it is worth trying again."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._has_answered = False

    def over(self) -> None:
        """The API has answered."""
        self._since, self._has_answered = None, True

    def may_pass(self, error: httpx2.HTTPError, began: float) -> bool:
        """Whether the next attempt may be luckier than this one, which began at a moment of `time.monotonic`."""
        # From the first failure on, not from this one: otherwise each attempt would start the time anew.
        self._since = began if self._since is None else self._since
        limit = LATER_TIMEOUT if self._has_answered else FIRST_TIMEOUT
        return not any(map(_lasts, _causes(error))) and time.monotonic() - self._since < limit


def reason(error: httpx2.HTTPError, connect_seconds: float) -> str:
    """What went wrong, without the addresses that it went wrong at."""
    if cause := next(filter(None, map(_of_cause, _causes(error))), None):
        return cause
    kinds = {
        httpx2.ConnectTimeout: f"no connection within {connect_seconds:g} s",
        httpx2.TimeoutException: "it fell silent",
        httpx2.RemoteProtocolError: "it hung up without an answer",
    }
    # Some of these exceptions have no words of their own.
    return next((why for kind, why in kinds.items() if isinstance(error, kind)), str(error) or type(error).__name__)


def _of_cause(cause: BaseException) -> str | None:
    match cause:
        case ssl.SSLError():
            why = getattr(cause, "verify_message", "")
            return f"TLS failed: {cause.reason or cause}{f' ({why})' if why else ''}"
        case socket.gaierror():
            return f"its name cannot be resolved ({cause.strerror})"
        case OSError(errno=int(number)) if number in errno.errorcode:
            # Asyncio's own text is about addresses.
            return os.strerror(number).lower()
        case _:
            return None


def shown(url: str) -> str:
    """An address without what may be secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        netloc = parts.netloc.rpartition("@")[2]
        return SplitResult(parts.scheme, netloc, parts.path, "", "").geturl()[:MAX_PATH_LENGTH].rstrip("/")
    except ValueError:
        return "an address that is none"


def target(url: str, location: str) -> str:
    try:
        return shown(urljoin(url, location))
    except ValueError:
        return shown(location)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it, whether or not it was to be shown."""
    visited: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in visited:
            continue
        visited.add(id(cause))
        yield cause
        waiting += [*(cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()), cause.__context__]
        waiting.append(cause.__cause__)


def _lasts(cause: BaseException) -> bool:
    """Whether a cause stays: a certificate, or a name that does not exist."""
    is_unknown = isinstance(cause, socket.gaierror) and cause.errno in LASTING_NAME_ERRORS
    return isinstance(cause, ssl.SSLError) or is_unknown
