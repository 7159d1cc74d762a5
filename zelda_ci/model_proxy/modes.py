"""Where a run's answers come from: the API, the API with a recording, or a recording alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from zelda_ci.model_proxy.platforms import AnthropicApi, AwsKeys, Bedrock, Platform, Vertex
from zelda_ci.redact import Secret

API_URL = "https://api.anthropic.com"
# Without it the API does not take the token of a subscription.
OAUTH_BETA = "oauth-2025-04-20"


@dataclass(frozen=True)
class Upstream:
    """The real API, or a gateway in front of it.

    `headers` carry the credentials and replace whatever the session sends under the same names. `environ` is the
    user's environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR and
    NODE_EXTRA_CA_CERTS are honoured.
    """

    headers: Mapping[str, Secret]
    base_url: str = API_URL
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    routing: Mapping[str, str] = field(default_factory=dict)
    """More headers, which say to a gateway where the request goes and are no secret."""
    platform: Platform = field(default_factory=AnthropicApi)

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal where the API's limits are the same: those of one address and one key."""
        keys = sorted((name, secret.fingerprint()) for name, secret in self.headers.items())
        own = (secret.fingerprint() for secret in self.platform.secrets)
        return (self.base_url, *(part for pair in (*keys, *sorted(self.routing.items())) for part in pair), *own)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """All that must not be quoted."""
        return (*self.headers.values(), *self.platform.secrets)

    @classmethod
    def with_api_key(cls, key: Secret, base_url: str = API_URL, environ: Mapping[str, str] | None = None) -> Self:
        """The Anthropic API's own way."""
        return cls({"x-api-key": key}, base_url, environ or {})

    @classmethod
    def with_token(
        cls, token: Secret, base_url: str, environ: Mapping[str, str] | None = None, *, subscription: bool = False
    ) -> Self:
        """A bearer token: a gateway's, or that of a Claude subscription."""
        platform = AnthropicApi([OAUTH_BETA] if subscription else [])
        return cls({"authorization": token.as_bearer()}, base_url, environ or {}, platform=platform)

    @classmethod
    def with_bedrock(
        cls, access: AwsKeys | Secret, region: str, base_url: str | None, environ: Mapping[str, str] | None = None
    ) -> Self:
        """Amazon Bedrock, with keys that sign or an API key of its own."""
        keys = access if isinstance(access, AwsKeys) else None
        headers = {} if isinstance(access, AwsKeys) else {"authorization": access.as_bearer()}
        address = base_url or f"https://bedrock-runtime.{region}.amazonaws.com"
        return cls(headers, address, environ or {}, platform=Bedrock(region, keys))

    @classmethod
    def with_vertex(
        cls, token: Secret, place: Vertex, base_url: str | None, environ: Mapping[str, str] | None = None
    ) -> Self:
        """Vertex AI, with an access token of Google Cloud."""
        hosts = {
            "global": "aiplatform.googleapis.com",
            "us": "aiplatform.us.rep.googleapis.com",
            "eu": "aiplatform.eu.rep.googleapis.com",
        }
        address = base_url or f"https://{hosts.get(place.region, f'{place.region}-aiplatform.googleapis.com')}/v1"
        return cls({"authorization": token.as_bearer()}, address, environ or {}, platform=place)

    @classmethod
    def with_portkey(
        cls, key: Secret, base_url: str, routing: Mapping[str, str], environ: Mapping[str, str] | None = None
    ) -> Self:
        """The way of Portkey: its own key, and by header (or the model's name) the provider behind it."""
        # Clients add /v1 themselves, and Portkey's documentation shows the address in both ways.
        address = base_url.rstrip("/").removesuffix("/v1")
        headers = {f"x-portkey-{name}": value for name, value in routing.items()}
        return cls({"x-portkey-api-key": key}, address, environ or {}, headers)


@dataclass(frozen=True)
class LiveMode:
    upstream: Upstream


@dataclass(frozen=True)
class RecordMode:
    """Ask the API, and write each run's exchanges to a cassette in `folder`."""

    upstream: Upstream
    folder: Path


@dataclass(frozen=True)
class ReplayMode:
    """Answer from the cassettes in `folder`; no key, no network."""

    folder: Path


Mode = LiveMode | RecordMode | ReplayMode
