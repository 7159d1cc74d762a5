"""Where the API is, or a gateway in front of it, and with which credentials it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from zelda_ci.model_proxy.platforms import API_URL, Platform
from zelda_ci.redact import Secret

MAX_ADDRESS_LENGTH = 200


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
    platform: Platform = field(default_factory=Platform)

    @property
    def address(self) -> str:
        """Who answers, as messages name it."""
        return self.masked(shown(self.base_url))

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal where the API's limits are the same: those of one address and one key."""
        keys = (part for name, key in sorted(self.headers.items()) for part in (name, key.fingerprint()))
        routing = (part for pair in sorted(self.routing.items()) for part in pair)
        return (self.base_url, *keys, *routing)

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
        for secret in (*self.headers.values(), *self.platform.secrets):
            text = secret.mask(text)
        return text


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
