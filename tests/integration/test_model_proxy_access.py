"""Who may ask the proxy, what may be asked, and which credentials go where."""

import anyio
import pytest

from tests.support.proxied import BODY, KEY, REDACT, ask, client, open_run, plain_client, upstream
from tests.support.scripted_api import ScriptedApi, Tokens, http_error, text
from zelda_ci.model_proxy.modes import LiveMode, Upstream
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.redact import Secret

USED = Tokens(input=1000, output=100)
COST = (1000 * 2 + 100 * 10) / 1e6

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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
        async with open_run(LiveMode(upstream(api.url))) as meter:
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
        async with open_run(LiveMode(upstream(api.url))) as meter, plain_client() as http:
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
            open_run(LiveMode(Upstream(headers, api.url))) as meter,
            client(meter, **{"X-Portkey-Provider": "@b"}) as http,
        ):
            await http.post("/v1/messages", json=BODY)
    sent = api.requests[0].headers
    assert (sent["authorization"], sent["x-portkey-api-key"], sent["x-portkey-provider"]) == ("Bearer gw", "pk", "@a")
    assert "x-api-key" not in sent


async def test_a_key_that_the_api_quotes_does_not_reach_the_session() -> None:
    error = http_error(401, f"invalid key {KEY}", headers={"x-debug": KEY})
    with ScriptedApi([error]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter:
            answer = await ask(meter)
    assert meter.usage().errors == {"401": 1}
    assert KEY not in answer.text + str(answer.headers)
    assert answer.json()["error"]["message"] == "invalid key ***"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with ScriptedApi([]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            answer = await http.post("/v1/messages", content=body)
    assert answer.status_code == 400


async def test_two_runs_side_by_side_are_counted_apart() -> None:
    with ScriptedApi(lambda _: text("x", tokens=USED)) as api:
        async with ModelProxy(LiveMode(upstream(api.url)), REDACT) as proxy:
            with (
                proxy.session(run_label="a", budget_usd=None, placeholders={}) as first,
                proxy.session(run_label="b", budget_usd=None, placeholders={}) as second,
            ):
                async with anyio.create_task_group() as group:
                    for meter in (first, second, second):
                        group.start_soon(ask, meter)
            assert (await ask(first)).status_code == 401, "a token ends with its run"
    assert first.token != second.token
    assert (first.usage().requests, second.usage().requests) == (1, 2)
    assert second.usage().cost_usd == pytest.approx(2 * COST)
