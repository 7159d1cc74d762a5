"""What a request to the Messages API looks like at Anthropic, on Amazon Bedrock and on Google Cloud's Vertex AI.

Sessions and judges speak Anthropic's own dialect; it is translated here, and the answer back, so that metering, limits
and recordings are the same everywhere.
"""

import base64
import hashlib
import hmac
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.wire import Call, Headers, RefusedHereError
from zelda_ci.redact import Secret

BETA = b"anthropic-beta"
VERSION = b"anthropic-version"
# The version that both clouds name in their own way; later ones have the same name everywhere.
FIRST_VERSION = "2023-06-01"
API_URL = "https://api.anthropic.com"
# Without it the API does not take the token of a subscription.
OAUTH_BETA = "oauth-2025-04-20"
EVENT_STREAM = "application/vnd.amazon.eventstream"


@dataclass(frozen=True)
class Wired:
    """A request as it is sent."""

    url: str
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)


class Platform(ABC):
    """Where models are served."""

    @property
    def secrets(self) -> Sequence[Secret]:
        """Those that are in no header."""
        return ()

    @property
    @abstractmethod
    def default_url(self) -> str:
        """The address where the environment gives none."""

    @abstractmethod
    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        """The request; `headers` are those that go on, credentials included.

        Raises:
            RefusedHereError: The platform does not offer this.
        """

    def events(self, content_type: str) -> "EventStream | None":
        """What turns an answer into server-sent events, where it is something else."""
        return None

    def error(self, body: bytes) -> bytes:
        """The body of an error in Anthropic's form."""
        return body


@dataclass(frozen=True)
class AnthropicApi(Platform):
    """The API itself, or a gateway that speaks as it does."""

    betas: Sequence[str] = ()
    """What requests must name beside what the session names."""

    default_url = API_URL

    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        return Wired(base_url + call.path, _with_betas(headers, self.betas), call.raw_body)


@dataclass(frozen=True)
class Vertex(Platform):
    """Vertex AI: model and method in the path, the version in the body."""

    project: str
    region: str

    @property
    def default_url(self) -> str:
        hosts = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}
        return f"https://{hosts.get(self.region, f'{self.region}-aiplatform')}.googleapis.com/v1"

    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        version = _version(call, "vertex-2023-10-16")
        models = f"{base_url}/projects/{quote(self.project)}/locations/{quote(self.region)}/publishers/anthropic/models"
        remaining = _without(headers, VERSION)
        if call.counts_tokens:
            body = wire.write({**call.body, "anthropic_version": version})
            return Wired(f"{models}/count-tokens:rawPredict", remaining, body)
        method = "streamRawPredict" if call.body.get("stream") else "rawPredict"
        body = wire.write({"anthropic_version": version, **_less(call.body, "model")})
        return Wired(f"{models}/{_name(call)}:{method}", remaining, body)

    def error(self, body: bytes) -> bytes:
        return _translated(body)


@dataclass(frozen=True)
class Bedrock(Platform):
    """Amazon Bedrock's runtime: model and streaming in the path, version and betas in the body."""

    region: str
    keys: "AwsKeys | None" = None
    """Where requests are signed; else a bearer token stands in a header."""

    @property
    def default_url(self) -> str:
        return f"https://bedrock-runtime.{self.region}.amazonaws.com"

    @property
    def secrets(self) -> Sequence[Secret]:
        return [secret for secret in (self.keys.secret, self.keys.token) if secret] if self.keys else []

    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        if call.counts_tokens:
            why = "tokens are not counted on Amazon Bedrock"
            raise RefusedHereError(404, "not_found_error", why)
        betas = [beta for name, value in headers if name == BETA for beta in value.decode("latin-1").split(",")]
        more = {"anthropic_version": _version(call, "bedrock-2023-05-31")}
        body = wire.write(
            {**more, **({"anthropic_beta": betas} if betas else {}), **_less(call.body, "model", "stream")}
        )
        method = "invoke-with-response-stream" if call.body.get("stream") else "invoke"
        url = f"{base_url}/model/{_name(call)}/{method}"
        # Those of Anthropic mean nothing there, and what is signed must arrive as it was.
        plain = [(name, value) for name, value in headers if not name.startswith((b"anthropic-", b"x-stainless-"))]
        return Wired(url, [*plain, *(self.keys.sign(url, body, self.region) if self.keys else [])], body)

    def events(self, content_type: str) -> "EventStream | None":
        return EventStream() if content_type.startswith(EVENT_STREAM) else None

    def error(self, body: bytes) -> bytes:
        return _translated(body)


def _with_betas(headers: Headers, betas: Sequence[str]) -> Headers:
    if not betas:
        return headers
    named = [value.decode("latin-1") for name, value in headers if name == BETA]
    both = dict.fromkeys([*(beta.strip() for value in named for beta in value.split(",")), *betas])
    return [*_without(headers, BETA), (BETA, ",".join(both).encode())]


def _without(headers: Headers, name: bytes) -> Headers:
    return [(other, value) for other, value in headers if other != name]


def _version(call: Call, first: str) -> str:
    version = call.header(VERSION.decode()) or FIRST_VERSION
    return first if version == FIRST_VERSION else version


def _less(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def _name(call: Call) -> str:
    """The model as one segment of a path."""
    name = str(call.body.get("model", ""))
    if name.strip(".") == "":
        raise RefusedHereError(400, "invalid_request_error", "model: Field required")
    return quote(name, safe="@")


def _translated(body: bytes) -> bytes:
    """An error of the cloud, whose message lies at the top or in `error`, in Anthropic's form."""
    found = wire.read_object(body.strip().removeprefix(b"[").removesuffix(b"]")) or {}
    inner = found.get("error")
    if found.get("type") == "error":
        return body
    place = inner if isinstance(inner, dict) else found
    message = place.get("message") or place.get("Message")
    return wire.error_body("api_error", message) if isinstance(message, str) else body


@dataclass(frozen=True)
class AwsKeys:
    """Signs requests by AWS Signature Version 4."""

    identity: Secret
    secret: Secret
    token: Secret | None = None
    """Of a session with temporary keys."""

    def sign(
        self, url: str, body: bytes, region: str, *, service: str = "bedrock", at: datetime | None = None
    ) -> Headers:
        """The headers that prove who sent a POST; the host is signed, too."""
        moment = (at or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": _host(url), "x-amz-date": moment}
        if self.token:
            signed["x-amz-security-token"] = self.token.reveal()
        names = ";".join(sorted(signed))
        # What is escaped in the path once is escaped for the signature once more.
        path = quote(urlsplit(url).path or "/", safe="/~")
        lines = [f"{name}:{signed[name]}" for name in sorted(signed)]
        request = "\n".join(["POST", path, "", *lines, "", names, hashlib.sha256(body).hexdigest()])
        scope = f"{moment[:8]}/{region}/{service}/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()])
        key = f"AWS4{self.secret.reveal()}".encode()
        for part in (moment[:8], region, service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        who = f"Credential={self.identity.reveal()}/{scope}"
        proof = f"AWS4-HMAC-SHA256 {who}, SignedHeaders={names}, Signature={signature}"
        sent = {"authorization": proof, **_less(signed, "host")}
        return [(name.encode(), str(value).encode()) for name, value in sent.items()]


def _host(url: str) -> str:
    """As HTTP clients write it: without the port that the scheme means anyway."""
    parts = urlsplit(url)
    standard = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.hostname or "" if parts.port in (None, standard) else f"{parts.hostname}:{parts.port}"


MAX_MESSAGE_BYTES = 24 << 20
PRELUDE = struct.Struct(">III")
# Bytes that a header's value takes, by its type; of the others the first two bytes tell.
VALUE_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
TEXT = 7


class BrokenStreamError(ValueError):
    """Bytes that are no message of an event stream."""


class EventStream:
    """Turns Amazon's event stream into server-sent events, however the network has cut it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events of every message that is complete now.

        Raises:
            BrokenStreamError: The bytes are no such stream.
        """
        self._buffer += data
        while len(self._buffer) >= PRELUDE.size:
            total, header_size, check = PRELUDE.unpack_from(self._buffer)
            if zlib.crc32(self._buffer[:8]) != check or not 16 + header_size <= total <= MAX_MESSAGE_BYTES:
                raise BrokenStreamError
            if len(self._buffer) < total:
                return
            message = bytes(self._buffer[:total])
            del self._buffer[:total]
            if zlib.crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
                raise BrokenStreamError
            yield from _event(_headers(message[12 : 12 + header_size]), message[12 + header_size : -4])


def _headers(data: bytes) -> dict[str, str]:
    found, at = dict[str, str](), 0
    try:
        while at < len(data):
            end = at + 1 + data[at]
            name, kind = data[at + 1 : end].decode(), data[end]
            start = end + 1
            size = VALUE_SIZES.get(kind)
            if size is None:
                size, start = int.from_bytes(data[start : start + 2], "big"), start + 2
            found[name] = data[start : start + size].decode() if kind == TEXT else ""
            at = start + size
    except (IndexError, UnicodeDecodeError):
        raise BrokenStreamError from None
    return found


# What Bedrock calls a failure inside a stream, in Anthropic's words.
FAILURES = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "validationException": "invalid_request_error",
    "modelTimeoutException": "timeout_error",
}


def _event(headers: Mapping[str, str], payload: bytes) -> Iterator[bytes]:
    content = wire.read_object(payload) or {}
    if headers.get(":message-type") in {"exception", "error"}:
        name = headers.get(":exception-type") or headers.get(":error-code") or ""
        said = content.get("message") or headers.get(":error-message") or name
        error = {"type": FAILURES.get(name, "api_error"), "message": str(said)}
        yield wire.written({"type": "error", "error": error})
    elif isinstance(encoded := content.get("bytes"), str):
        try:
            event = wire.read_object(base64.b64decode(encoded, validate=True))
        except ValueError:
            raise BrokenStreamError from None
        if event:
            yield wire.written(event)
