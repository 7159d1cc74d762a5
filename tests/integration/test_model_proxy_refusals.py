"""What the proxy makes of an API that refuses, redirects or is not there: few requests, and an error that says why."""

import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import AnyByteStream

from tests.support.proxied import BODY, KEY, ask, client, listening, open_run, upstream
from tests.support.scripted_api import ScriptedApi, http_error, text
from zelda_ci.model_proxy.modes import LiveMode

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# A request that the API refuses


@pytest.mark.parametrize("status", [408, 503])
async def test_what_may_pass_is_asked_again(status: int) -> None:
    with ScriptedApi([http_error(status), text("Fine.")]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter:
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
            open_run(LiveMode(upstream(url))) as meter,
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
async def answering(reply: str) -> AsyncIterator[str]:
    """A server with one answer to everything; the value is its base URL."""

    async def serve(stream: AnyByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(reply.encode("latin-1"))

    async with listening(serve) as url:
        yield url


# An API that is not there


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
            async with listening(_nothing, _certificate(folder)) as url:
                yield url
        case _:
            async with listening(_nothing) as url:
                yield url.replace("http:", "https:")


async def _nothing(stream: AnyByteStream) -> None:
    async with stream:
        await stream.receive()
        await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _certificate(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize(("kind", "why"), [("no such name", "name"), ("untrusted", "certificate"), ("no TLS", "TLS")])
async def test_what_does_not_pass_is_named_and_not_tried_again(tmp_path: Path, kind: str, why: str) -> None:
    async with dead(kind, tmp_path) as url, open_run(LiveMode(upstream(url))) as meter:
        answer = await ask(meter)
    assert f"Zelda's model proxy could not reach {url}: " in answer.json()["error"]["message"]
    assert why in answer.text
    if "temporary" not in answer.text.lower():  # a machine without any name server cannot tell
        assert (answer.status_code, answer.headers.get("x-should-retry")) == (502, "false")


async def test_credentials_in_the_address_are_not_told(tmp_path: Path) -> None:
    async with dead("refused", tmp_path) as url:
        address = url.replace("//", "//me:hunter2@") + "/base?key=hunter2"
        async with open_run(LiveMode(upstream(address))) as meter:
            answer = await ask(meter)
    assert f"could not reach {url}/base: " in answer.json()["error"]["message"]
    assert "hunter2" not in answer.text
