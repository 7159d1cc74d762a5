"""The HTTP client towards the API, set up as the user's environment says."""

import ssl
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

import httpx2

from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.modes import Upstream


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
            trust_env=False,
            timeout=httpx2.Timeout(limits.silence_seconds, connect=limits.connect_seconds, pool=None),
            follow_redirects=False,
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
    found = _variable(environ, f"{url.scheme}_proxy") or _variable(environ, "ALL_PROXY")
    return found if not found or "://" in found else f"http://{found}"


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
