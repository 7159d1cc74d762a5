"""The proxy's way to the API, as the user's environment describes it."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from anyio.abc import AnyByteStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.proxied import REDACT, ask, listening, open_run, upstream
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.modes import LiveMode
from zelda_ci.model_proxy.proxy import ModelProxy

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("address", ["", "api.anthropic.com", "ftp://x", "http://", "file:///etc/passwd"])
async def test_an_address_that_is_none_is_an_error_before_anything_starts(address: str) -> None:
    with pytest.raises(ProxyError, match="is not the address of an API") as caught:
        await ModelProxy(LiveMode(upstream(address)), REDACT).__aenter__()
    assert caught.value.hint


@pytest.mark.parametrize(
    "environ", [{"http_proxy": "PROXY"}, {"HTTP_PROXY": "PROXY"}, {"ALL_PROXY": "PROXY", "NO_PROXY": "other.invalid"}]
)
async def test_requests_go_through_the_users_http_proxy(environ: dict[str, str]) -> None:
    seen: list[bytes] = []

    async def http_proxy(stream: AnyByteStream) -> None:
        async with stream:
            seen.append(await stream.receive())
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

    async with listening(http_proxy) as url:
        given = {name: value.replace("PROXY", url) for name, value in environ.items()}
        async with open_run(LiveMode(upstream("http://api.invalid", given))) as meter:
            assert (await ask(meter)).content == b"{}"
    assert seen[0].startswith(b"POST http://api.invalid/v1/messages?beta=true HTTP/1.1")


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
async def test_a_certificate_of_the_users_own_authority_is_trusted_when_the_environment_names_it(
    variable: str, tmp_path: Path
) -> None:
    async def answer(stream: AnyByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

    async with listening(answer, self_signed(tmp_path)) as url:
        async with open_run(LiveMode(upstream(url, {variable: str(tmp_path / "cert.pem")}))) as meter:
            assert (await ask(meter)).status_code == 200
        async with open_run(LiveMode(upstream(url))) as meter:
            refused = await ask(meter)
    assert refused.status_code == 502
    assert "CERTIFICATE_VERIFY_FAILED" in refused.json()["error"]["message"]


def self_signed(folder: Path) -> ssl.SSLContext:
    """A server's context with a fresh certificate for 127.0.0.1, which lies in `cert.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    host = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    authority = x509.BasicConstraints(ca=True, path_length=None)
    certificate = builder.add_extension(host, critical=False).add_extension(authority, critical=True)
    (folder / "cert.pem").write_bytes(certificate.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


@pytest.mark.parametrize("exempt", ["*", "other, 127.0.0.1"])
async def test_no_proxy_exempts_a_host(exempt: str) -> None:
    with ScriptedApi([text("x")]) as api:
        environ = {"http_proxy": "http://127.0.0.1:1", "no_proxy": exempt}
        async with open_run(LiveMode(upstream(api.url, environ))) as meter:
            assert (await ask(meter)).status_code == 200
