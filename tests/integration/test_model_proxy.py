"""The proxy between real HTTP clients and a real API on loopback: what passes, what is refused, what is counted."""

import gzip
import http.client
import json
import signal
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import AnyByteStream, SocketAttribute
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.proxied import BODY, KEY, REDACT, ask, client, open_run, plain_client, upstream
from tests.support.scripted_api import ScriptedApi, Tokens, cut_after, hang, http_error, raw, text
from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.proxy import Live, Meter, ModelProxy, Upstream
from zelda_ci.redact import Secret

pytestmark = pytest.mark.anyio

USED = Tokens(input=1000, output=100)
COST = (1000 * 2 + 100 * 10) / 1e6


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in another thread; the test's own time limit ends a wait in vain."""
    while not condition():  # noqa: ASYNC110 - the other thread has no event of this loop
        await anyio.sleep(0.01)


@asynccontextmanager
async def listening(
    serve: Callable[[AnyByteStream], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """A server of a few lines; the value is its base URL."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        served = TLSListener(listener, tls, standard_compatible=False) if tls else listener
        group.start_soon(served.serve, serve)
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


# --- what passes ---------------------------------------------------------------------------------------------------


async def test_the_first_event_arrives_before_the_api_has_sent_the_second() -> None:
    gate = threading.Event()
    with ScriptedApi([text("Hello.", gate=gate)]) as api:
        async with (
            open_run(Live(upstream(api.url))) as meter,
            client(meter) as http,
            http.stream("POST", "/v1/messages?beta=true", json=BODY) as answer,
        ):
            chunks = answer.aiter_raw()
            assert b"message_start" in await anext(chunks)
            gate.set()
            rest = [chunk async for chunk in chunks]
    assert b"message_stop" in rest[-1]


@pytest.mark.parametrize(
    "body",
    [b"event: message_start\ndata: {no json\n\n", b"<html>502</html>", b"", b"\x00\xff" * 1000, b"data: {}\r\n\r\n: x"],
)
async def test_bytes_pass_unchanged_whatever_they_are(body: bytes) -> None:
    with ScriptedApi([raw(body, headers={"content-type": "text/event-stream", "request-id": "req_1"})]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter)
    assert (answer.status_code, answer.content, answer.headers["request-id"]) == (200, body, "req_1")
    assert meter.usage().models == {}


async def test_errors_of_the_api_pass_with_status_headers_and_body() -> None:
    error = http_error(429, "slow down", headers={"retry-after": "7", "x-should-retry": "true", "x-new": "y"})
    with ScriptedApi([error]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter)
    assert (answer.status_code, answer.content) == (429, error.body)
    passed = {name: answer.headers[name] for name in ("retry-after", "x-should-retry", "request-id", "x-new")}
    assert passed == {"retry-after": "7", "x-should-retry": "true", "request-id": "req_scripted", "x-new": "y"}
    assert meter.usage().errors == {"429": 1}


async def test_request_body_query_and_headers_reach_the_api_as_they_are() -> None:
    body = json.dumps({**BODY, "odd": "ä\ud83d"}).encode()
    with ScriptedApi([text("x")]) as api:
        async with open_run(Live(upstream(api.url + "/"))) as meter, client(meter, **{"anthropic-beta": "b"}) as http:
            await http.post("/v1/messages?beta=true&x=%20y", content=body)
    request = api.requests[0]
    assert (request.path, request.raw_body) == ("/v1/messages?beta=true&x=%20y", body)
    assert request.headers["anthropic-beta"] == "b"


async def test_a_request_of_50_megabytes_passes() -> None:
    with ScriptedApi([text("x")]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter, "y" * (50 << 20))
    assert answer.status_code == 200
    assert len(api.requests[0].raw_body) > 50 << 20


async def test_a_token_count_passes_and_costs_nothing() -> None:
    with ScriptedApi([]) as api:
        async with open_run(Live(upstream(api.url)), budget_usd=1e-9) as meter, client(meter) as http:
            answer = await http.post("/v1/messages/count_tokens?beta=true", json=BODY)
    assert answer.json() == {"input_tokens": 42}
    assert meter.usage().requests == 0


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)]
)
async def test_a_compressed_answer_is_metered_and_passed_on_readable(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    body = json.dumps({"model": "claude-sonnet-5-5", "usage": {"input_tokens": 1000, "output_tokens": 100}}).encode()
    headers = {"content-type": "application/json", "content-encoding": encoding}
    with ScriptedApi([raw(compress(body), headers=headers)]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter, stream=False)
    assert api.requests[0].headers["accept-encoding"] == "identity"
    assert answer.content == body
    assert meter.usage().cost_usd == pytest.approx(COST)


async def test_an_encoding_that_cannot_be_metered_is_an_error() -> None:
    with ScriptedApi([raw(b"\x0b\x02\x80", headers={"content-encoding": "br"})]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter)
    assert answer.status_code == 502
    assert "content encoding br, which cannot be metered" in answer.json()["error"]["message"]


# --- who may ask, and what -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/v1/messages", {}, 401),
        ("POST", "/v1/messages", {"x-api-key": "wrong"}, 401),
        ("POST", "/v1/messages", {"x-api-key": "ü"}, 401),
        ("POST", "/v1/messages", {"authorization": "Bearer wrong"}, 401),
        ("POST", "/v1/messages", {"authorization": "Basic TOKEN"}, 401),
        ("POST", "/v1/messages", {"x-api-key": "TOKEN", "host": "evil.example"}, 403),
        ("POST", "/v1/messages", {"x-api-key": "TOKEN", "host": "127.0.0.1.evil.example:80"}, 403),
        ("GET", "/v1/messages", {"x-api-key": "TOKEN"}, 405),
        ("PUT", "/v1/messages/count_tokens", {"x-api-key": "TOKEN"}, 405),
        ("POST", "/v1/models", {"x-api-key": "TOKEN"}, 404),
        ("POST", "/v1/messages/batches", {"x-api-key": "TOKEN"}, 404),
        ("POST", "/v1/messages/../messages/batches", {"x-api-key": "TOKEN"}, 404),
        ("HEAD", "/api/hello", {}, 404),
    ],
)
async def test_anything_but_the_messages_api_with_the_runs_token_is_refused(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    with ScriptedApi([]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            given = [(name.encode(), value.replace("TOKEN", meter.token).encode()) for name, value in headers.items()]
            async with plain_client() as http:
                answer = await http.request(method, meter.base_url + path, headers=given, json=BODY)
    assert answer.status_code == status
    assert method == "HEAD" or answer.json()["type"] == "error"
    assert api.requests == []
    assert meter.usage().requests == 0


@pytest.mark.parametrize(
    "headers", [{"x-api-key": "TOKEN"}, {"authorization": "Bearer TOKEN"}, {"Authorization": "bearer  TOKEN"}]
)
async def test_the_runs_token_opens_and_only_the_real_key_goes_on(headers: dict[str, str]) -> None:
    secret = {
        "cookie": "a=b",
        "proxy-authorization": "Basic x",
        "connection": "keep-alive, x-private",
        "x-private": "1",
    }
    with ScriptedApi([text("x")]) as api:
        async with open_run(Live(upstream(api.url))) as meter, plain_client() as http:
            given = {**secret, **{name: value.replace("TOKEN", meter.token) for name, value in headers.items()}}
            answer = await http.post(meter.base_url + "/v1/messages", headers=given, json=BODY)
    sent = api.requests[0].headers
    assert answer.status_code == 200
    assert sent["x-api-key"] == KEY
    assert [name for name in ("authorization", "cookie", "proxy-authorization", "x-private") if name in sent] == []
    assert meter.token not in str(sent)


async def test_a_gateway_gets_its_own_headers() -> None:
    headers = {
        "Authorization": Secret("Bearer gw"),
        "x-portkey-api-key": Secret("pk"),
        "x-portkey-provider": Secret("@a"),
    }
    with ScriptedApi([text("x")]) as api:
        async with (
            open_run(Live(Upstream(headers, api.url))) as meter,
            client(meter, **{"X-Portkey-Provider": "@b"}) as http,
        ):
            await http.post("/v1/messages", json=BODY)
    sent = api.requests[0].headers
    assert (sent["authorization"], sent["x-portkey-api-key"], sent["x-portkey-provider"]) == ("Bearer gw", "pk", "@a")
    assert "x-api-key" not in sent


async def test_an_auth_token_is_sent_as_bearer() -> None:
    with ScriptedApi([text("x")]) as api:
        async with open_run(Live(Upstream.with_auth_token(Secret("t0ken"), api.url))) as meter:
            await ask(meter)
    assert api.requests[0].headers["authorization"] == "Bearer t0ken"


async def test_a_key_that_the_api_quotes_does_not_reach_the_session() -> None:
    error = http_error(401, f"invalid key {KEY}", headers={"x-debug": KEY})
    with ScriptedApi([error]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter)
    assert KEY not in answer.text + str(answer.headers)
    assert answer.json()["error"]["message"] == "invalid key ***"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with ScriptedApi([]) as api:
        async with open_run(Live(upstream(api.url))) as meter, client(meter) as http:
            answer = await http.post("/v1/messages", content=body)
    assert answer.status_code == 400


async def test_two_runs_side_by_side_are_counted_apart() -> None:
    with ScriptedApi(lambda _: text("x", tokens=USED)) as api:
        async with ModelProxy(Live(upstream(api.url)), REDACT) as proxy:
            with (
                proxy.session(run_label="a", budget_usd=None, placeholders={}) as first,
                proxy.session(run_label="b", budget_usd=None, placeholders={}) as second,
            ):
                async with anyio.create_task_group() as group:
                    for meter in (first, second, second):
                        group.start_soon(ask, meter)
    assert first.token != second.token
    assert (first.usage().requests, second.usage().requests) == (1, 2)
    assert second.usage().cost_usd == pytest.approx(2 * COST)


async def test_a_token_ends_with_its_run() -> None:
    with ScriptedApi([]) as api:
        async with ModelProxy(Live(upstream(api.url)), REDACT) as proxy:
            with proxy.session(run_label="a", budget_usd=None, placeholders={}) as meter:
                pass
            answer = await ask(meter)
    assert answer.status_code == 401


# --- budget --------------------------------------------------------------------------------------------------------


async def test_once_the_budget_is_spent_requests_are_refused_and_never_reach_the_api() -> None:
    with ScriptedApi([text("x", tokens=USED)]) as api:
        async with open_run(Live(upstream(api.url)), budget_usd=COST) as meter:
            first = await ask(meter)
            assert meter.exhausted.is_set()
            second = await ask(meter)
    assert (first.status_code, second.status_code) == (200, 402)
    assert second.headers["x-should-retry"] == "false"
    assert second.json()["error"]["message"] == (
        "Zelda's cost limit for this run is reached: 0.0030 of 0.0030 US dollars are spent"
    )
    assert meter.usage().requests == 1


async def test_an_answer_that_streams_when_the_budget_is_spent_may_end() -> None:
    gate = threading.Event()
    with ScriptedApi([text("slow", tokens=USED, gate=gate), text("fast", tokens=USED)]) as api:
        async with (
            open_run(Live(upstream(api.url)), budget_usd=COST) as meter,
            client(meter) as http,
            http.stream("POST", "/v1/messages", json=BODY) as slow,
        ):
            chunks = slow.aiter_raw()
            await anext(chunks)
            await ask(meter)
            assert meter.exhausted.is_set()
            gate.set()
            rest = b"".join([chunk async for chunk in chunks])
    assert b"message_stop" in rest
    assert meter.usage().cost_usd == pytest.approx(2 * COST)


# --- when things break ---------------------------------------------------------------------------------------------


async def test_an_api_that_cannot_be_reached_is_a_502_that_says_so() -> None:
    with ScriptedApi([]) as api:
        dead = api.url
    async with open_run(Live(upstream(dead))) as meter:
        answer = await ask(meter)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"].startswith("Zelda's model proxy could not reach 127.0.0.1: ")
    assert meter.usage().errors == {"connection": 1}


async def test_an_api_that_hangs_up_without_an_answer_is_a_502() -> None:
    async def hang_up(stream: AnyByteStream) -> None:
        await stream.receive()
        await stream.aclose()

    async with listening(hang_up) as url, open_run(Live(upstream(url))) as meter:
        assert (await ask(meter)).status_code == 502
    assert meter.usage().errors == {"connection": 1}


async def test_an_error_that_breaks_off_is_a_502() -> None:
    with ScriptedApi([raw(b'{"type":', status=500, length=100)]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answer = await ask(meter)
    assert answer.json()["error"]["message"] == "127.0.0.1 broke off an answer with status 500"
    assert (answer.status_code, meter.usage().errors) == (502, {"connection": 1})


@pytest.mark.parametrize("streaming", [True, False], ids=["chunked", "with length"])
async def test_an_answer_that_breaks_off_breaks_off_for_the_session_too(
    streaming: bool,  # noqa: FBT001 - a case of the table
    capfd: pytest.CaptureFixture[str],
) -> None:
    reply = cut_after(4, text("Some words.", tokens=USED)) if streaming else raw(b'{"type": "mess', length=500)
    with ScriptedApi([reply]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
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
        async with open_run(Live(upstream(api.url))) as meter, client(meter) as http:
            async with http.stream("POST", "/v1/messages", json=BODY) as answer:
                await anext(answer.aiter_raw())
            await until(lambda: api.disconnects == 1)
    assert meter.usage().models["claude-sonnet-5-5"].input_tokens == 1000
    assert meter.usage().errors == {}


async def test_when_the_session_leaves_before_any_answer_the_api_is_left_too() -> None:
    with ScriptedApi([hang()]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            with anyio.move_on_after(0.2):
                await ask(meter)
            await until(lambda: api.disconnects == 1)


async def test_the_end_of_a_run_ends_its_requests() -> None:
    with ScriptedApi([text("Some words.", delay=0.05)]) as api:
        async with ModelProxy(Live(upstream(api.url)), REDACT) as proxy:
            with proxy.session(run_label="a", budget_usd=None, placeholders={}) as meter:
                http = client(meter)
                asked = http.build_request("POST", "/v1/messages", json=BODY)
                answer = await http.send(asked, stream=True)
            with pytest.raises(httpx2.RemoteProtocolError):
                await answer.aread()
            await until(lambda: api.disconnects == 1)
            await http.aclose()


async def test_the_end_of_the_proxy_waits_for_no_stream() -> None:
    with ScriptedApi(lambda _: hang(after_headers=True)) as api:
        async with anyio.create_task_group() as group, ModelProxy(Live(upstream(api.url)), REDACT) as proxy:
            with proxy.session(run_label="a", budget_usd=None, placeholders={}) as meter:
                for _ in range(5):
                    group.start_soon(_ask_in_vain, meter)
                await until(lambda: len(api.requests) == 5)


async def _ask_in_vain(meter: Meter) -> None:
    with pytest.raises(httpx2.TransportError):
        await ask(meter)


async def test_failures_of_the_api_do_not_hide_how_often_it_was_asked() -> None:
    with ScriptedApi([http_error(529), http_error(500), text("x")]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            for _ in range(3):
                await ask(meter)
    used = meter.usage()
    assert (used.requests, used.retries, used.errors) == (3, 2, {"500": 1, "529": 1})
    assert used.api_seconds > 0


# --- the server ----------------------------------------------------------------------------------------------------


async def test_one_connection_serves_many_requests_refused_ones_included() -> None:
    def conversation(meter: Meter) -> list[int]:
        connection = http.client.HTTPConnection(meter.base_url.removeprefix("http://"))
        statuses = []
        for token in (meter.token, "wrong", meter.token):
            connection.request("POST", "/v1/messages", json.dumps(BODY), {"x-api-key": token})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
            assert connection.sock is not None, "the connection was closed"
        connection.close()
        return statuses

    with ScriptedApi([text("x"), text("y")]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            assert await anyio.to_thread.run_sync(conversation, meter) == [200, 401, 200]


async def test_many_requests_at_once_are_all_answered_and_counted() -> None:
    with ScriptedApi(lambda request: text(request.last_user_text, tokens=USED)) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            answers: dict[int, str] = {}

            async def one(number: int) -> None:
                answers[number] = (await ask(meter, f"number {number}.", stream=False)).json()["content"][0]["text"]

            async with anyio.create_task_group() as group:
                for number in range(60):
                    group.start_soon(one, number)
    assert answers == {number: f"number {number}." for number in range(60)}
    assert meter.usage().cost_usd == pytest.approx(60 * COST)


async def test_signal_handlers_stay_what_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with ScriptedApi([]) as api:
        async with open_run(Live(upstream(api.url))):
            assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_only_this_machine_can_connect() -> None:
    with ScriptedApi([]) as api:
        async with open_run(Live(upstream(api.url))) as meter:
            assert meter.base_url.startswith("http://127.0.0.1:")


# --- the user's environment ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["", "api.anthropic.com", "ftp://x", "http://", "file:///etc/passwd"])
async def test_an_address_that_is_none_is_an_error_before_anything_starts(address: str) -> None:
    with pytest.raises(ProxyError, match="is not the address of an API") as caught:
        await ModelProxy(Live(upstream(address)), REDACT).__aenter__()
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
        async with open_run(Live(upstream("http://api.invalid", given))) as meter:
            assert (await ask(meter)).content == b"{}"
    assert seen[0].startswith(b"POST http://api.invalid/v1/messages?beta=true HTTP/1.1")


@pytest.mark.parametrize("exempt", ["127.0.0.1", "*", "other, 127.0.0.1"])
async def test_no_proxy_exempts_a_host(exempt: str) -> None:
    with ScriptedApi([text("x")]) as api:
        environ = {"http_proxy": "http://127.0.0.1:1", "no_proxy": exempt}
        async with open_run(Live(upstream(api.url, environ))) as meter:
            assert (await ask(meter)).status_code == 200


async def test_a_proxy_that_cannot_be_used_is_one_sentence() -> None:
    environ = {"HTTPS_PROXY": "gopher://me:secret@proxy.invalid:1"}
    with pytest.raises(ProxyError, match=r"the proxy proxy\.invalid:1 cannot be used") as caught:
        await ModelProxy(Live(upstream("https://api.invalid", environ)), REDACT).__aenter__()
    assert "secret" not in caught.value.user_message


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
async def test_certificates_that_cannot_be_read_are_one_sentence(variable: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(ProxyError, match="cannot be read") as caught:
        await ModelProxy(
            Live(upstream("https://api.invalid", {variable: str(tmp_path / "ca.pem")})), REDACT
        ).__aenter__()
    assert variable in (caught.value.hint or "")


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
async def test_a_certificate_of_the_users_own_authority_is_trusted_when_the_environment_names_it(
    variable: str, tmp_path: Path
) -> None:
    async def answer(stream: AnyByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

    async with listening(answer, self_signed(tmp_path)) as url:
        async with open_run(Live(upstream(url, {variable: str(tmp_path / "cert.pem")}))) as meter:
            assert (await ask(meter)).status_code == 200
        async with open_run(Live(upstream(url))) as meter:
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
