"""What a request to the Messages API looks like at Anthropic, on Amazon Bedrock and on Google Cloud's Vertex AI.

Sessions and judges speak Anthropic's own dialect; it is translated here, and the answer back, so that metering, limits
and recordings are the same everywhere. Credentials, signatures and streams of the clouds are their own libraries' work,
which only those need who use that cloud.
"""

import base64
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

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


Wired = tuple[str, Headers, bytes]
"""A request as it is sent: its URL, headers and body."""


class Platform:
    """Where models are served: the API itself or a gateway that speaks as it does, unless it is one of the clouds.

    The beta is named beside those that the session names.
    """

    default_url = API_URL
    """The address where the environment gives none."""
    secrets: Sequence[Secret] = ()
    """Credentials that requests carry beside those of the upstream's headers."""

    def __init__(self, beta: str = "") -> None:
        self._beta = beta

    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        """The request; `headers` are those that go on. May wait for new credentials, so it runs in a thread.

        Raises:
            RefusedHereError: The platform does not offer this.
            UnreachableError: The credentials have expired, and there are no new ones.
        """
        if self._beta:
            both = ",".join(dict.fromkeys([*_betas(headers), self._beta]))
            headers = [*(each for each in headers if each[0] != BETA), (BETA, both.encode())]
        return (base_url + call.path, headers, call.raw_body)

    def translation(self, content_type: str) -> Callable[[bytes], Iterable[bytes]] | None:
        """What makes server-sent events of the pieces of an answer, where it is something else."""
        return None

    def error(self, body: bytes) -> bytes:
        """The body of an error in Anthropic's form."""
        return body


class _Cloud(Platform):
    def error(self, body: bytes) -> bytes:
        found = wire.read_object(body.strip().removeprefix(b"[").removesuffix(b"]")) or {}
        place = inner if isinstance(inner := found.get("error"), dict) else found
        message = place.get("message") or place.get("Message")
        if found.get("type") == "error" or not isinstance(message, str):
            return body
        return wire.error_body("api_error", message)


class Vertex(_Cloud):
    """Vertex AI: model and method in the path, the version in the body.

    Args:
        project: The project that pays.
        region: Where the models are.
        finds_credentials: Whether Google's library finds and renews them (a credential file, workload identity, the
            login of `gcloud`); else a bearer token stands in the upstream's headers.
    """

    def __init__(self, project: str, region: str, *, finds_credentials: bool = False) -> None:
        self._place = f"/projects/{quote(project)}/locations/{quote(region)}/publishers/anthropic/models"
        hosts = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}
        self.default_url = f"https://{hosts.get(region, f'{region}-aiplatform')}.googleapis.com/v1"
        self._credentials: Any = None
        if finds_credentials:
            google = _library("google.auth", "vertex")
            self._error = _library("google.auth.exceptions", "vertex").GoogleAuthError
            try:
                self._credentials, _ = google.default([GOOGLE_SCOPE])
            except self._error as exc:
                hint = "Log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."
                message = f"Google Cloud's credentials cannot be used: {exc}"
                raise ConfigError(message, hint=hint, code="CREDENTIAL_MISSING") from exc

    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        headers = [(name, value) for name, value in headers if name != VERSION]
        if self._credentials:
            headers.append((b"authorization", self._bearer().encode()))
        models, content = (
            base_url + self._place,
            {**call.body, "anthropic_version": _version(call, "vertex-2023-10-16")},
        )
        if call.counts_tokens:
            return (f"{models}/count-tokens:rawPredict", headers, wire.write(content))
        method = "streamRawPredict" if call.body.get("stream") else "rawPredict"
        return (f"{models}/{_model(call)}:{method}", headers, wire.write(_without(content, "model")))

    def _bearer(self) -> str:
        sent: dict[str, str] = {}
        try:
            request = _library("google.auth.transport.requests", "vertex").Request()
            self._credentials.before_request(request, "POST", self.default_url, sent)
        except self._error as exc:
            raise UnreachableError(f"Google Cloud's credentials cannot be renewed: {exc}", again=False) from exc
        bearer = sent["authorization"]
        self.secrets = [Secret(bearer)]
        return bearer


class Bedrock(_Cloud):
    """Amazon Bedrock's runtime: model and streaming in the path, version and betas in the body.

    Args:
        region: Where the models are.
        finds_credentials: Whether Amazon's library finds and renews keys (variables, a profile, SSO, a role) that sign
            requests; else a bearer token stands in the upstream's headers.
    """

    def __init__(self, region: str, *, finds_credentials: bool = False) -> None:
        self.default_url, self._region = f"https://bedrock-runtime.{region}.amazonaws.com", region
        self._stream = _library("botocore.eventstream", "bedrock")
        self._credentials: Any = None
        if finds_credentials:
            problem: object = "there are none"
            self._error = _library("botocore.exceptions", "bedrock").BotoCoreError
            try:
                self._credentials = _library("botocore.session", "bedrock").Session().get_credentials()
            except self._error as exc:
                problem = exc
            if self._credentials is None:
                hint = "Set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY."
                raise ConfigError(f"AWS credentials cannot be used: {problem}.", hint=hint, code="CREDENTIAL_MISSING")

    def wired(self, base_url: str, call: Call, headers: Headers) -> Wired:
        if call.counts_tokens:
            raise RefusedHereError(404, "not_found_error", "tokens are not counted on Amazon Bedrock")
        content: dict[str, Any] = {"anthropic_version": _version(call, "bedrock-2023-05-31")}
        if betas := _betas(headers):
            content["anthropic_beta"] = betas
        body = wire.write({**content, **_without(call.body, "model", "stream")})
        method = "invoke-with-response-stream" if call.body.get("stream") else "invoke"
        url = f"{base_url}/model/{_model(call)}/{method}"
        # Those of Anthropic mean nothing there, and what is signed must arrive as it was.
        plain = [(name, value) for name, value in headers if not name.startswith((b"anthropic-", b"x-stainless-"))]
        return (url, [*plain, *(self._signature(url, body) if self._credentials else [])], body)

    def _signature(self, url: str, body: bytes) -> Headers:
        request = _library("botocore.awsrequest", "bedrock").AWSRequest("POST", url, data=body)
        try:
            keys = self._credentials.get_frozen_credentials()
        except self._error as exc:
            raise UnreachableError(f"AWS credentials cannot be renewed: {exc}", again=False) from exc
        self.secrets = [Secret(key) for key in (keys.secret_key, keys.token) if key]
        _library("botocore.auth", "bedrock").SigV4Auth(keys, "bedrock", self._region).add_auth(request)
        return [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]

    def translation(self, content_type: str) -> Callable[[bytes], Iterable[bytes]] | None:
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


def _library(module: str, extra: str) -> Any:
    """A module of a cloud's library, which is no part of a plain installation."""
    try:
        return importlib.import_module(module)
    except ImportError:
        message = f"{module.partition('.')[0]} is not installed, which this cloud needs."
        raise ConfigError(message, hint=f"pip install 'zelda-ci[{extra}]'", code="EXTRA_MISSING") from None


def _betas(headers: Headers) -> list[str]:
    named = [value.decode("latin-1") for name, value in headers if name == BETA]
    return [beta.strip() for value in named for beta in value.split(",")]


def _version(call: Call, first: str) -> str:
    version = call.header(VERSION.decode()) or FIRST_VERSION
    return first if version == FIRST_VERSION else version


def _without(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def _model(call: Call) -> str:
    """The model as one segment of a path."""
    name = str(call.body.get("model", ""))
    if name.strip(".") == "":
        raise RefusedHereError(400, "invalid_request_error", "model: Field required")
    return quote(name, safe="@")


# What Bedrock calls a failure inside a stream, in Anthropic's words.
FAILURES = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "validationException": "invalid_request_error",
    "modelTimeoutException": "timeout_error",
}


def _event(headers: Mapping[str, Any], payload: bytes) -> dict[str, Any] | None:
    """The event in a message of Amazon's event stream."""
    content = wire.read_object(payload) or {}
    if headers.get(":message-type") in {"exception", "error"}:
        name = str(headers.get(":exception-type") or headers.get(":error-code") or "")
        said = content.get("message") or headers.get(":error-message") or name
        return {"type": "error", "error": {"type": FAILURES.get(name, "api_error"), "message": str(said)}}
    encoded = content.get("bytes")
    return wire.read_object(base64.b64decode(encoded, validate=True)) if isinstance(encoded, str) else None
