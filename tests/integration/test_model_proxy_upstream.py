"""The proxy's way to the API, as the environment describes it, and an API that refuses, redirects or breaks off."""

import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import AnyByteStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.proxied import BODY, KEY, REDACT, ask, client, listening, open_run, until, upstream
from tests.support.scripted_api import ScriptedApi, Tokens, cut_after, http_error, raw, text
from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.proxy import ModelProxy

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("address", ["", "api.anthropic.com", "ftp://x", "http://", "file:///etc/passwd"])
async def test_an_address_that_is_none_is_an_error_before_anything_starts(address: str) -> None:
    with pytest.raises(ProxyError, match="is not the address of an API") as caught:
        await ModelProxy(upstream(address), REDACT).__aenter__()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("environ", "reached"),
    [
        ({"http_proxy": "PROXY"}, "proxy"),
        ({"HTTP_PROXY": "PROXY"}, "proxy"),
        ({"ALL_PROXY": "PROXY", "NO_PROXY": "other.invalid"}, "proxy"),
        ({"http_proxy": "PROXY", "no_proxy": "*"}, "api"),
        ({"http_proxy": "PROXY", "no_proxy": "other, 127.0.0.1"}, "api"),
    ],
)
async def test_requests_go_through_the_users_http_proxy_unless_the_host_is_exempt(
    environ: dict[str, str], reached: str
) -> None:
    reply = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n"
    async with answering(f"{reply}proxy") as proxy, answering(f"{reply}api  ") as api:
        given = {name: value.replace("PROXY", proxy) for name, value in environ.items()}
        async with open_run(upstream(api, given)) as meter:
            assert (await ask(meter)).text.strip() == reached


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
async def test_a_certificate_of_the_users_own_authority_is_trusted_when_the_environment_names_it(
    variable: str, tmp_path: Path
) -> None:
    reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
    async with answering(reply, self_signed(tmp_path)) as url:
        async with open_run(upstream(url, {variable: str(tmp_path / "cert.pem")})) as meter:
            assert (await ask(meter)).status_code == 200
        async with open_run(upstream(url)) as meter:
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


USED = Tokens(input=1000, output=100)


async def test_an_api_that_hangs_up_without_an_answer_is_a_502() -> None:
    async with answering("") as url, open_run(upstream(url)) as meter:
        assert (await ask(meter)).status_code == 502
    assert meter.usage().errors == {"connection": 1}


@pytest.mark.parametrize("streaming", [True, False], ids=["chunked", "with length"])
async def test_an_answer_that_breaks_off_breaks_off_for_the_session_too(
    streaming: bool,  # noqa: FBT001 - a case of the table
    capfd: pytest.CaptureFixture[str],
) -> None:
    reply = cut_after(4, text("Some words.", tokens=USED)) if streaming else raw(b'{"type": "mess', length=500)
    with ScriptedApi([reply]) as api:
        async with open_run(upstream(api.url)) as meter:
            with pytest.raises(httpx2.RemoteProtocolError):
                await ask(meter)
    used = meter.usage()
    assert used.errors == {"connection": 1}
    assert {name: model.total for name, model in used.models.items()} == (
        {"claude-sonnet-5-5": 1001} if streaming else {}
    )
    assert capfd.readouterr() == ("", "")


async def test_when_the_session_leaves_so_does_the_request_and_what_was_seen_is_counted() -> None:
    with ScriptedApi([text("Some words.", tokens=USED, delay=0.05)]) as api:
        async with open_run(upstream(api.url)) as meter, client(meter) as http:
            async with http.stream("POST", "/v1/messages", json=BODY) as answer:
                await anext(answer.aiter_raw())
            await until(lambda: api.disconnects == 1)
    assert meter.usage().models["claude-sonnet-5-5"].input_tokens == 1000
    assert meter.usage().errors == {}


async def test_the_end_of_a_run_ends_its_requests() -> None:
    with ScriptedApi([text("Some words.", delay=0.05)]) as api:
        async with ModelProxy(upstream(api.url), REDACT) as proxy:
            async with proxy.session(run_label="a", budget_usd=None, placeholders={}) as meter:
                http = client(meter)
                asked = http.build_request("POST", "/v1/messages", json=BODY)
                answer = await http.send(asked, stream=True)
            with pytest.raises(httpx2.RemoteProtocolError):
                await answer.aread()
            await until(lambda: api.disconnects == 1)
            await http.aclose()


async def test_a_request_that_is_complete_only_when_its_run_is_over_is_not_sent() -> None:
    with ScriptedApi([text("Too late.")]) as api:
        async with ModelProxy(upstream(api.url), REDACT) as proxy:
            async with proxy.session(run_label="a", budget_usd=None, placeholders={}) as meter:
                content = json.dumps(BODY).encode()
                head = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: {meter.token}\r\n"
                line = await anyio.connect_tcp("127.0.0.1", int(meter.base_url.rpartition(":")[2]))
                await line.send(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content[:9])
                assert (await ask(meter)).status_code == 200
            await line.send(content[9:])
            assert b" 401 " in await line.receive()
            await line.aclose()
    assert len(api.requests) == 1


# A request that the API refuses


@pytest.mark.parametrize("status", [408, 503])
async def test_what_may_pass_is_asked_again(status: int) -> None:
    with ScriptedApi([http_error(status), text("Fine.")]) as api:
        async with open_run(upstream(api.url)) as meter:
            statuses = [(await ask(meter)).status_code for _ in range(2)]
    assert statuses == [status, 200]
    assert meter.usage().retries == 1


# A redirect


@pytest.mark.parametrize(("status", "path"), [(301, "/v1/messages"), (307, "/v1/messages/count_tokens")])
async def test_a_redirect_is_an_error_that_names_where_it_leads(status: int, path: str) -> None:
    reached = anyio.Event()

    async def target(stream: AnyByteStream) -> None:
        reached.set()
        await stream.aclose()

    async with listening(target) as elsewhere:
        location = f"{elsewhere.replace('//', '//user:pass@')}/v2/{KEY}?sig=secret"
        async with (
            answering(f"HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n") as url,
            open_run(upstream(url)) as meter,
            client(meter) as http,
        ):
            answer = await http.post(path, json=BODY, follow_redirects=True)
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")
    assert "location" not in answer.headers
    message = answer.json()["error"]["message"]
    assert f"redirects ({status}) to {elsewhere}/v2/***" in message
    assert url in message
    assert [secret for secret in ("user", "pass", "sig", KEY) if secret in message] == []
    assert not reached.is_set()


@asynccontextmanager
async def answering(reply: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server with one answer to everything; the value is its base URL."""

    async def serve(stream: AnyByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(reply.encode("latin-1"))

    async with listening(serve, tls) as url:
        yield url


# An API that is not there

REFUSAL = "HTTP/1.1 400 Bad Request\r\n\r\n"


@asynccontextmanager
async def dead(kind: str, folder: Path) -> AsyncIterator[str]:
    """An address at which no API can be reached, each in its own way."""
    match kind:
        case "refused":
            with socket.socket() as bound:
                bound.bind(("127.0.0.1", 0))
                yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        case "no such name":
            yield "http://no-such-host.invalid"
        case "untrusted":
            async with answering(REFUSAL, self_signed(folder)) as url:
                yield url
        case _:
            async with answering(REFUSAL) as url:
                yield url.replace("http:", "https:")


@pytest.mark.parametrize(("kind", "why"), [("no such name", "name"), ("untrusted", "certificate"), ("no TLS", "TLS")])
async def test_what_does_not_pass_is_named_and_not_tried_again(tmp_path: Path, kind: str, why: str) -> None:
    async with dead(kind, tmp_path) as url, open_run(upstream(url)) as meter:
        answer = await ask(meter)
    assert f"Zelda's model proxy could not reach {url}: " in answer.json()["error"]["message"]
    assert why in answer.text
    if "temporary" not in answer.text.lower():  # a machine without any name server cannot tell
        assert (answer.status_code, answer.headers.get("x-should-retry")) == (502, "false")


@pytest.mark.parametrize(("status", "lasts"), [("407 Proxy Authentication Required", True), ("502 Bad Gateway", False)])
async def test_an_http_proxy_that_refuses_is_asked_once(status: str, lasts: bool) -> None:  # noqa: FBT001
    async with answering(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n") as proxy:
        given = {"HTTPS_PROXY": proxy.replace("//", "//me:hunter2@")}
        async with open_run(upstream("https://api.invalid", given)) as meter:
            answer = await ask(meter)
    assert answer.json()["error"]["message"].endswith(f"through the HTTP proxy {proxy}: {status}")
    assert (answer.status_code, answer.headers.get("x-should-retry")) == (502, "false" if lasts else None)


async def test_credentials_in_the_address_are_not_told(tmp_path: Path) -> None:
    async with dead("refused", tmp_path) as url:
        address = url.replace("//", "//me:hunter2@") + "/base?key=hunter2"
        async with open_run(upstream(address)) as meter:
            answer = await ask(meter)
    assert f"could not reach {url}/base: " in answer.json()["error"]["message"]
    assert "hunter2" not in answer.text
