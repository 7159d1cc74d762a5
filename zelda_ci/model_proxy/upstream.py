"""Where the Messages API is, with which credentials it is asked, and what a request looks like there.

For Amazon Bedrock and Google Cloud's Vertex AI requests are translated here, and answers back, so that metering, limits
and recordings are the same everywhere. Credentials, signatures and streams of the clouds are their libraries' work.
"""

import base64
import importlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, urljoin, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from zelda_ci.errors import ConfigError
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.wire import BrokenOff, Call, Headers, RefusedHereError, UnreachableError
from zelda_ci.redact import Secret

API_URL = "https://api.anthropic.com"
BETA, VERSION = b"anthropic-beta", b"anthropic-version"
# Without it the API does not take the token of a subscription.
OAUTH_BETA = "oauth-2025-04-20"
# The version that both clouds name in their own way; later ones have the same name everywhere.
FIRST_VERSION = "2023-06-01"
EVENT_STREAM = "application/vnd.amazon.eventstream"
GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
MAX_ADDRESS_LENGTH = 200
# Of ours, by what they install.
EXTRAS = {"google": "vertex", "botocore": "bedrock"}
# What Bedrock calls a failure inside a stream, in Anthropic's words.
FAILURES = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "validationException": "invalid_request_error",
    "modelTimeoutException": "timeout_error",
}
# Makes server-sent events of the pieces of an answer that is something else.
Translation = Callable[[bytes], Iterable[bytes]]


@dataclass(eq=False)
class Upstream:
    """The API itself, or a gateway that speaks as it does; the clouds have classes of their own.

    `headers` are the credentials, which replace whatever the session sends under the same names; `base_url` has no
    slash at its end. Of the user's `environ`, HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR
    and NODE_EXTRA_CA_CERTS are honoured. `routing` says to a gateway where the request goes and is no secret, and
    `beta` is named beside those that the session names.
    """

    headers: Mapping[str, Secret]
    base_url: str
    environ: Mapping[str, str] = field(repr=False)
    routing: Mapping[str, str] = field(default_factory=dict)
    beta: str = ""
    _renewed: Sequence[Secret] = field(default=(), init=False, repr=False)
    """Credentials that a cloud's library has found."""

    @property
    def address(self) -> str:
        """Who answers, as messages name it."""
        return self.masked(shown(self.base_url))

    @property
    def identity(self) -> Hashable:
        """Equal where the API's limits are the same: those of one address and one key."""
        keys = sorted((name, key.fingerprint()) for name, key in self.headers.items())
        return (self.base_url, *keys, *sorted(self.routing.items()))

    @property
    def http_proxy(self) -> str | None:
        """The HTTP proxy that curl would use: by scheme, lower case first, unless NO_PROXY exempts the host."""
        url, given = urlsplit(self.base_url), {name: value for name, value in self.environ.items() if value}
        given = {name.lower(): value for name, value in given.items()} | given
        port = url.port or {"http": 80, "https": 443}.get(url.scheme)
        if proxy_bypass_environment(f"{url.hostname}:{port}", {"no": given.get("no_proxy", "").replace(" ", ",")}):
            return None
        address = given.get(f"{url.scheme}_proxy") or given.get("all_proxy")
        return address if not address or "://" in address else f"http://{address}"

    def masked(self, text: str) -> str:
        """Text without the credentials."""
        for secret in (*self.headers.values(), *self._renewed):
            text = secret.mask(text)
        return text

    def wired(self, call: Call) -> tuple[str, Headers, bytes]:
        """URL, headers and body of a call as they are sent. May wait for new credentials, so it runs in a thread."""
        # Without compression, what is counted is what is passed on.
        ours = {"accept-encoding": "identity", **self.routing}
        ours |= {name: key.reveal() for name, key in self.headers.items()}
        if self.beta:
            ours[BETA.decode()] = ",".join(dict.fromkeys([*_betas(call.headers), self.beta]))
        given = {name.lower().encode(): value.encode() for name, value in ours.items()}
        headers = [*((name, value) for name, value in call.headers if name not in given), *given.items()]
        return self.base_url + call.path, headers, call.raw_body

    def translation(self, content_type: str) -> Translation | None:
        """What makes server-sent events of an answer, where it is something else."""
        return None

    def error(self, body: bytes) -> bytes:
        """The body of an error in Anthropic's form."""
        return body


def portkey(key: Secret, base_url: str, routing: Mapping[str, str], environ: Mapping[str, str]) -> Upstream:
    """Portkey: its own key, and by header (or the model's name) the provider behind it."""
    # Clients add /v1 themselves, and Portkey's documentation shows the address in both ways.
    address = base_url.rstrip("/").removesuffix("/v1")
    headers = {f"x-portkey-{name}": value for name, value in routing.items()}
    return Upstream({"x-portkey-api-key": key}, address, environ, headers)


def shown(url: str, location: str = "") -> str:
    """An address, or where one leads from it, without user, password, query and fragment, which may be secret."""
    try:
        parts = urlsplit(urljoin(url, location))
        plain = SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "").geturl()
    except ValueError:
        return "an address that is none"
    return plain[:MAX_ADDRESS_LENGTH].rstrip("/")


class _Cloud(Upstream):
    _credentials: Any = None
    """What a cloud's library renews, where no bearer token is in the headers."""

    def error(self, body: bytes) -> bytes:
        found = wire.read_object(body.strip().removeprefix(b"[").removesuffix(b"]")) or {}
        place = inner if isinstance(inner := found.get("error"), dict) else found
        message = place.get("message") or place.get("Message")
        if found.get("type") == "error" or not isinstance(message, str):
            return body
        return wire.error_body("api_error", message)


class Vertex(_Cloud):
    """Vertex AI: model and method in the path, the version in the body.

    Where no bearer token is in the headers, Google's library finds and renews credentials (a credential file, workload
    identity, the login of `gcloud`). The address may be another than Google's own.
    """

    def __init__(
        self, project: str, region: str, headers: Mapping[str, Secret], base_url: str, environ: Mapping[str, str]
    ) -> None:
        hosts = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}
        own = f"https://{hosts.get(region, f'{region}-aiplatform')}.googleapis.com/v1"
        super().__init__(headers, base_url or own, environ)
        self._models = f"/projects/{quote(project)}/locations/{quote(region)}/publishers/anthropic/models"
        if not headers:
            google = _library("google.auth")
            try:
                self._credentials, _ = google.default([GOOGLE_SCOPE])
            except _library("google.auth.exceptions").GoogleAuthError as exc:
                hint = "Log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."
                message = f"Google Cloud's credentials cannot be used: {exc}"
                raise ConfigError(message, hint=hint, code="CREDENTIAL_MISSING") from exc

    def wired(self, call: Call) -> tuple[str, Headers, bytes]:
        headers = [(name, value) for name, value in super().wired(call)[1] if name != VERSION]
        if self._credentials:
            sent: dict[str, str] = {}
            try:
                request = _library("google.auth.transport.requests").Request()
                self._credentials.before_request(request, "POST", self.base_url, sent)
            except _library("google.auth.exceptions").GoogleAuthError as exc:
                raise UnreachableError(f"Google Cloud's credentials cannot be renewed: {exc}", again=False) from exc
            self._renewed = [Secret(sent["authorization"])]
            headers.append((b"authorization", sent["authorization"].encode()))
        models = self.base_url + self._models
        content = {**call.body, "anthropic_version": _version(call, "vertex-2023-10-16")}
        if call.counts_tokens:
            return f"{models}/count-tokens:rawPredict", headers, wire.write(content)
        method = "streamRawPredict" if call.body.get("stream") else "rawPredict"
        url = f"{models}/{_model(call)}:{method}"
        del content["model"]
        return url, headers, wire.write(content)


class Bedrock(_Cloud):
    """Amazon Bedrock's runtime: model and streaming in the path, version and betas in the body.

    Where no bearer token is in the headers, Amazon's library finds and renews keys (variables, a profile, SSO, a role)
    that sign requests. The address may be another than Amazon's own.
    """

    def __init__(self, region: str, headers: Mapping[str, Secret], base_url: str, environ: Mapping[str, str]) -> None:
        super().__init__(headers, base_url or f"https://bedrock-runtime.{region}.amazonaws.com", environ)
        self._region, self._stream = region, _library("botocore.eventstream")
        if not headers:
            problem: object = "there are none"
            try:
                self._credentials = _library("botocore.session").Session().get_credentials()
            except _library("botocore.exceptions").BotoCoreError as exc:
                problem = exc
            if self._credentials is None:
                hint = "Set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY."
                raise ConfigError(f"AWS credentials cannot be used: {problem}.", hint=hint, code="CREDENTIAL_MISSING")

    def wired(self, call: Call) -> tuple[str, Headers, bytes]:
        if call.counts_tokens:
            raise RefusedHereError(404, "not_found_error", "tokens are not counted on Amazon Bedrock")
        _, headers, _ = super().wired(call)
        content: dict[str, Any] = {"anthropic_version": _version(call, "bedrock-2023-05-31")}
        if betas := _betas(headers):
            content["anthropic_beta"] = betas
        content |= {key: value for key, value in call.body.items() if key not in {"model", "stream"}}
        method = "invoke-with-response-stream" if call.body.get("stream") else "invoke"
        url, body = f"{self.base_url}/model/{_model(call)}/{method}", wire.write(content)
        # Those of Anthropic mean nothing there, and what is signed must arrive as it was.
        headers = [(name, value) for name, value in headers if not name.startswith((b"anthropic-", b"x-stainless-"))]
        if self._credentials:
            try:
                keys = self._credentials.get_frozen_credentials()
            except _library("botocore.exceptions").BotoCoreError as exc:
                raise UnreachableError(f"AWS credentials cannot be renewed: {exc}", again=False) from exc
            self._renewed = [Secret(key) for key in (keys.secret_key, keys.token) if key]
            request = _library("botocore.awsrequest").AWSRequest("POST", url, data=body)
            _library("botocore.auth").SigV4Auth(keys, "bedrock", self._region).add_auth(request)
            headers += [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        return url, headers, body

    def translation(self, content_type: str) -> Translation | None:
        if not content_type.startswith(EVENT_STREAM):
            return None
        messages = self._stream.EventStreamBuffer()

        def events(data: bytes) -> Iterator[bytes]:
            messages.add_data(data)
            try:
                for message in messages:
                    if event := _event(message.headers, message.payload):
                        yield wire.written(event)
            except (self._stream.ParserError, ValueError) as exc:
                raise BrokenOff from exc

        return events


def _event(headers: Mapping[str, Any], payload: bytes) -> dict[str, Any] | None:
    """The event in a message of Amazon's event stream."""
    content = wire.read_object(payload) or {}
    if headers.get(":message-type") in {"exception", "error"}:
        name = str(headers.get(":exception-type") or headers.get(":error-code") or "")
        said = content.get("message") or headers.get(":error-message") or name
        return {"type": "error", "error": {"type": FAILURES.get(name, "api_error"), "message": str(said)}}
    encoded = content.get("bytes")
    return wire.read_object(base64.b64decode(encoded, validate=True)) if isinstance(encoded, str) else None


def _library(module: str) -> Any:
    """A module of a cloud's library, which is no part of a plain installation."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        why, hint = f"{name} is not installed, which this cloud needs.", f"pip install 'zelda-ci[{EXTRAS[name]}]'"
        raise ConfigError(why, hint=hint, code="EXTRA_MISSING") from None


def _betas(headers: Headers) -> list[str]:
    return [beta.strip() for name, value in headers if name == BETA for beta in value.decode("latin-1").split(",")]


def _version(call: Call, first: str) -> str:
    version = call.header(VERSION.decode()) or FIRST_VERSION
    return first if version == FIRST_VERSION else version


def _model(call: Call) -> str:
    """The model as one segment of a path."""
    name = str(call.body.get("model", ""))
    if name.strip(".") == "":
        raise RefusedHereError(400, "invalid_request_error", "model: Field required")
    return quote(name, safe="@")
